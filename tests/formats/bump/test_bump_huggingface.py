"""From a Hugging Face folder to GGUF to bump: the logits at the end are those of transformers at the beginning."""

from __future__ import annotations

import numpy as np
import pytest
from hf_models import as_the_file_has_it, greedy, logits, save_gpt2, save_llama
from tokenizers import Tokenizer

from miniquant.formats.bump import write_bump
from miniquant.formats.bump.write import left_behind
from miniquant.models import minillama
from miniquant.models.huggingface.convert import convert_folder
from miniquant.runtime.memory import _dequantize
from miniquant.runtime.runtime import Runtime
from miniquant.runtime.speak import speak

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
        assert np.abs(runtime.logits(ids) - expected).max() < 0.1  # activations of eight bits
        if kind == "Q4_K_M":
            assert {t.dtype.name for t in runtime.file.tensors.values()} == {"FP32", "Q4_K", "Q6_K"}
        _dequantize(runtime)
        assert np.abs(runtime.logits(ids) - expected).max() < 1e-4
        assert runtime.greedy(ids[:20], 5) == greedy(model, ids[:20], 5)


@pytest.mark.parametrize("which", ["tiny_qwen2", "tiny_llama3", "minillama"])
def test_a_folder_s_own_tokenizer_and_logits_come_through(which, request, tmp_path):
    """Biases and a tied head, rope factors and heads of their own width, SentencePiece and a head of its own."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = minillama.folder() if which == "minillama" else request.getfixturevalue(which)
    convert_folder(folder, tmp_path / "m.gguf", "F32")
    config = write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    assert (config.architecture == "qwen2", config.rope_factors) == (which == "tiny_qwen2", which == "tiny_llama3")
    assert (config.head_dim * config.heads != config.embed) == (which == "tiny_llama3")
    assert left_behind(tmp_path / "m.gguf")[1] == ""
    model, theirs = AutoModelForCausalLM.from_pretrained(folder).float().eval(), AutoTokenizer.from_pretrained(folder)
    ours = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    lines = ["def f(x):", "El niño comió piña", "a  b   c\n\n", "🙂 ok", "<s>"[:2], "x" * 9, "it's 12345"]
    assert [ours.encode(line).ids for line in lines] == [theirs(line)["input_ids"] for line in lines]
    ids = np.random.default_rng(0).integers(0, config.vocab, 60).tolist()
    with Runtime(tmp_path / "weights.bump") as runtime:
        assert np.abs(runtime.logits(ids) - logits(model, ids)).max() < 1e-4


def test_minillama_speaks_from_its_bump_file_as_transformers_does(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    convert_folder(minillama.folder(), tmp_path / "m.gguf", "F32")
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    model, tokenizer = (kind.from_pretrained(minillama.folder()) for kind in (AutoModelForCausalLM, AutoTokenizer))
    ids = tokenizer("A list is a", return_tensors="pt")
    out = model.float().generate(**ids, max_new_tokens=12, do_sample=False)[0]
    whole = tokenizer.decode(out, skip_special_tokens=True)
    assert "A list is a" + "".join(speak(tmp_path / "weights.bump", "A list is a", 12)) == whole
