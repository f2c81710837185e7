"""The figures of grids."""

import matplotlib.pyplot as plt
import numpy as np

from miniquant.plots.grids import grid_lines, zero_moves
from miniquant.quantization.grids import Grid

f32 = np.float32
EXACT = Grid(f32([[0.5]]), f32([[-1.0]]), 0, 15)
OFF = Grid(f32([[0.5]]), f32([[-1.2]]), 0, 15)


def test_every_point_of_every_grid_is_drawn_and_zero_where_it_lands():
    before = plt.get_fignums()
    fig = grid_lines(f32([-1, 0.2, 3]), {"exact": EXACT, "off": OFF}, title="two grids")
    ax = fig.axes[0]
    rows = [np.array([segment[0, 0] for segment in bars.get_segments()]) for bars in ax.collections]
    assert np.allclose(rows[0], np.arange(16) / 2 - 1)
    assert np.allclose(rows[1], np.arange(16) / 2 - 1.2)
    dots = [line.get_xdata() for line in ax.lines[1:]]
    assert np.allclose(dots[0], [-1, 0.2, 3])
    assert np.allclose([dots[1], dots[2]], [[0], [-0.2]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["weights", "exact", "off"]
    assert "exact: 0 becomes 0; off: 0 becomes -0.2" in fig.alt
    assert "value" in ax.get_xlabel()
    assert plt.get_fignums() == before


def test_a_part_of_the_axis_can_be_shown():
    ax = grid_lines(f32([0.1]), {"exact": EXACT}, around=(-0.1, 0.1)).axes[0]
    assert np.allclose(ax.get_xlim(), (-0.1, 0.1))


def test_the_histogram_counts_every_block_and_says_how_many_zeros_stay():
    fig = zero_moves(np.array([0, 0, 0.001, -0.003]))
    heights = fig.axes[0].patches[0].get_xy()[:, 1]
    assert heights.max() == 2
    assert "4 blocks: zero stays exactly zero in 2, and moves by at most 0.003 steps" in fig.alt
    assert "steps" in fig.axes[0].get_xlabel() and "blocks" in fig.axes[0].get_ylabel()


def test_blocks_whose_zero_never_moves_are_drawn_too():
    assert "exactly zero in 3" in zero_moves(np.zeros(3)).alt
