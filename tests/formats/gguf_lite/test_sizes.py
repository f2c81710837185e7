"""Where every byte goes."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from conformance.gguf_lite_files import F32, Q8, assemble, descriptor
from miniquant import PRESETS, DType, FormatError, open_gguf_lite, preset, write_gguf_lite
from miniquant.formats.gguf_lite.sizes import file_sizes, human, torch_save_size
from miniquant.models.minigpt import MiniGPT, MiniGPTConfig
from miniquant.quantization.schemes import role_of

REST = "header, metadata, descriptors"


@pytest.mark.parametrize("name", PRESETS)
def test_every_byte_of_the_trained_models_file_is_accounted_for_in_every_way(name, trained, tmp_path):
    path = tmp_path / "m"
    write_gguf_lite(path, trained, preset(name, trained))
    sizes = file_sizes(path)
    assert sizes.total == path.stat().st_size
    for count in (sizes.by_part, sizes.by_dtype, sizes.by_role):
        assert sum(count.values()) == sizes.total
        assert all(n >= 0 for n in count.values())
    assert sum(sizes.by_tensor.values()) == sizes.by_part["data"] == sizes.total - sizes.overhead
    assert sizes.by_part["padding"] == 0
    assert sizes.overhead < 0.01 * sizes.total
    assert set(sizes.by_role) == {"weights", "biases", "norms", "embeddings", "scales", REST}
    assert list(sizes.by_tensor) == list(trained.state_dict())


def test_a_tiny_file_by_hand(tmp_path):
    state = {
        "tok_emb.weight": np.zeros((3, 64), np.float32),
        "fc.weight": np.zeros((2, 128), np.float32),
        "fc.bias": np.zeros(2, np.float32),
        "ln.weight": np.zeros(5, np.float32),
        "head.weight": np.zeros((2, 3), np.float32),
    }
    schemes = {"tok_emb.weight": "q8_per_channel", "fc.weight": "q4_per_group_64", "head.weight": "f16"}
    write_gguf_lite(tmp_path / "m", state, schemes, {"k": "v"})
    sizes = file_sizes(tmp_path / "m")
    metadata = len("dims_order=out,in\ngroup_size=64\nk=v")
    names = sum(len(name) for name in state)
    descriptors = names + 5 * (2 + 1 + 1 + 8) + 4 * (2 + 2 + 1 + 1 + 2)
    assert sizes.by_tensor == {
        "tok_emb.weight": 3 * 2 + 3 * 64,
        "fc.weight": 4 * 2 + 128,
        "fc.bias": 8,
        "ln.weight": 20,
        "head.weight": 12,
    }
    data = 198 + 136 + 8 + 20 + 12
    assert sizes.by_part == {
        "header": 16,
        "metadata": metadata,
        "descriptors": descriptors,
        "data": data,
        "padding": 0,
    }
    assert sizes.overhead == 16 + metadata + descriptors
    assert sizes.by_dtype == {
        "Q8_PER_CHANNEL": 192,
        "Q4_PER_GROUP_64": 128,
        "F32": 28,
        "F16": 12,
        "scales (F16)": 14,
        REST: sizes.overhead,
    }
    assert sizes.by_role == {
        "embeddings": 192,
        "weights": 128 + 12,
        "biases": 8,
        "norms": 20,
        "scales": 14,
        REST: sizes.overhead,
    }


def test_padding_is_counted_as_padding(tmp_path):
    parts = [descriptor(b"a", (2,), F32, 5), descriptor(b"b", (3, 4), Q8, 20)]
    data = bytes(5 + 8 + 7 + 18 + 11)
    (tmp_path / "m").write_bytes(assemble(parts, data))
    sizes = file_sizes(tmp_path / "m")
    assert sizes.by_part["padding"] == 5 + 7 + 11
    assert sizes.by_dtype["padding"] == sizes.by_role["padding"] == 23
    for count in (sizes.by_part, sizes.by_dtype, sizes.by_role):
        assert sum(count.values()) == sizes.total == len(assemble(parts, data))


def test_scale_bytes_are_the_bytes_before_the_values(trained, tmp_path):
    write_gguf_lite(tmp_path / "m", trained, preset("int4-small-embeddings", trained))
    with open_gguf_lite(tmp_path / "m") as file:
        for name, info in file.tensors.items():
            expected = 0
            if info.dtype.scheme.startswith("q"):
                expected = file.quantized(name).scale.nbytes
            assert info.dtype.scale_bytes(info.shape) == expected
    assert DType.F32.scale_bytes((3, 64)) == DType.F16.scale_bytes(()) == 0
    assert DType.Q8_PER_CHANNEL.scale_bytes((3, 64)) == 6
    assert DType.Q4_PER_GROUP_64.scale_bytes((3, 192)) == 18


def test_the_size_to_compare_with_is_that_of_torch_save(trained, tmp_path):
    torch.save(trained.state_dict(), tmp_path / "m.pt")
    written = (tmp_path / "m.pt").stat().st_size
    assert torch_save_size(trained) == pytest.approx(written, rel=1e-3)  # the archive repeats the file's own name
    buffer = io.BytesIO()
    torch.save(trained.state_dict(), buffer)
    assert torch_save_size(trained) == len(buffer.getvalue())


def ratio(name: str, model, path) -> float:
    write_gguf_lite(path, model, preset(name, model))
    return torch_save_size(model) / path.stat().st_size


def test_int8_is_three_times_smaller_and_the_recommended_int4_six_times(trained, tmp_path):
    path = tmp_path / "m"
    assert ratio("int8", trained, path) >= 3
    assert ratio("int8-small-embeddings", trained, path) >= 3
    assert ratio("int4-small-embeddings", trained, path) >= 6
    assert ratio("int4-everything", trained, path) >= 6


def test_int4_with_larger_embeddings_misses_six_and_the_embeddings_are_why(trained, tmp_path):
    path = tmp_path / "m"
    for name in ("int4", "int4-f16-embeddings"):
        assert 4 < ratio(name, trained, path) < 6
        by_role = file_sizes(path).by_role
        assert by_role["embeddings"] > 0.2 * file_sizes(path).total


def test_no_preset_reaches_eight_because_scales_take_a_quarter_of_a_bit_a_weight(trained, tmp_path):
    path = tmp_path / "m"
    assert ratio("int4-everything", trained, path) < 32 / (4 + 16 / 64)
    sizes = file_sizes(path)
    assert sizes.by_dtype["scales (F16)"] / sizes.by_dtype["Q4_PER_GROUP_64"] == pytest.approx(16 / 64 / 4)


def test_the_size_follows_from_the_config_alone(tmp_path):
    """What a student predicts before measuring: no weight is needed."""
    config = MiniGPTConfig(vocab_size=96, context=16, d_model=64, n_layers=3, n_heads=2, d_mlp=192)
    model = MiniGPT(config)
    write_gguf_lite(tmp_path / "m", model, preset("int4-small-embeddings", model))
    sizes = file_sizes(tmp_path / "m")
    d, m, n = config.d_model, config.d_mlp, config.n_layers
    matrices = n * (3 * d * d + d * d + 2 * d * m)
    assert sizes.by_role["weights"] == matrices // 2
    assert sizes.by_role["scales"] == 2 * (matrices // 64) + 2 * config.vocab_size
    assert sizes.by_role["embeddings"] == config.vocab_size * d + 2 * config.context * d
    assert sizes.by_role["norms"] == 4 * (2 * n + 1) * 2 * d
    assert sizes.by_role["biases"] == 4 * n * (3 * d + d + m + d)
    assert {role_of(name) for name in sizes.by_tensor} == {
        "weight", "bias", "norm", "token embedding", "position embedding"
    }  # fmt: skip


def test_sizes_are_shown_in_units_of_a_thousand():
    assert [human(n) for n in (0, 1, 999, 1000, 1536, 999_994, 1_000_000, 13_970_000, 2_500_000_000)] == [
        "0 B", "1 B", "999 B", "1.00 kB", "1.54 kB", "999.99 kB", "1.00 MB", "13.97 MB", "2.50 GB"
    ]  # fmt: skip


def test_a_malformed_file_is_not_weighed(tmp_path):
    (tmp_path / "m").write_bytes(b"TFLG")
    with pytest.raises(FormatError):
        file_sizes(tmp_path / "m")


def test_both_embeddings_are_counted_together(tmp_path):
    model = MiniGPT(MiniGPTConfig(vocab_size=8, context=4, d_model=8, n_layers=1, n_heads=1, d_mlp=8))
    write_gguf_lite(tmp_path / "m.gguf-lite", model, {})
    assert file_sizes(tmp_path / "m.gguf-lite").by_role["embeddings"] == 4 * 8 * (8 + 4)
