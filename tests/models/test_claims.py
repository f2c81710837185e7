"""The sixteen claims of the export pipeline, each a property that tries to falsify it; named after their numbers.

Where the original claim is false, the test states the corrected one, and shows the counter-example to the original.
The official ``gguf`` package reads what is claimed about bytes wherever it can: our own reader proves nothing.
"""

from __future__ import annotations

import functools
import json
import os
import struct
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import ROOT
from thorough import tried

from miniquant.core.errors import FormatError, MetadataError, SchemeError, WriteError
from miniquant.formats.gguf import GGMLType
from miniquant.models.export import (
    Exporter,
    ExportFormat,
    GGUFQuantization,
    ModelMetadata,
    ModelWeights,
    PickleSecurityRisk,
    export_types,
    quantize_and_export,
    quantize_to_gguf_bytes,
    read_apr,
    verify_gguf,
)

CASES = 100
hundred = settings(max_examples=CASES, deadline=None, derandomize=True)
quantizations = st.sampled_from(list(GGUFQuantization))
names = st.text("abcdefghijklmnopqrstuvwxyz0123456789._", min_size=1, max_size=20)
finite = st.floats(-100, 100, width=32)


shapes = st.one_of(  # hypothesis examines a strategy once: here, and not at every draw
    st.tuples(st.integers(1, 40)),
    st.tuples(st.integers(1, 3), st.sampled_from([1, 7, 32, 33, 64])),
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.just(32)),
)
seeds = st.integers(0, 2**32 - 1)


def tensors(min_size=0, max_size=5):
    """Small float32 tensors by name: vectors, matrices of whole blocks and odd ones."""
    return st.dictionaries(names, st.tuples(shapes, seeds), min_size=min_size, max_size=max_size).map(
        lambda drawn: {
            name: np.random.default_rng(seed).normal(size=shape).astype(np.float32)
            for name, (shape, seed) in drawn.items()
        }
    )


architectures = st.none() | st.sampled_from(["gpt2", "llama"])
titles = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
counts = st.none() | st.integers(1, 2**40)
sizes = st.none() | st.integers(1, 2**31)


@st.composite
def metadata(draw):
    """Every combination of known and unknown fields that GGUF has a key for."""
    about = ModelMetadata(draw(architectures), model_name=draw(titles), num_params=draw(counts))
    if about.architecture is None:
        return about
    return replace(about, hidden_size=draw(sizes), num_layers=draw(sizes), vocab_size=draw(sizes))


weights = st.builds(ModelWeights, tensors(), metadata())


@pytest.fixture(autouse=True, scope="module")
def quick_disk():
    """Waiting for the disk after each of some thousand small files proves nothing here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield
    _folder.cache_clear()


@functools.cache
def _folder():
    """One for thousands of files, each of which is removed: to make and remove a folder takes longer than to write."""
    return tempfile.TemporaryDirectory()


def export(model, quantization=GGUFQuantization.NONE, **options):
    """The bytes of an exported GGUF file."""
    folder = _folder().name
    path = Exporter(folder, quantization, **options).export(model, ExportFormat.GGUF, "model.gguf").path
    data = path.read_bytes()
    path.unlink()
    assert os.listdir(folder) == []
    return data


def official(data):
    """The same bytes, read by the official package."""
    path = Path(_folder().name) / "model.gguf"
    path.write_bytes(data)
    reader = gguf.GGUFReader(path)
    fields = {k: (f.types[0].name, f.contents()) for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    found = [(t.name, t.tensor_type.name, tuple(map(int, t.shape)), np.array(t.data)) for t in reader.tensors]
    del reader  # it maps the file, which Windows does not remove meanwhile
    path.unlink()
    return fields, found


def expected_count(about, include, quantized):
    """C-003, corrected: the real keys, and the one that quantized tensors need whatever else is left out."""
    if not include:
        return int(quantized)
    given_fields = (about.architecture, about.model_name, about.hidden_size, about.num_layers, about.vocab_size)
    return 2 + sum(field is not None for field in given_fields)  # parameter_count and quantization_version


def is_quantized(model, quantization):
    return quantization != GGUFQuantization.NONE and any(
        w.ndim >= 2 and w.shape[-1] % 32 == 0 for w in model.tensors.values()
    )


@hundred
@given(weights, quantizations, st.booleans())
def test_c001_every_file_begins_with_the_magic_and_version_3(model, quantization, include):
    data = export(model, quantization, include_metadata=include)
    assert data[:4] == b"GGUF"
    assert struct.unpack_from("<I", data, 4) == (3,)


@hundred
@given(weights, quantizations)
def test_c002_the_tensor_count_of_the_header_is_the_number_of_tensors(model, quantization):
    data = export(model, quantization)
    assert struct.unpack_from("<Q", data, 8) == (len(model.tensors),)
    assert len(official(data)[1]) == len(model.tensors)


@hundred
@given(weights, quantizations, st.booleans())
def test_c003_the_metadata_count_of_the_header_is_the_number_of_real_keys(model, quantization, include):
    data = export(model, quantization, include_metadata=include)
    expected = expected_count(model.metadata, include, is_quantized(model, quantization))
    assert struct.unpack_from("<Q", data, 16) == (expected,)
    assert len(official(data)[0]) == expected


def test_c003_as_written_is_false_because_quantized_files_need_a_version_key():
    model = ModelWeights({"w": np.ones((1, 32), np.float32)})
    data = export(model, GGUFQuantization.Q8_0, include_metadata=False)  # the claim says 0 keys
    assert list(official(data)[0]) == ["general.quantization_version"]


def names_on_disk(data):
    """The names of the tensor infos of a file without metadata, one after another, by ``struct`` alone."""
    found, at = [], 24
    for _ in range(*struct.unpack_from("<Q", data, 8)):
        (length,) = struct.unpack_from("<Q", data, at)
        found.append(data[at + 8 : at + 8 + length].decode())
        (n_dims,) = struct.unpack_from("<I", data, at + 8 + length)
        at += 8 + length + 4 + 8 * n_dims + 4 + 8
    return found


def test_c004_twenty_tensors_stand_in_the_order_of_their_names_for_a_thousand_seeds():
    for seed in range(1000):
        letters = np.random.default_rng(seed).integers(33, 127, (20, 12))
        shuffled = {"".join(map(chr, row)): np.full((1, 32), i, np.float32) for i, row in enumerate(letters)}
        data = export(ModelWeights(shuffled), GGUFQuantization.NONE, include_metadata=False)
        assert names_on_disk(data) == sorted(shuffled), f"seed {seed}"
        if seed < 30:  # the official reader agrees, and the data went with its name
            found = official(export(ModelWeights(shuffled), list(GGUFQuantization)[seed % 3]))[1]
            assert [name for name, *_ in found] == sorted(shuffled), f"seed {seed}"
            assert all(kind != "F32" or (w == shuffled[name]).all() for name, kind, _, w in found), f"seed {seed}"


@hundred
@given(weights, quantizations, st.booleans())
def test_c005_the_same_input_gives_the_same_bytes(model, quantization, include):
    again = ModelWeights(dict(reversed(model.tensors.items())), model.metadata)
    first = export(model, quantization, include_metadata=include)
    assert first == export(again, quantization, include_metadata=include)


@hundred
@given(st.integers(1, 8), st.integers(1, 8))
def test_c006_q4_0_is_smaller_than_q8_0_is_smaller_than_f32(rows, blocks):
    """Corrected: for every tensor that is quantized at all, a matrix with rows of whole blocks."""
    model = ModelWeights({"w": np.ones((rows, 32 * blocks), np.float32)})
    sizes = [len(export(model, q)) for q in (GGUFQuantization.Q4_0, GGUFQuantization.Q8_0, GGUFQuantization.NONE)]
    assert sizes[0] < sizes[1] < sizes[2]


@hundred
@given(st.integers(1, 512))
@example(16)
@example(17)
def test_c006_with_a_padded_last_block_and_padded_tensors_the_tight_bound_is_17(n):
    data = np.ones(n, np.float32)
    q4, q8, f32 = (
        -(-len(quantize_to_gguf_bytes(data, q)[0]) // 32) * 32
        for q in (GGUFQuantization.Q4_0, GGUFQuantization.Q8_0, GGUFQuantization.NONE)
    )
    assert (q4 < q8 < f32) == (n >= 17)


@pytest.mark.parametrize("shape", [(33,), (4, 33), (1000,)])
def test_c006_as_written_is_false_for_tensors_that_ggml_would_not_quantize(shape):
    model = ModelWeights({"w": np.ones(shape, np.float32)})
    assert len(export(model, GGUFQuantization.Q4_0)) == len(export(model, GGUFQuantization.NONE))


@hundred
@given(st.integers(1, 512), st.integers(0, 2**32 - 1))
def test_c007_q4_0_takes_18_bytes_a_block(n, seed):
    data = np.random.default_rng(seed).normal(size=n).astype(np.float32)
    encoded, kind = quantize_to_gguf_bytes(data, GGUFQuantization.Q4_0)
    assert (len(encoded), kind) == (-(-n // 32) * 18, GGMLType.Q4_0)
    padded = np.pad(data, (0, -n % 32))
    assert encoded == gguf.quants.quantize(padded, gguf.GGMLQuantizationType.Q4_0).tobytes()


@hundred
@given(st.integers(1, 512), st.integers(0, 2**32 - 1))
def test_c008_q8_0_takes_34_bytes_a_block(n, seed):
    data = np.random.default_rng(seed).normal(size=n).astype(np.float32)
    encoded, kind = quantize_to_gguf_bytes(data, GGUFQuantization.Q8_0)
    assert (len(encoded), kind) == (-(-n // 32) * 34, GGMLType.Q8_0)
    padded = np.pad(data, (0, -n % 32))
    assert encoded == gguf.quants.quantize(padded, gguf.GGMLQuantizationType.Q8_0).tobytes()


@hundred
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=128))
@example([0x80000000, 0x00000001, 0x7F800000, 0xFF800000])
def test_c009_every_float32_comes_back_with_the_same_bits(bits):
    """NaN included, which the claim leaves out: a file of floats keeps whatever bits it is given."""
    data = np.array(bits, np.uint32).view(np.float32)
    ((_, kind, shape, found),) = official(export(ModelWeights({"w": data})))[1]
    assert (kind, shape) == ("F32", (len(bits),))
    assert found.view(np.uint32).tolist() == bits


@hundred
@given(tensors(min_size=1))
def test_c009_dims_are_reversed_on_disk_and_rows_stay_rows(found):
    """What the claim takes for granted: read at the correct offset, in the correct order of dims."""
    for name, kind, shape, data in official(export(ModelWeights(found)))[1]:
        assert shape == found[name].shape[::-1]
        assert kind == "F32"
        assert np.array_equal(data, found[name])


@pytest.mark.parametrize("quantization", GGUFQuantization)
def test_c010_empty_data_gives_empty_bytes(quantization):
    assert quantize_to_gguf_bytes(np.zeros(0, np.float32), quantization) == (b"", GGMLType[quantization.value])


@hundred
@given(quantizations, st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(lambda s: 0 in s))
def test_c010_empty_data_of_any_shape_gives_empty_bytes(quantization, shape):
    assert quantize_to_gguf_bytes(np.zeros(shape, np.float32), quantization)[0] == b""


@hundred
@given(weights, quantizations, names)
def test_c011_pytorch_is_refused_before_anything_touches_the_disk(model, quantization, name):
    with tempfile.TemporaryDirectory() as folder:
        missing = Path(folder) / "not" / "there"
        with pytest.raises(PickleSecurityRisk, match="runs code"):
            Exporter(missing, quantization).export(model, ExportFormat.PYTORCH, name)
        for extension in (".pt", ".bin"):
            with pytest.raises(PickleSecurityRisk):
                Exporter(missing, quantization).export_auto(model, "m" + extension)
        assert list(Path(folder).iterdir()) == []


KNOWN = {
    ".gguf": ExportFormat.GGUF,
    ".safetensors": ExportFormat.SAFETENSORS,
    ".apr": ExportFormat.APR,
    ".apr.json": ExportFormat.APR,
    ".pt": ExportFormat.PYTORCH,
    ".bin": ExportFormat.PYTORCH,
}


@hundred
@given(names.filter(lambda n: not n.startswith(".")), st.sampled_from(sorted(KNOWN)))
def test_c012_the_extension_names_the_format(stem, extension):
    assert ExportFormat.from_path(f"some/folder/{stem}{extension}") == KNOWN[extension]


@hundred
@given(names, st.text("abcdefghijklmnopqrstuvwxyz0123456789", max_size=12))
def test_c012_any_other_extension_names_none(stem, extension):
    path = f"{stem.replace('.', '_')}.{extension}"
    if f".{extension}" not in KNOWN:
        assert ExportFormat.from_path(path) is None
    assert ExportFormat.from_path(f"{stem.replace('.', '_')}.{extension}.json") in (None, ExportFormat.APR)


@hundred
@given(tensors(max_size=5), names, st.just(0) | st.integers(1, 200), quantizations)
def test_c013_one_more_tensor_makes_the_file_larger_even_an_empty_one(found, name, n, quantization):
    """A descriptor with one dim takes at least 33 bytes, and the padding at most 31."""
    more = {**found, name + "!": np.ones(n, np.float32)}
    before, after = (len(export(ModelWeights(t), quantization)) for t in (found, more))
    assert after >= before + 32 + (-(-4 * n // 32)) * 32


def test_c013_is_not_true_of_gguf_as_a_whole_because_a_larger_alignment_absorbs_a_descriptor():
    from miniquant.formats.gguf import write_gguf

    def size(found):
        with tempfile.TemporaryDirectory() as folder:
            write_gguf(Path(folder) / "a.gguf", found, {}, alignment=128)
            return (Path(folder) / "a.gguf").stat().st_size

    assert size({"a": np.zeros(0, np.float32)}) == size({})


@hundred
@given(
    weights, st.sampled_from([".gguf", ".safetensors", ".apr", ".apr.json", ".xyz", ""]), st.sampled_from(ExportFormat)
)
@example(ModelWeights({}), ".safetensors", ExportFormat.GGUF)
def test_c014_export_auto_goes_by_the_extension_and_falls_back_to_the_default(model, extension, default):
    expected = ExportFormat.from_path("m" + extension) or default
    with tempfile.TemporaryDirectory() as folder:
        exporter = Exporter(folder, default_format=default)
        if expected == ExportFormat.PYTORCH:
            with pytest.raises(PickleSecurityRisk):
                exporter.export_auto(model, "m" + extension)
            return
        result = exporter.export_auto(model, "m" + extension)
        assert (result.format, result.num_tensors) == (expected, len(model.tensors))
        data = result.path.read_bytes()
        assert result.size_bytes == len(data)
        if expected == ExportFormat.GGUF:
            assert data.startswith(b"GGUF")
        elif expected == ExportFormat.SAFETENSORS:
            loaded = safetensors.numpy.load(data)
            assert {n: w.tobytes() for n, w in loaded.items()} == {n: w.tobytes() for n, w in model.tensors.items()}
        else:
            again = read_apr(result.path)
            assert again.metadata == model.metadata
            assert {n: w.tobytes() for n, w in again.tensors.items()} == {
                n: w.tobytes() for n, w in model.tensors.items()
            }


UNITS = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3}


def size_said(text):
    """``"1.25 kB"``   ->   the bytes, and how far the last digit may be off."""
    number, unit = text.split(" ")
    digits = len(number.partition(".")[2])
    return float(number) * UNITS[unit], UNITS[unit] * 0.5 * 10**-digits + 1e-9


def lies(card, model, quantization, path):
    """Every statement of a model card that the official reader of the file, or the model itself, contradicts."""
    about, (_, found) = model.metadata, official(path.read_bytes())
    title = about.model_name or path.stem
    quantized = any(kind != "F32" for _, kind, *_ in found)
    none_fits = "" if quantized or quantization == GGUFQuantization.NONE else " (no tensor fits)"
    size = path.stat().st_size
    kinds = sorted({kind for _, kind, *_ in found})
    expected = [
        "---",
        "tags:",
        "- miniquant",
        "- gguf",
        *(["- quantized"] if quantized else []),
        f"model_name: {json.dumps(title)}",
        "---",
        f"# {title}",
        "",
        f"- Architecture: {about.architecture or 'not stated'}",
        f"- Quantization: {quantization.value}{none_fits}",
        ("- File: `model.gguf`, ", size),
        f"- Tensors: {len(found)}",
        f"- Parameters: {model.num_params:,}",
        "",
        "| type | tensors | size |",
        "| --- | --- | --- |",
    ]
    for kind in kinds:
        of_kind = [data.nbytes for _, other, _, data in found if other == kind]
        expected.append((f"| {kind} | {len(of_kind)} | ", sum(of_kind)))
    wrong, lines = [], card.split("\n")
    # a name may hold any text, also line ends of its own: compare whole lines of what is expected with what is there
    flat = [part for line in expected for part in (line.split("\n") if isinstance(line, str) else [line])]
    for line, said in zip(flat, lines):
        if isinstance(line, str):
            wrong += [] if said == line else [said]
            continue
        start, true = line
        if not said.startswith(start):
            wrong.append(said)
            continue
        number, allowed = size_said(said.removeprefix(start).removesuffix(" |"))
        wrong += [] if abs(number - true) <= allowed else [said]
    training = [f"- {key}: {value}" for key, value in about.training.items()]
    rest = "\n".join(lines[len(flat) :])
    wrong += [] if rest == "\n".join(["", "## Training", "", *training, ""] if training else [""]) else [rest]
    return wrong


@hundred
@given(weights, quantizations)
def test_c015_every_value_of_the_model_card_is_true(model, quantization):
    with tempfile.TemporaryDirectory() as folder:
        result = quantize_and_export(model, quantization, folder, "model.gguf")
        assert lies(result.readme, model, quantization, result.export.path) == []


@pytest.mark.parametrize(
    ("truth", "lie"),
    [
        ("- Parameters: 96", "- Parameters: 0"),
        ("- Tensors: 2", "- Tensors: 3"),
        ("- Architecture: gpt2", "- Architecture: llama"),
        ("| Q8_0 | 1 | 68 B |", "| Q8_0 | 1 | 0 B |"),
        ("| F32 | 1 |", "| F32 | 2 |"),
        ("# a name", "# another name"),
        ("- quantized\n", ""),
        ("- Quantization: Q8_0", "- Quantization: Q4_0"),
        ("kB", "MB"),
    ],
)
def test_c015_a_lie_on_the_model_card_is_found(tmp_path, truth, lie):
    tensors = {"w": np.ones((2, 32), np.float32), "v": np.ones(32, np.float32)}
    model = ModelWeights(tensors, ModelMetadata("gpt2", "a name", training={"note": "x"}))
    result = quantize_and_export(model, GGUFQuantization.Q8_0, tmp_path, "model.gguf")
    card = result.readme
    if truth not in card:
        size = result.export.path.stat().st_size
        assert truth == "kB" and size < 1000, f"the card has no {truth!r}:\n{card}"
        truth, lie = f"{size} B", f"{size + 1} B"
    assert truth in card, card
    assert lies(card.replace(truth, lie, 1), model, GGUFQuantization.Q8_0, result.export.path) != []


TYPES = {
    "general.architecture": "STRING",
    "general.name": "STRING",
    "general.parameter_count": "UINT64",
    "general.quantization_version": "UINT32",
    "embedding_length": "UINT32",
    "block_count": "UINT32",
    "vocab_size": "UINT32",
}


@hundred
@given(weights, quantizations)
def test_c016_every_key_is_a_real_one_and_has_its_type(model, quantization):
    about = model.metadata
    found, _ = official(export(model, quantization))
    for key, (kind, _) in found.items():
        name = key.removeprefix(f"{about.architecture}.")
        assert TYPES[name] == kind, key
    values = {key: value for key, (_, value) in found.items()}
    assert values.get("general.architecture") == about.architecture
    assert values.get("general.name") == about.model_name
    assert values["general.parameter_count"] == model.num_params
    assert values.get(f"{about.architecture}.embedding_length") == about.hidden_size
    assert values.get(f"{about.architecture}.block_count") == about.num_layers
    assert values.get(f"{about.architecture}.vocab_size") == about.vocab_size
    assert values["general.quantization_version"] == 2  # ggml.h, GGML_QNT_VERSION


def test_a_size_without_an_architecture_has_no_key_and_is_refused_not_dropped():
    model = ModelWeights({}, ModelMetadata(hidden_size=4))
    with pytest.raises(MetadataError, match="begins with the architecture"):
        export(model)


ACCEPTANCE = {  # criterion -> the tests that hold it
    "AC-01": [test_c001_every_file_begins_with_the_magic_and_version_3],
    "AC-02": [test_c002_the_tensor_count_of_the_header_is_the_number_of_tensors],
    "AC-03": [test_c003_the_metadata_count_of_the_header_is_the_number_of_real_keys],
    "AC-04": [test_c004_twenty_tensors_stand_in_the_order_of_their_names_for_a_thousand_seeds],
    "AC-05": [test_c005_the_same_input_gives_the_same_bytes],
    "AC-06": [test_c006_q4_0_is_smaller_than_q8_0_is_smaller_than_f32],
    "AC-07": [test_c009_every_float32_comes_back_with_the_same_bits],
    "AC-08": [test_c011_pytorch_is_refused_before_anything_touches_the_disk],
    "AC-09": [test_c014_export_auto_goes_by_the_extension_and_falls_back_to_the_default],
}


def is_property(test):
    """Whether a test runs at least a hundred cases: by hypothesis, or the thousand seeds of C-004."""
    settings = getattr(test, "_hypothesis_internal_use_settings", None)
    return "thousand_seeds" in test.__name__ or (settings is not None and settings.max_examples >= 100)


@pytest.mark.parametrize("criterion", ACCEPTANCE)
def test_ac01_to_ac09_are_held_by_properties_of_at_least_a_hundred_cases(criterion):
    assert all(is_property(test) for test in ACCEPTANCE[criterion])


def test_ac10_all_sixteen_claims_are_properties_of_at_least_a_hundred_cases():
    """The document says 143 tests, whose own counts add up to 130; what matters is that every claim is attacked."""
    tests = {name: test for name, test in globals().items() if name.startswith("test_c0")}
    assert {int(name[6:9]) for name, test in tests.items() if is_property(test)} == set(range(1, 17))


def test_ac11_the_export_modules_are_lint_clean():
    source = ROOT / "src" / "miniquant"
    command = [sys.executable, "-m", "ruff", "check", str(source / "models" / "export.py"), str(source / "formats")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_ac12_a_hundred_and_twenty_tensors_in_one_file(tmp_path):
    random = np.random.default_rng(0)
    found = {f"blk.{i}.w": random.normal(size=(i % 5 + 1, 64)).astype(np.float32) for i in range(120)}
    for quantization in GGUFQuantization:
        result = Exporter(tmp_path, quantization).export(ModelWeights(found), ExportFormat.GGUF, "stress.gguf")
        assert verify_gguf(result.path).tensor_count == 120
        _, read = official(result.path.read_bytes())
        assert len(read) == 120
        for name, kind, shape, data in read:
            assert kind == quantization.value
            assert shape == found[name].shape[::-1]
            raw = quantize_to_gguf_bytes(found[name], quantization)[0]
            assert data.tobytes() == raw


@settings(max_examples=tried(40, CASES), deadline=None, derandomize=True)
@given(weights, quantizations, st.data())
def test_verify_notices_truncation_anywhere_in_the_data(model, quantization, data):
    whole = export(model, quantization)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cut.gguf"
        path.write_bytes(whole)
        summary = verify_gguf(path)
        used = sum(size for *_, size in summary.tensors.values())
        if not used:
            return
        last_end = len(whole) - 32 + (min(size for *_, size in summary.tensors.values()) > 0)
        cut = data.draw(st.integers(0, min(last_end, len(whole) - 32)))
        path.write_bytes(whole[:cut])
        with pytest.raises(FormatError):
            verify_gguf(path)


@pytest.mark.parametrize("name", ["../model.gguf", "/model.gguf", "", "a/../../b.gguf"])
def test_a_file_name_that_leaves_the_output_folder_is_refused(tmp_path, name):
    with pytest.raises(SchemeError, match="leaves the output folder"):
        Exporter(tmp_path).export(ModelWeights({}), ExportFormat.GGUF, name)


@pytest.mark.parametrize("format", ExportFormat, ids=str)
def test_the_extension_of_every_format_is_the_one_that_from_path_knows_it_by(format):
    assert ExportFormat.from_path(f"a/b.c/model.{format.extension}") is format
    assert ExportFormat.from_path(f"model.{format.extension}".upper()) is format


def test_every_format_but_the_pickle_is_safe_and_has_a_name_for_people():
    assert {str(format): format.is_safe for format in ExportFormat} == {
        "GGUF": True, "SafeTensors": True, "APR": True, "PyTorch": False,
    }  # fmt: skip
    assert f"{ExportFormat.SAFETENSORS}" == "SafeTensors"


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, "path", "text"])
def test_verify_takes_the_bytes_of_a_file_or_its_path(form, tmp_path):
    model = ModelWeights({"w": np.ones((2, 32), np.float32)}, ModelMetadata("gpt2", "m"))
    path = Exporter(tmp_path, GGUFQuantization.Q8_0).export(model, ExportFormat.GGUF, "m.gguf").path
    data = path.read_bytes()

    def given_as(data):
        (path := tmp_path / "given.gguf").write_bytes(data)
        return {"path": path, "text": str(path)}[form] if isinstance(form, str) else form(data)

    summary = verify_gguf(given_as(data))
    fields, found = official(data)
    assert summary.tensors == {n: (kind, shape[::-1], raw.nbytes) for n, kind, shape, raw in found}
    assert (summary.tensor_count, summary.metadata_count, summary.file_bytes) == (1, len(fields), len(data))
    with pytest.raises(FormatError):
        verify_gguf(given_as(data[:-29]))  # the last byte of the tensor, before its padding
    with pytest.raises(FormatError):
        verify_gguf(given_as(b"GGML" + data[4:]))


@pytest.mark.parametrize("format", [ExportFormat.SAFETENSORS, ExportFormat.APR], ids=str)
@pytest.mark.parametrize("quantization", [GGUFQuantization.Q4_0, GGUFQuantization.Q8_0])
def test_a_quantization_for_a_format_that_stores_float32_is_refused_before_anything_is_written(
    format, quantization, tmp_path
):
    exporter = Exporter(tmp_path / "new", quantization, default_format=format)
    model, name = ModelWeights({"w": np.ones((2, 32), np.float32)}), f"m.{format.extension}"
    said = rf"gguf_quantization={quantization.name} is for GGUF files, and {name} is to be {format}.* leave .* out"
    for call in (lambda: exporter.export(model, format, name), lambda: exporter.export_auto(model, name)):
        with pytest.raises(SchemeError, match=said):
            call()
    with pytest.raises(SchemeError, match=f"m is to be {format}"):
        exporter.export_auto(model, "m")
    assert list(tmp_path.iterdir()) == []


def test_include_metadata_counts_in_every_format(tmp_path):
    model = ModelWeights({"w": np.ones((2, 32), np.float32)}, ModelMetadata("gpt2", "a name"))
    read = {
        ExportFormat.SAFETENSORS: lambda path: safetensors.safe_open(path, "numpy").metadata() or {},
        ExportFormat.APR: lambda path: {k: v for k, v in json.loads(path.read_text())["metadata"].items() if v},
        ExportFormat.GGUF: lambda path: official(path.read_bytes())[0],
    }
    for format, metadata_of in read.items():
        told, silent = (
            Exporter(tmp_path, include_metadata=include).export(model, format, f"{include}.{format.extension}").path
            for include in (True, False)
        )
        assert "a name" in str(metadata_of(told))
        assert metadata_of(silent) == {}


def test_vectors_and_odd_rows_stay_f32_because_llama_cpp_wants_it():
    kinds = export_types({"bias": (64,), "odd": (4, 33), "matrix": (4, 64)}, GGUFQuantization.Q4_0)
    assert {name: kind.name for name, kind in kinds.items()} == {"bias": "F32", "odd": "F32", "matrix": "Q4_0"}


def test_the_model_card_lies_beside_its_file_and_replaces_only_a_card(tmp_path):
    model = ModelWeights({"w": np.ones((4, 32), np.float32)}, ModelMetadata(model_name="größe"))
    for quantization in (GGUFQuantization.Q8_0, GGUFQuantization.NONE):
        card = quantize_and_export(model, quantization, tmp_path, "m.gguf").readme
        assert (tmp_path / "README.md").read_text("utf-8") == card
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "m.gguf"]
    quantize_and_export(model, GGUFQuantization.Q8_0, tmp_path, "deeper/m.gguf")
    assert sorted(path.name for path in (tmp_path / "deeper").iterdir()) == ["README.md", "m.gguf"]
    (tmp_path / "README.md").write_text("# My own project")
    before = (tmp_path / "m.gguf").read_bytes()
    with pytest.raises(WriteError, match=r"README\.md: the one there is no model card of miniquant; choose another"):
        quantize_and_export(model, GGUFQuantization.Q4_0, tmp_path, "m.gguf")
    assert (tmp_path / "m.gguf").read_bytes() == before
    assert (tmp_path / "README.md").read_text() == "# My own project"


@pytest.mark.parametrize("name", ["README.md", "readme.md"])
def test_a_model_that_would_be_overwritten_by_its_own_card_is_refused(name, tmp_path):
    model = ModelWeights({"w": np.ones((4, 32), np.float32)})
    with pytest.raises(WriteError, match="is the name of its model card; choose another file name"):
        quantize_and_export(model, GGUFQuantization.Q8_0, tmp_path, name)
    with pytest.raises(SchemeError, match="leaves the output folder"):
        quantize_and_export(model, GGUFQuantization.Q8_0, tmp_path / "inner", "../m.gguf")
    assert list(tmp_path.iterdir()) == []
