"""The figure of lab 21: what several readings of the same blocks make of the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .style import COLOURS, MARKERS, WIDTH, described, picture

SHOWN = 1500  # points in a panel: more would be a blot


@picture
def readings(w: np.ndarray, decoded: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """Each reading against the true weights, one panel each: a right one lies on the dashed line.

    w and every reading: the same number of weights, any shape
    """
    w = np.asarray(w, np.float64).ravel()
    chosen = np.random.default_rng(0).permutation(w.size)[:SHOWN]
    rows = math.ceil(len(decoded) / 2)
    fig, axes = plt.subplots(rows, min(2, len(decoded)), figsize=(WIDTH, 2.7 * rows), squeeze=False)
    found = {}
    for i, (ax, (name, values)) in enumerate(zip(axes.flat, decoded.items())):
        values = np.asarray(values, np.float64).ravel()
        found[name] = float(np.corrcoef(w, values)[0, 1])
        ax.plot(w[chosen], values[chosen], MARKERS[i % 6], color=COLOURS[5], markersize=2, alpha=0.4)
        ends = np.array([w.min(), w.max()])
        ax.plot(ends, ends, "--", color="black", linewidth=1)
        ax.set_title(f"{name}: correlation {found[name]:.2f}", loc="left")
        ax.grid()
    for ax in list(axes.flat)[len(decoded) :]:
        ax.set_visible(False)
    fig.supxlabel("weight of the model", fontsize=9)
    fig.supylabel("weight that was read", fontsize=9)
    listed = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    return described(fig, f"Read weights against true ones in {len(decoded)} panels; correlations: {listed}.", title)


@picture
def perplexity_bars(float_model: float, types: Mapping[str, tuple[float, float]], *, title: str = "") -> Figure:
    """The perplexity of every type beside that of the float model, each with its bits a weight.

    types: {name: (bits a weight, perplexity)}, in the order to draw
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 1.2 + 0.32 * len(types)))
    names = [f"{name}, {bits:.4g} bits" for name, (bits, _) in types.items()]
    values = [value for _, value in types.values()]
    ax.barh(names, values, color=COLOURS[0], edgecolor="black", linewidth=0.5)
    for row, value in enumerate(values):
        ax.text(value, row, f" {value:.2f}, {100 * (value / float_model - 1):+.1f} %", va="center")
    ax.axvline(float_model, linestyle="--", color="black", linewidth=1)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.25 * max(values))
    ax.set_xlabel(f"perplexity on held-out text (dashed: the float model, {float_model:.2f})")
    ax.tick_params(axis="y", length=0)
    listed = ", ".join(f"{name} {value:.2f}" for name, value in zip(names, values))
    return described(fig, f"Perplexity by type, the float model at {float_model:.2f}: {listed}.", title)
