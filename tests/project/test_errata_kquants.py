"""The errata of C-Kernel-Engine's page on K-quants, on a real matrix: the trained model's, encoded by ggml itself."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Ggml
from gguf.quants import dequantize
from test_errata import correlation, documents_q4_k, documents_six_bit_fields, six_bit_fields

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.bump.types import BumpType
from miniquant.formats.gguf import GGMLType, decode
from miniquant.models.file_types import more_bits
from miniquant.models.to_gguf import gguf_name, minigpt_types
from miniquant.quantization.packing import unpack_scales_and_mins


@pytest.fixture(scope="module")
def matrix(trained):
    return trained.state_dict()["layers.1.mlp.fc1.weight"].numpy()


@pytest.fixture(scope="module")
def blocks(matrix):
    """(1024, 144) uint8"""
    with LlamaCpp(None) as llama:
        return llama.quantize(matrix, GGMLType.Q4_K)


def read(blocks: np.ndarray, formula: bool = False, scales: bool = False, nibbles: bool = False) -> np.ndarray:
    """Super-blocks with the document's rule where it is asked for, else ggml's: (n, 144) uint8 -> (n, 256) float32."""
    out = []
    for block in blocks:
        d, dmin = block[:4].view(np.float16).astype(np.float32)
        fields = (documents_six_bit_fields if scales else six_bit_fields)(block[4:16])
        sc, m = (np.array(field, np.float32)[:, None] for field in fields)
        qs = block[16:]
        runs = qs.reshape(4, 32)
        right = np.stack([runs & 15, runs >> 4], axis=1).reshape(8, 32)
        q = (np.stack([qs & 15, qs >> 4], axis=1).reshape(8, 32) if nibbles else right).astype(np.float32)
        out.append(((q - 8) * d * sc + dmin * m if formula else d * sc * q - dmin * m).ravel())
    return np.array(out, np.float32)


def test_ours_is_the_right_reading(matrix, blocks):
    assert np.array_equal(read(blocks), dequantize(blocks, Ggml.Q4_K))
    assert np.array_equal(decode(blocks, GGMLType.Q4_K), dequantize(blocks, Ggml.Q4_K))
    assert correlation(matrix, read(blocks)) > 0.99
    assert np.array_equal(read(blocks, True, True, True), documents_q4_k(blocks))


@pytest.mark.parametrize(
    ("row", "rule", "low", "high"),
    [(10, "formula", 0.6, 0.9), (11, "scales", 0.45, 0.7), (12, "nibbles", -0.15, 0.15), (12, "all", -0.1, 0.1)],
)
def test_rows_10_to_12_each_rule_alone_ruins_a_real_matrix(row, rule, low, high, matrix, blocks):
    rules = {name: rule in (name, "all") for name in ("formula", "scales", "nibbles")}
    wrong = read(blocks, **rules)
    assert low < correlation(matrix, wrong) < high
    assert np.sqrt(np.mean((wrong - matrix) ** 2)) > matrix.std()  # zeros would be nearer
    assert np.sqrt(np.mean((read(blocks) - matrix) ** 2)) < matrix.std() / 10


def test_row_11_our_packing_is_that_of_every_block_of_the_matrix(blocks):
    scales, mins = unpack_scales_and_mins(blocks[:, 4:16])
    for packed, sc, m in zip(blocks[:, 4:16], scales, mins, strict=True):
        assert (sc.tolist(), m.tolist()) == six_bit_fields(packed)


def test_row_14_the_same_number_means_another_type_in_each_enum():
    assert (BumpType.Q4_K, BumpType.Q6_K) == (6, 7)
    assert (GGMLType.Q4_K, GGMLType.Q6_K) == (12, 14) == (Ggml.Q4_K, Ggml.Q6_K)
    assert (GGMLType(6), GGMLType(7)) == (GGMLType.Q5_0, GGMLType.Q5_1)


def test_row_18_the_matrix_is_seven_times_smaller(matrix, blocks):
    assert (
        matrix.nbytes / blocks.nbytes
        == pytest.approx(32 / GGMLType.Q4_K.bits_per_weight)
        == pytest.approx(7.11, abs=0.01)
    )


def test_row_19_attention_is_no_more_precise_than_the_rest_but_where_v_is_fused(trained):
    types = {gguf_name(name): kind for name, kind in minigpt_types(trained, "Q4_K_M").items()}
    for i in range(trained.config.n_layers):
        assert types[f"blk.{i}.attn_output.weight"] == types[f"blk.{i}.ffn_up.weight"] == "Q4_K"
        favoured = "Q6_K" if more_bits(i, trained.config.n_layers) else "Q4_K"
        assert types[f"blk.{i}.attn_qkv.weight"] == types[f"blk.{i}.ffn_down.weight"] == favoured
    assert types["token_embd.weight"] == "Q6_K"
    assert gguf.LlamaFileType.MOSTLY_Q4_K_M == 15
