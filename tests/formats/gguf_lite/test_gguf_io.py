"""GGUF-lite: reference bytes spelled out by hand, an independent parser, and round trips to the bit."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from thorough import tried
from toy_lite import TOY_BYTES, TOY_READ, write_toy

from conformance.gguf_lite_files import F16, F32, Q8
from miniquant import PRESETS, DType, fake_quantize_state, open_gguf_lite, preset, read_gguf_lite, write_gguf_lite
from miniquant.models.minigpt import MiniGPT, MiniGPTConfig, random_model

# ---- the toy file, byte by byte --------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gguf-lite"


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_writer_produces_the_toy_file_byte_for_byte(kind, path):
    write_toy(path, kind)
    assert path.read_bytes() == TOY_BYTES


def test_the_reader_reads_the_toy_file_as_worked_out_by_hand(path):
    path.write_bytes(TOY_BYTES)
    weights = read_gguf_lite(path)
    assert list(weights) == list(TOY_READ)
    for name, expected in TOY_READ.items():
        assert weights[name].dtype == torch.float32
        assert weights[name].tolist() == expected
    assert [tuple(w.shape) for w in weights.values()] == [(3,), (2, 1), (3, 4), (1, 128), ()]
    with open_gguf_lite(path) as file:
        assert file.metadata == {"dims_order": "out,in", "group_size": "64", "name": "toy é"}
        assert [(i.name, i.shape, i.dtype, i.offset, i.n_bytes) for i in file.tensors.values()] == [
            ("bias", (3,), DType.F32, 0, 12),
            ("half", (2, 1), DType.F16, 12, 4),
            ("eight", (3, 4), DType.Q8_PER_CHANNEL, 16, 18),
            ("four", (1, 128), DType.Q4_PER_GROUP_64, 34, 68),
            ("one", (), DType.F32, 102, 4),
        ]
        assert file.data_start == 16 + 43 + 20 + 24 + 25 + 24 + 15  # header, metadata, five descriptors


def test_the_toy_file_holds_a_hundred_and_six_bytes_of_data_behind_its_descriptors():
    assert len(TOY_BYTES) == 16 + 43 + (20 + 24 + 25 + 24 + 15) + (12 + 4 + 18 + 68 + 4)


# ---- an independent referee: struct and nothing else -----------------------------------------------------------------


def parse(data: bytes) -> tuple[dict[str, str], dict[str, tuple[tuple[int, ...], int, list[float]]]]:
    """metadata, and name -> (dims, dtype, weights): another reading of the assignment's page, without the library."""
    magic, version, n_tensors, metadata_len = struct.unpack_from("<4I", data)
    assert (magic, version) == (0x474C4654, 1)
    text = data[16 : 16 + metadata_len].decode()
    metadata = dict(line.split("=", 1) for line in text.split("\n")) if text else {}
    at, found = 16 + metadata_len, []
    for _ in range(n_tensors):
        (name_len,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + name_len].decode()
        at += 2 + name_len
        n_dims = data[at]
        dims = struct.unpack_from(f"<{n_dims}I", data, at + 1)
        dtype, offset = struct.unpack_from("<BQ", data, at + 1 + 4 * n_dims)
        at += 1 + 4 * n_dims + 9
        found.append((name, dims, dtype, offset))
    return metadata, {n: (dims, dtype, weights_at(data, at + off, dims, dtype)) for n, dims, dtype, off in found}


def weights_at(data: bytes, at: int, dims: tuple[int, ...], dtype: int) -> list[float]:
    count = math.prod(dims)
    if dtype == F32:
        return list(struct.unpack_from(f"<{count}f", data, at))
    if dtype == F16:
        return list(struct.unpack_from(f"<{count}e", data, at))
    per_scale = dims[1] if dtype == Q8 else 64
    n_scales = dims[0] if dtype == Q8 else count // 64
    scales = struct.unpack_from(f"<{n_scales}e", data, at)
    at += 2 * n_scales
    if dtype == Q8:
        integers = struct.unpack_from(f"<{count}b", data, at)
    else:
        integers = []
        for byte in data[at : at + count // 2]:
            for nibble in (byte & 15, byte >> 4):
                integers.append(nibble - 16 if nibble >= 8 else nibble)
    products = [q * scales[i // per_scale] for i, q in enumerate(integers)]
    return list(struct.unpack(f"<{count}f", struct.pack(f"<{count}f", *products)))


def same_bits(a: list[float], b: np.ndarray) -> bool:
    return struct.pack(f"<{len(a)}f", *a) == np.ascontiguousarray(b, "<f4").tobytes()


def test_the_independent_parser_reads_the_toy_file_as_worked_out_by_hand():
    metadata, tensors = parse(TOY_BYTES)
    assert metadata == {"dims_order": "out,in", "group_size": "64", "name": "toy é"}
    for name, expected in TOY_READ.items():
        assert tensors[name][2] == np.array(expected, np.float32).reshape(-1).tolist()


@pytest.mark.parametrize("name", PRESETS)
def test_the_independent_parser_agrees_with_the_reader_for_every_preset(name, path):
    model = random_model(3)
    write_gguf_lite(path, model, preset(name, model), {"author": "Zoë", "note": "a=b=c"})
    metadata, tensors = parse(path.read_bytes())
    assert metadata["author"] == "Zoë"
    assert metadata["note"] == "a=b=c"
    with open_gguf_lite(path) as file:
        assert file.metadata == metadata
        assert list(file.tensors) == list(tensors) == list(model.state_dict())
        for key, (dims, dtype, weights) in tensors.items():
            assert (file.tensors[key].shape, file.tensors[key].dtype) == (dims, dtype)
            assert same_bits(weights, file.tensor(key))


# ---- round trips -----------------------------------------------------------------------------------------------------


def assert_equal_to_the_bit(a, b) -> None:
    """Same names in the same order, same shapes, same bits."""
    assert list(a) == list(b)
    for name in a:
        x, y = (np.asarray(w) for w in (a[name], b[name]))
        assert x.dtype == y.dtype == np.float32
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes(), name


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", PRESETS)
def test_reloaded_weights_equal_fake_quantized_weights_to_the_bit(name, seed, path):
    model = random_model(seed)
    schemes = preset(name, model)
    write_gguf_lite(path, model, schemes)
    assert_equal_to_the_bit(fake_quantize_state(model, schemes), read_gguf_lite(path))


@pytest.mark.parametrize("name", PRESETS)
def test_reloaded_weights_of_the_trained_model_equal_fake_quantized_weights_to_the_bit(name, path, trained):
    schemes = preset(name, trained)
    write_gguf_lite(path, trained, schemes)
    assert_equal_to_the_bit(fake_quantize_state(trained, schemes), read_gguf_lite(path))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
keys = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="=\n"), min_size=1, max_size=8)
values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=20)
own_keys = {"dims_order", "group_size", "architecture"}
sides = st.integers(0, 5)
small = st.floats(-60000, 60000, width=32)


@st.composite
def state_dicts(draw):
    """name -> (array, scheme): any shape that the scheme can hold, weights from a few floats and many random ones."""
    state, schemes = {}, {}
    for name in draw(st.lists(names, max_size=4, unique=True)):
        scheme = draw(st.sampled_from(["f32", "f16", "q8_per_channel", "q4_per_group_64", None]))
        if scheme == "q4_per_group_64":
            shape = (draw(sides), 64 * draw(st.integers(0, 2)))
        elif scheme == "q8_per_channel":
            shape = (draw(sides), draw(sides))
        else:
            shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
        state[name] = draw(hnp.arrays(np.float32, shape, elements=small, fill=small))
        if scheme:
            schemes[name] = scheme
    return state, schemes


@given(state_dicts(), st.dictionaries(keys, values, max_size=3), st.booleans())
@settings(max_examples=tried(20, 80))
def test_any_state_dict_and_metadata_survive_the_file_to_the_bit(tmp_path, model, metadata, as_torch):
    (state, schemes), path = model, tmp_path / "any.gguf-lite"
    metadata = {k: v for k, v in metadata.items() if k not in own_keys}
    if as_torch:
        state = {name: torch.from_numpy(w) for name, w in state.items()}
    write_gguf_lite(path, state, schemes, metadata)
    assert_equal_to_the_bit(fake_quantize_state(state, schemes), read_gguf_lite(path))
    with open_gguf_lite(path) as file:
        assert file.metadata == {"dims_order": "out,in", "group_size": "64", **metadata}
        assert [file.tensors[n].dtype.scheme for n in state] == [schemes.get(n, "f32") for n in state]
        assert sum(i.n_bytes for i in file.tensors.values()) == file.n_bytes - file.data_start  # no padding
    parsed_metadata, tensors = parse(path.read_bytes())
    assert parsed_metadata["group_size"] == "64"
    for name, weights in read_gguf_lite(path).items():
        assert same_bits(tensors[name][2], weights.numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("scheme", ["f32", "f16", "q8_per_channel", "q4_per_group_64"])
def test_a_model_of_another_floating_type_is_written_as_its_float32_values(dtype, scheme, path):
    w = torch.randn(4, 128, generator=torch.Generator().manual_seed(0)).to(dtype)
    write_gguf_lite(path, {"w": w}, {"w": scheme})
    assert_equal_to_the_bit(fake_quantize_state({"w": w.float()}, {"w": scheme}), read_gguf_lite(path))
    assert_equal_to_the_bit(fake_quantize_state({"w": w}, {"w": scheme}), read_gguf_lite(path))


def test_float16_and_bfloat16_models_need_no_scheme_to_be_stored_as_f32(path):
    for dtype in (torch.float16, torch.bfloat16):
        w = torch.tensor([1.5, -0.1]).to(dtype)
        write_gguf_lite(path, {"w": w}, {})
        assert torch.equal(read_gguf_lite(path)["w"], w.float())


def test_views_are_written_as_their_copies_are(path):
    base = np.random.default_rng(0).normal(size=(128, 128)).astype(np.float32)
    for view in (base.T, base[::-1], base[:, ::-1], np.broadcast_to(base[0], (3, 128)), base.astype(">f4")):
        for scheme in ("f32", "f16", "q8_per_channel", "q4_per_group_64"):
            write_gguf_lite(path, {"w": view}, {"w": scheme})
            written = path.read_bytes()
            write_gguf_lite(path, {"w": np.array(view, np.float32)}, {"w": scheme})
            assert written == path.read_bytes()
            if view.dtype == np.float32 and min(view.strides) >= 0:
                write_gguf_lite(path, {"w": torch.from_numpy(np.array(base)).as_strided(*strided(view))}, {"w": scheme})
                assert written == path.read_bytes()


def strided(view: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return view.shape, tuple(s // 4 for s in view.strides)


def test_special_float_values_keep_their_bits(path):
    w = np.array([0.0, -0.0, 1e-45, -1e-40, np.finfo(np.float32).max, np.finfo(np.float32).tiny], np.float32)
    write_gguf_lite(path, {"w": w}, {})
    assert read_gguf_lite(path)["w"].numpy().tobytes() == w.tobytes()
    half = np.array([0.0, -0.0, 2.0**-24, -(2.0**-14), 65504.0, 65519.0], np.float32)
    write_gguf_lite(path, {"w": half}, {"w": "f16"})
    assert read_gguf_lite(path)["w"].tolist() == [0.0, -0.0, 2.0**-24, -(2.0**-14), 65504.0, 65504.0]
    assert read_gguf_lite(path)["w"].numpy().tobytes()[4:8] == bytes.fromhex("00 00 00 80")


def test_the_same_model_twice_gives_the_same_bytes(tmp_path):
    files = []
    for attempt in range(2):
        model = random_model(5)
        path = tmp_path / f"{attempt}.gguf-lite"
        write_gguf_lite(path, model, preset("int4", model), {"b": 1, "a": 2})
        write_gguf_lite(path, model, preset("int4", model), {"b": 1, "a": 2})
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_a_module_and_its_state_dict_hold_the_same_tensors(tmp_path):
    model = random_model(1)
    write_gguf_lite(tmp_path / "module", model, preset("int8", model))
    write_gguf_lite(tmp_path / "state", model.state_dict(), preset("int8", model.state_dict()))
    with open_gguf_lite(tmp_path / "module") as a, open_gguf_lite(tmp_path / "state") as b:
        assert a.tensors == b.tensors
        for name in a.tensors:
            assert np.array_equal(a.raw(name), b.raw(name))


def test_the_metadata_tells_what_is_needed_to_rebuild_the_model(path):
    model = random_model()
    write_gguf_lite(path, model, {}, {"group_size": 64, "licence": "MIT"})  # saying the same again is no conflict
    with open_gguf_lite(path) as file:
        assert file.metadata == {
            "dims_order": "out,in",
            "group_size": "64",
            "architecture": "MiniGPT",
            "config.vocab_size": "64",
            "config.context": "32",
            "config.d_model": "64",
            "config.n_layers": "2",
            "config.n_heads": "2",
            "config.d_mlp": "128",
            "config.layer_norm_epsilon": "1e-05",
            "licence": "MIT",
        }


def test_any_config_with_a_to_dict_is_recorded(path):
    class Config:
        def to_dict(self):
            return {"width": 2, "tied": True, "kinds": ["a", 1], "dtype": torch.float32, "none": None}

    class Tiny(torch.nn.Linear):
        config = Config()

    write_gguf_lite(path, Tiny(2, 2), {})
    metadata = open_gguf_lite(path).metadata
    assert metadata["config.width"] == "2"
    assert metadata["config.kinds"] == '["a", 1]'
    assert metadata["config.dtype"] == '"torch.float32"'
    assert metadata["architecture"] == "Tiny"


def test_values_of_metadata_may_be_text_numbers_and_truth_values(path):
    metadata = {
        "text": "x = y",
        "empty": "",
        "int": 3,
        "float": 0.1,
        "true": True,
        "np": np.float32(0.5),
        "i": np.int8(2),
    }
    write_gguf_lite(path, {}, {}, metadata)
    found = open_gguf_lite(path).metadata
    assert {k: found[k] for k in metadata} == {
        "text": "x = y",
        "empty": "",
        "int": "3",
        "float": "0.1",
        "true": "True",
        "np": "0.5",
        "i": "2",
    }


def test_a_file_without_tensors_is_legal(path):
    write_gguf_lite(path, {}, {})
    assert read_gguf_lite(path) == {}
    assert path.stat().st_size == 16 + len("dims_order=out,in\ngroup_size=64")


def test_names_of_the_longest_length_and_all_64_dims_survive(path):
    long, most = "é" * 32767 + "x", np.full((1,) * 64, 2.5, np.float32)  # 65535 bytes of UTF-8
    write_gguf_lite(path, {long: most}, {})
    weights = read_gguf_lite(path)
    assert list(weights) == [long]
    assert weights[long].shape == (1,) * 64
    assert float(weights[long]) == 2.5


# ---- a whole model ---------------------------------------------------------------------------------------------------


def test_every_name_and_shape_of_a_minigpt_arrives_in_order(path):
    model = MiniGPT(MiniGPTConfig(vocab_size=10, context=6, d_model=8, n_layers=1, n_heads=2, d_mlp=12))
    write_gguf_lite(path, model, preset("int8", model))
    expected = {name: tuple(w.shape) for name, w in model.state_dict().items()}
    assert {name: tuple(w.shape) for name, w in read_gguf_lite(path).items()} == expected
    assert expected["layers.0.mlp.fc1.weight"] == (12, 8)  # (out, in), as nn.Linear has it
