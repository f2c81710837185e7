"""The figure of the course's table: every file of every model by size and quality, and the line that none is below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..evaluate.measured import FLOAT, ModelTable, Program
from .calibrate import NARROW, Measured, pareto
from .style import described, picture

FORMS = (  # marker and fill of each method, in the order in which they come
    *(("o", "#FFFFFF"), ("s", "#E69F00"), ("^", "#D55E00"), ("D", "#56B4E9"), ("v", "#0072B2")),
    *(("P", "#CC79A7"), ("X", "#FFFFFF"), ("<", "#F0E442"), (">", "#009E73"), ("*", "#FFFFFF")),
)
UNIT, STEP = 0.155, 0.52  # inches of a line of text; of it, what each further method of a type takes


@picture
def kl_by_file(facets: Mapping[str, Sequence[Measured]], *, title: str = "") -> Figure:
    """KL to the float model of every file, a facet for each model, with intervals and the Pareto line.

    facets: {model: files}; a target is a line with its size, the largest file at the top, and a method is a marker, the
    same in all facets. The files of one target count as equally large: they differ by what their metadata say. A KL
    must be above 0.
    """
    methods = list(dict.fromkeys(point.method for files in facets.values() for point in files))
    heights = [sum(_heights(files).values()) for files in facets.values()]
    fig, _ = plt.subplots(
        *(len(facets), 1),
        figsize=(NARROW, 0.9 + UNIT * sum(heights) + 0.75 * len(facets)),
        height_ratios=heights,
        sharex=True,
    )
    for ax in fig.axes:
        ax.tick_params(axis="x", labelbottom=True)
    said = [_facet(ax, model, files, methods) for ax, (model, files) in zip(fig.axes, facets.items(), strict=True)]
    handles = {label: handle for ax in fig.axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    labels = [*(method for method in methods if method in handles), "Pareto line"]
    fig.legend([handles[label] for label in labels], labels, loc="outside lower center", ncols=3)
    listed = "; ".join(said)
    return described(fig, f"KL to the float model by size of the file, with intervals. Pareto line of {listed}.", title)


def files_of(table: ModelTable, program: Program = "pytorch") -> list[Measured]:
    """Every quantized file of a model that a program has computed."""
    found = []
    for name, row in table.rows.items():
        if row.n_bytes and table.ran(name, program) and row.kind not in (FLOAT, "F16", "BF16"):
            kl = table.kl(name, program)
            found.append(Measured(row.kind, row.how or "plain", row.n_bytes, (kl.value, kl.low, kl.high)))
    return found


def same_size(files: Sequence[Measured]) -> list[Measured]:
    """The files, with those of one target as large as the smallest of them."""
    least: dict[str, int] = {}
    for point in files:
        least[point.target] = min(point.n_bytes, least.get(point.target, point.n_bytes))
    return [point._replace(n_bytes=least[point.target]) for point in files]


def _heights(files: Sequence[Measured]) -> dict[str, float]:
    """The height of each target's line, the largest file first."""
    found: dict[str, float] = {}
    for point in sorted(same_size(files), key=lambda point: -point.n_bytes):
        found[point.target] = found.get(point.target, 1 - STEP) + STEP
    return found


def _facet(ax: Axes, model: str, files: Sequence[Measured], methods: list[str]) -> str:
    """Draw one model; says which files are on its Pareto line."""
    files, heights, y, ends = same_size(files), _heights(files), 0.0, {}
    for i, (target, height) in enumerate(heights.items()):
        ends[target] = y, y + height
        if i % 2 == 0:
            ax.axhspan(y, y + height, color="#F1F1F1", zorder=0)
        y += height
    places = {}
    for target, (top, bottom) in ends.items():
        mine = sorted((p for p in files if p.target == target), key=lambda p: methods.index(p.method))
        for i, point in enumerate(mine):
            places[point] = (top + bottom + STEP * (2 * i - len(mine) + 1)) / 2
    for i, method in enumerate(methods):
        for j, point in enumerate(p for p in files if p.method == method):
            (marker, fill), (value, low, high) = FORMS[i % len(FORMS)], point.kl
            form: dict[str, Any] = {"mfc": fill, "mec": "black", "mew": 0.7, "ms": 5.0, "zorder": 3, "ecolor": "black"}
            ax.errorbar(
                value,
                places[point],
                xerr=[[value - low], [high - value]],
                fmt=marker,
                label=method if j == 0 else "",
                elinewidth=1.1,
                capsize=1.8,
                **form,
            )
    front = pareto(files)[::-1]  # the largest file first; one of each size at most
    corners, at = [], 0.0
    for point in front:  # a line that holds none of them shows the best of the smaller files
        corners += [(point.kl[0], at), (point.kl[0], ends[point.target][1])]
        at = ends[point.target][1]
    ax.plot(*zip(*corners), color="#555555", lw=1.2, label="Pareto line", zorder=2)
    sizes = {point.target: point.n_bytes for point in files}
    labels = [f"{target}  {sizes[target] / 1e6:.2f}" for target in heights]
    ax.set_yticks([sum(ends[target]) / 2 for target in heights], labels, fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(y, 0)
    ax.set_xscale("log")
    ax.grid(axis="x")
    ax.set_xlabel("KL (nats a token)")
    ax.set_ylabel("type, and size in MB of 1,000,000 bytes")
    ax.set_title(model, loc="left", fontweight="bold")
    listed = ", ".join(f"{point.target} {point.method} {point.kl[0]:.2g}".replace("  ", " ") for point in front)
    return f"{model}: {listed}"
