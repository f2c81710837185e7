"""Figures of importance matrices: how unevenly columns count, and which scale suits a block when some count more."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .style import DARK, LINES, MARKERS, WIDTH, described, picture


@picture
def shares(series: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """The share of the importance that the most important columns have together; a marker where it is half.

    series: {name: (columns,) none below 0, not all 0}
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.4))
    said = []
    for i, (name, importance) in enumerate(series.items()):
        reached = np.concatenate([[0.0], np.cumsum(np.sort(np.asarray(importance, np.float64))[::-1])])
        reached *= 100 / reached[-1]
        columns = np.linspace(0, 100, len(reached))
        half = int((reached >= 50).argmax())
        ax.plot(columns, reached, LINES[i % 4], color=DARK[i % 4], label=name)
        ax.plot(columns[half], reached[half], MARKERS[i % 6], color=DARK[i % 4], markersize=7)
        said.append(f"{name}: half of it in {half} of {len(importance)} columns")
    ax.plot([0, 100], [0, 100], color="#777777", linewidth=0.8)
    ax.annotate("all columns alike", (72, 72), (6, -10), textcoords="offset points", color="#555555")
    ax.axhline(50, color="#777777", linewidth=0.8)
    ax.set_xlabel("columns, the most important first (% of all)")
    ax.set_ylabel("share of the importance (%)")
    ax.grid()
    fig.legend(loc="outside lower center", ncols=3)
    return described(fig, f"Share of the importance in the most important columns. {'; '.join(said)}.", title)


@picture
def scales_tried(steps: np.ndarray, errors: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """The error of one block for every try, in parts of the smallest one; a marker at the best try.

    steps: (n,) the steps that reach the extreme of the block; errors: {how it is measured: (n,) above 0}
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.2))
    said = []
    for i, (name, values) in enumerate(errors.items()):
        relative = np.asarray(values, np.float64) / np.min(values)
        at = int(relative.argmin())
        ax.plot(steps, relative, LINES[i % 4], color=DARK[i % 4], linewidth=1.4, label=name)
        ax.plot(steps[at], 1, MARKERS[i % 6], color=DARK[i % 4], markersize=8)
        said.append(f"{name}: the best at {steps[at]:.3g} steps, {relative.max():.2g} times as large at worst")
    ax.set_xlabel("steps from 0 to the extreme of the block; plain rounding takes 8")
    ax.set_ylabel("error, 1 = the best try")
    ax.set_ylim(bottom=0)
    ax.grid()
    fig.legend(loc="outside lower center", ncols=2)
    return described(fig, f"Error of one block by scale. {'; '.join(said)}.", title)
