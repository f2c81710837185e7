"""Figures of sixteen levels: where they lie among a model's weights, and what the place of a scale costs."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .style import COLOURS, DARK, LINES, MARKERS, WIDTH, described, picture


@picture
def levels_below_weights(weights: np.ndarray, levels: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """A histogram of weights in parts of the extreme of their block, and below it the levels of each type.

    weights: any shape, from -1 to 1, the extreme of a block at -1; levels: {type: (n,) in the same parts}
    """
    w = np.asarray(weights, np.float64).ravel()
    fig, (top, rows) = plt.subplots(
        2, 1, figsize=(WIDTH, 2.0 + 0.42 * len(levels)), sharex=True, height_ratios=[1.6, 0.42 * len(levels)]
    )
    top.hist(w, np.linspace(-1, 1, 81).tolist(), color=COLOURS[0], edgecolor="black", linewidth=0.3)
    top.set_ylabel("weights in a bin")
    top.grid(axis="y")
    said = []
    for i, (name, values) in enumerate(levels.items()):
        values = np.asarray(values, np.float64).ravel()
        rows.axhline(i, color="#BBBBBB", linewidth=0.8, zorder=1)
        rows.plot(values, np.full(values.size, i), MARKERS[i % 6], color=DARK[i % 4], markersize=5)
        inside = int((np.abs(values) < 0.5).sum())
        said.append(f"{name} has {inside} of {values.size} within half of the extreme")
    rows.set_yticks(range(len(levels)), list(levels))
    rows.set_ylim(len(levels) - 0.4, -0.6)
    rows.tick_params(axis="y", length=0)
    rows.spines["left"].set_visible(False)
    rows.set_xlim(-1.06, 1.06)
    rows.set_xlabel("weight, in parts of the extreme of its block; the sign is turned so that the extreme is at -1")
    half = 100 * float((np.abs(w) < 0.5).mean())
    alt = f"A histogram of {w.size:,} weights, {half:.0f} % of them within half of the extreme, over levels: "
    return described(fig, alt + "; ".join(said) + ".", title)


@picture
def error_by_place(
    place: np.ndarray, errors: Mapping[str, np.ndarray], sizes: np.ndarray, *, bins: int = 16, title: str = ""
) -> Figure:
    """The error of blocks against where the largest weight of a block lies above its power-of-two scale.

    place: (blocks,) from 4 to 8, the largest size / scale; errors: {type: (blocks,) sums of squared errors}
    sizes: (blocks,) sums of squared weights
    """
    edges = np.linspace(4, 8, bins + 1)
    which = np.clip(np.digitize(place, edges) - 1, 0, bins - 1)
    total = np.bincount(which, sizes, bins)
    if not total.all():
        raise ValueError(f"no block lies in bin {int((total == 0).argmax())}; take fewer bins or more blocks")
    fig, ax = plt.subplots(figsize=(WIDTH, 3.0))
    said, top = [], 0.0
    for i, (name, lost) in enumerate(errors.items()):
        y = 100 * np.sqrt(np.bincount(which, lost, bins) / total)
        ax.plot((edges[:-1] + edges[1:]) / 2, y, LINES[i % 4] + MARKERS[i % 6], color=DARK[i % 4], label=name)
        said.append(f"{name} from {y.min():.1f} to {y.max():.1f} %")
        top = max(top, float(y.max()))
    ax.axvline(6, color="#777777", linewidth=0.8)
    ax.annotate("6, the largest value: what is above is cut off", (6, 0), (5, 5), textcoords="offset points")
    ax.set_xlabel("largest weight of the block, in parts of the scale of MXFP4")
    ax.set_ylabel("error (rmse), in % of the weights' size")
    ax.set_ylim(0, 1.12 * top)
    ax.grid(axis="y")
    fig.legend(loc="outside lower center", ncols=len(errors))
    return described(fig, f"Error against the place of the largest weight; {'; '.join(said)}.", title)
