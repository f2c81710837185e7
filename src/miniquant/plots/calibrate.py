"""Figures of calibration: how large channels are, how far to scale, which differences are more than chance, what a
byte buys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .style import DARK, LINES, MARKERS, WIDTH, described, picture

Interval = tuple[float, float, float]  # value, low end, high end
NARROW = 4.7  # inches: on a phone, a figure of this width keeps its letters at nine pixels
FILLED = ("#FFFFFF", "#E69F00", "#D55E00", "#56B4E9", "#0072B2")  # the same order as MARKERS


class Measured(NamedTuple):
    """A file that was measured: what it is stored in, how its integers were chosen, its bytes, its KL."""

    target: str
    method: str
    n_bytes: int
    kl: Interval  # nats a token


@picture
def channel_sizes(series: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """The mean absolute activation of every channel, the largest first, for one or more models.

    series: {model: (channels,) all above 0}
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.2))
    for i, (name, sizes) in enumerate(series.items()):
        ranked = np.sort(np.asarray(sizes, np.float64))[::-1]
        ax.plot(np.arange(1, len(ranked) + 1), ranked, LINES[i % 4], color=DARK[i % 4], label=name)
        ax.plot(1, ranked[0], MARKERS[i % 6], color=DARK[i % 4], clip_on=False)
    ax.set_yscale("log")
    ax.set_xlabel("channel, the largest first")
    ax.set_ylabel("mean of abs(activation)")
    ax.grid()
    fig.legend(loc="outside lower center", ncols=3)
    ratios = [f"{name}: the largest is {max(s) / np.median(s):.2g} times the median" for name, s in series.items()]
    return described(fig, f"Sizes of the input channels of a layer. {'; '.join(ratios)}.", title)


@picture
def error_over_alpha(alphas: Sequence[float], series: Mapping[str, Sequence[float]], *, title: str = "") -> Figure:
    """How far the output of a layer moves with AWQ's scales, relative to plain rounding, which is alpha 0.

    series: {model: an error for each alpha, the first one at alpha 0 and above 0}
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.2))
    parts = []
    for i, (name, errors) in enumerate(series.items()):
        relative = np.asarray(errors, np.float64) / errors[0]
        best = int(relative.argmin())
        ax.plot(alphas, relative, LINES[i % 4] + MARKERS[i % 6], color=DARK[i % 4], markersize=4, label=name)
        ax.annotate(f"{relative[best]:.2f}", (alphas[best], relative[best]), (0, 6), textcoords="offset points")
        parts.append(f"{name}: at best {relative[best]:.2g} of it, at alpha {alphas[best]:.2g}")
    ax.axhline(1, color="#555555", linewidth=0.8)
    ax.set_yscale("log")
    ax.set_xlabel("alpha: 0 is plain rounding, 1 scales by the activations themselves")
    ax.set_ylabel("output error / that of plain rounding")
    ax.grid(which="both")
    fig.legend(loc="outside lower center", ncols=3)
    return described(fig, f"Output error over alpha, relative to plain rounding. {'; '.join(parts)}.", title)


@picture
def intervals(rows: Mapping[str, Interval], *, what: str, nothing: float, title: str = "") -> Figure:
    """A value and its interval for each row, and a line where there is no difference.

    rows: {name: (value, low, high)}; ``what`` labels the axis with its unit, ``nothing`` is 1 for ratios, 0 for changes
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 1.0 + 0.3 * len(rows)))
    for i, (value, low, high) in enumerate(rows.values()):
        real = not low <= nothing <= high
        form, colour = ("o", DARK[0]) if real else ("D", "#777777")
        ax.errorbar(value, i, xerr=[[value - low], [high - value]], fmt=form, color=colour, capsize=3)
    ax.axvline(nothing, color="black", linestyle="--", linewidth=1)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    if nothing == 1:
        ax.set_xlim(left=0)
    ax.set_xlabel(f"{what}; ● differs from {nothing:g}, ◆ may be chance")
    ax.grid(axis="x")
    said = "; ".join(f"{name} {value:.3g} ({low:.3g} to {high:.3g})" for name, (value, low, high) in rows.items())
    return described(fig, f"{what}, with 95 % intervals: {said}.", title)


def pareto(points: Iterable[Measured]) -> list[Measured]:
    """The points that no other one beats: every smaller file has a larger KL. The smallest first.

    >>> kl = {"a": 0.5, "b": 0.6, "c": 0.1}
    >>> [p.target for p in pareto(Measured(name, "", n, (kl[name], 0, 1)) for n, name in enumerate("abc"))]
    ['a', 'c']
    """
    front: list[Measured] = []
    for point in sorted(points, key=lambda p: (p.n_bytes, p.kl[0])):
        if not front or point.kl[0] < front[-1].kl[0]:
            front.append(point)
    return front


@picture
def kl_by_size(facets: Mapping[str, Sequence[Measured]], *, title: str = "") -> Figure:
    """KL to the float model by size, a facet for each model, with intervals and the Pareto line.

    facets: {model: files}; a target is a column, the smallest file first, a method is a marker, the same in all facets.
    A KL must be above 0.
    """
    every = [point for files in facets.values() for point in files]
    methods = list(dict.fromkeys(point.method for point in every))
    sizes = {point.target: point.n_bytes for point in sorted(every, key=lambda point: point.n_bytes)}
    columns = {target: i for i, target in enumerate(sizes)}
    ends = [end for point in every for end in point.kl]
    fig, axes = plt.subplots(len(facets), 1, figsize=(NARROW, 0.9 + 2.9 * len(facets)), sharex=True, squeeze=False)
    said = []
    for ax, (model, files) in zip(axes.flat, facets.items()):
        front = pareto(files)
        said.append(f"{model}: " + ", ".join(f"{p.target} {p.method} {p.kl[0]:.2g}".replace("  ", " ") for p in front))
        line = [(columns[p.target] - 0.5, p.kl[0]) for p in front]
        line.append((len(columns) - 0.5, line[-1][1]))
        ax.step(*zip(*line), where="post", color="#555555", lw=1.2, label="Pareto line", zorder=2)
        for i, method in enumerate(methods):
            mine = [p for p in files if p.method == method]
            several = {p.target for p in every if p.method != method}  # a method alone in its column is in the middle
            x = [columns[p.target] + 0.17 * (i - (len(methods) - 1) / 2) * (p.target in several) for p in mine]
            value, low, high = np.array([p.kl for p in mine]).reshape(-1, 3).T
            form = {"mfc": FILLED[i % 5], "mec": "black", "mew": 0.7, "ms": 5.5, "zorder": 3}
            bars = {"yerr": [value - low, high - value], "ecolor": "black", "elinewidth": 1.2}
            ax.errorbar(x, value, fmt=MARKERS[i % 6], label=method, **bars, **form)
        for i in range(0, len(columns), 2):
            ax.axvspan(i - 0.5, i + 0.5, color="#F1F1F1", zorder=0)
        ax.set_yscale("log")
        ax.set_xlim(-0.5, len(columns) - 0.5)
        ax.set_ylim(0.6 * min(ends), 1.6 * max(ends))
        ax.set_ylabel("KL (nats a token)")
        ax.grid(axis="y")
        ax.set_title(model, loc="left", fontweight="bold")
        ax.tick_params(axis="x", length=0)
    last = axes.flat[-1]
    last.set_xticks(
        range(len(columns)), [f"{target}\n{size / 1e6:.2f}" for target, size in sizes.items()], fontsize=7.5
    )
    last.set_xlabel("what is in the file, and its size (MB of 1,000,000 bytes)")
    fig.legend(*last.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    listed = "; ".join(said)
    return described(fig, f"KL to the float model by size of the file, with intervals. Pareto line of {listed}.", title)
