"""llama.cpp's arithmetic on converted Llamas and Qwen2s, step by step, in every type: ours from the same input."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from ggml_arithmetic import GgmlLlama, rope_angles
from hf_models import logits, save_llama3, save_qwen2
from test_llamacpp_steps import NUDGE, TIGHT, apart
from thorough import in_turns
from transformers.models.llama import modeling_llama

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.models import minillama
from miniquant.models.corpus import held_out_documents
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.huggingface.convert import convert_folder

WIDE = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2}
LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}
PARTS = [
    "attn_norm",
    "Qcur",
    "Kcur",
    "Vcur",
    "kqv_out",
    "ffn_inp",
    "ffn_norm",
    "ffn_gate",
    "ffn_up",
    "ffn_swiglu",
    "l_out",
]
TOKENS = np.random.default_rng(0).integers(3, 500, 24)


@dataclass
class Both:
    """A file in llama.cpp with a float32 cache, what it has in hand on the way, and the file in our arithmetic."""

    ggml: GgmlLlama
    theirs: dict[str, np.ndarray]
    names: list[str]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """One for each model and type that is asked for."""
    base, made = tmp_path_factory.mktemp("steps"), {}
    folders = {"minillama": minillama.folder(), "llama3": base / "llama3", "qwen2": base / "qwen2"}
    save_llama3(folders["llama3"], **WIDE, head_dim=128)
    save_qwen2(folders["qwen2"], rope_parameters=LINEAR, **WIDE)

    def get(model: str, kind: str) -> Both:
        if (model, kind) not in made:
            path = base / f"{model}-{kind}.gguf"
            convert_folder(folders[model], path, kind)
            ggml = GgmlLlama(path)
            names = [f"{part}-{i}" for i in range(ggml.layers) for part in PARTS] + ["result_norm", "result_output"]
            with LlamaCpp(path, float32_cache=True) as llama:
                made[model, kind] = Both(ggml, llama.steps(TOKENS.tolist(), names), names)
        return made[model, kind]

    return get


@pytest.mark.parametrize(("model", "kind"), in_turns(["minillama", "llama3", "qwen2"], FILE_TYPES))
def test_every_step_of_llama_cpp_is_ours_from_the_same_input(model, kind, both):
    run = both(model, kind)
    assert run.theirs.keys() == set(run.names)
    for name, mine in run.ggml.steps(TOKENS, given=run.theirs).items():
        assert mine.shape == run.theirs[name].shape, name
        assert apart(run.theirs[name], mine) < TIGHT, name


STEPS = {
    "attn_norm": "attn_norm", "attn_q": "Qcur", "attn_k": "Kcur", "attn_v": "Vcur", "attn_output": "ffn_inp",
    "ffn_norm": "ffn_norm", "ffn_gate": "ffn_gate", "ffn_up": "ffn_up", "ffn_down": "l_out",
}  # fmt: skip


def expected_at(parameter: str) -> set[str]:
    """The step or steps that a parameter goes into."""
    if parameter.startswith("blk."):
        _, i, part, _ = parameter.split(".")
        return {f"{STEPS[part]}-{i}"}
    if parameter == "rope_freqs.weight":
        return {"Qcur-0", "Kcur-0", "Qcur-1", "Kcur-1"}
    return {{"output_norm.weight": "result_norm", "output.weight": "result_output"}[parameter]}


@pytest.mark.parametrize(("model", "kind"), [("llama3", "F32"), ("llama3", "Q4_0"), ("qwen2", "F32")])
def test_each_parameter_that_is_a_little_off_is_noticed_at_its_own_step(model, kind, both):
    run = both(model, kind)
    for parameter, w in list(run.ggml.w.items()):
        if parameter == "token_embd.weight":  # what enters the first layer has no name, and a tied head has two
            continue
        run.ggml.w[parameter] = w * NUDGE
        try:
            mine = run.ggml.steps(TOKENS, given=run.theirs)
        finally:
            run.ggml.w[parameter] = w
        wrong = {name for name in run.names if apart(run.theirs[name], mine[name]) >= TIGHT}
        assert wrong == expected_at(parameter), parameter


@pytest.mark.parametrize("model", ["llama3", "qwen2"])
def test_pairs_of_the_other_kind_are_noticed(model, both):
    run = both(model, "F32")
    run.ggml.neighbours = not run.ggml.neighbours
    try:
        mine = run.ggml.steps(TOKENS, given=run.theirs)
    finally:
        run.ggml.neighbours = not run.ggml.neighbours
    assert apart(run.theirs["Qcur-0"], mine["Qcur-0"]) > 0.1
    assert apart(run.theirs["Vcur-0"], mine["Vcur-0"]) < TIGHT


def exact_angles(tokens, half, base):
    return np.arange(tokens)[:, None] * base ** (-np.arange(half) / half)


def in_float64(model, ids, angles, monkeypatch):
    """The logits of transformers with every step in float64; its norm and its angles go through float32 by themselves.

    angles: (tokens, half) of each position, as they stand.
    """
    turned = torch.from_numpy(angles).double().repeat(1, 2)[None]

    def norm(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)

    with monkeypatch.context() as patched:
        patched.setattr(modeling_llama.LlamaRMSNorm, "forward", norm)
        patched.setattr(modeling_llama.LlamaRotaryEmbedding, "forward", lambda *_, **__: (turned.cos(), turned.sin()))
        return logits(copy.deepcopy(model).double(), ids)


def test_minillama_has_the_logits_that_transformers_computes_with_the_same_angles(
    tmp_path, minillama_model, monkeypatch
):
    """Both programs round the angles of rope to float32, each in its own way; an angle of 200 has four digits less.

    The largest difference of a logit, measured on 81 and on 199 tokens, where the largest logit is 15.6 and 15.5:

    * llama.cpp and float64 with llama.cpp's angles: 3.6e-6 and 4.7e-6. This is what has to be below 1e-5.
    * llama.cpp and float64 with exact angles: 7.2e-6 and 4.8e-5
    * transformers in float32 and float64 with exact angles: 8.4e-6 and 1.3e-5
    * llama.cpp and transformers in float32: 9.5e-6 and 4.9e-5
    """
    convert_folder(minillama.folder(), tmp_path / "m.gguf", "F32")
    tokenizer, shape = minillama.load_tokenizer(), (32, 1e4)
    texts = ["The import statement finds a module.\ndef f(x):\n    return x" * 4, held_out_documents("topics")[3][:600]]
    with LlamaCpp(tmp_path / "m.gguf", float32_cache=True) as llama:
        for text, tokens in zip(texts, (81, 199), strict=True):
            ids = tokenizer.encode(text).ids
            assert len(ids) == tokens
            found, float32 = llama.logits(ids), logits(minillama_model, ids)
            same = in_float64(minillama_model, ids, rope_angles(tokens, *shape), monkeypatch)
            exact = in_float64(minillama_model, ids, exact_angles(tokens, *shape), monkeypatch)
            assert np.abs(exact).max() > 15
            assert np.abs(found - same).max() < 1e-5
            assert np.abs(float32 - exact).max() < 3e-5
    assert np.abs(same - exact).max() > 2e-5 > np.abs(same - found).max()  # so the angles are what differs
    assert np.abs(found - float32).max() > 1e-5
