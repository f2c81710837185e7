"""llama.cpp's arithmetic on converted Llamas and Qwen2s, step by step, in every type: ours from the same input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from ggml_arithmetic import GgmlLlama
from hf_models import logits, save_llama3, save_qwen2
from test_llamacpp_steps import NUDGE, TIGHT, apart

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.models import minillama
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
TOKENS = np.random.default_rng(0).integers(3, 500, 48)


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


@pytest.mark.parametrize("kind", FILE_TYPES)
@pytest.mark.parametrize("model", ["minillama", "llama3", "qwen2"])
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


def test_minillama_has_the_logits_that_transformers_computes(tmp_path, minillama_model):
    """Logits of up to 15, of which either side loses some 1e-6 to float32."""
    convert_folder(minillama.folder(), tmp_path / "m.gguf", "F32")
    ids = minillama.load_tokenizer().encode("The import statement finds a module.\ndef f(x):\n    return x" * 4).ids
    with LlamaCpp(tmp_path / "m.gguf", float32_cache=True) as llama:
        found = llama.logits(ids)
    expected = logits(minillama_model, ids)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
    assert apart(expected, found) < TIGHT
