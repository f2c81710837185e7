"""The figures of lab 22."""

from itertools import pairwise

import pytest

from miniquant.plots import bump as plots_bump
from miniquant.runtime.memory import Memory

SPANS = {"a": (0, 100), "b": (128, 192), "c": (192, 196)}


def test_each_buffer_is_a_bar_from_its_first_byte_to_its_last_one_step_below_the_other():
    fig = plots_bump.arena(SPANS, 256, title="t")
    bars = [p for p in fig.axes[0].patches if not p.get_hatch()]
    assert [(b.get_x(), b.get_x() + b.get_width()) for b in bars] == list(SPANS.values())
    assert all(a.get_y() + a.get_height() <= b.get_y() for a, b in pairwise(bars))
    assert fig.axes[0].get_ylim()[0] > fig.axes[0].get_ylim()[1], "the first buffer stands on top"


def test_padding_is_hatched_and_only_where_there_is_some():
    fig = plots_bump.arena(SPANS, 256)
    gaps = [(p.get_x(), p.get_width()) for p in fig.axes[0].patches if p.get_hatch()]
    assert gaps == [(100, 28), (196, 60)]
    assert fig.alt.endswith("88 bytes are padding.")


def test_the_alt_text_says_whether_the_buffers_are_aligned():
    assert "every one at a multiple of 64" in plots_bump.arena(SPANS, 256).alt
    assert "b at no multiple of 64" in plots_bump.arena({"a": (0, 100), "b": (100, 164)}, 164).alt
    with pytest.raises(ValueError, match="without buffers"):
        plots_bump.arena({}, 0)


def test_the_lines_are_the_megabytes_after_each_token_and_differ_without_colour():
    measured = {
        "from blocks": Memory(2_000_000, 10, [0, 3_000_000]),
        "dequantized first": Memory(2_000_000, 10, [9e6, 1e7]),
    }
    fig = plots_bump.memory(measured)
    lines = fig.axes[0].get_lines()
    assert [list(line.get_ydata()) for line in lines] == [[0, 3], [9, 10]]
    assert lines[0].get_linestyle() != lines[1].get_linestyle() and lines[0].get_marker() != lines[1].get_marker()
    assert "from blocks, at most 3.00 MB; dequantized first, at most 10.00 MB" in fig.alt


@pytest.mark.parametrize("guess", [None, float("nan"), 4.0])
def test_a_guess_in_sizes_of_the_file_is_a_line_and_no_guess_is_none(guess):
    fig = plots_bump.memory({"from blocks": Memory(2_000_000, 10, [0, 3_000_000])}, guess=guess)
    heights = [line.get_ydata()[0] for line in fig.axes[0].get_lines() if line.get_label() == "your guess"]
    assert heights == ([8.0] if guess == 4.0 else [])
