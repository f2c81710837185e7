"""The runtime against PyTorch with the same dequantized weights, against transformers, and against llama.cpp."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from bump_models import SMALL, llama_metadata, llama_tensors, write_llama, write_qwen2
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried

from miniquant import MiniquantError
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.bump import open_bump, write_bump
from miniquant.formats.gguf import GGMLType, RawTensor, decode, read_gguf, write_gguf
from miniquant.models.corpus import load_tokenizer
from miniquant.models.load import load_any
from miniquant.models.to_gguf import minigpt_tokenizer_metadata
from miniquant.runtime import runtime as module
from miniquant.runtime.arena import BumpAllocator
from miniquant.runtime.integer_products import activation_type, encode_activations, integer_products
from miniquant.runtime.memory import measure
from miniquant.runtime.runtime import Runtime, arena_plan

PROMPT = "An exception is raised when"
KINDS = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q4_K_M", "Q5_K", "Q6_K"]
WHOLE = ["F32", "Q4_K"]


@pytest.fixture(scope="module")
def minigpts(shallow_in, exported, tmp_path_factory):
    """The trained model as a bump file of each type, its token embedding too; of most types its first layer alone."""
    folder = tmp_path_factory.mktemp("minigpts")
    for kind in KINDS:
        (folder / kind).mkdir()
        write_bump((exported if kind in WHOLE else shallow_in)(kind), folder / kind / "weights.bump")
    return folder


def transformers_llama(path, sizes):
    """``LlamaForCausalLM`` with the weights of a GGUF file, decoded; rope's pairs as transformers wants them."""
    from transformers import LlamaConfig, LlamaForCausalLM

    with read_gguf(path) as file:
        state = {name: file.tensor(name) for name in file.tensors}
    biased = "blk.0.attn_q.bias" in state
    config = LlamaConfig(
        vocab_size=sizes["vocab"],
        hidden_size=sizes["embed"],
        intermediate_size=sizes["inner"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        num_key_value_heads=sizes["kv_heads"],
        max_position_embeddings=sizes["context"],
        rms_norm_eps=1e-5,
        tie_word_embeddings="output.weight" not in state,
        attention_bias=biased,
        mlp_bias=biased,
        attn_implementation="eager",
    )
    parts = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj"}
    parts |= {"attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj"}
    parts |= {"ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    whole = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    found = {}
    for name, w in state.items():
        owner, _, kind = name.rpartition(".")
        if owner in whole:
            found[f"{whole[owner]}.{kind}"] = w
            continue
        _, number, part = owner.split(".")
        if part in ("attn_q", "attn_k"):  # neighbours there, halves here
            half = sizes["embed"] // sizes["heads"] // 2
            w = w.reshape(-1, half, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)
        found[f"model.layers.{number}.{parts[part]}.{kind}"] = w
    model = LlamaForCausalLM(config)
    loaded = model.load_state_dict({k: torch.from_numpy(np.ascontiguousarray(w)) for k, w in found.items()}, False)
    assert not loaded.unexpected_keys and set(loaded.missing_keys) <= {"lm_head.weight"}
    return model.eval()


@torch.no_grad()
def apart(model, runtime, tokens) -> float:
    """The largest difference of two models' logits over one sequence, where the other one rounds as the runtime does.

    The model is computed in float64. What each of its products is given may differ from what the runtime's is given by
    a few units in the last place of a float32, so one of a thousand numbers would be rounded to the other integer.
    Therefore the product is made from what the runtime had, once it is found to be the same within 1e-5 of its largest.
    """
    had, products, linear = [], module.multiply, torch.nn.functional.linear

    def remember(crew, matrix, given, out):
        had.append((matrix, given.x.copy()))
        products(crew, matrix, given, out)

    def rounded(x, w, bias=None):
        matrix, given = turns.pop(0)
        wanted = x.reshape(-1, x.shape[-1]).numpy()
        assert (matrix.rows, matrix.n) == tuple(w.shape)
        assert np.abs(given - wanted).max() <= 1e-5 * np.abs(wanted).max()
        if matrix.form is None:
            return linear(x, w, bias)
        kind, raw = matrix.kind.ggml, matrix.raw.reshape(matrix.rows, -1)
        row_of = {row.tobytes(): number for number, row in enumerate(decode(raw, kind))}
        order = [row_of[row.tobytes()] for row in w.detach().float().numpy()]  # transformers has q and k in another one
        found = integer_products(raw[order], kind, encode_activations(given, activation_type(kind)))
        out = torch.from_numpy(found.astype(np.float64)).reshape(*x.shape[:-1], -1)
        return out if bias is None else out + bias

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "multiply", remember)
        logits = runtime.logits(tokens)
        pieces = -(-len(tokens) // runtime.batch)
        each = [had[i :: len(had) // pieces] for i in range(len(had) // pieces)]  # of a product, all pieces
        turns = [(found[0][0], np.concatenate([x for _, x in found])) for found in each]
        patch.setattr(torch.nn.functional, "linear", rounded)
        out = model.double()(torch.tensor([tokens]))
    assert not turns
    expected = (out if isinstance(out, torch.Tensor) else out.logits)[0].numpy()
    return float(np.abs(logits - expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_minigpt_s_logits_are_those_of_the_dequantized_model(kind, minigpts):
    path = minigpts / kind / "weights.bump"
    with Runtime(path) as runtime:
        found = {t.dtype.name for name, t in runtime.file.tensors.items() if ".W" in name}
        assert found == {"F32": {"FP32"}, "F16": {"FP16"}, "Q4_K_M": {"Q4_K", "Q6_K"}}.get(kind, {kind})
        tokens = load_tokenizer().encode(PROMPT).ids
        tokens += np.random.default_rng(0).integers(0, 1024, 24).tolist()
        assert apart(load_any(path), runtime, tokens) < 1e-4


def test_the_whole_context_is_used_to_its_last_token_and_no_further(minigpts):
    path = minigpts / "Q4_K" / "weights.bump"
    tokens = np.random.default_rng(1).integers(0, 1024, 256).tolist()
    with Runtime(path) as runtime:
        assert apart(load_any(path), runtime, tokens) < 1e-4
        with pytest.raises(MiniquantError, match="the context of 256 tokens is full"):
            runtime.feed(0)
        runtime.reset()
        runtime.feed(0)
    with Runtime(path, context=4) as runtime, pytest.raises(MiniquantError, match="context of 4"):
        runtime.logits(tokens[:5])


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_K"])
def test_the_text_is_that_of_the_dequantized_model(kind, minigpts):
    path = minigpts / kind / "weights.bump"
    ids = load_tokenizer().encode(PROMPT).ids
    with Runtime(path) as runtime:
        assert runtime.greedy(ids, 11) == load_any(path).greedy(ids, 11)


@pytest.mark.parametrize(
    "how",
    [
        {"kinds": {}},
        {"kinds": {"": "Q8_0"}},
        {"kinds": {"": "Q4_K"}},
        {"kinds": {"ffn_down": "Q6_K", "attn_v": "Q6_K", "": "Q4_K"}},
        {"kinds": {"": "Q4_0"}, "head": True},
        {"kinds": {"ffn": "F16", "": "BF16"}, "biases": True},
    ],
    ids=["F32", "Q8_0", "Q4_K", "mixed", "Q4_0, own head", "biases"],
)
def test_a_llama_s_logits_are_those_of_transformers(how, tmp_path):
    random, extra = np.random.default_rng(7), {}
    if how.get("head"):
        extra["output.weight"] = random.normal(0, 0.1, (96, 256)).astype(np.float32)
    if how.get("biases"):
        shapes = {"attn_q": 256, "attn_k": 128, "attn_v": 128, "attn_output": 256}
        shapes |= {"ffn_gate": 512, "ffn_up": 512, "ffn_down": 256}
        extra |= {
            f"blk.{i}.{name}.bias": random.normal(0, 0.3, n).astype(np.float32)
            for i in range(2)
            for name, n in shapes.items()
        }
    write_llama(tmp_path / "m.gguf", SMALL, how["kinds"], extra)
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    tokens = random.integers(0, 96, 40).tolist()
    with Runtime(tmp_path / "weights.bump") as runtime:
        assert apart(transformers_llama(tmp_path / "m.gguf", SMALL), runtime, tokens) < 1e-4


@pytest.mark.parametrize("heads", [(4, 4), (4, 1), (8, 2)])
def test_any_grouping_of_key_value_heads_and_any_base_of_rope(heads, tmp_path):
    sizes = SMALL | {"heads": heads[0], "kv_heads": heads[1], "embed": 64, "inner": 96}
    write_llama(tmp_path / "m.gguf", sizes)
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    tokens = np.random.default_rng(3).integers(0, 96, 64).tolist()
    with Runtime(tmp_path / "weights.bump") as runtime:
        assert apart(transformers_llama(tmp_path / "m.gguf", sizes), runtime, tokens) < 1e-4
        first = runtime.logits(tokens)
    write_llama(tmp_path / "m.gguf", sizes, more={"llama.rope.freq_base": 500000.0})
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    with Runtime(tmp_path / "weights.bump") as runtime:
        assert not np.allclose(runtime.logits(tokens)[1:], first[1:])


@pytest.mark.parametrize("which", ["qwen2", "qwen2, linear", "factors", "linear", "wide heads", "narrow heads"])
def test_llama_cpp_gives_the_same_logits_for_biases_halves_rope_factors_and_heads_of_any_width(which, tmp_path):
    sizes = SMALL | {"vocab": 1024, "embed": 64, "inner": 96}
    more = minigpt_tokenizer_metadata(load_tokenizer())
    if "qwen2" in which:
        scaling = {"qwen2.rope.scaling.type": "linear", "qwen2.rope.scaling.factor": 4.0}
        more |= {"qwen2.rope.freq_base": 1e6} | (scaling if "linear" in which else {})
        write_qwen2(tmp_path / "m.gguf", sizes, more=more)
    elif which == "factors":
        factors = {"rope_freqs.weight": np.linspace(1, 32, 8, dtype=np.float32)}
        write_llama(tmp_path / "m.gguf", sizes, extra=factors, more=more)
    elif which == "linear":
        more |= {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
        write_llama(tmp_path / "m.gguf", sizes, more=more)
    else:
        width = 24 if which == "wide heads" else 8
        keys = dict.fromkeys(("attention.key_length", "attention.value_length", "rope.dimension_count"), width)
        more |= {f"llama.{key}": value for key, value in keys.items()}
        write_llama(tmp_path / "m.gguf", sizes, more=more, head_dim=width)
    config = write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    assert config.architecture == ("qwen2" if "qwen2" in which else "llama")
    assert config.rope_factors == ("factors" in which or "linear" in which)
    tokens = np.random.default_rng(4).integers(0, 1024, 50).tolist()
    with Runtime(tmp_path / "weights.bump") as runtime, LlamaCpp(tmp_path / "m.gguf", 64, float32_cache=True) as other:
        assert np.abs(runtime.logits(tokens) - other.logits(tokens)).max() < 1e-3


@pytest.mark.parametrize("batch", [2, 3, 16, 64])
def test_several_tokens_at_once_give_what_one_after_another_gives(batch, tmp_path, minigpts, monkeypatch):
    write_qwen2(tmp_path / "m.gguf", SMALL | {"heads": 8, "kv_heads": 2}, {"ffn": "F16", "attn": "BF16"})
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    tokens = np.random.default_rng(5).integers(0, 96, 37).tolist()
    for path in (tmp_path / "weights.bump", minigpts / "F32" / "weights.bump"):  # nothing is rounded to integers
        monkeypatch.setattr(module, "BATCH", 1)
        with Runtime(path) as runtime:
            assert runtime.batch == 1
            expected = runtime.logits(tokens)
        monkeypatch.setattr(module, "BATCH", batch)
        with Runtime(path) as runtime:
            assert runtime.batch == batch
            assert np.abs(runtime.logits(tokens) - expected).max() < 1e-4
            runtime.reset()
            for start, stop in ((0, 5), (5, 6), (6, 37)):  # the caches go on where they were
                last = runtime.read(tokens[start:stop])
                assert np.abs(last - expected[stop - 1]).max() < 1e-4


def test_llama_cpp_gives_the_same_logits_for_both_architectures(tmp_path, minigpts, exported):
    sizes = SMALL | {"vocab": 1024}
    write_llama(tmp_path / "m.gguf", sizes, more=minigpt_tokenizer_metadata(load_tokenizer()))
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    tokens = np.random.default_rng(4).integers(0, 1024, 50).tolist()
    with Runtime(tmp_path / "weights.bump") as runtime, LlamaCpp(tmp_path / "m.gguf", 64, float32_cache=True) as other:
        assert np.abs(runtime.logits(tokens) - other.logits(tokens)).max() < 1e-3
    with Runtime(minigpts / "F32" / "weights.bump") as runtime, LlamaCpp(exported("F32")) as other:
        ours, theirs = runtime.logits(tokens), other.logits(tokens)
        assert np.abs(ours - theirs).max() < 1e-2  # its GELU reads a table of float16
    with Runtime(minigpts / "Q4_K" / "weights.bump") as runtime, LlamaCpp(exported("Q4_K")) as other:
        ours, theirs = runtime.logits(tokens), other.logits(tokens)
        assert np.abs(ours - theirs).max() < 1  # it rounds the activations to 8 bits
        assert (ours.argmax(1) == theirs.argmax(1)).mean() > 0.8


def test_tokens_that_do_not_exist_and_an_empty_beginning_are_refused(minigpts):
    with Runtime(minigpts / "Q8_0" / "weights.bump") as runtime:
        for token in (-1, 1024):
            with pytest.raises(MiniquantError, match="the vocabulary has 1024"):
                runtime.feed(token)
        with pytest.raises(MiniquantError, match="no token to go on from"):
            runtime.greedy([], 1)
        with pytest.raises(MiniquantError, match="there is no token to read"):
            runtime.read([])
        assert runtime.logits([]).shape == (0, 1024)
        assert runtime.greedy([5], 0) == []


@pytest.mark.parametrize("wrong", [True, np.True_, 5.0, np.float32(5), "5", [5], np.array([5.0]), b"5"])
def test_what_is_no_whole_number_is_no_token_no_context_and_no_length(wrong, minigpts):
    path = minigpts / "Q8_0" / "weights.bump"
    with Runtime(path) as runtime:
        for call in (runtime.feed, lambda token: runtime.logits([1, token]), lambda token: runtime.greedy([token], 1)):
            with pytest.raises(MiniquantError, match=r"the token is .*, expected a number of the vocabulary"):
                call(wrong)
        with pytest.raises(MiniquantError, match=r"the length is .*, expected how many tokens to add"):
            runtime.greedy([5], wrong)
        assert runtime.greedy(np.array([5, 6]), np.int64(2)) == runtime.greedy([5, 6], 2)
    with pytest.raises(MiniquantError, match=r"the context is .*, expected a whole number of tokens from 1 on"):
        Runtime(path, context=wrong)


def test_a_context_is_at_least_one_token_and_at_most_the_model_s(minigpts):
    path = minigpts / "Q8_0" / "weights.bump"
    for wrong in (0, -1, -(2**70)):
        with pytest.raises(MiniquantError, match=f"the context is {wrong}, expected a whole number of tokens from 1"):
            Runtime(path, context=wrong)
    with Runtime(path) as whole, Runtime(path, whole.config.context + 1) as more, Runtime(path, 2) as two:
        assert more.context == whole.context == whole.config.context
        assert more.plan.size == whole.plan.size
        two.logits([1, 2])
        with pytest.raises(MiniquantError, match="the context of 2 tokens is full"):
            two.feed(3)


def test_a_replaced_weight_is_computed_with_and_the_file_stays_as_it_is(minigpts):
    path = minigpts / "F16" / "weights.bump"
    before = path.read_bytes()
    with Runtime(path) as model:
        name = "layers.0.W_up"
        plain, w = model.logits([1, 2]), model.file.tensor(name)
        model.replace_weight(name, w)  # its own, in float32: the same numbers
        assert np.abs(model.logits([1, 2]) - plain).max() < 1e-5
        model.replace_weight(name, -w)
        assert np.abs(model.logits([1, 2]) - plain).max() > 1e-2
        with pytest.raises(MiniquantError, match=r"'layers.0.W_up': found weights of shape \(3,\), expected \("):
            model.replace_weight(name, np.zeros(3, np.float32))
        with pytest.raises(MiniquantError, match=r"'lost': .* expected no such tensor"):
            model.replace_weight("lost", w)
    assert path.read_bytes() == before


def test_an_odd_head_cannot_be_turned(tmp_path):
    sizes = dict(embed=6, heads=2, kv_heads=1, inner=3, vocab=3, context=5, layers=1)
    write_llama(tmp_path / "m.gguf", sizes)
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    with pytest.raises(MiniquantError, match="head_dim must be even"):
        Runtime(tmp_path / "weights.bump")


def test_an_arena_that_a_machine_cannot_give_names_the_remedy_and_a_smaller_context_runs(tmp_path, monkeypatch):
    write_llama(tmp_path / "m.gguf", SMALL | {"context": 2**32 - 1})
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    with Runtime(tmp_path / "weights.bump", context=8) as runtime:
        assert len(runtime.greedy([1], 3)) == 3

    def no_memory(_):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(BumpAllocator, "allocate", no_memory)
    with pytest.raises(MiniquantError, match=r"for the arena of 4294967295 tokens .*; pass a smaller context"):
        Runtime(tmp_path / "weights.bump")


def test_every_buffer_of_the_arena_begins_at_a_multiple_of_64_in_one_allocation(minigpts):
    with Runtime(minigpts / "Q8_0" / "weights.bump") as runtime:
        begin = min(a.ctypes.data for a in runtime.arena.values())
        end = 0
        for name, (start, stop) in runtime.plan.spans.items():
            array = runtime.arena[name]
            assert array.ctypes.data == begin + start and array.nbytes == stop - start
            assert array.ctypes.data % 64 == 0 and end <= start < end + 64
            end = stop
        assert runtime.plan.size == end + -end % 64


def test_rows_of_heads_begin_at_multiples_of_64_whatever_the_width_of_a_head():
    config = open_config(embed=40, heads=4, head_dim=10)
    plan = arena_plan(config, 5)
    assert plan.shapes["keys"] == (1, 4, 5, 16) and plan.shapes["scores"] == (4, 1, 16)
    plan = arena_plan(config._replace(heads=8, head_dim=6), 5, batch=3)  # two heads to each of keys and values
    assert plan.shapes["scores"] == (4, 6, 16) and plan.shapes["queries"] == plan.shapes["mixed"] == (3, 48)
    assert plan.shapes["x"] == (3, 40) and plan.shapes["turns"] == (3, 6) and "turned" not in plan.shapes
    assert arena_plan(config._replace(architecture="qwen2"), 5, batch=3).shapes["turned"][0] == 3


def open_config(embed, heads, head_dim):
    from miniquant.formats.bump import BumpConfig

    return BumpConfig("llama", 1, 3, embed, 5, heads, head_dim, heads, 7, 1e-5, 1e4, True)


@settings(max_examples=tried(15, 50), deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=12))
def test_buffers_of_any_shape_begin_at_multiples_of_64_and_none_touches_another(shapes):
    plan = BumpAllocator()
    for number, shape in enumerate(shapes):
        assert plan.reserve(str(number), *shape) % 64 == 0
    buffers = plan.allocate()
    for number, shape in enumerate(shapes):
        assert buffers[str(number)].shape == tuple(shape) and not buffers[str(number)].any()
        buffers[str(number)][...] = number
    assert all((buffer == int(name)).all() for name, buffer in buffers.items())
    assert all(buffer.ctypes.data % 64 == 0 for buffer in buffers.values() if buffer.size)
    sizes = sum(4 * int(np.prod(shape)) for shape in shapes)
    assert sizes <= plan.size <= sizes + 64 * len(shapes) and plan.size % 64 == 0


def test_a_name_is_reserved_once():
    plan = BumpAllocator()
    plan.reserve("x", 2)
    with pytest.raises(ValueError, match="'x' is reserved already"):
        plan.reserve("x", 2)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A llama of 28 million weights in Q4_K: 16 MB of blocks, 110 MB of float32."""
    folder = tmp_path_factory.mktemp("large")
    sizes = dict(embed=1024, heads=8, kv_heads=4, inner=2816, vocab=4096, context=128, layers=2)
    small = sizes | {name: sizes[name] // 64 for name in ("embed", "inner", "vocab")}  # its tensors' names and shapes
    random = np.random.default_rng(0)
    tensors = {}
    for name, w in llama_tensors(**small).items():
        shape = tuple(64 * n for n in w.shape)
        if w.ndim == 2:  # random blocks with small scales: nobody reads the text
            raw = random.integers(0, 256, (shape[0], shape[1] // 256, 144), np.uint8)
            raw[..., :4] = np.array([1e-4, 1e-4], "<f2").view(np.uint8)
            tensors[name] = RawTensor(raw.reshape(shape[0], -1), GGMLType.Q4_K, shape)
        else:
            tensors[name] = np.ones(shape, np.float32)
    write_gguf(folder / "m.gguf", tensors, llama_metadata(**sizes))
    write_bump(folder / "m.gguf", folder / "weights.bump")
    return folder / "weights.bump"


def test_generating_takes_the_file_s_size_and_at_most_64_mb_more(large):
    found = measure(large, n=4)
    assert found.file == large.stat().st_size > 15e6
    assert len(found.tokens) == 5
    assert found.peak <= found.file + 64e6
    assert found.peak >= 0.8 * found.file  # the pages of the file are counted


def test_dequantizing_first_takes_the_float32_weights_on_top(large):
    with open_bump(large) as file:
        floats = sum(4 * int(np.prod(t.shape)) for t in file.tensors.values())
    found = measure(large, "dequantized first", n=1)
    assert found.peak >= 0.9 * floats > 2 * (found.file + 64e6) - 64e6
    with pytest.raises(MiniquantError, match="unknown way 'slowly'"):
        measure(large, "slowly")


def test_generating_allocates_nothing_of_a_matrix_s_size(large):
    with Runtime(large) as model:
        model.greedy([0], 1)
        tracemalloc.start()
        try:
            model.greedy([1], 2)
            assert tracemalloc.get_traced_memory()[1] < 100_000
        finally:
            tracemalloc.stop()


def test_reading_and_writing_import_neither_numba_nor_torch(minigpts):
    code = (
        "import sys, miniquant.formats.bump, miniquant.models.load\n"
        "from miniquant.formats.describe import describe\n"
        "describe(sys.argv[1]); print(sorted(sys.modules))"
    )
    path = minigpts / "Q8_0" / "weights.bump"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout.replace("'", '"')))
    assert not loaded & {"numba", "torch", "llvmlite"}


def test_each_head_s_softmax_has_a_largest_score_of_its_own(minigpts):
    """One head's scores are ten thousand above those of the others, which are mixed by their own softmax."""
    with Runtime(minigpts / "F32" / "weights.bump") as runtime:
        heads, width = runtime.config.heads, runtime.config.head_dim
        q, k, v = np.random.default_rng(1).normal(size=(3, 2, heads, width)).astype(np.float32)
        q[:, 0], k[:, 0] = 100, 100
        mixed = np.full((2, heads * width), np.nan, np.float32)
        runtime._attend(0, *(a.reshape(2, -1) for a in (q, k, v)), mixed)
    scores = np.einsum("thw,shw->hts", q.astype(float), k.astype(float)) / width**0.5
    scores[:, 0, 1] = -np.inf
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    right = np.einsum("hts,shw->thw", shares / shares.sum(axis=-1, keepdims=True), v.astype(float))
    assert np.allclose(mixed, right.reshape(2, -1), rtol=1e-5, atol=1e-5)


def test_the_kernels_of_all_matrices_are_there_before_the_first_token(minigpts, monkeypatch):
    warmed = []
    monkeypatch.setattr(module, "warm", lambda kinds: warmed.extend(kinds))
    with Runtime(minigpts / "Q4_K" / "weights.bump") as runtime:
        matrices = [t.dtype for t in runtime.file.tensors.values() if len(t.shape) == 2]
    assert len(warmed) == len(matrices) > 0 and set(warmed) == set(matrices)
