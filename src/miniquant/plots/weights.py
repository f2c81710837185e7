"""Figures of weights: their distribution, the error of each, the levels that they are rounded to."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..core.arrays import Array, to_numpy
from .style import COLOURS, WIDTH, described, picture


@picture
def histograms(before: Array, after: Array, *, names: tuple[str, str] = ("before", "after"), title: str = "") -> Figure:
    """The weights before and after quantization, on one axis of values.

    before, after: any shape, numpy or torch, not empty
    """
    arrays = [to_numpy(w).ravel() for w in (before, after)]
    if not all(w.size and np.isfinite(w).all() for w in arrays):
        raise ValueError("a histogram needs at least one weight, and finite ones only")
    low, high = min(w.min() for w in arrays), max(w.max() for w in arrays)
    edges = np.linspace(low, high if high > low else low + 1, 121)
    fig, axes = plt.subplots(2, 1, figsize=(WIDTH, 4.2), sharex=True)
    distinct = [len(np.unique(w)) for w in arrays]
    for ax, w, name, count, style in zip(axes, arrays, names, distinct, ((COLOURS[0], ""), (COLOURS[1], "////"))):
        ax.hist(w, edges, color=style[0], hatch=style[1], edgecolor="black", linewidth=0.3, histtype="stepfilled")
        ax.set_ylabel("weights in a bin")
        ax.set_title(f"{name}: {count:,} distinct values among {w.size:,}", loc="left")
        ax.grid(axis="y")
    axes[1].set_xlabel("value of the weight")
    alt = (
        f"Two histograms of {arrays[0].size:,} weights from {low:.3g} to {high:.3g}: "
        f"{distinct[0]:,} distinct values {names[0]}, {distinct[1]:,} {names[1]}."
    )
    return described(fig, alt, title)


@picture
def error_heatmap(w: Array, w_hat: Array, *, title: str = "") -> Figure:
    """The absolute error of every weight of one matrix.

    w, w_hat: (out, in); a row of the picture is an output channel
    """
    a, b = to_numpy(w), to_numpy(w_hat)
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(f"expected two matrices (out, in) of one shape, found {a.shape} and {b.shape}")
    error = np.abs(a - b)
    fig, ax = plt.subplots(figsize=(WIDTH, 4.0))
    image = ax.imshow(error, cmap="cividis", aspect="auto", vmin=0)
    ax.set_xlabel("input channel (column)")
    ax.set_ylabel("output channel (row)")
    fig.colorbar(image, ax=ax, label="absolute error")
    row, column = np.unravel_index(int(error.argmax()), error.shape)
    alt = (
        f"Heat map of the absolute error of a {a.shape[0]} by {a.shape[1]} matrix: mean {error.mean():.2g}, "
        f"largest {error.max():.2g} in row {row}, column {column}."
    )
    return described(fig, alt, title)


@picture
def number_line(values: Array, scale: float, qmax: int, *, title: str = "") -> Figure:
    """The levels of a symmetric quantizer, ``q * scale`` for q from -qmax to qmax, and where given weights land.

    values: (n,) floating point; beyond the last level they are clipped. ``scale`` is greater than 0.
    """
    w, scale = to_numpy(np.atleast_1d(np.asarray(values, np.float64))).ravel(), float(scale)
    if not scale > 0:
        raise ValueError(f"a number line needs a scale above 0, found {scale}")
    q = np.rint(w / scale).clip(-qmax, qmax)
    fig, ax = plt.subplots(figsize=(WIDTH, 2.3))
    levels = np.arange(-qmax, qmax + 1)
    ax.vlines(levels * scale, -0.12, 0.12, color="#0072B2", linewidth=1.2)
    ax.axhline(0, color="#555555", linewidth=0.8)
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if 2 * qmax / s <= 16)
    inner = [int(level) for level in levels if level % step == 0 and qmax - abs(level) > step / 2]
    for level in [-qmax, *inner, qmax]:
        ax.text(level * scale, -0.2, str(level), ha="center", va="top", fontsize=8.5, color="#0072B2")
    for value, level in zip(w, q):
        arrow = {"arrowstyle": "->", "color": "#555555", "linewidth": 0.8}
        ax.annotate("", (level * scale, 0.14), (value, 0.72), arrowprops=arrow)
        ax.plot(value, 0.75, "o", color="#D55E00", markersize=4)
    reach = max(qmax * scale, float(np.abs(w).max(initial=0)))
    ax.set_xlim(-1.06 * reach, 1.06 * reach)
    ax.set_ylim(-0.5, 1.05)
    ax.set_yticks([-0.28, 0.75], ["level q", "weight"])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"value; neighbouring levels are one scale apart, {scale:.3g}")
    worst = float(np.abs(w - q * scale).max(initial=0))
    alt = (
        f"A number line of {len(levels)} levels {scale:.3g} apart; {len(w)} weights go to their nearest level, "
        f"moving by {worst:.3g} at most."
    )
    return described(fig, alt, title)
