"""The figures of rotations say what they show."""

import numpy as np

from miniquant.plots.rotation import rows_with_steps


def test_each_row_has_the_levels_of_its_own_largest_number_and_fills_its_panel():
    figure = rows_with_steps({"before": np.array([7.0, 0.4, -0.4, 1]), "after": np.array([3.5, -3.5, 3.5, 0.5])})
    assert "before: the step is 1, and 50 % of the numbers are rounded to 0" in figure.alt
    assert "after: the step is 0.5, and 0 % of the numbers" in figure.alt
    limits = [ax.get_ylim() for ax in figure.axes]
    assert 7 < limits[0][1] < 8 and 3.5 < limits[1][1] < 4
    assert [len(ax.lines) for ax in figure.axes] == [15, 15]
    assert figure.axes[0].get_title(loc="left") == "before: a step is 1"
