"""The figures of K-quants: readings of the same blocks, scales that were tried, layout and search told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..evaluate.estimate import Estimate
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
        ax.plot(w[chosen], values[chosen], MARKERS[i % 6], color=COLOURS[5], markersize=2, alpha=0.4, rasterized=True)
        ends = np.array([w.min(), w.max()])
        ax.plot(ends, ends, "--", color="black", linewidth=1)
        ax.set_title(f"{name}:\ncorrelation {found[name]:.2f}", loc="left")
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
    lost: Mapping[str, Mapping[str, float | Estimate]],
    *,
    beside: Mapping[str, tuple[float, float | Estimate]] | None = None,
    guess: Any = None,
    what: str = "error (rmse), in % of the weights' size",
    form: str = "{:.2f} %",
    title: str = "",
) -> Figure:
    """What each layout loses with each way to choose scales: a line for each way, a point on it for each layout.

    bits: {layout: bits a weight}; lost: {way: {layout: loss}}, an ``Estimate`` with two standard errors to either side;
    beside: {name: (bits a weight, loss)}, single points to compare with; guess: a predicted loss, a number or nan
    what: the label of the axis; form: how a loss is written
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.6))
    mark_guess(ax, guess)
    listed = []

    def point(index: int, name: str, at: float, loss: float | Estimate) -> float:
        value, error = (loss.mean, loss.error) if isinstance(loss, Estimate) else (loss, 0.0)
        style: dict[str, Any] = {"marker": MARKERS[index % 6], "color": DARK[index % 4], "markersize": 7}
        ax.errorbar(at, value, 2 * error or None, capsize=4, linestyle="none", **style)
        right = at == max(bits.values())
        place: dict[str, Any] = {"xytext": (9 if right else -9, 0), "ha": "left" if right else "right", "va": "center"}
        ax.annotate(f"{name}  {form.format(value)}", (at, value), textcoords="offset points", **place)
        return value

    for i, (way, losses) in enumerate(lost.items()):
        values = [point(i, layout, bits[layout], loss) for layout, loss in losses.items()]
        x = [bits[layout] for layout in losses]
        ax.plot(x, values, LINES[i % 4], color=DARK[i % 4])
        middle = (sum(x) / len(x), sum(values) / len(values))
        ax.annotate(way, middle, (0, 6), textcoords="offset points", ha="center")
        listed += [f"{layout}, {way} {form.format(value)}" for layout, value in zip(losses, values)]
    for i, (name, (at, loss)) in enumerate((beside or {}).items(), len(lost)):
        listed.append(f"{name} {form.format(point(i, name, at, loss))}")
    spread = max(bits.values()) - min(bits.values())
    ax.set_xlim(min(bits.values()) - 0.4 * spread, max(bits.values()) + 0.4 * spread)
    ax.set_xticks(sorted(set(bits.values())))
    ax.set_xlabel("bits a weight")
    ax.set_ylabel(f"{what};\nthe axis does not begin at 0")
    ax.margins(y=0.15)
    ax.grid(axis="y")
    return described(fig, f"Loss against bits a weight: {'; '.join(listed)}.", title)


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
    ax.annotate("plain rounding", (steps[-1], 1), (0, 4), textcoords="offset points", ha="right")
    ax.set_xlabel("steps that the range of the block is cut into; the marker is the best try")
    ax.set_ylabel("squared error, 1 = plain rounding")
    ax.set_ylim(0, 1.15 * max(1.0, *(float(np.max(values)) for values in errors.values())))
    ax.grid()
    ax.legend(loc="lower left", ncols=len(errors))
    listed = "; ".join(f"{name}: {value:.2f} at {at:g} steps" for name, (at, value) in best.items())
    return described(fig, f"Squared error of {len(errors)} blocks by scale; the best tries: {listed}.", title)
