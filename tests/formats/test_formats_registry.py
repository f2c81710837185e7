"""One registry of formats: every format opens from a path and from bytes, under the same names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bump_models import TINY, write_llama

from miniquant import FormatError, TensorInfo, write_gguf_lite
from miniquant.core.errors import PickleSecurityRisk
from miniquant.formats.apr.write import write_apr
from miniquant.formats.bump import open_bump, write_bump
from miniquant.formats.describe import describe
from miniquant.formats.fields import fields, parse
from miniquant.formats.ggml_legacy.types import HPARAMS
from miniquant.formats.ggml_legacy.write import ggml_bytes
from miniquant.formats.gguf import write_gguf
from miniquant.formats.registry import format_of, format_of_name, formats, head_of, open_any
from miniquant.formats.safetensors.write import write_safetensors
from miniquant.inspect.hexview import hexview

W = {
    "blk.0.w": np.arange(-64, 64, dtype=np.float32).reshape(2, 64) / 7,
    "größe": np.array([1.5, -2.25, 0.1], np.float32),
}


def _gguf_lite(path: Path) -> None:
    write_gguf_lite(path, W, {"blk.0.w": "q4_per_group_64"})


def _gguf(path: Path) -> None:
    write_gguf(path, W | {"blk.0.w": (W["blk.0.w"], "Q8_0")}, {"general.architecture": "llama"})


def _bump(path: Path) -> None:
    write_llama(path.with_name("source.gguf"), TINY)
    write_bump(path.with_name("source.gguf"), path)


def _ggml(path: Path) -> None:
    path.write_bytes(ggml_bytes(dict(zip(HPARAMS, (2, 8, 2, 1, 1, 1))), [b"a", b"bc"], W))


WRITERS = {
    "apr": lambda path: write_apr(path, W, {"architecture": "gpt2"}),
    "bump": _bump,
    "ggml": _ggml,
    "gguf": _gguf,
    "gguf-lite": _gguf_lite,
    "safetensors": lambda path: write_safetensors(path, W, {"format": "np"}),
}
OPENED = sorted(formats().keys() - {"pickle"})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of every format, each in a folder of its own."""
    found = {}
    for name in OPENED:
        path = tmp_path_factory.mktemp(name) / f"model{formats()[name].extensions[0]}"
        WRITERS[name](path)
        found[name] = path
    return found


def beside(path):
    config = path.with_name("config.json")
    return {"config.json": config.read_bytes()} if config.exists() else {}


def test_every_format_of_the_registry_has_a_writer_in_this_test():
    assert WRITERS.keys() == formats().keys() - {"pickle"}


def test_every_folder_of_formats_is_in_the_registry():
    root = Path(sys.modules["miniquant.formats"].__path__[0])
    assert len(formats()) == len([p for p in root.iterdir() if (p / "__init__.py").exists()])


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_file_opens_from_path_and_bytes_with_equal_tensors(name, kind, files):
    path = files[name]
    assert format_of(path).name == name
    with open_any(path) as one, open_any(kind(path.read_bytes()), beside(path)) as two:
        assert (one.path, two.path) == (str(path), None)
        assert one.tensors == two.tensors and one.metadata == two.metadata and one.n_bytes == two.n_bytes
        assert list(one.tensors) and type(one) is type(two)
        for tensor in one.tensors:
            assert one.raw(tensor).tobytes() == two.raw(tensor).tobytes()
            a, b = one.tensor(tensor), two.tensor(tensor)
            assert a.dtype == np.float32 and a.shape == one.tensors[tensor].shape and a.flags.writeable
            assert np.array_equal(a, b)


@pytest.mark.parametrize("name", OPENED)
def test_the_infos_of_every_format_have_the_same_names_and_lie_where_they_say(name, files):
    data = files[name].read_bytes()
    with open_any(files[name]) as file:
        for key, info in file.tensors.items():
            assert type(info) is TensorInfo and info.name == key
            start = file.data_start + info.offset
            assert file.raw(key).tobytes() == data[start : start + info.n_bytes]
            assert isinstance(info.dtype.name, str) and info.dtype.block >= 1 and info.dtype.description
            assert info.length is not None or info.n_bytes == info.dtype.bytes_of(info.shape)


@pytest.mark.parametrize("name", sorted(formats().keys() - {"pickle", "bump", "gguf-lite", "gguf"}))
def test_a_format_without_quantized_types_gives_back_what_was_written(name, files):
    with open_any(files[name]) as file:
        for key, w in W.items():
            exact = file.tensors[key].dtype.name == "F32"
            assert np.array_equal(file.tensor(key), w if exact else w.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("name", OPENED)
def test_every_format_is_described_in_the_same_form_from_path_and_bytes(name, files):
    found = describe(files[name])
    assert found == describe(files[name].read_bytes(), beside(files[name]))
    assert (found.format, found.version) == (name, formats()[name].version)
    assert found.n_bytes == files[name].stat().st_size and 0 < found.overhead < found.n_bytes
    assert sum(count for count, _ in found.by_type().values()) == len(found.tensors)


@pytest.mark.parametrize("name", [name for name in OPENED if formats()[name].fields])
def test_the_fields_are_the_same_from_path_and_bytes(name, files):
    path = files[name]
    one, two = parse(path), parse(path.read_bytes(), beside(path))
    assert one[1] is None and two[1] is None
    assert [(f.name, f.start, f.end, f.category, f.text()) for f in one[0]] == [
        (f.name, f.start, f.end, f.category, f.text()) for f in two[0]
    ]
    at = one[0][-1].name
    shown = repr(hexview(path.read_bytes(), at, beside=beside(path))).split("\n")[1:]
    assert shown == repr(hexview(path, at)).split("\n")[1:]


@pytest.mark.parametrize("name", OPENED)
def test_every_extension_leads_to_its_format(name):
    for extension in formats()[name].extensions:
        assert format_of_name(f"a/Model{extension.upper()}").name == name


def test_the_message_about_an_unknown_file_lists_every_format_of_the_registry(tmp_path):
    (tmp_path / "x").write_bytes(b"nothing that anybody knows")
    with pytest.raises(FormatError) as caught:
        open_any(tmp_path / "x")
    assert caught.value.field == "header.magic" and str(tmp_path / "x") in str(caught.value)
    for format in formats().values():
        assert f"{format.title} files begin with {format.begins}" in str(caught.value)


@pytest.mark.parametrize("head", [b"PK\x03\x04 and so on", b"\x80\x02}q\x00.", b"\x80\x04\x95"])
def test_a_pickle_is_refused_by_name(head, tmp_path):
    (tmp_path / "m.pt").write_bytes(head)
    for source in (tmp_path / "m.pt", head):
        with pytest.raises(PickleSecurityRisk, match="this is a pickle"):
            open_any(source)


def test_a_bump_file_in_bytes_needs_its_config(files):
    data = files["bump"].read_bytes()
    with pytest.raises(FormatError, match=r"pass the config\.json that belongs to them"):
        open_bump(data)
    config = files["bump"].with_name("config.json")
    for given in (config, config.read_bytes()):
        with open_bump(data, given) as file:
            assert file.config.architecture == "llama"
    with pytest.raises(FormatError, match=r"config\.json"):
        open_bump(data, config.read_bytes().replace(b"silu", b"gelu"))
    assert [f.name for f in fields(data)][-1] == "unread"  # header and types have names, the tensors have not


def test_bytes_that_change_later_do_not_change_an_open_file():
    data = bytearray(ggml_bytes(dict(zip(HPARAMS, (0, 8, 2, 1, 1, 0))), [], W))
    with open_any(data) as file:
        data[:] = bytes(len(data))
        assert np.array_equal(file.tensor("größe"), W["größe"])


@pytest.fixture(scope="module")
def modules(files) -> dict[str, list[str]]:
    """What is loaded after the opening of each file, by a process that forgets what the opening of another loaded."""
    code = (
        "import json, sys\n"
        "from miniquant.formats.registry import open_any\n"
        "before = set(sys.modules)\n"
        "for path in sys.argv[1:]:\n"
        "    for name in set(sys.modules) - before:\n"
        "        del sys.modules[name]\n"
        "    file = open_any(path)\n"
        "    print(json.dumps(sorted(sys.modules)))"
    )
    paths = [files[name] for name in OPENED]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    return dict(zip(OPENED, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", OPENED)
def test_opening_a_file_loads_no_other_format_s_reader_and_no_torch(name, modules):
    loaded = modules[name]
    assert "torch" not in loaded
    readers = {
        module.split(".")[2] for module in loaded if module.startswith("miniquant.") and module.endswith(".read")
    }
    own = {"gguf-lite": "gguf_lite", "ggml": "ggml_legacy"}.get(name, name)
    assert readers <= {own, "gguf_lite"} | ({"gguf"} if name == "bump" else set())  # miniquant itself has GGUF-lite's


def test_a_file_of_no_format_is_refused_at_its_first_byte_and_only_its_head_is_read(tmp_path):
    path = tmp_path / "m"
    with path.open("wb") as file:
        file.truncate(2**29)
    assert head_of(path) == bytes(16)
    for source in (path, b"abcdefgh" * 3):
        with pytest.raises(FormatError, match="GGUF files begin with") as caught:
            format_of(source)
        assert (caught.value.field, caught.value.offset) == ("header.magic", 0)
    assert "found b'abcd'" in str(caught.value)


def test_a_file_that_says_nothing_of_its_model_has_an_unknown_one_and_no_alignment():
    with open_any(b'{"metadata": {}, "tensors": {}, "version": 1}') as file:
        assert (file.architecture, file.alignment) == ("unknown", 1)
    with open_any((2).to_bytes(8, "little") + b"{}") as file:
        assert (file.architecture, file.alignment, file.version) == ("unknown", 1, None)
