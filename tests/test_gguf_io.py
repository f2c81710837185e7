"""GGUF-lite: reference bytes spelled out by hand, an independent parser, and round trips to the bit."""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from malformations import F16, F32, Q4, Q8, SIZE, assemble, descriptor, one

from miniquant import (
    PRESETS,
    DType,
    SchemeError,
    fake_quantize_state,
    open_gguf_lite,
    preset,
    read_gguf_lite,
    write_gguf_lite,
)
from miniquant.model import MiniGPT, MiniGPTConfig, random_model

# ---- the toy file, byte by byte --------------------------------------------------------------------------------------

TOY = {
    "bias": np.array([1.0, -2.0, 0.1], np.float32),
    "half": np.array([[0.5], [-1.0 / 3.0]], np.float32),
    "eight": np.array([[127.0, -127.0, 0.5, 1.5], [0.0, 0.0, 0.0, 0.0], [3.0, -1.0, 0.01, 1.0]], np.float32),
    "four": np.concatenate([np.arange(64) % 15 - 7, 2.0 * (np.arange(64) % 3 == 0)]).astype(np.float32)[None],
    "one": np.array(-1.5, np.float32),
}
TOY_SCHEMES = {"half": "f16", "eight": "q8_per_channel", "four": "q4_per_group_64"}
TOY_BYTES = bytes.fromhex(
    # 1. header
    "54 46 4C 47"  # magic 0x474C4654, little-endian: T F L G
    "01 00 00 00"  # version 1
    "05 00 00 00"  # n_tensors
    "2B 00 00 00"  # metadata_len: 17 + 1 + 13 + 1 + 11 = 43
    # 2. metadata
    "64 69 6D 73 5F 6F 72 64 65 72 3D 6F 75 74 2C 69 6E 0A"  # dims_order=out,in LF
    "67 72 6F 75 70 5F 73 69 7A 65 3D 36 34 0A"  # group_size=64 LF
    "6E 61 6D 65 3D 74 6F 79 20 C3 A9"  # name=toy é; no newline at the end
    # 3. descriptors
    "04 00  62 69 61 73  01  03 00 00 00  00  00 00 00 00 00 00 00 00"  # bias  (3)       F32 at 0
    "04 00  68 61 6C 66  02  02 00 00 00 01 00 00 00  01  0C 00 00 00 00 00 00 00"  # half  (2, 1)  F16 at 12
    "05 00  65 69 67 68 74  02  03 00 00 00 04 00 00 00  02  10 00 00 00 00 00 00 00"  # eight (3, 4)  Q8 at 16
    "04 00  66 6F 75 72  02  01 00 00 00 80 00 00 00  03  22 00 00 00 00 00 00 00"  # four (1, 128)  Q4 at 34
    "03 00  6F 6E 65  00  00  66 00 00 00 00 00 00 00"  # one   ()        F32 at 102
    # 4. data: bias, 3 × f32
    "00 00 80 3F"  # 1.0: exponent 127
    "00 00 00 C0"  # -2.0: sign, exponent 128
    "CD CC CC 3D"  # 0.1, rounded up in the last bit
    # half, 2 × f16
    "00 38"  # 0.5: exponent 14, so 01110 and ten zeros
    "55 B5"  # -1/3: sign, exponent 13, mantissa 0101010101
    # eight, scales 3 × f16, then 3 × 4 × i8
    "00 3C"  # 127/127 = 1.0
    "00 00"  # a row of zeros: 0
    "0C 26"  # 3/127 = 0.0236220; steps of 2^-16: 1548.1 -> 1548 = 1024 + 524 (20C), exponent 9: 0 01001 1000001100
    "7F 81 00 02"  # 127 -127; 0.5 -> 0 and 1.5 -> 2, ties to even
    "00 00 00 00"
    "7F D6 00 2A"  # 3.0/s = 127.005 -> 127; 1/s = 42.335: -42 = D6, 42 = 2A; 0.01/s = 0.42 -> 0
    # four, scales 1 × 2 × f16, then 1 × 64 bytes
    "00 3C"  # 7/7 = 1.0
    "92 34"  # 2/7 = 0.285714; steps of 2^-12: 1170.29 -> 1170 = 1024 + 146 (092), exponent 13
    # group 0: -7 -6 -5 ... 7 and again; low nibble first: 9 A B C D E F 0 1 2 3 4 5 6 7
    "A9 CB ED 0F 21 43 65 97 BA DC FE 10 32 54 76"  # 30 weights
    "A9 CB ED 0F 21 43 65 97 BA DC FE 10 32 54 76"  # 30 more
    "A9 CB"  # the last four: -7 -6 -5 -4
    # group 1: 2 0 0 2 0 0 ... as 7 0 0 7 0 0: 2/s = 7.0017 -> 7
    "07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70 00 07 70"
    # one, f32
    "00 00 C0 BF"  # -1.5
)
S8, S4 = 1548 * 2.0**-16, 1170 * 2.0**-12  # the two scales that had to be rounded
TOY_READ = {
    "bias": [1.0, -2.0, 13421773 * 2.0**-27],
    "half": [[0.5], [-1365 * 2.0**-12]],
    "eight": [[127.0, -127.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0], [127 * S8, -42 * S8, 0.0, 42 * S8]],
    "four": [[float(i % 15 - 7) for i in range(64)] + [7 * S4 if i % 3 == 0 else 0.0 for i in range(64)]],
    "one": -1.5,
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gguf-lite"


def write_toy(path, kind="numpy"):
    state = TOY if kind == "numpy" else {name: torch.from_numpy(w.copy()) for name, w in TOY.items()}
    write_gguf_lite(path, state, TOY_SCHEMES, {"name": "toy é"})


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
        assert [(i.name, i.dims, i.dtype, i.offset, i.n_bytes) for i in file.tensors.values()] == [
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
            assert (file.tensors[key].dims, file.tensors[key].dtype) == (dims, dtype)
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
@settings(max_examples=200)
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


# ---- what a reader must accept ---------------------------------------------------------------------------------------


def read_bytes(path, data: bytes) -> dict[str, list]:
    path.write_bytes(data)
    return {name: w.tolist() for name, w in read_gguf_lite(path).items()}


def test_tensors_may_lie_in_any_order_with_padding_before_between_and_after(path):
    pad = b"\xee" * 7
    data = pad + struct.pack("<2f", 3, 4) + pad + struct.pack("<f", 9) + pad + struct.pack("<2f", 1, 2) + pad
    parts = [descriptor(b"a", (2,), F32, 33), descriptor(b"b", (2,), F32, 7), descriptor(b"c", (), F32, 22)]
    assert read_bytes(path, assemble(parts, data)) == {"a": [1.0, 2.0], "b": [3.0, 4.0], "c": 9.0}


def test_empty_tensors_may_lie_anywhere_in_the_file_even_inside_others(path):
    parts = [descriptor(b"a", (4,)), *(descriptor(bytes([98 + i]), (0, 3), F32, o) for i, o in enumerate((0, 5, 16)))]
    assert read_bytes(path, assemble(parts, bytes(16))) == {"a": [0.0] * 4, "b": [], "c": [], "d": []}


def test_metadata_may_be_empty_and_may_end_in_a_newline(path):
    for text, expected in {
        b"": {},
        b"a=1": {"a": "1"},
        b"a=1\n": {"a": "1"},
        b"a=\nb==c=\n": {"a": "", "b": "=c="},
        b" a = 1 \r\nb=\0": {" a ": " 1 \r", "b": "\0"},
        "ключ=значение\u2028x".encode(): {"ключ": "значение\u2028x"},
    }.items():
        path.write_bytes(assemble([descriptor()], bytes(SIZE), text))
        assert open_gguf_lite(path).metadata == expected


def test_the_nibble_minus_eight_is_read_though_it_is_never_written(path):
    data = struct.pack("<2e", 1.0, 0.5) + bytes([0x88]) * 32 + bytes([0x78]) * 32
    weights = read_bytes(path, one(data, dims=(2, 64), dtype=Q4))["w"]
    assert weights == [[-8.0] * 64, [-4.0, 3.5] * 32]


def test_the_integer_minus_128_a_negative_scale_and_a_subnormal_scale_are_read(path):
    data = struct.pack("<3e", -0.5, 2.0**-24, 0.0) + struct.pack("<6b", -128, 127, -128, 1, 5, -5)
    weights = read_bytes(path, one(data, dims=(3, 2), dtype=Q8))["w"]
    assert weights == [[64.0, -63.5], [-(2.0**-17), 2.0**-24], [0.0, -0.0]]


def test_a_data_section_at_an_odd_byte_is_read(path):
    for length in range(1, 9):
        data = struct.pack("<2d", 1.5, -2.25)  # any 16 bytes: read as four float32
        weights = read_bytes(path, assemble([descriptor(b"n" * length, (4,))], data, b""))["n" * length]
        assert weights == list(struct.unpack("<4f", data))


def test_large_dims_beside_a_zero_are_read_as_an_empty_tensor(path):
    weights = read_gguf_lite(write(path, one(b"", dims=(4_000_000_000, 0))))["w"]
    assert weights.shape == (4_000_000_000, 0)
    weights = read_gguf_lite(write(path, one(b"", dims=(4_000_000_000, 0), dtype=Q4)))["w"]
    assert weights.shape == (4_000_000_000, 0)


def write(path, data: bytes):
    path.write_bytes(data)
    return path


# ---- the open file ---------------------------------------------------------------------------------------------------


def test_raw_gives_the_bytes_of_the_file_and_cannot_change_them(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        for name, info in file.tensors.items():
            start = file.data_start + info.offset
            assert file.raw(name).tobytes() == TOY_BYTES[start : start + info.n_bytes]
            with pytest.raises(ValueError, match="read-only"):
                file.raw(name)[...] = 0


def test_quantized_gives_integers_and_scales(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        values, scale = file.quantized("eight")
        assert (values.dtype, scale.dtype) == (np.int8, np.float16)
        assert values.tolist() == [[127, -127, 0, 2], [0, 0, 0, 0], [127, -42, 0, 42]]
        assert scale.tolist() == [1.0, 0.0, S8]
        values, scale = file.quantized("four")
        assert scale.tolist() == [[1.0, S4]]
        assert values[0, :15].tolist() == list(range(-7, 8))
        assert values.shape == (1, 128)
        for name in ("bias", "half"):
            with pytest.raises(SchemeError, match="no integers"):
                file.quantized(name)


def test_a_tensor_that_was_read_is_a_fresh_array_that_outlives_the_file(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        first, second = file.tensor("bias"), file.tensor("bias")
        first[...] = 7
    assert second.tolist() == TOY_READ["bias"]
    weights = read_gguf_lite(path)
    weights["eight"].zero_()
    assert path.read_bytes() == TOY_BYTES


def test_spans_say_where_each_descriptor_stands(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        for name, (start, end) in file.spans.items():
            assert TOY_BYTES[start + 2 : end].startswith(name.encode())
        assert [end - start for start, end in file.spans.values()] == [20, 24, 25, 24, 15]
        assert max(end for _, end in file.spans.values()) == file.data_start


def test_an_unknown_tensor_and_a_closed_file_say_so(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        with pytest.raises(KeyError, match="no tensor 'bais'"):
            file.tensor("bais")
        with pytest.raises(KeyError):
            file.raw("")
    for read in (file.tensor, file.raw, file.quantized):
        with pytest.raises(ValueError, match="is closed"):
            read("bias")
    assert list(file.tensors) == list(TOY)  # the descriptors are still known


def test_a_path_may_be_text_bytes_or_a_path(path):
    for kind in (str, os.fsencode, lambda p: p):
        write_gguf_lite(kind(path), TOY, TOY_SCHEMES, {"name": "toy é"})
        assert path.read_bytes() == TOY_BYTES
        assert read_gguf_lite(kind(path))["one"] == -1.5


def test_a_file_can_be_replaced_while_it_is_open(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        write_gguf_lite(path, {"other": np.ones(2, np.float32)}, {})
        assert file.tensor("bias").tolist() == TOY_READ["bias"]
    assert list(read_gguf_lite(path)) == ["other"]


def test_the_writer_refuses_what_the_reader_would_refuse(path):
    for shape in ((0, 2**31, 2**29), (2**30, 2**30, 0)):
        with pytest.raises(SchemeError, match="has shape"):
            write_gguf_lite(path, {"w": torch.empty(shape)}, {})
    assert not path.exists()


# ---- memory ----------------------------------------------------------------------------------------------------------


def peak_of(action) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("scheme", ["f32", "f16", "q8_per_channel", "q4_per_group_64"])
@pytest.mark.parametrize("order", ["contiguous", "transposed"])
def test_writing_takes_at_most_three_times_the_largest_tensor(scheme, order, path):
    big = np.full((1024, 2048), 0.25, np.float32)  # 8 MB
    state = {f"w{i}": big if order == "contiguous" else big.T for i in range(6)}  # 48 MB in the file
    peak = peak_of(lambda: write_gguf_lite(path, state, dict.fromkeys(state, scheme)))
    assert peak <= 3 * big.nbytes


def test_opening_takes_next_to_nothing_and_reads_no_tensor(path):
    """A file of 4 GB, nearly all of it a hole: opening it and reading one small tensor must not touch the rest."""
    parts = [descriptor(b"huge", (1 << 10, 1 << 20), F32, 16), descriptor(b"small", (4,), F32, 0)]
    start = assemble(parts, struct.pack("<4f", 1, 2, 3, 4))
    path.write_bytes(start)
    os.truncate(path, len(start) + (1 << 32))

    def read():
        with open_gguf_lite(path) as file:
            assert file.tensors["huge"].n_bytes == file.raw("huge").size == 1 << 32
            assert file.tensor("small").tolist() == [1.0, 2.0, 3.0, 4.0]

    assert peak_of(read) < 50_000


def test_opening_a_model_costs_its_descriptors_not_its_weights(path, trained):
    write_gguf_lite(path, trained, {})
    assert path.stat().st_size > 13_000_000
    assert peak_of(lambda: open_gguf_lite(path)) < 100_000


@pytest.mark.parametrize("scheme", ["f32", "f16", "q8_per_channel", "q4_per_group_64"])
def test_reading_one_tensor_takes_little_more_than_its_float32_weights(scheme, path):
    w = np.full((1024, 2048), 0.25, np.float32)
    write_gguf_lite(path, {"a": w, "b": w}, {"a": scheme, "b": scheme})
    with open_gguf_lite(path) as file:
        assert peak_of(lambda: file.tensor("a")) < 1.6 * w.nbytes


def test_core_paths_do_not_import_torch(tmp_path):
    program = """
    import sys
    import numpy as np
    from miniquant import fake_quantize_state, open_gguf_lite, write_gguf_lite
    w = np.linspace(-1, 1, 256, dtype=np.float32).reshape(2, 128)
    write_gguf_lite("a.gguf-lite", {"w": w}, {"w": "q4_per_group_64"})
    with open_gguf_lite("a.gguf-lite") as file:
        assert np.array_equal(file.tensor("w"), fake_quantize_state({"w": w}, {"w": "q4_per_group_64"})["w"])
    assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, check=True)


# ---- a whole model ---------------------------------------------------------------------------------------------------


def test_every_name_and_shape_of_a_minigpt_arrives_in_order(path):
    model = MiniGPT(MiniGPTConfig(vocab_size=10, context=6, d_model=8, n_layers=1, n_heads=2, d_mlp=12))
    write_gguf_lite(path, model, preset("int8", model))
    expected = {name: tuple(w.shape) for name, w in model.state_dict().items()}
    assert {name: tuple(w.shape) for name, w in read_gguf_lite(path).items()} == expected
    assert expected["layers.0.mlp.fc1.weight"] == (12, 8)  # (out, in), as nn.Linear has it
