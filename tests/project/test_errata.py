"""Each row of the errata page, checked against something that this project did not write.

The referees are the official ``gguf`` package, ``struct``, ``torch``, exact fractions and plain arithmetic. Numbers of
a source document are typed here with the document named. Where no installed program can be asked, the page names the
file and function of the source that was read, and the test checks what follows from it.
"""

from __future__ import annotations

import ast
import importlib.metadata
import math
import re
import struct
from fractions import Fraction
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Ggml
from gguf.constants import GGML_QUANT_SIZES, GGML_QUANT_VERSION, MODEL_ARCH_NAMES, MODEL_TENSORS, TENSOR_NAMES, Keys
from gguf.quants import dequantize, quant_shape_to_byte_shape, quantize
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import ROOT
from safetensors import safe_open
from thorough import tried
from torch import nn

import miniquant
from miniquant import (
    FormatError,
    MetadataError,
    QuantizationError,
    Quantized,
    SchemeError,
    open_gguf_lite,
    read_gguf_lite,
)
from miniquant import write_gguf_lite as write_lite
from miniquant.evaluate.llamacpp import LlamaCpp, LlamaCppError
from miniquant.evaluate.measured import read_table
from miniquant.evaluate.verify import late_rounding
from miniquant.formats.gguf import GGMLType, RawTensor
from miniquant.formats.gguf import write_gguf as write_real_gguf
from miniquant.formats.gguf_lite.write import encode_descriptor, layout
from miniquant.models.minigpt import MiniGPT
from miniquant.quantization.schemes import PRESETS, preset, resolve

PAGE = ROOT / "book/errata.md"
many = settings(deadline=None, derandomize=True, max_examples=tried(20, 80))


# ---- small tools -----------------------------------------------------------------------------------------------------


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def gaussian(*shape: int) -> np.ndarray:
    return rng().normal(0, 0.02, shape).astype(np.float32)


def f16(x: float | np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float32).astype(np.float16)


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def write_gguf(path: Path, tensors: dict[str, np.ndarray], alignment: int = 32, **types: Ggml) -> bytes:
    """A real GGUF file by the official writer; a tensor named in ``types`` holds raw blocks of that type."""
    writer = gguf.GGUFWriter(path, "gpt2")
    if alignment != 32:
        writer.add_custom_alignment(alignment)
    for name, array in tensors.items():
        writer.add_tensor(name, array, raw_dtype=types.get(name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def lite_bytes(data: bytes, dims: tuple[int, ...], dtype: int, metadata: bytes = b"") -> bytes:
    """A GGUF-lite file of one tensor "w", spelled out by hand."""
    descriptor = struct.pack(f"<H1sB{len(dims)}IBQ", 1, b"w", len(dims), *dims, dtype, 0)
    return struct.pack("<4I", 0x474C4654, 1, 1, len(metadata)) + metadata + descriptor + data


def q4_k_blocks(n: int) -> np.ndarray:
    """Random Q4_K blocks, d and dmin finite: (n, 144) uint8."""
    raw = rng().integers(0, 256, (n, 144), dtype=np.uint8)
    raw[:, :4] = f16(rng().uniform(0.5, 1, (n, 2))).view(np.uint8)
    return raw


def q4_k_block(d: float = 0, dmin: float = 0, scales: bytes = bytes(12), qs: bytes = bytes(128)) -> np.ndarray:
    return np.frombuffer(struct.pack("<2e", d, dmin) + scales + qs, np.uint8)[None].copy()


def six_bit_fields(s: np.ndarray) -> tuple[list[int], list[int]]:
    """The scales and minima of a Q4_K block as ggml-quants.c, get_scale_min_k4, has them."""
    s = [int(byte) for byte in s]
    low = [(s[j] & 63, s[j + 4] & 63) for j in range(4)]
    high = [((s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4) for j in range(4, 8)]
    sc, m = zip(*(low + high))
    return list(sc), list(m)


def documents_six_bit_fields(s: np.ndarray) -> tuple[list[int], list[int]]:
    """The same fields by C-Kernel-Engine's page: two runs of eight 6-bit numbers, six bytes each."""
    runs = [int.from_bytes(bytes(run), "little") for run in (s[:6], s[6:])]
    sc, m = ([run >> 6 * j & 63 for j in range(8)] for run in runs)
    return sc, m


def documents_q4_k(raw: np.ndarray) -> np.ndarray:
    """Q4_K blocks read by C-Kernel-Engine's page: (n, 144) uint8 -> (n, 256) float32."""
    out = np.empty((len(raw), 8, 32), np.float32)
    for block, w in zip(raw, out):
        d, dmin = block[:4].view(np.float16).astype(np.float32)
        sc, m = documents_six_bit_fields(block[4:16])
        for j in range(8):
            qs = block[16 + 16 * j : 32 + 16 * j].astype(np.float32)
            w[j, 0::2], w[j, 1::2] = qs % 16, qs // 16
            w[j] = (w[j] - 8) * d * sc[j] + dmin * m[j]
    return out.reshape(len(raw), 256)


def documents_q4_0(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entrenar's Q4_0: (n, 32) float32 -> (n, 18) uint8, and the weights that its own reader restores."""
    scale = np.abs(w).max(axis=1, keepdims=True) / 7
    q = np.rint(w / scale).clip(-8, 7)
    nibbles = q.astype(np.int8).view(np.uint8) & 15
    packed = nibbles[:, 0::2] | nibbles[:, 1::2] << 4
    return np.concatenate([f16(scale).view(np.uint8), packed], axis=1), q * scale


# ---- the page itself -------------------------------------------------------------------------------------------------


def test_every_row_of_the_page_names_a_test_and_every_test_stands_on_the_page():
    text = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    start = r"\* - \*\*\[(L?\d+)\]\{#row-l?\d+\}\*\* "
    rows = re.findall(start, text)
    order = [*range(1, 21), *range(40, 44), *range(21, 40)]  # the later rows are with the document that they are about
    assert rows == [str(n) for n in order] + [f"L{n}" for n in range(1, 9)]
    named = re.findall(r"`test_(l?\d+)`: ([^.]+)\.", text)
    on_page = {f"test_{number}_{claim.strip().replace(' ', '_')}" for number, claim in named}
    assert on_page == {name for name in globals() if re.match(r"test_l?\d", name)}
    for row, body in zip(rows, re.split(start, text)[2::2]):
        assert re.findall(r"`test_(l?\d+)`: ", body) == [row.lower().zfill(2)], f"row {row} names another test"


# ---- the assignment --------------------------------------------------------------------------------------------------


def test_01_the_magic_is_tflg_on_disk(tmp_path):
    write_lite(tmp_path / "m", {"w": np.zeros(1, np.float32)}, {})
    head = (tmp_path / "m").read_bytes()[:4]
    assert head == b"TFLG" == bytes.fromhex("54 46 4C 47") == struct.pack("<I", 0x474C4654)
    assert struct.pack(">I", 0x474C4654) == b"GLFT"
    assert write_gguf(tmp_path / "g", {})[:4] == b"GGUF" == struct.pack("<I", 0x46554747)


def test_02_weights_come_back_exactly_if_memory_and_file_use_the_same_scale(tmp_path, trained):
    w = gaussian(64, 1024)
    groups = w.reshape(64, 16, 64)
    exact = np.abs(groups).max(axis=2, keepdims=True) / np.float32(7)
    stored = f16(exact).astype(np.float32)  # what the file holds
    late, first = np.rint(groups / exact), np.rint(groups / stored)

    write_lite(tmp_path / "first", {"w": w}, {"w": "q4_per_group_64"})  # the scale is rounded before the division
    assert np.array_equal(read_gguf_lite(tmp_path / "first")["w"].numpy(), (first * stored).reshape(w.shape))

    chosen = {"w": Quantized(late.reshape(w.shape).astype(np.int8), f16(exact)[..., 0])}  # after it
    write_lite(tmp_path / "late", {"w": w}, {"w": "q4_per_group_64"}, chosen=chosen)
    reloaded = read_gguf_lite(tmp_path / "late")["w"].numpy()
    assert np.array_equal(reloaded, (late * stored).reshape(w.shape))  # exact too: the same scale on both sides

    gap = np.abs(late * exact - reloaded.reshape(groups.shape))  # memory keeps the exact scale: the file has another
    assert gap.max() > 1e-6, "the assignment's limit would hold"
    assert (gap <= np.abs(late * exact) * 2.0**-11 * (1 + 1e-4) + 1e-9).all()
    computed, in_file = late_rounding({"w": w}, {"w": "q4_per_group_64"})
    assert np.isclose(np.abs(np.asarray(computed["w"]) - np.asarray(in_file["w"])).max(), gap.max(), rtol=1e-2)

    # and the order of rounding changes few integers, and not the quality
    differ, total, squares = 0, 0, np.zeros(3)
    for w in (w.numpy() for w in trained.state_dict().values() if w.ndim == 2):
        groups = w.reshape(len(w), -1, 64)
        exact = np.abs(groups).max(axis=2, keepdims=True) / np.float32(7)
        stored = f16(exact).astype(np.float32)
        late, first = np.rint(groups / exact), np.rint(groups / stored)
        differ, total = differ + (late != first).sum(), total + w.size
        for i, back in enumerate((late * exact, late * stored, first * stored)):
            squares[i] += np.square(groups - back, dtype=np.float64).sum()
    assert 0.0003 < differ / total < 0.0005
    assert squares == pytest.approx(squares[2], rel=2e-5)


@pytest.mark.parametrize(("shape", "remedy"), [((4, 65), "q8_per_channel"), ((4, 96), "f16"), ((64,), "f16")])
def test_03_widths_that_do_not_divide_are_refused_with_a_remedy(tmp_path, shape, remedy):
    assert len(shape) == 1 or shape[1] % 64
    with pytest.raises(SchemeError, match=f"'w'.*store it as .*{remedy}"):
        write_lite(tmp_path / "m", {"w": np.ones(shape, np.float32)}, {"w": "q4_per_group_64"})
    assert list(tmp_path.iterdir()) == []


def test_04_minus_eight_is_never_written_and_always_read(tmp_path):
    extremes = np.concatenate([gaussian(64, 64), np.linspace(-1, 1, 64)[None], np.full((1, 64), -3.0), -np.eye(64)])
    assert miniquant.quantize_per_group(extremes).values.min() == -7
    data = struct.pack("<e", 0.5) + bytes([0x88]) * 32  # every nibble is 1000, two's complement of -8
    (tmp_path / "m").write_bytes(lite_bytes(data, (1, 64), 3))
    assert (read_gguf_lite(tmp_path / "m")["w"] == -4.0).all()


def test_05_the_ratio_has_a_ceiling_and_the_embeddings_decide():
    ceiling = 32 / (4 + 16 / 64)
    assert 7.5 < ceiling < 7.6 and 16 / (4 + 16 / 64) < 4  # even against float16 the saving is not quite 4
    with torch.device("meta"):
        state = MiniGPT().state_dict()
    float32 = sum(4 * w.numel() for w in state.values())
    shapes = {name: tuple(w.shape) for name, w in state.items()}
    ratio = {}
    for name in PRESETS:
        infos = layout(shapes, resolve(state, preset(name, state)))
        ratio[name] = float32 / (16 + sum(len(encode_descriptor(info)) + info.n_bytes for info in infos))
    assert ratio["int4"] < ratio["int4-f16-embeddings"] < 6 < ratio["int4-small-embeddings"] < ratio["int4-everything"]
    assert ratio["int4-everything"] < ceiling

    bits = {"f16": 16, "q8_per_channel": 8, "q4_per_group_64": 4.25}  # the same by hand, row scales of 16 bits added
    schemes = preset("int4-small-embeddings", state)
    by_hand = sum(bits.get(schemes.get(name, ""), 32) / 8 * w.numel() for name, w in state.items())
    by_hand += sum(2 * len(state[name]) for name, scheme in schemes.items() if scheme == "q8_per_channel")
    assert ratio["int4-small-embeddings"] == pytest.approx(float32 / by_hand, rel=1e-3)


def test_06_nothing_in_the_layout_is_padded(tmp_path):
    state = {"a": np.ones(3, np.float32), "bb": np.ones((2, 64), np.float32), "ccc": np.ones((5, 7), np.float32)}
    write_lite(tmp_path / "m", state, {"bb": "q4_per_group_64", "ccc": "q8_per_channel"})
    with open_gguf_lite(tmp_path / "m") as file:
        metadata = "\n".join(f"{key}={value}" for key, value in file.metadata.items())
        assert [info.offset for info in file.tensors.values()] == [0, 12, 12 + 68]
    descriptors = sum(2 + len(name) + 1 + 4 * w.ndim + 1 + 8 for name, w in state.items())
    data = 3 * 4 + (2 * 2 + 2 * 32) + (5 * 2 + 5 * 7)
    assert (tmp_path / "m").stat().st_size == 16 + len(metadata) + descriptors + data


def test_07_the_order_of_dims_is_a_metadata_key(tmp_path):
    write_lite(tmp_path / "m", {"w": np.zeros((2, 3), np.float32)}, {})
    raw = (tmp_path / "m").read_bytes()
    size = struct.unpack_from("<I", raw, 12)[0]
    fields = struct.unpack_from("<H1sB2IBQ", raw, 16 + size)  # name_len, name, n_dims, dims, dtype, offset: no more
    assert fields == (1, b"w", 2, 2, 3, 0, 0)
    assert len(raw) == 16 + size + struct.calcsize("<H1sB2IBQ") + 24
    assert "dims_order=out,in" in raw[16 : 16 + size].decode().split("\n")


def test_08_what_metadata_cannot_hold_is_refused(tmp_path):
    w = {"w": np.zeros(1, np.float32)}
    for metadata in ({"a=b": 1}, {"a": "one\ntwo"}, {"a\nb": 1}, {"": 1}):
        with pytest.raises(MetadataError):
            write_lite(tmp_path / "m", w, {}, metadata)
    with pytest.raises(QuantizationError, match="int64"):
        write_lite(tmp_path / "m", {"steps": np.zeros(1, np.int64)}, {})
    assert list(tmp_path.iterdir()) == []
    write_lite(tmp_path / "m", w, {}, {"formula": "a=b=c"})
    with open_gguf_lite(tmp_path / "m") as file:
        assert file.metadata["formula"] == "a=b=c"


@pytest.mark.parametrize("version", [1, 3])
def test_09_a_new_magic_and_dtype_enum_do_not_make_a_gguf(tmp_path, version):
    data = struct.pack("<2e", 1, 1) + bytes(64)
    lite = lite_bytes(data, (2, 64), Ggml.Q4_0)
    (tmp_path / "m").write_bytes(struct.pack("<2I", 0x46554747, version) + lite[8:])
    with pytest.raises((ValueError, IndexError, KeyError)):
        gguf.GGUFReader(tmp_path / "m")

    w = np.arange(3 * 32, dtype=np.float32).reshape(3, 32)
    raw = write_gguf(tmp_path / "g", {"w": quantize(w, Ggml.Q4_0)}, w=Ggml.Q4_0)
    assert struct.unpack_from("<4sIQQ", raw) == (b"GGUF", 3, 1, 1)  # the counts are u64
    key = struct.pack("<Q", 20) + b"general.architecture" + struct.pack("<IQ", 8, 4) + b"gpt2"  # 8: a string
    assert raw[24 : 24 + len(key)] == key
    at = 24 + len(key)
    descriptor = struct.unpack_from(
        "<Q1sI2QIQ", raw, at
    )  # u64 length, name, u32 n_dims, u64 dims, u32 type, u64 offset
    assert descriptor == (1, b"w", 2, 32, 3, 2, 0)  # the dims reversed; type 2 is Q4_0
    start = -(-(at + struct.calcsize("<Q1sI2QIQ")) // 32) * 32
    assert raw[start : start + 3 * 18] == quantize(w, Ggml.Q4_0).tobytes()  # scale and nibbles, block by block


# ---- C-Kernel-Engine -------------------------------------------------------------------------------------------------


def test_10_q4_k_subtracts_the_minimum_and_knows_no_eight():
    raw = q4_k_blocks(32)
    real = dequantize(raw, Ggml.Q4_K).reshape(32, 8, 32)
    for block, weights in zip(raw, real):
        d, dmin = block[:4].view(np.float16).astype(np.float32)
        sc, m = (np.array(field, np.float32)[:, None] for field in six_bit_fields(block[4:16]))
        qs = block[16:].reshape(4, 1, 32)
        q = np.concatenate([qs & 15, qs >> 4], axis=1).reshape(8, 32).astype(np.float32)
        np.testing.assert_allclose(weights, d * sc * q - dmin * m, rtol=1e-6, atol=1e-4)
    only_minima = q4_k_block(dmin=1, scales=bytes([0] * 4 + [1] * 4 + [0] * 4))
    assert sorted(set(dequantize(only_minima, Ggml.Q4_K)[0])) == [-1, 0]
    assert documents_q4_k(only_minima).min() == 0 < documents_q4_k(only_minima).max()  # added, with the wrong sign
    no_minima = q4_k_block(d=1, scales=bytes([1] * 4 + [0] * 4 + [1] * 4), qs=bytes([0xF0]) * 128)
    assert sorted(set(dequantize(no_minima, Ggml.Q4_K)[0])) == [0, 15]  # q is 0 to 15, and nothing is taken off


def test_11_six_bit_fields_share_their_bytes():
    sc, m = [1, 20, 33, 63, 40, 17, 62, 5], [2, 3, 34, 61, 9, 50, 16, 63]
    packed = [sc[j] | sc[j + 4] >> 4 << 6 for j in range(4)] + [m[j] | m[j + 4] >> 4 << 6 for j in range(4)]
    packed = bytes(packed + [sc[j] & 15 | (m[j] & 15) << 4 for j in range(4, 8)])
    ones = bytes([0x11]) * 128
    scales = dequantize(q4_k_block(d=1, scales=packed, qs=ones), Ggml.Q4_K)[0, ::32]
    minima = -dequantize(q4_k_block(dmin=1, scales=packed, qs=ones), Ggml.Q4_K)[0, ::32]
    assert (scales.tolist(), minima.tolist()) == (sc, m) == six_bit_fields(packed)
    assert documents_six_bit_fields(packed) != (sc, m)


def test_12_nibbles_lie_thirty_two_apart_and_the_documents_reading_is_noise():
    scales = bytes([1] * 4 + [0] * 4 + [1] * 4)  # every sub-scale 1, every minimum 0
    weights = dequantize(q4_k_block(d=1, scales=scales, qs=b"\x21" + bytes(127)), Ggml.Q4_K)[0]
    assert np.flatnonzero(weights).tolist() == [0, 32] and weights[[0, 32]].tolist() == [1, 2]
    raw = q4_k_blocks(256)
    assert abs(correlation(dequantize(raw, Ggml.Q4_K), documents_q4_k(raw))) < 0.05


def test_13_the_vector_kernel_stores_evens_then_odds():
    qs = rng().integers(0, 256, 16, dtype=np.uint8)
    low, high = (qs & 15).astype(np.float32), (qs >> 4).astype(np.float32)
    scalar = np.stack([low, high], axis=1).ravel()  # out[2i], out[2i + 1]
    vector = np.concatenate([low, high])  # out0, out1
    assert not np.array_equal(scalar, vector) and np.array_equal(scalar[0::2], vector[:16])
    q4_0 = np.frombuffer(struct.pack("<e", 1) + qs.tobytes(), np.uint8)
    assert np.array_equal(dequantize(q4_0, Ggml.Q4_0), vector - 8)  # the kernel's order is that of ggml's Q4_0


def test_14_the_type_codes_are_another_enum():
    documents = {"FP32": 0, "Q4_K": 6, "Q6_K": 7}  # C-Kernel-Engine, pipeline step 3
    assert (Ggml.F32, Ggml.Q4_K, Ggml.Q6_K, Ggml.BF16) == (0, 12, 14, 30)
    assert Ggml(documents["Q4_K"]) is Ggml.Q5_0 and Ggml(documents["Q6_K"]) is Ggml.Q5_1  # what ggml would make of them


def test_15_the_epsilon_has_another_key(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "g", "llama")
    writer.add_layer_norm_rms_eps(1e-5)
    assert "llama.attention.layer_norm_rms_epsilon" in writer.kv_data[0]
    known = {value for group in vars(Keys).values() for value in getattr(group, "__dict__", {}).values()}
    assert "{arch}.attention.layer_norm_rms_epsilon" in known and "{arch}.norm_rms_eps" not in known


def test_16_the_header_cannot_rebuild_the_model():
    sizes = {"magic": 8, "version": 4, "model_type": 4, "num_layers": 4, "vocab_size": 4, "embed_dim": 4}
    sizes |= {"context_len": 4, "num_heads": 4, "head_dim": 4, "aligned_embed_dim": 8, "aligned_head_dim": 8}
    sizes |= {"aligned_context": 8, "checksum": 32, "reserved": 32}
    assert sum(sizes.values()) == 128  # full: no room for a table of types
    assert (Keys.LLM.FEED_FORWARD_LENGTH, Keys.Attention.HEAD_COUNT_KV) == (  # what GGUF says and the header does not
        "{arch}.feed_forward_length",
        "{arch}.attention.head_count_kv",
    )
    embed, head_dim = 2048, 128  # one header, two models: Wk, Wv are E x kv heads x head_dim, the MLP is 3 x E x ff
    first, second = (2 * embed * kv * head_dim + 3 * embed * ff for kv, ff in ((2, 11008), (16, 5504)))
    assert first != second


def test_17_the_sample_output_does_not_add_up():
    assert 225 + 66 == 291
    widest = 66 * 3584 * 4  # 66 norms of the width that the sample shows
    assert widest / 2**20 < 1 < 48.05
    assert all(2 * layers + 1 != 66 for layers in range(1000))  # llama: two norms a layer and one at the end
    assert MODEL_ARCH_NAMES[gguf.MODEL_ARCH.QWEN2] == "qwen2" != "llama"


def test_18_q4_k_is_seven_times_smaller():
    weights, size = GGML_QUANT_SIZES[Ggml.Q4_K]
    bits = 8 * size / weights
    assert bits == 4.5 and 32 / bits == pytest.approx(7.11, abs=0.01)
    gigabytes = 7e9 * bits / 8 / 1e9
    assert gigabytes == pytest.approx(3.94, abs=0.01)
    assert 28 / gigabytes < 7.2 and 1.7 < 3.5 < gigabytes  # the document's 28 GB, and its two sizes for one model


def test_19_half_of_the_layers_get_six_bits_in_q4_k_m():
    def more_bits(layer: int, layers: int) -> bool:  # llama-quant.cpp, llama_tensor_get_type: use_more_bits
        return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2

    for layers in (16, 24, 28, 32, 36, 40, 48, 64, 80):
        assert 0.45 <= sum(more_bits(layer, layers) for layer in range(layers)) / layers <= 0.55
    assert gguf.LlamaFileType.MOSTLY_Q4_K_M == 15
    assert GGML_QUANT_SIZES[Ggml.Q6_K][1] / GGML_QUANT_SIZES[Ggml.Q4_K][1] > 1.4


def test_20_nothing_that_a_model_needs_is_dropped(tmp_path):
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, 1)
    for letter in "qkv":
        bias = names.get_name(f"model.layers.0.self_attn.{letter}_proj.bias", try_suffixes=(".weight", ".bias"))
        assert bias == f"blk.0.attn_{letter}.bias"
    assert gguf.MODEL_TENSOR.OUTPUT in MODEL_TENSORS[gguf.MODEL_ARCH.LLAMA]
    model = nn.ModuleDict({"q": nn.Linear(8, 8), "head": nn.Linear(8, 16, bias=False)})
    x, weight = torch.ones(8), model["q"].weight
    assert not torch.allclose(model["q"](x), weight @ x)  # a bias replaced by zeros is another model
    write_lite(tmp_path / "m", model, {})
    assert read_gguf_lite(tmp_path / "m").keys() == model.state_dict().keys()


def test_40_the_second_offset_lies_inside_the_first_tensor():
    weights, size = GGML_QUANT_SIZES[Ggml.Q4_K]
    n_bytes = 4096 * 4096 // weights * size
    assert 0x1000 + n_bytes == 0x901000 and 0x901000 % 32 == 0
    assert 0x801000 - 0x1000 == 4096 * 4096 // 2 < n_bytes  # half a byte a weight: levels without scales and mins


def test_41_q8_0_is_a_type_of_files(tmp_path):
    assert gguf.LlamaFileType.MOSTLY_Q8_0 == 7  # a preset of whole files
    assert {"MOSTLY_Q8_1", "MOSTLY_Q8_K"}.isdisjoint(gguf.LlamaFileType.__members__)  # those two are for activations
    w = gaussian(2, 32)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("w", quantize(w, Ggml.Q8_0), raw_dtype=Ggml.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (tensor,) = gguf.GGUFReader(tmp_path / "m.gguf").tensors
    assert tensor.tensor_type is Ggml.Q8_0
    assert np.abs(dequantize(tensor.data, Ggml.Q8_0) - w).max() < np.abs(w).max() / 200


def test_42_the_loss_of_q4_k_m_depends_on_the_model():
    models = read_table(ROOT / "experiments/27-better-four-bits/results.json")
    change = {label: model.nll_change("Q4_K_M") for label, model in models.items()}
    assert change["MiniGPT"].holds(math.log(1.01))
    assert change["MiniGPT with planted outliers"].low > math.log(1.15)


def test_43_rows_of_a_gguf_llama_turned_by_halves_give_other_products():
    q, k = rng().normal(size=(2, 8))  # one head in the order of Hugging Face, where pairs are half a head apart
    order = np.arange(8).reshape(2, 4).T.ravel()  # and of a GGUF file: number i, then number i + half

    def product(q, k, first, second):
        angles = 10000.0 ** (-np.arange(4) / 4)
        turned = []
        for vector, position in ((q, 5), (k, 2)):
            pairs = (vector[first] + 1j * vector[second]) * np.exp(1j * angles * position)
            turned.append(pairs)
        return (turned[0] * turned[1].conj()).real.sum()

    halves, neighbours = (slice(0, 4), slice(4, 8)), (slice(0, 8, 2), slice(1, 8, 2))
    right = product(q, k, *halves)
    assert product(q[order], k[order], *neighbours) == pytest.approx(right, abs=1e-12)
    assert abs(product(q[order], k[order], *halves) - right) > 0.1


# ---- Quark -----------------------------------------------------------------------------------------------------------


def test_21_q4_0_and_q8_0_hold_signed_integers():
    w = np.linspace(-0.9, 1.0, 32, dtype=np.float32)  # the largest magnitude is +1
    block = quantize(w, Ggml.Q4_0)
    d, nibbles = block[:2].view(np.float16)[0], np.concatenate([block[2:] & 15, block[2:] >> 4]).astype(int)
    assert d == f16(1.0 / -8) and nibbles[-1] == 0  # stored as q + 8: the nibble 0 is -8, and -8 d is the maximum
    assert np.array_equal(dequantize(block, Ggml.Q4_0), (nibbles - 8) * np.float32(d))
    eight = quantize(w, Ggml.Q8_0)
    d, q = eight[:2].view(np.float16)[0], eight[2:].view(np.int8)
    assert q.min() < 0 and np.array_equal(dequantize(eight, Ggml.Q8_0), q * np.float32(d))


def test_22_q8_1_is_symmetric_and_carries_a_sum_for_dot_products():
    with pytest.raises(NotImplementedError):
        quantize(np.ones((1, 32), np.float32), Ggml.Q8_1)
    assert "MOSTLY_Q8_1" not in gguf.LlamaFileType.__members__  # no file is made of it
    weights, x = gaussian(32), rng().normal(0, 1, 32)
    block = quantize(weights, Ggml.Q4_1)
    d4, m4 = block[:4].view(np.float16).astype(np.float64)
    q4 = np.concatenate([block[4:] & 15, block[4:] >> 4]).astype(np.float64)
    d8 = np.abs(x).max() / 127
    q8 = np.rint(x / d8)  # symmetric: no zero point
    s = d8 * q8.sum()
    dot = (d4 * q4 + m4) @ (d8 * q8)
    assert dot == pytest.approx(d4 * d8 * (q4 @ q8) + m4 * s)  # the minimum costs one product a block


@many
@given(x=st.fractions(-4, 4, max_denominator=64), s=st.fractions("1/64", 2, max_denominator=64), z=st.integers(0, 15))
@example(x=Fraction(1, 2), s=Fraction(1), z=1)
@example(x=Fraction(1, 2), s=Fraction(1), z=2)
def test_23_a_zero_point_is_a_minimum_except_at_ties_and_in_float16(x, s, z):
    def clamp(q: int) -> int:
        return max(0, min(15, q))

    def half_up(v: Fraction) -> int:
        return math.floor(v + Fraction(1, 2))

    minimum = -s * z
    assert (clamp(half_up(x / s) + z) - z) * s == clamp(half_up((x - minimum) / s)) * s + minimum  # (1) is (2)
    tie = (x / s - math.floor(x / s)) == Fraction(1, 2)
    same = round(x / s) + z == round(x / s + z)  # round: half to even, as the document's own configuration asks
    assert same == (not (tie and z % 2)), "the step from (4) to (5) fails at ties with an odd zero point, only there"

    d, m = f16(float(s)), f16(float(minimum))  # what a Q4_1 block can hold
    block = np.frombuffer(struct.pack("<2e", d, m) + bytes([z * 17]) * 16, np.uint8)
    zero = dequantize(block, Ggml.Q4_1)[0]
    assert zero == np.float32(d) * np.float32(z) + np.float32(m)
    assert abs(zero) <= 2 * z * float(s) * 2**-11  # close to zero
    tenth = np.frombuffer(struct.pack("<2e", 0.1, -0.3) + bytes([0x33]) * 16, np.uint8)
    assert dequantize(tenth, Ggml.Q4_1)[0] != 0  # not zero: s = 0.1, z = 3


def test_24_the_sample_stops_at_a_name_that_it_never_imports():
    imported = {"PerTensorMinMaxObserver": object}
    with pytest.raises(NameError, match="PerChannelMinMaxObserver"):
        exec("dict(observer_cls=PerChannelMinMaxObserver)", imported)
    export = ast.parse("frozen = freeze(quant_model)\nexport(model, model_dir, model_type)")  # the sample's last step
    loaded = {node.id for node in ast.walk(export) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert "frozen" not in loaded  # the frozen model is made, and not used
    assert loaded - {"freeze", "export", "quant_model", "model", "model_dir"} == {"model_type"}  # defined nowhere


def test_25_our_pages_use_the_real_program_names():
    folders = ("*.md", "book/*.md", "solutions/*.*", "notebooks/*.*", "experiments/*/*.md")
    old = re.compile(r"(?<![\w-])(?:main|quantize|perplexity) +-m\b|(?<!miniquant )\bquantize +\S+\.gguf")
    for page in (page for folder in folders for page in ROOT.glob(folder) if page.is_file()):
        text = page.read_text(encoding="utf-8")
        assert not any(old.search(line) for line in text.splitlines() if " -m" in line or "quantize" in line), (
            f"{page.name}: llama.cpp's programs begin with llama-"
        )
    assert old.search("perplexity -m model.gguf") and not old.search("llama-perplexity -m model.gguf")


def test_26_two_quantizers_into_one_block_type_differ():
    plain, quark, floating = 5.9994, 5.8952, 5.7964  # perplexities of the document's table 2
    assert 0.5 < (plain - quark) / (plain - floating) < 0.52
    assert (plain - quark) / math.hypot(0.03372, 0.03302) < 2.5  # unpaired, it is hardly beyond two standard errors
    w = gaussian(4096, 32)
    best = np.full(4096, np.inf)
    for shrink in (1.0, 0.95, 0.9):  # another choice of d and m, the same block, the same reader
        low, high = shrink * w.min(axis=1, keepdims=True), shrink * w.max(axis=1, keepdims=True)
        d, m = f16((high - low) / 15), f16(low)
        q = np.rint((w - m.astype(np.float32)) / d.astype(np.float32)).clip(0, 15).astype(np.uint8)
        block = np.concatenate([d.view(np.uint8), m.view(np.uint8), q[:, :16] | q[:, 16:] << 4], axis=1)
        best = np.minimum(best, ((dequantize(block, Ggml.Q4_1) - w) ** 2).sum(axis=1))
    official = ((dequantize(quantize(w, Ggml.Q4_1), Ggml.Q4_1) - w) ** 2).sum()
    assert best.sum() < 0.97 * official


# ---- GGUF, the long way around ---------------------------------------------------------------------------------------


def test_27_torch_has_no_sqrl_and_a_module_has_no_root():
    assert not hasattr(torch, "sqrl")
    with pytest.raises(TypeError):
        torch.sqrt(nn.MSELoss())
    prediction = torch.tensor([2.5, 0.0], requires_grad=True)
    loss = torch.sqrt(nn.MSELoss()(prediction, torch.tensor([2.0, 1.0])))
    loss.backward()
    assert loss.item() == pytest.approx(math.sqrt((0.25 + 1) / 2)) and prediction.grad is not None


def test_28_a_root_mean_square_is_no_sum_and_softmax_is_no_layer_norm():
    errors = np.array([3.0, 4.0])
    assert (errors**2).sum() == 25 and math.sqrt((errors**2).mean()) == pytest.approx(3.5355, abs=1e-4)
    x = torch.tensor([1.0, 2.0, 3.0, 10.0])
    softmax, norm = torch.softmax(x, 0), nn.functional.layer_norm(x, (4,))
    assert softmax.sum().item() == pytest.approx(1) and (softmax > 0).all()
    assert norm.mean().item() == pytest.approx(0, abs=1e-6)
    assert norm.var(correction=0).item() == pytest.approx(1, abs=1e-4)
    assert list(struct.pack(">I", 1)) == [0, 0, 0, 1]  # big-endian, and the largest byte comes last
    assert list(struct.pack("<I", 1)) == [1, 0, 0, 0]


def test_29_the_name_is_expanded_by_a_readme_and_not_by_the_specification():
    readme = str(importlib.metadata.metadata("gguf").get_payload())
    if not readme:
        pytest.skip("this copy of the gguf package was packed without its README")
    assert "GGML Universal File" in readme and "GPT-Generated" not in readme and "Universal Format" not in readme


# ---- Entrenar --------------------------------------------------------------------------------------------------------


def test_30_the_claims_and_the_tests_add_up_to_other_numbers():
    claims = range(1, 16 + 1)  # the document's headings run from C-001 to C-016
    assert len(claims) != 15
    assert sum([27, 47, 16, 28, 12]) == 130 != 143  # its tests, file by file


def test_31_the_documents_q4_0_is_noise_to_ggml():
    w = gaussian(4096, 32)
    blocks, own = documents_q4_0(w)
    assert blocks.shape[1] == GGML_QUANT_SIZES[Ggml.Q4_0][1]  # the right size, so nothing complains
    assert correlation(w, own) > 0.99
    assert abs(correlation(w, dequantize(blocks, Ggml.Q4_0))) < 0.1
    assert correlation(w, dequantize(quantize(w, Ggml.Q4_0), Ggml.Q4_0)) > 0.99


def test_32_each_row_is_a_multiple_of_the_block_not_the_whole():
    assert 32 * 17 % 32 == 0 and -(-32 * 17 // 32) * 18 == 17 * 18  # whole blocks, by the document's count
    with pytest.raises(ValueError, match="multiple of Q4_0 block size"):
        quant_shape_to_byte_shape((32, 17), Ggml.Q4_0)
    assert quant_shape_to_byte_shape((17, 32), Ggml.Q4_0) == (17, 18)


def test_33_dims_are_written_in_reverse(tmp_path):
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    raw = write_gguf(tmp_path / "g", {"w": w})
    at = raw.index(struct.pack("<Q1sI", 1, b"w", 2)) + 13
    assert struct.unpack_from("<2Q", raw, at) == (3, 2)
    assert np.array_equal(gguf.GGUFReader(tmp_path / "g").tensors[0].data, w)
    (tmp_path / "g").write_bytes(raw[:at] + struct.pack("<2Q", 2, 3) + raw[at + 16 :])  # as PyTorch gives them
    misread = gguf.GGUFReader(tmp_path / "g").tensors[0].data
    assert misread.tolist() == [[0, 1], [2, 3], [4, 5]] and not np.array_equal(misread, w.T)  # not even the transpose


def test_34_the_standard_keys_have_other_names(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "g", "gpt2")
    writer.add_embedding_length(256)
    writer.add_block_count(4)
    writer.add_quantization_version(GGML_QUANT_VERSION)
    written = set(writer.kv_data[0])
    assert {"gpt2.embedding_length", "gpt2.block_count", "general.quantization_version"} <= written
    assert not {"general.hidden_size", "general.num_layers"} & set(vars(Keys.General).values())


def test_35_the_order_of_sizes_holds_from_seventeen_with_padding(tmp_path):
    def holds(n: int, padding: int) -> bool:
        blocks = -(-n // 32)
        four, eight, full = (-(-size // padding) * padding for size in (18 * blocks, 34 * blocks, 4 * n))
        return four < eight < full

    assert [n for n in range(1, 2000) if not holds(n, 1)] == list(range(1, 9))
    assert [n for n in range(1, 2000) if not holds(n, 32)] == list(range(1, 17))
    for n in (9, 16, 17, 32):  # the official writer's own files, one tensor of n weights
        block = np.zeros(32, np.float32)
        sizes = [len(write_gguf(tmp_path / "g", {"w": quantize(block, t)}, w=t)) for t in (Ggml.Q4_0, Ggml.Q8_0)]
        sizes.append(len(write_gguf(tmp_path / "g", {"w": np.zeros(n, np.float32)})))
        assert (sizes[0] < sizes[1] < sizes[2]) == holds(n, 32)
    for kind in (Ggml.Q4_0, Ggml.Q8_0):  # and no correct file has such a row: it stays F32, so the sizes are equal
        with pytest.raises(ValueError, match="multiple of"):
            quant_shape_to_byte_shape((1, 33), kind)


def test_36_an_empty_tensor_costs_nothing_where_the_alignment_exceeds_its_descriptor(tmp_path):
    def growth(name: str, alignment: int, weights: int) -> int:
        one = {name: np.ones(8, np.float32)}
        before = write_gguf(tmp_path / "a", one, alignment)
        return len(write_gguf(tmp_path / "b", {**one, "e": np.ones(weights, np.float32)}, alignment)) - len(before)

    names = ["n" * length for length in range(1, 65)]
    assert min(growth(name, 64, 0) for name in names) == 0  # the counter-example to C-013
    assert min(growth(name, 32, 0) for name in names) == 32  # a descriptor takes 33 bytes or more: at 32, none
    assert min(growth(name, 64, 1) for name in names) == 64  # any data at all, and the file grows


@pytest.mark.parametrize("schemes", [{"w": "pickle"}, {"x": "f16"}, {"w": "q4_per_group_64"}])
def test_37_a_refusal_leaves_the_disk_as_it_was(tmp_path, schemes):
    with pytest.raises(SchemeError):
        write_lite(tmp_path / "new" / "m", {"w": np.ones((2, 3), np.float32)}, schemes)
    assert list(tmp_path.iterdir()) == []


def test_38_a_file_of_floats_is_not_called_quantized():
    assets = ROOT / "src/miniquant/assets"
    with safe_open(assets / "minigpt.safetensors", framework="pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F32"}  # noqa: SIM118 not a dict
    card = (assets / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert not re.search(r"^(?:#|- |tags:).*quantized", card, re.MULTILINE | re.IGNORECASE)
    assert gguf.LlamaFileType.ALL_F32 == 0 and "MOSTLY_F32" not in gguf.LlamaFileType.__members__


def test_39_a_file_cut_anywhere_is_refused(tmp_path):
    write_lite(tmp_path / "m", {"w": np.ones((2, 64), np.float32)}, {"w": "q4_per_group_64"})
    whole = (tmp_path / "m").read_bytes()
    for end in range(len(whole)):
        (tmp_path / "m").write_bytes(whole[:end])
        with pytest.raises(FormatError):
            open_gguf_lite(tmp_path / "m")
    raw = write_gguf(tmp_path / "g", {"w": np.ones(64, np.float32)})
    (tmp_path / "g").write_bytes(raw[:-32])  # every header and descriptor is there, and the data is not
    with pytest.raises(ValueError):
        gguf.GGUFReader(tmp_path / "g")


# ---- the specification and the loader --------------------------------------------------------------------------------


def test_l1_every_official_tensor_name_is_shorter_than_64_bytes():
    longest = max(len(f"{name.format(bid=999, xid=999)}.weight") for name in TENSOR_NAMES.values())
    assert longest < 64
    with torch.device("meta"):
        assert max(len(name.encode()) for name in MiniGPT().state_dict()) < 64


def test_l2_alignments_that_both_accept_are_powers_of_two_from_eight(tmp_path):
    accepted = []
    for alignment in range(4, 129, 4):
        key = struct.pack("<Q17sII", 17, b"general.alignment", 4, alignment)  # 4: a u32
        head = struct.pack("<4sIQQ", b"GGUF", 3, 1, 1) + key + struct.pack("<Q1sIQIQ", 1, b"w", 1, 3, 0, 0)
        padding = bytes(-len(head) % alignment)
        (tmp_path / "g").write_bytes(head + padding + struct.pack("<3f", 1, 1, 1))
        try:
            assert gguf.GGUFReader(tmp_path / "g").tensors[0].data.tolist() == [1, 1, 1]
            accepted.append(alignment)
        except ValueError as error:
            assert "power of two" in str(error)
    assert accepted == [4, 8, 16, 32, 64, 128]  # the official reader checks what the loader checks
    assert [a for a in accepted if a % 8 == 0] == [
        8,
        16,
        32,
        64,
        128,
    ]  # 24 is for the specification only, 4 for the loader


def test_l3_a_nested_array_loses_its_shape_in_the_official_reader(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "g", "gpt2")
    writer.add_array("nested", [[1, 2], [3, 4, 5]])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    field = gguf.GGUFReader(tmp_path / "g").fields["nested"]
    assert [int(field.parts[i][0]) for i in field.data] == [1, 2, 3, 4, 5]  # flat: where one ended is lost


def test_l4_the_official_writer_leaves_no_gaps_and_its_reader_allows_them(tmp_path):
    raw = write_gguf(tmp_path / "g", {"a": np.ones(9, np.float32), "b": np.full(2, 2, np.float32)})
    offsets = [int(tensor.field.parts[-1][0]) for tensor in gguf.GGUFReader(tmp_path / "g").tensors]
    assert offsets == [0, 64]  # 36 bytes, padded to the next multiple of 32
    at = raw.rindex(struct.pack("<Q1sIQ", 1, b"b", 1, 2)) + 21 + 4
    assert struct.unpack_from("<Q", raw, at) == (64,)
    gap = raw[:at] + struct.pack("<Q", 96) + raw[at + 8 : -32] + bytes(32) + raw[-32:]
    (tmp_path / "g").write_bytes(gap)
    assert gguf.GGUFReader(tmp_path / "g").tensors[1].data.tolist() == [2, 2]


def test_l5_keys_are_unique_and_the_official_ones_keep_the_specifications_form(tmp_path):
    key = struct.pack("<Q20sIQ4s", 20, b"general.architecture", 8, 4, b"gpt2")
    (tmp_path / "g").write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 2) + key + key)
    with pytest.raises(KeyError, match="Duplicate"):
        gguf.GGUFReader(tmp_path / "g")
    segment = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")
    for group in (Keys.General, Keys.LLM, Keys.Attention, Keys.Tokenizer):
        for name, value in vars(group).items():
            if not name.startswith("_") and isinstance(value, str):
                plain = re.sub(r"\{\w+\}", "x", value)
                assert segment.fullmatch(plain) and len(plain) <= 65535, value


def with_number(path: Path, number: int) -> None:
    """A file with two tensors, the first of 64 zeros as NVFP4 (36 bytes), under another type's number."""
    first = RawTensor(np.zeros(36, np.uint8), GGMLType.NVFP4, (1, 64))
    write_real_gguf(path, {"a": first, "b": np.ones(8, np.float32)}, {})
    raw, at = path.read_bytes(), struct.pack("<Q1sIQQ", 1, b"a", 2, 64, 1)
    old = at + struct.pack("<I", 40)
    assert raw.count(old) == 1
    path.write_bytes(raw.replace(old, at + struct.pack("<I", number)))


def loader_refuses(path: Path) -> str:
    """What ggml's reader complains of; empty if it reads the file."""
    try:
        with LlamaCpp(None) as llama:
            llama.check(path)
    except LlamaCppError as refused:
        return str(refused)
    return ""


def test_l6_the_loader_knows_types_up_to_42(tmp_path):
    with LlamaCpp(None) as llama:
        assert [llama.block(number) for number in range(39, 43)] == [(32, 17), (64, 36), (128, 18), (64, 18)]
    with_number(tmp_path / "g", 43)
    assert "should be in [0, 43)" in loader_refuses(tmp_path / "g")
    with_number(tmp_path / "g", 4)
    assert loader_refuses(tmp_path / "g")


def test_l7_the_official_reader_ends_at_41_and_compares_no_sizes(tmp_path):
    assert importlib.metadata.version("gguf") == "0.19.0"
    assert max(Ggml) == 41
    block = RawTensor(np.zeros(18, np.uint8), GGMLType.Q2_0, (1, 64))
    write_real_gguf(tmp_path / "42", {"a": block, "b": np.ones(8, np.float32)}, {})
    assert not loader_refuses(tmp_path / "42")
    with pytest.raises(ValueError, match=r"42\)? is not a valid GGMLQuantizationType"):
        gguf.GGUFReader(tmp_path / "42")
    with_number(tmp_path / "8", Ggml.Q8_0)  # 64 weights in 68 bytes, and the next tensor begins after 64
    assert "'b' has offset 64, expected 96" in loader_refuses(tmp_path / "8")
    assert gguf.GGUFReader(tmp_path / "8").tensors[0].tensor_type == Ggml.Q8_0


def test_l8_ggml_rounds_the_scale_of_nvfp4_to_the_nearest_but_in_two_places():
    wanted = np.array([7.4, 7.6, 7.9, 8.1], np.float32) / 512  # 2^-6 is 8 / 512, code 8
    wanted = np.concatenate([wanted, np.array([1.0, 98, 240, 250, 257, 300], np.float32)])
    w = np.zeros((len(wanted), 64), np.float32)
    w[:, 0] = wanted * 6
    with LlamaCpp(None) as llama:
        d = llama.quantize(w, GGMLType.NVFP4)[:, 0]
    code = np.arange(127)
    values = np.where(code < 8, code / 512, np.ldexp(1 + code % 8 / 8, code // 8 - 7))
    nearest = np.abs(values - wanted[:, None]).argmin(axis=1)
    assert nearest.tolist() == [7, 8, 8, 8, 56, 108, 119, 120, 120, 121]
    assert d.tolist() == [7, 7, 7, 8, 56, 108, 119, 126, 126, 126]
