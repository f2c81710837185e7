"""The model speaks: the same text and the same figures on every machine, and less sense with fewer bits."""

from __future__ import annotations

import copy
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from miniquant import fake_quantize, preset, unpack_nibbles
from miniquant.evaluate.quality import evaluate
from miniquant.evaluate.speech import (
    PROMPT,
    SWAPPED,
    evaluation_windows,
    ladder_of_bits,
    nibbles_swapped,
    shown,
    speak,
)
from miniquant.formats.gguf_lite.read import open_gguf_lite
from miniquant.formats.gguf_lite.write import write_gguf_lite
from miniquant.models import corpus
from miniquant.models.minigpt import MiniGPT, random_model


@pytest.fixture(scope="module")
def ladder(trained):
    return ladder_of_bits(trained)


@pytest.fixture(scope="module")
def written():
    """The tokens that each of the models wrote."""
    return {}


@pytest.fixture(scope="module")
def speech(ladder, written):
    greedy = MiniGPT.greedy

    def remembered(model, words, n):
        written[model] = greedy(model, words, n)
        return written[model]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MiniGPT, "greedy", remembered)
        return speak(ladder)


def test_the_ladder_has_six_models_and_leaves_the_first_as_it_is(ladder, trained):
    assert list(ladder) == ["float32", "8 bits", "4 bits", "3 bits", "2 bits", SWAPPED]
    assert ladder["float32"] is trained
    for bits in (8, 4, 3, 2):
        state = ladder[f"{bits} bits"].state_dict()
        for name, w in trained.state_dict().items():
            quantized = name in preset("int4", trained)
            expected = fake_quantize(w, bits, per="group", group_size=64) if quantized else w
            assert torch.equal(state[name], expected)


def test_fewer_bits_are_fewer_levels_in_a_group(ladder):
    for bits, levels in ((8, 255), (4, 15), (3, 7), (2, 3)):
        groups = ladder[f"{bits} bits"].state_dict()["layers.0.mlp.fc1.weight"].reshape(-1, 64)
        found = max(len(torch.unique(group)) for group in groups)
        assert found <= levels
        assert found > min(levels, 64) // 2  # a group has 64 weights


def test_only_the_nibbles_of_the_integers_are_swapped(tmp_path, trained):
    path = tmp_path / "model.gguf-lite"
    write_gguf_lite(path, trained, preset("int4", trained))
    before = path.read_bytes()
    after = nibbles_swapped(before)
    assert len(after) == len(before)
    assert nibbles_swapped(after) == before
    with open_gguf_lite(before) as right, open_gguf_lite(after) as wrong:
        name = "layers.0.attn.qkv.weight"
        q, swapped = right.quantized(name), wrong.quantized(name)
        assert np.array_equal(q.scale, swapped.scale)
        assert np.array_equal(q.values[:, 0::2], swapped.values[:, 1::2])
        assert np.array_equal(q.values[:, 1::2], swapped.values[:, 0::2])
        assert np.array_equal(right.tensor("tok_emb.weight"), wrong.tensor("tok_emb.weight"))
    assert unpack_nibbles(np.array([0x21], np.uint8)).tolist() == [1, 2]


def test_eight_bits_write_what_float32_writes_and_fewer_bits_do_not(speech):
    texts = {line.model: line.text for line in speech.lines}
    assert texts["float32"].startswith(" list of strings.\n\nReturn the list of all subs")
    assert texts["8 bits"] == texts["float32"]
    assert texts["4 bits"].startswith(" list of strings.")
    assert len(set(texts.values())) == 5


def test_fewer_bits_have_a_higher_perplexity_and_swapped_nibbles_are_worse_than_guessing(speech):
    found = [line.perplexity for line in speech.lines]
    assert found == sorted(found)
    assert found[1] / found[0] < 1.01
    assert found[0] < 20
    assert 3 * found[0] < found[4] < speech.blind < found[5]
    assert speech.blind == 1024


def test_the_perplexity_is_that_of_the_evaluation_text(speech, trained):
    windows = evaluation_windows()
    assert windows.shape[1] == 257
    assert len(windows) >= 4
    assert speech.lines[0].perplexity == pytest.approx(evaluate(trained, windows).perplexity.mean)


def test_no_shown_digit_is_near_a_rounding_edge(speech):
    """Other machines add in another order: a relative difference of 1e-4 changes no printed figure."""
    for line in speech.lines:
        assert shown(line.perplexity * (1 - 1e-4)) == shown(line.perplexity) == shown(line.perplexity * (1 + 1e-4))


@torch.no_grad()
def test_no_next_token_is_nearly_a_tie(ladder, speech, written):
    """The most likely token leads by far more than float32 can lose, so every machine writes the same text."""
    tokenizer = corpus.load_tokenizer()
    for name, model in ladder.items():
        words = tokenizer.encode(PROMPT).ids
        exact = copy.deepcopy(model).double()
        window = torch.tensor([words + written[model]])
        after = slice(len(words) - 1, -1)  # the logits that chose the written tokens
        logits, other = model(window)[0, after].double(), exact(window)[0, after]
        first, second = logits.topk(2).values.T
        assert (first - second > 1e-3).all()
        assert (first - second > 50 * (logits - other).abs().max()).all()
        assert other.argmax(-1).tolist() == logits.argmax(-1).tolist() == written[model]
        assert tokenizer.decode(written[model]) == {line.model: line.text for line in speech.lines}[name]


def test_the_evaluation_text_was_not_trained_on():
    from importlib import resources

    text = resources.files("miniquant").joinpath("assets/evaluation.txt").read_text("utf-8")
    known = set(np.frombuffer(resources.files("miniquant").joinpath("assets/trained_on.bin").read_bytes(), "<u8"))
    paragraphs = corpus.paragraphs(text)
    assert len(paragraphs) > 20
    assert not [p for p in paragraphs if corpus.paragraph_hash(p) in known]


def phrases(text: str, n: int = 10):
    """All phrases of ``n`` words, capitals and punctuation apart."""
    words = re.findall(r"[a-z0-9']+", text.lower())
    return zip(*(words[i:] for i in range(n)))


def test_the_evaluation_text_copies_no_phrase_of_pythons_documentation():
    from importlib import resources

    ours = set(phrases(resources.files("miniquant").joinpath("assets/evaluation.txt").read_text("utf-8")))
    assert len(ours) > 500
    for source in ("topics", "docstrings"):
        for held_out in (True, False):  # as other tests ask for them
            for name, text in corpus.documents(source, held_out).items():
                assert ours.isdisjoint(phrases(text)), name


def test_the_table_says_the_same_as_text_and_as_html(speech):
    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.seen = []

        def handle_data(self, data):
            self.seen.append(data)

    reader = Reader()
    reader.feed(speech._repr_html_())
    page, text = " ".join(reader.seen), repr(speech)
    for line in speech.lines:
        for said in (line.model, shown(line.perplexity), line.text.replace("\n", "↵")):
            assert said in text
            assert said in page
    assert PROMPT in text
    assert "1,024" in text
    assert "1,024" in page


def test_the_html_follows_the_theme_and_wraps_on_a_phone(speech):
    page = speech._repr_html_()
    assert "color:inherit" in page
    assert not re.search(r"#[0-9a-f]{3,6}|rgb|<script|id=", page)  # no colour of its own, nothing to load
    assert "overflow-wrap:anywhere" in page
    assert "<caption" in page
    assert page.count("scope='row'") == 6
    assert page.count("scope='col'") == 3


def test_text_from_a_model_cannot_become_markup(trained):
    page = speak({"<b>&": trained}, prompt="a < b & <i>", tokens=1)._repr_html_()
    assert "<b>" not in page
    assert "<i>" not in page


def test_a_model_that_computes_nan_is_shown_as_such(trained):
    broken = copy.deepcopy(trained)
    with torch.no_grad():
        broken.tok_emb.weight[5] = math.nan
    found = speak({"broken": broken}, tokens=2)
    assert math.isnan(found.lines[0].perplexity)
    assert "not a number" in repr(found)


def test_a_perplexity_has_three_digits():
    cases = {
        14.9: "14.9",
        1.0: "1.00",
        9.996: "10.0",
        99.96: "100",
        65.7: "65.7",
        999.6: "1,000",
        1e7: "over 1,000,000",
    }
    for value, text in cases.items():
        assert shown(value) == text
    assert shown(math.inf) == "over 1,000,000"


def test_another_vocabulary_is_refused_by_name():
    with pytest.raises(ValueError, match="'small' has 64 tokens; the tokenizer of the course has 1024"):
        speak({"small": random_model()})
