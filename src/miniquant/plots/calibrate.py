"""Figures of calibration: how large channels are, how far to scale, which differences are more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .style import DARK, LINES, MARKERS, WIDTH, described, picture

Interval = tuple[float, float, float]  # value, low end, high end


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
