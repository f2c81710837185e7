"""Figures of mixes of types: what each matrix costs alone, what a sum foretells, and the lowest KL within the bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import BboxBase

from .style import DARK, LINES, MARKERS, described, picture

NARROW = 4.7  # inches: on a phone, a figure of this width keeps its letters at nine pixels


class File(NamedTuple):
    """A file that was measured: its name, the bytes of its matrices, its KL with the ends of an interval."""

    name: str
    n_bytes: int
    kl: tuple[float, float, float]


@picture
def alone(costs: Mapping[str, Mapping[str, tuple[int, float]]], kinds: Sequence[str], *, title: str = "") -> Figure:
    """The KL of every matrix alone, for some types: a row for a matrix, a marker for a type.

    costs: {matrix: {type: (bytes, KL above 0)}}
    """
    fig, ax = plt.subplots(figsize=(NARROW, 1.3 + 0.21 * len(costs)))
    said = []
    for i, kind in enumerate(kinds):
        kl = [of[kind][1] for of in costs.values()]
        ax.plot(kl, range(len(costs)), MARKERS[i % 6], color=DARK[i % 4], markersize=5.5, label=kind)
        names = list(costs)
        least, most = int(np.argmin(kl)), int(np.argmax(kl))
        said.append(f"{kind} from {kl[least]:.2g} ({names[least]}) to {kl[most]:.2g} ({names[most]})")
    ax.set_yticks(range(len(costs)), [name.removesuffix(".weight") for name in costs], fontsize=8)
    ax.set_ylim(len(costs) - 0.4, -0.6)
    ax.set_xscale("log")
    ax.set_xlabel("KL with this matrix alone quantized (nats a token)")
    ax.grid()
    fig.legend(loc="outside lower center", ncols=4)
    return described(fig, f"KL of {len(costs)} matrices, one quantized at a time: {'; '.join(said)}.", title)


@picture
def foretold(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, title: str = "") -> Figure:
    """What the sums foretell against what was measured, and the line where both are the same.

    series: {name: (foretold, measured)}, all above 0
    """
    fig, ax = plt.subplots(figsize=(NARROW, 3.6))
    ends = [value for pair in series.values() for values in pair for value in values]
    line = np.array([0.7 * min(ends), 1.4 * max(ends)])
    ax.plot(line, line, color="#777777", linewidth=0.9, label="equal")
    said = []
    for i, (name, (sums, found)) in enumerate(series.items()):
        ax.plot(sums, found, MARKERS[i % 6], color=DARK[i % 4], markersize=5.5, label=name)
        parts = np.asarray(found) / np.asarray(sums)
        said.append(f"{name} measured {parts.min():.2f} to {parts.max():.2f} times the sum")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("sum of the single KLs (nats a token)")
    ax.set_ylabel("KL of the whole file (nats a token)")
    ax.grid()
    fig.legend(loc="outside lower center", ncols=3)
    return described(fig, f"KL of whole files against the sum of single KLs: {'; '.join(said)}.", title)


def name_points(fig: Figure, named: Sequence[tuple[Axes, str, tuple[float, float]]]) -> None:
    """Write a name above each point, as low as it stands free of the names before it; a line joins name and point."""
    fig.draw_without_rendering()  # where a name is in pixels is known only once the figure is laid out
    renderer = fig.canvas.get_renderer()  # type: ignore[attr-defined]
    line = {"arrowstyle": "-", "linewidth": 0.6, "color": "#777777"}
    taken: list[BboxBase] = []
    step = 3 * fig.dpi / 72  # of three points, in pixels
    for ax, name, point in named:
        label = ax.annotate(name, point, (6, 9), textcoords="offset points", fontsize=7.5, arrowprops=line)
        label.set_in_layout(False)
        label.update_positions(renderer)
        start, steps = Text.get_window_extent(label).padded(1), 1
        while (box := start.translated(0, steps * step)).count_overlaps(taken):
            steps += 1
        label.xyann = (6, 9 + 3 * steps)
        taken.append(box)


@picture
def kl_by_bytes(facets: Mapping[str, Mapping[str, Sequence[File]]], *, title: str = "") -> Figure:
    """The KL of files by the bytes of their matrices, a facet for each model; a series with a line, others without.

    facets: {model: {series: files}}; the first series of a facet is joined by a line, the files of the others carry
    their names. A KL must be above 0.
    """
    fig, axes = plt.subplots(len(facets), 1, figsize=(NARROW, 0.9 + 3.1 * len(facets)), squeeze=False)
    said, named = [], []
    for ax, (model, series) in zip(axes.flat, facets.items(), strict=True):
        for i, (name, files) in enumerate(series.items()):
            ordered = sorted(files, key=lambda file: file.n_bytes)
            x = np.array([file.n_bytes for file in ordered]) / 1e6
            value, low, high = np.array([file.kl for file in ordered]).T
            form = (LINES[0] if i == 0 else "") + MARKERS[i % 6]
            bars = {"yerr": [value - low, high - value], "elinewidth": 1.2, "capsize": 2}
            ax.errorbar(x, value, fmt=form, color=DARK[i % 4], markersize=4.5, linewidth=1.1, label=name, **bars)
            if i:
                named += [(ax, file.name, (x[place], high[place])) for place, file in enumerate(ordered)]
            first, last = ordered[0], ordered[-1]
            ends = f"from {first.kl[0]:.2g} at {first.n_bytes:,} bytes to {last.kl[0]:.2g} at {last.n_bytes:,}"
            said.append(f"{model}, {name}: {ends}")
        ax.set_yscale("log")
        ax.margins(x=0.1, y=0.08)
        ax.set_ylabel("KL (nats a token)")
        ax.grid()
        ax.set_title(model, loc="left", fontweight="bold")
    last_axes = axes.flat[-1]
    last_axes.set_xlabel("all matrices together (MB of 1,000,000 bytes)")
    fig.legend(*last_axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    name_points(fig, named)
    return described(fig, f"KL to the float model by size, with intervals. {'; '.join(said)}.", title)
