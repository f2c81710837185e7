"""The figure that lays the next-token probabilities of several models beside each other."""

from itertools import pairwise

import numpy as np
import pytest

from miniquant import plots

TOKENS = ["a", " b", "\n", "d"]
ONE = [0.1, 0.5, 0.3, 0.1]
TWO = [0.1, 0.25, 0.45, 0.2]


@pytest.fixture(scope="module")
def figure():
    return plots.probabilities(TOKENS, {"float": ONE, "four bits": TWO}, show=3, title="next")


def widths(fig):
    return [[bar.get_width() for bar in group] for group in fig.axes[0].containers]


def test_bars_are_the_per_cent_of_the_tokens_that_the_first_model_finds_most_likely(figure):
    np.testing.assert_allclose(widths(figure), [[50, 30, 10], [25, 45, 10]])
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["' b'", "'\\n'", "'a'"]


def test_each_bar_lies_on_its_own_row_and_shows_its_number(figure):
    ax = figure.axes[0]
    spans = sorted((b.get_y(), b.get_y() + b.get_height()) for group in ax.containers for b in group)
    assert all(end <= start + 1e-9 for (_, end), (start, _) in pairwise(spans))
    assert sorted(t.get_text().strip() for t in ax.texts) == sorted(f"{p:.1f} %" for p in (50, 25, 30, 45, 10, 10))
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the most likely token stands on top"


def test_models_are_told_apart_without_colour(figure):
    first, second = figure.axes[0].containers
    assert first[0].get_hatch() != second[0].get_hatch()
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["float", "four bits"]


def test_the_sentence_says_what_is_likely_and_how_far_the_models_are_apart(figure):
    assert "float gives ' b' 50.0 %; four bits gives ' b' 25.0 %" in figure.alt
    assert "more than 25 percentage points" in figure.alt


def test_probabilities_of_another_vocabulary_are_refused():
    with pytest.raises(ValueError, match="each of the 4 tokens"):
        plots.probabilities(TOKENS, {"float": ONE, "short": [0.5, 0.5]})
    with pytest.raises(ValueError, match="each of the 4 tokens"):
        plots.probabilities(TOKENS, {})


def test_torch_tensors_are_taken():
    import torch

    fig = plots.probabilities(TOKENS, {"float": torch.tensor(ONE)})
    np.testing.assert_allclose(widths(fig), [[50, 30, 10, 10]], rtol=1e-6)
