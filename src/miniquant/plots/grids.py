"""Figures of grids: the numbers that a block of weights may take, zero among them or not."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..quantization.grids import Grid, dequantize, quantize
from .style import COLOURS, MARKERS, WIDTH, described, picture


@picture
def grid_lines(
    w: np.ndarray, grids: Mapping[str, Grid], *, around: tuple[float, float] | None = None, title: str = ""
) -> Figure:
    """The points of several grids for one block, the block's weights above them, and where zero is.

    w: (n,) float32; every grid has one row and one group. ``around`` shows a part of the axis only.
    """
    row = np.asarray(w, np.float32).reshape(1, -1)
    fig, ax = plt.subplots(figsize=(WIDTH, 1.3 + 0.55 * len(grids)))
    ax.axvline(0, color="#555555", linewidth=0.8, linestyle="--")
    ax.plot(row[0], np.zeros(row.size), MARKERS[0], color="#D55E00", markersize=4)
    zeros = {}
    for i, (name, grid) in enumerate(grids.items(), 1):
        points = dequantize(np.arange(grid.low, grid.high + 1)[None], grid)[0]
        ax.vlines(points, i - 0.25, i + 0.25, color="#0072B2", linewidth=1.4)
        zeros[name] = float(dequantize(quantize(np.zeros((1, 1), np.float32), grid), grid)[0, 0])
        ax.plot(zeros[name], i, MARKERS[2], color=COLOURS[4], markeredgecolor="black", markersize=7, zorder=3)
    ax.set_yticks(range(len(grids) + 1), ["weights", *grids])
    ax.set_ylim(len(grids) + 0.6, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    if around:
        ax.set_xlim(*around)
    ax.set_xlabel("value; bars are the points of a grid, triangles the point that a weight of 0 becomes")
    landed = "; ".join(f"{name}: 0 becomes {zero:.2g}" for name, zero in zeros.items())
    return described(fig, f"{row.size} weights over the points of {len(grids)} grids. {landed}.", title)


@picture
def zero_moves(steps: np.ndarray, *, title: str = "") -> Figure:
    """How far zero moves in the blocks of a model, in steps of each block's scale.

    steps: (n,) floating point
    """
    steps = np.asarray(steps, np.float64).ravel()
    exact = int((steps == 0).sum())
    fig, ax = plt.subplots(figsize=(WIDTH, 2.4))
    reach = float(np.abs(steps).max(initial=0)) or 1.0
    edges = np.linspace(-reach, reach, 62)
    ax.hist(steps, edges.tolist(), color=COLOURS[0], edgecolor="black", linewidth=0.3, histtype="stepfilled")
    ax.set_xlabel("where a weight of 0 lands, in steps of its block's scale")
    ax.set_ylabel("blocks in a bin")
    ax.grid(axis="y")
    alt = (
        f"A histogram of {steps.size:,} blocks: zero stays exactly zero in {exact:,}, and moves by at most "
        f"{reach:.2g} steps in the others."
    )
    return described(fig, alt, title)
