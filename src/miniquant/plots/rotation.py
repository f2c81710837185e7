"""Figures of rotations: the numbers of a row before and after, with the levels that they are rounded to."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .style import DARK, WIDTH, described, picture


@picture
def rows_with_steps(rows: Mapping[str, np.ndarray], *, levels: int = 7, title: str = "") -> Figure:
    """The numbers of several rows, a panel each, as high as its largest number; grid lines are the levels of a row.

    rows: {name: (n,) not all 0}; levels: how many there are above 0
    """
    fig, axes = plt.subplots(len(rows), 1, figsize=(WIDTH, 0.6 + 1.75 * len(rows)), sharex=True, squeeze=False)
    said = []
    for ax, (name, x) in zip(axes.flat, rows.items()):
        x = np.asarray(x, np.float64)
        top = float(np.abs(x).max())
        step = top / levels
        for level in range(-levels, levels + 1):
            ax.axhline(level * step, color="#999999" if level == 0 else "#D5D5D5", linewidth=0.7, zorder=1)
        ax.vlines(np.arange(len(x)), 0, x, color=DARK[0], linewidth=1.1, zorder=2)
        ax.set_ylim(-1.08 * top, 1.08 * top)
        ax.set_ylabel("number")
        ax.set_title(f"{name}: a step is {step:.2g}", loc="left")
        inside = 100 * float((np.abs(x) < step / 2).mean())
        said.append(f"{name}: the step is {step:.2g}, and {inside:.0f} % of the numbers are rounded to 0")
    axes.flat[-1].set_xlabel("place in the row")
    alt = f"The numbers of {len(rows)} rows and the levels to which they are rounded. {'; '.join(said)}."
    return described(fig, alt, title)
