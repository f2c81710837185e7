"""From a Hugging Face folder to GGUF to bump: the logits at the end are those of transformers at the beginning."""

from __future__ import annotations

import numpy as np
import pytest
from hf_models import as_the_file_has_it, greedy, logits, save_gpt2, save_llama

from miniquant.formats.bump import write_bump
from miniquant.models.huggingface.convert import convert_folder
from miniquant.runtime.runtime import Runtime

WIDE = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4}
CASES = {
    "llama": (save_llama, {}, "F32"),
    "llama in Q8_0, biases, its own head": (
        save_llama,
        {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
        "Q8_0",
    ),
    "llama in Q4_K_M": (save_llama, WIDE, "Q4_K_M"),
    "gpt2": (save_gpt2, {}, "F32"),
    "gpt2 in Q4_0": (save_gpt2, {}, "Q4_0"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_logits_are_those_of_transformers_with_the_file_s_weights(case, tmp_path):
    save, config, kind = CASES[case]
    model = save(tmp_path / "folder", **config)
    convert_folder(tmp_path / "folder", tmp_path / "m.gguf", kind)
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    ids = np.random.default_rng(0).integers(0, 520, 100).tolist()
    with Runtime(tmp_path / "weights.bump") as runtime:
        if kind == "F32":
            assert np.abs(runtime.logits(ids) - logits(model, ids)).max() < 1e-4
        model = as_the_file_has_it(model, tmp_path / "m.gguf")
        expected = logits(model, ids)
        assert np.abs(runtime.logits(ids) - expected).max() < 1e-4
        if kind == "Q4_K_M":
            assert {t.dtype.name for t in runtime.file.tensors.values()} == {"FP32", "Q4_K", "Q6_K"}
        assert runtime.greedy(ids[:20], 5) == greedy(model, ids[:20], 5)
