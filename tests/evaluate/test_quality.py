"""Perplexity, bits per byte and KL: worked by hand on a tiny model, then the bounds of the trained one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from thorough import tried

from miniquant import fake_quantize_model, preset
from miniquant.evaluate.quality import Estimate, Quality, evaluate
from miniquant.models import corpus

# A model of four tokens that looks at the last token only. Row t: the probabilities of what follows token t.
P = np.array([[1, 1, 1, 1], [4, 2, 1, 1], [1, 7, 4, 4], [2, 2, 2, 10]]) / np.array([[4], [8], [16], [16]])
Q = np.array([[2, 1, 0.5, 0.5], [1, 1, 1, 1], [2, 2, 2, 2], [1, 1, 1, 1]]) / np.array([[4], [4], [8], [4]])


def table(probabilities: np.ndarray, shift: float = 0.0):
    """A model whose logits are the table's logarithms; a shift of all logits changes no probability."""
    logits = torch.from_numpy(np.log(probabilities) + shift).float()
    return lambda tokens: logits[tokens]


WINDOWS = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 3]])  # two predictions each: 0->1, 1->2; 1->0, 0->3; 2->3, 3->3
NLL = [  # by hand, from P
    (math.log(4) + math.log(8)) / 2,
    (math.log(2) + math.log(4)) / 2,
    (math.log(4) + math.log(1.6)) / 2,
]
KL_ROWS = [sum(q * math.log(q / p) for p, q in zip(P[t], Q[t], strict=True)) for t in range(4)]  # KL(Q || P)
KL = [(KL_ROWS[0] + KL_ROWS[1]) / 2, (KL_ROWS[1] + KL_ROWS[0]) / 2, (KL_ROWS[2] + KL_ROWS[3]) / 2]


def test_the_likelihood_of_a_tiny_model_by_hand():
    quality = evaluate(table(P), WINDOWS)
    assert quality.nll == pytest.approx(NLL, abs=1e-6)
    assert quality.kl is None
    mean = sum(NLL) / 3
    deviation = math.sqrt(sum((x - mean) ** 2 for x in NLL) / 2)
    assert quality.perplexity.mean == pytest.approx(math.exp(mean), rel=1e-6)
    assert quality.perplexity.error == pytest.approx(math.exp(mean) * deviation / math.sqrt(3), rel=1e-6)


def test_the_divergence_from_a_reference_by_hand():
    quality = evaluate(table(P), WINDOWS, reference=table(Q))
    assert quality.kl == pytest.approx(KL, abs=1e-6)
    assert quality.kl_divergence.mean == pytest.approx(sum(KL) / 3, abs=1e-6)
    assert quality.nll == pytest.approx(NLL, abs=1e-6)  # the reference does not change it
    deviation = math.sqrt(sum((x - sum(KL) / 3) ** 2 for x in KL) / 2)
    assert quality.kl_divergence.error == pytest.approx(deviation / math.sqrt(3), rel=1e-4)


def test_a_model_does_not_diverge_from_itself_and_a_shift_of_its_logits_changes_nothing():
    same = evaluate(table(P), WINDOWS, reference=table(P))
    assert not same.kl.any()
    shifted = evaluate(table(P, shift=50.0), WINDOWS, reference=table(P))
    assert np.abs(shifted.kl).max() < 1e-5
    assert shifted.nll == pytest.approx(same.nll, abs=1e-5)


def test_the_change_of_likelihood_is_paired():
    p, q = evaluate(table(P), WINDOWS), evaluate(table(Q), WINDOWS)
    differences = [b - a for a, b in zip(p.nll, q.nll, strict=True)]
    change = q.nll_change(p)
    assert change.mean == pytest.approx(np.mean(differences))
    assert change.error == pytest.approx(np.std(differences, ddof=1) / math.sqrt(3))
    # a constant change has no error, however much the windows differ among themselves
    worse = Quality(p.nll + 0.25, None, p.bytes_per_token)
    assert worse.nll_change(p).mean == pytest.approx(0.25)
    assert worse.nll_change(p).error < 1e-12


def test_bits_per_byte_are_all_bits_over_all_bytes():
    quality = Quality(nll=np.array([1.0, 3.0]) * math.log(2), kl=None, bytes_per_token=np.array([1.0, 3.0]))
    assert quality.bits_per_byte.mean == pytest.approx(1.0)
    assert quality.bits_per_byte.error == pytest.approx(0.0)  # each window has one bit a byte
    quality = Quality(nll=np.array([1.0, 3.0]) * math.log(2), kl=None, bytes_per_token=np.array([2.0, 2.0]))
    assert quality.bits_per_byte.mean == pytest.approx(1.0)
    assert quality.bits_per_byte.error == pytest.approx(0.5)  # of 0.5 and 1.5


def test_the_bytes_are_those_of_the_tokens_that_are_predicted():
    sizes = corpus.token_bytes(corpus.load_tokenizer())
    windows = np.array([[5, 1000, 0], [900, 5, 700]])
    uniform = lambda tokens: torch.zeros(*tokens.shape, 1024)  # noqa: E731
    quality = evaluate(uniform, windows)
    assert quality.bytes_per_token.tolist() == [(sizes[1000] + 0) / 2, (sizes[5] + sizes[700]) / 2]
    assert quality.nll == pytest.approx([math.log(1024)] * 2)


def test_the_size_of_a_batch_changes_nothing():
    model, windows = table(P), np.tile(WINDOWS, (4, 1))
    for batch in (1, 3, 5, 100):
        assert evaluate(model, windows, batch=batch).nll == pytest.approx(np.tile(NLL, 4), abs=1e-6)


def test_without_a_reference_there_is_no_divergence_to_ask_for():
    with pytest.raises(ValueError, match="reference=float_model"):
        _ = evaluate(table(P), WINDOWS).kl_divergence


def test_an_estimate_shows_two_digits_of_its_error():
    assert str(Estimate(0.123456, 0.0021)) == "0.1235 ± 0.0021"
    assert str(Estimate(18.8249, 0.7612)) == "18.82 ± 0.76"
    assert str(Estimate(123.4, 25.0)) == "123 ± 25"
    assert str(Estimate(-0.00002, 0.00018)) == "-0.00002 ± 0.00018"
    assert str(Estimate(1.0, 0.0)) == str(Estimate(1.0, math.nan)) == "1"
    assert Estimate.of(np.array([2.0])).mean == 2.0
    assert math.isnan(Estimate.of(np.array([2.0])).error)


# ---- the trained model on all held-out topics ------------------------------------------------------------------------


class Remembering:
    """A model that keeps its answer for each window: two models are measured against one float model."""

    def __init__(self, model):
        self.model, self.answers = model, {}

    def __call__(self, tokens):
        keys = [row.numpy().tobytes() for row in tokens]
        if new := [i for i, key in enumerate(keys) if key not in self.answers]:
            self.answers |= zip([keys[i] for i in new], self.model(tokens[new]), strict=True)
        return torch.stack([self.answers[key] for key in keys])


@pytest.fixture(scope="module")
def qualities(trained):
    """The float model and two presets of it on every fourth window of the held-out topics."""
    floating, windows = Remembering(trained), corpus.held_out_windows()[:: tried(4, 2)]
    found = {"float": evaluate(floating, windows)}
    for name in ("int8", "int4"):
        found[name] = evaluate(fake_quantize_model(trained, preset(name, trained)), windows, reference=floating)
    return found


def test_the_trained_model_predicts_the_held_out_topics_to_perplexity_25(qualities):
    perplexity = qualities["float"].perplexity
    assert len(qualities["float"].nll) >= tried(20, 40)
    assert 5 < perplexity.mean <= 25
    assert 0 < perplexity.error < tried(3, 2)
    assert 1 < qualities["float"].bits_per_byte.mean < 1.8


def test_int8_changes_the_likelihood_by_less_than_half_a_thousandth(qualities):
    change = qualities["int8"].nll_change(qualities["float"])
    assert abs(change.mean) < 5e-4
    assert 0 < change.error < 5e-4
    assert 0 < qualities["int8"].kl_divergence.mean < 1e-3


def test_int4_costs_more_than_int8_and_still_little(qualities):
    int4, int8 = qualities["int4"], qualities["int8"]
    assert 0.005 < int4.kl_divergence.mean < 0.1
    assert int4.kl_divergence.mean > 20 * int8.kl_divergence.mean
    assert int4.kl_divergence.error < 0.1 * int4.kl_divergence.mean
    change = int4.nll_change(qualities["float"])
    assert 3 * change.error < change.mean < 0.1


def test_the_trained_model_is_far_better_than_guessing_by_frequency(qualities):
    ids = corpus.held_out_windows()[:, 1:].reshape(-1)
    shares = np.bincount(ids, minlength=1024) / len(ids)
    entropy = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
    assert qualities["float"].nll.mean() < entropy - 2
