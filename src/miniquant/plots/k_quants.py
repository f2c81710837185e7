"""The figures of K-quants: readings of the same blocks, scales that were tried, layout and search told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import COLOURS, DARK, LINES, MARKERS, WIDTH, described, mark_guess, picture

SHOWN = 1500  # points in a panel: more would be a blot


@picture
def readings(w: np.ndarray, decoded: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """Each reading against the true weights, one panel each: a right one lies on the dashed line.

    w and every reading: the same number of weights, any shape
    """
    w = np.asarray(w, np.float64).ravel()
    chosen = np.random.default_rng(0).permutation(w.size)[:SHOWN]
    columns = len(decoded) if len(decoded) <= 3 else 2
    rows = math.ceil(len(decoded) / columns)
    fig, axes = plt.subplots(rows, columns, figsize=(WIDTH, 2.7 * rows), squeeze=False)
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
def layout_and_search(
    bits: Mapping[str, float],
    lost: Mapping[str, Mapping[str, float]],
    *,
    beside: Mapping[str, tuple[float, float]] | None = None,
    guess: Any = None,
    title: str = "",
) -> Figure:
    """The error of each layout with each way to choose scales: a line for each way, a point on it for each layout.

    bits: {layout: bits a weight}; lost: {way: {layout: error in per cent}}; beside: {name: (bits a weight, error)},
    single points to compare with; guess: a predicted error, a number or nan
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.6))
    single = beside or {}
    mark_guess(ax, guess)
    for i, (way, errors) in enumerate(lost.items()):
        x, y = [bits[layout] for layout in errors], list(errors.values())
        ax.plot(x, y, LINES[i % 4], marker=MARKERS[i % 6], color=DARK[i % 4], markersize=7)
        ax.annotate(way, (sum(x) / len(x), sum(y) / len(y)), (0, 6), textcoords="offset points", ha="center")
        for layout, at, value in zip(errors, x, y):
            _label(ax, f"{layout}  {value:.2f} %", at, value, right=at == max(bits.values()))
    for i, (name, (at, value)) in enumerate(single.items(), len(lost)):
        ax.plot(at, value, MARKERS[i % 6], color=DARK[i % 4], markersize=7)
        _label(ax, f"{name}  {value:.2f} %", at, value, right=at == max(bits.values()))
    spread = max(bits.values()) - min(bits.values())
    ax.set_xlim(min(bits.values()) - 0.35 * spread, max(bits.values()) + 0.35 * spread)
    ax.set_xticks(sorted(set(bits.values())))
    ax.set_xlabel("bits a weight")
    ax.set_ylabel("error (rmse), in % of the weights' size;\nthe axis does not begin at 0")
    ax.margins(y=0.15)
    ax.grid(axis="y")
    listed = [f"{layout}, {way} {value:.2f} %" for way, errors in lost.items() for layout, value in errors.items()]
    listed += [f"{name} {value:.2f} %" for name, (_, value) in single.items()]
    return described(fig, f"Error against bits a weight: {'; '.join(listed)}.", title)


def _label(ax: Axes, text: str, x: float, y: float, *, right: bool) -> None:
    ax.annotate(
        text, (x, y), (9 if right else -9, 0), textcoords="offset points", ha="left" if right else "right", va="center"
    )


@picture
def tries(steps: np.ndarray, errors: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """The squared error of single blocks for every scale that was tried, in parts of that of plain rounding.

    steps: (n,) how many steps the range of a block was cut into; errors: {block: (n,) error / error of plain rounding}
    """
    steps = np.asarray(steps, np.float64)
    fig, ax = plt.subplots(figsize=(WIDTH, 3.2))
    best = {}
    for i, (name, values) in enumerate(errors.items()):
        values = np.asarray(values, np.float64)
        at = int(values.argmin())
        best[name] = (float(steps[at]), float(values[at]))
        ax.plot(steps, values, LINES[i % 4], color=DARK[i % 4], linewidth=1.4, label=name)
        ax.plot(steps[at], values[at], MARKERS[i % 6], color=DARK[i % 4], markersize=8)
    ax.axhline(1, color="black", linewidth=0.8)
    ax.annotate("plain rounding", (steps[0], 1), (0, 4), textcoords="offset points")
    ax.set_xlabel("steps that the range of the block is cut into; the marker is the best try")
    ax.set_ylabel("squared error, 1 = plain rounding")
    ax.set_ylim(0, 1.15 * max(1.0, *(float(np.max(values)) for values in errors.values())))
    ax.grid()
    ax.legend(loc="lower left", ncols=len(errors))
    listed = "; ".join(f"{name}: {value:.2f} at {at:g} steps" for name, (at, value) in best.items())
    return described(fig, f"Squared error of {len(errors)} blocks by scale; the best tries: {listed}.", title)
