"""A bump file goes on with a text: from Python, and with ``miniquant run``."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from bump_models import SMALL, write_llama
from click.testing import CliRunner

from miniquant import FormatError, MiniquantError
from miniquant.cli import main
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.bump import write_bump
from miniquant.models.corpus import load_tokenizer
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import minigpt_tokenizer_metadata, write_minigpt
from miniquant.runtime import speak
from miniquant.runtime.runtime import Runtime, _drawn

PROMPT = "A list is a"


@pytest.fixture(scope="module")
def minigpt(tmp_path_factory):
    """The trained model in Q4_K_M, as a GGUF file and as a bump file."""
    folder = tmp_path_factory.mktemp("minigpt")
    write_minigpt(folder / "m.gguf", load_pretrained(), load_tokenizer(), "Q4_K_M")
    write_bump(folder / "m.gguf", folder / "weights.bump")
    return folder


def write_ending(folder, keys):
    """A llama that says the next token of its vocabulary after each, and whose texts end at token 70."""
    sizes = SMALL | {"vocab": 1024, "embed": 64, "inner": 64, "heads": 2, "kv_heads": 1, "layers": 1, "context": 12}
    random = np.random.default_rng(0)
    rows = random.normal(size=(1024, 64)).astype(np.float32)
    head = np.roll(rows, 1, axis=0)  # the head's row of a token is the embedding of the one before it
    zeros = {f"blk.0.{name}.weight": np.zeros((64, 64), np.float32) for name in ("attn_output", "ffn_down")}
    extra = {"token_embd.weight": rows, "output.weight": head, "output_norm.weight": np.ones(64, np.float32), **zeros}
    more = minigpt_tokenizer_metadata(load_tokenizer()) | {"tokenizer.ggml.eos_token_id": 70}
    write_llama(folder / "m.gguf", sizes, extra=extra, more=more | keys)
    write_bump(folder / "m.gguf", folder / "weights.bump")
    return folder / "weights.bump"


@pytest.fixture(scope="module")
def ending(tmp_path_factory):
    return write_ending(tmp_path_factory.mktemp("ending"), {})


def text_of(first: int, n: int) -> str:
    return load_tokenizer().decode(list(range(first, first + n)))


def test_the_text_is_llama_cpp_s_and_comes_piece_by_piece(minigpt):
    pieces = list(speak.speak(minigpt / "weights.bump", PROMPT, 12))
    ids = load_tokenizer().encode(PROMPT).ids
    with LlamaCpp(minigpt / "m.gguf") as other:
        assert "".join(pieces) == other.text(other.greedy(ids, 12)).decode()
    assert 6 < len(pieces) <= 12


def test_a_text_ends_at_the_token_for_the_end_which_is_not_written(ending):
    assert "".join(speak.speak(ending, "A", 9)) == text_of(34, 9)  # "A" is token 33, far from the end
    assert load_tokenizer().encode("A").ids == [33]
    before = load_tokenizer().decode([66])
    assert load_tokenizer().encode(before).ids == [66]
    assert "".join(speak.speak(ending, before, 50)) == text_of(67, 3)


def test_a_token_that_commands_is_said_by_the_model_and_not_written(tmp_path):
    kinds = np.ones(1024, np.int32)
    kinds[68] = 3  # llama.h, a control token
    path = write_ending(tmp_path, {"tokenizer.ggml.token_type": kinds})
    before = load_tokenizer().decode([66])
    with Runtime(path) as model:
        assert model.greedy([66], 3) == [67, 68, 69]
    assert "".join(speak.speak(path, before, 3)) == load_tokenizer().decode([67, 69])


def test_a_temperature_draws_and_a_seed_repeats_it(minigpt):
    def said(**how):
        return "".join(speak.speak(minigpt / "weights.bump", PROMPT, 12, **how))

    assert said(temperature=1.0, seed=1) == said(temperature=1.0, seed=1) != said(temperature=1.0, seed=2)
    assert said(temperature=1e-4, seed=3) == said(seed=4) == said()
    assert said(temperature=1.0) == said(temperature=1.0, seed=0) != said(temperature=1.0, seed=1)


def test_tokens_are_drawn_by_the_softmax_of_logits_over_the_temperature():
    logits, random = np.log(np.array([0.5, 0.3, 0.2, 1e-30], np.float32)), np.random.default_rng(0)
    for temperature in (1.0, 0.5):
        share = np.array([0.5, 0.3, 0.2]) ** (1 / temperature)
        drawn = np.bincount([_drawn(logits, temperature, random) for _ in range(4000)], minlength=4) / 4000
        assert np.abs(drawn[:3] - share / share.sum()).max() < 0.03 and drawn[3] == 0
    assert _drawn(logits + 1e4, 1.0, np.random.default_rng(1)) == _drawn(logits, 1.0, np.random.default_rng(1))


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_model_that_computes_no_numbers_still_draws_a_token_of_its_vocabulary(wrong):
    assert _drawn(np.full(4, wrong, np.float32), 1.0, np.random.default_rng(0)) in range(4)


@pytest.mark.parametrize(
    ("prompt", "n", "said", "message"),
    [
        ("", 5, 0, 'the prompt is empty; give a text that the model goes on with, for example "A list is a"'),
        ("AAAAAAAAAAAAA", 5, 0, "the prompt has 13 tokens, and the context 12; give a shorter prompt"),
        (
            "AAAAAAAAAAAA",
            2,
            1,
            "the context of 12 tokens is full: 12 of the prompt, and 1 of 2 more; ask for 1 at most",
        ),
        ("AAAAAAAAAA", 99, 3, "the context of 12 tokens is full: 10 of the prompt, and 3 of 99 more"),
    ],
)
def test_errors_say_what_to_do(prompt, n, said, message, ending):
    found = []
    with pytest.raises(MiniquantError) as caught:
        found.extend(speak.speak(ending, prompt, n))
    assert message in str(caught.value) and "".join(found) == text_of(34, said)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["hello", "--temperature", "nan"], 2, "nan is no temperature; 0.8, for example, is"),
        (["hello", "--temperature", "inf"], 2, "inf is no temperature"),
        (["hello", "--temperature", "-1"], 2, "-1.0 is not in the range x>=0"),
        (["hello", "--seed", "-1"], 2, "-1 is not in the range x>=0"),
        (["hello", "-n", "-1"], 2, "-1 is not in the range x>=0"),
        (["h\udcff"], 2, "it is no UTF-8 text"),
    ],
)
def test_a_wrong_call_of_the_command_is_said_and_nothing_runs(arguments, code, message, ending):
    done = CliRunner().invoke(main, ["run", str(ending), *arguments])
    assert done.exit_code == code and message in done.output and done.stdout == ""


def test_the_command_says_how_a_gguf_file_becomes_one_that_runs(tmp_path):
    (path := tmp_path / "m.gguf").write_bytes(b"GGUF" + bytes(20))
    done = CliRunner().invoke(main, ["run", str(path), "hello"])
    assert str(done.exception) == f"{path} is a GGUF file; miniquant to-bump {path} makes the bump file that run takes"


def test_the_whole_context_is_used_without_an_error(ending):
    assert load_tokenizer().encode("AAAAAAAAAA").ids == [33] * 10
    assert "".join(speak.speak(ending, "AAAAAAAAAA", 3)) == text_of(34, 3)
    assert "".join(speak.speak(ending, "AAAAAAAAAA", 0)) == ""


def test_files_replaced_between_the_weights_and_the_tokenizer_are_opened_again(minigpt, tmp_path, monkeypatch):
    shutil.copytree(minigpt, tmp_path / "m")
    path, opened = tmp_path / "m" / "weights.bump", []

    class Slow(Runtime):
        def __init__(self, path):
            super().__init__(path)
            opened.append(self)
            if len(opened) < 3:
                self.file.beside = self.file.beside._replace(tokenizer=bytes(32))

    monkeypatch.setattr(speak, "Runtime", Slow)
    assert "".join(speak.speak(path, PROMPT, 3)) and len(opened) == 3
    assert all(model.arena == {} for model in opened)  # all closed
    (tmp_path / "m" / "tokenizer.json").write_text("{}")
    opened.clear()
    with pytest.raises(FormatError, match=r"tokenizer\.json .*run to-bump again"):
        next(speak.speak(path, PROMPT, 3))
    assert len(opened) == speak.PATIENCE and all(model.arena == {} for model in opened)


def test_the_command_writes_the_prompt_and_what_follows(minigpt, ending):
    run = lambda *how: CliRunner().invoke(main, ["run", *map(str, how)])  # noqa: E731
    done = run(minigpt / "weights.bump", PROMPT, "-n", 8)
    assert done.output == PROMPT + "".join(speak.speak(minigpt / "weights.bump", PROMPT, 8)) + "\n"
    drawn = run(minigpt / "weights.bump", PROMPT, "-n", 8, "--temperature", 1, "--seed", 5)
    assert drawn.output != done.output
    assert drawn.output == PROMPT + "".join(speak.speak(minigpt / "weights.bump", PROMPT, 8, 1.0, 5)) + "\n"
    full = run(ending, "AAAAAAAAAA")
    assert full.output == f"AAAAAAAAAA{text_of(34, 3)}\n" and "is full" in str(full.exception)
    assert run(minigpt / "weights.bump", "", "-n", 1).output == ""
    assert run(minigpt / "weights.bump", "a", "--temperature", -1).exit_code == 2


def test_what_a_model_writes_does_not_command_the_terminal(monkeypatch, minigpt):
    monkeypatch.setattr(speak, "speak", lambda *_: iter(["\x1b[2J", "a\nb\t\u202e"]))
    done = CliRunner().invoke(main, ["run", str(minigpt / "weights.bump"), "x"])
    assert done.output == "x\\u001b[2Ja\nb\t\\u202e\n"
