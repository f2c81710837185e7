"""Every figure that the labs show.

Each function returns a closed ``matplotlib`` Figure: a notebook shows it once, a script calls ``savefig``. Its ``alt``
is one sentence that says what the data show, computed from them. Hatches, markers and labels carry what colour carries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ..core.arrays import Array, to_numpy
from .files import descriptor_bytes, size_against_kl, size_bars, size_pies
from .style import COLOURS, HATCHES, MARKERS, WIDTH, described, picture

__all__ = [
    "descriptor_bytes",
    "error_bars",
    "error_heatmap",
    "histograms",
    "number_line",
    "probabilities",
    "size_against_kl",
    "size_bars",
    "size_pies",
    "throughput_bars",
]


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
def error_bars(
    series: Mapping[str, Mapping[str, float]], *, limit: float | None, title: str = "", what: str = "tensor"
) -> Figure:
    """Largest absolute errors on a logarithmic axis, a row for each name and a marker for each series.

    series: {series name: {tensor or layer name: error}}. Zeros stand at the left edge, labelled "exactly 0";
    ``limit`` is drawn as a line; what is not finite stands at the right edge under its own name.
    """
    names = list(dict.fromkeys(name for errors in series.values() for name in errors))
    finite = [e for errors in series.values() for e in errors.values() if math.isfinite(e) and e > 0]
    known = [*finite, *([limit] if limit else [])] or [1e-6]
    zero, top = 10 ** (math.floor(math.log10(min(known))) - 1.0), 10 ** (math.ceil(math.log10(max(known))) + 0.5)
    fig, ax = plt.subplots(figsize=(WIDTH, 1.5 + 0.17 * len(names)))
    shift = 0.5 / max(1, len(series))
    for i, (label, errors) in enumerate(series.items()):
        rows = [names.index(n) + (i - (len(series) - 1) / 2) * shift for n in errors]
        places = [top if not math.isfinite(e) else max(e, zero) for e in errors.values()]
        colour = ("#0072B2", "#D55E00", "#009E73", "#555555")[i % 4]
        ax.plot(places, rows, MARKERS[i % 6], color=colour, markersize=4.5, label=label, clip_on=False, zorder=3)
        for place, row, error in zip(places, rows, errors.values()):
            if not math.isfinite(error):
                ax.text(place, row, f" {error}", va="center", fontsize=8)
    ax.set_xscale("log")
    ax.set_xlim(zero, top)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_yticks(range(len(names)), names, fontsize=7.5)
    ax.set_xlabel("largest absolute error")
    ax.set_ylabel(what)
    ax.grid(axis="x")
    ticks = [10.0**e for e in range(math.ceil(math.log10(zero) + 0.01), math.floor(math.log10(top)) + 1)]
    ticks = ticks[:: math.ceil(len(ticks) / 9)]
    exact = sum(e == 0 for errors in series.values() for e in errors.values())
    ax.set_xticks([zero, *ticks] if exact else ticks)
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: "exactly 0" if exact and x <= zero else f"$10^{{{round(math.log10(x))}}}$")
    )
    ax.minorticks_off()
    if limit:
        ax.axvline(limit, color="black", linestyle="--", linewidth=1.2)
        ax.text(limit, -0.75, f"limit {limit:g}", ha="center", va="bottom", fontsize=8)
    fig.legend(loc="outside lower center", ncols=2)
    return described(fig, _errors_alt(series, limit, what, len(names)), title)


def _errors_alt(series: Mapping[str, Mapping[str, float]], limit: float | None, what: str, rows: int) -> str:
    parts = []
    for label, errors in series.items():
        worst = max(errors.values(), default=0.0, key=lambda e: (not e <= math.inf, e))
        beyond = sum(not e <= limit for e in errors.values()) if limit else 0
        note = f", {beyond} beyond the limit" if limit else ""
        parts.append(f"{label}: " + ("all exactly 0" if worst == 0 else f"at most {worst:.2g}") + note)
    ending = f" The limit is {limit:g}." if limit else ""
    return f"Largest absolute error of each {what} ({rows} of them); " + "; ".join(parts) + "." + ending


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
    inner = [level for level in levels if level % step == 0 and qmax - abs(level) > step / 2]
    for level in [-qmax, *inner, qmax]:
        ax.text(level * scale, -0.2, str(level), ha="center", va="top", fontsize=8, color="#0072B2")
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


@picture
def throughput_bars(table: Mapping[str, float], *, unit: str = "MB/s", title: str = "") -> Figure:
    """Benchmarks: a bar for each entry, its value written at the end.

    table: {what was measured: rate in ``unit``}
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 0.9 + 0.27 * len(table)))
    rows = range(len(table))
    ax.barh(rows, list(table.values()), 0.65, color=COLOURS[0], edgecolor="black", linewidth=0.6)
    for row, value in zip(rows, table.values()):
        ax.text(value, row, f" {value:,.0f}" if value >= 100 else f" {value:.3g}", va="center", fontsize=8)
    ax.set_yticks(rows, list(table))
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(0, 1.15 * max(table.values(), default=1))
    ax.set_xlabel(unit)
    ax.grid(axis="x")
    fastest, slowest = max(table, key=table.get), min(table, key=table.get)
    alt = (
        f"{len(table)} rates in {unit}, from {slowest} at {table[slowest]:,.3g} to {fastest} at {table[fastest]:,.3g}."
    )
    return described(fig, alt, title)


@picture
def probabilities(
    tokens: Sequence[str], series: Mapping[str, Sequence[float]], *, show: int = 8, title: str = ""
) -> Figure:
    """What comes next, according to several models: a bar for each model and token, its per cent at the end.

    tokens: the text of each token, (vocabulary,); series: {model: (vocabulary,) probabilities}
    The ``show`` tokens that the first model finds most likely are drawn, the most likely on top.
    """
    columns = {name: np.asarray(p, np.float64) for name, p in series.items()}
    if not columns or any(p.shape != (len(tokens),) for p in columns.values()):
        shapes = {name: p.shape for name, p in columns.items()}
        raise ValueError(f"expected a probability for each of the {len(tokens)} tokens, found shapes {shapes}")
    first = next(iter(columns.values()))
    chosen = np.argsort(-first, kind="stable")[:show]
    labels = [repr(tokens[i]) for i in chosen]
    fig, ax = plt.subplots(figsize=(WIDTH, 1.2 + 0.22 * len(chosen) * len(columns)))
    height = 0.8 / len(columns)
    for i, (name, p) in enumerate(columns.items()):
        rows = np.arange(len(chosen)) + (i - (len(columns) - 1) / 2) * height
        style = {"color": COLOURS[i % len(COLOURS)], "hatch": HATCHES[i % len(HATCHES)]}
        ax.barh(rows, 100 * p[chosen], height, label=name, edgecolor="black", linewidth=0.6, **style)
        for row, value in zip(rows, p[chosen]):
            ax.text(100 * value, row, f" {100 * value:.1f} %", va="center", fontsize=7.5)
    ax.set_yticks(range(len(chosen)), labels, family="monospace")
    ax.set_ylim(len(chosen) - 0.4, -0.6)
    ax.set_xlim(0, 115 * max(float(p[chosen].max(initial=0)) for p in columns.values()) or 1)
    ax.set_xlabel("probability of the next token, in per cent")
    ax.grid(axis="x")
    fig.legend(loc="outside lower center", ncols=3)
    apart = max((float(np.abs(p - first).max(initial=0)) for p in columns.values()), default=0.0)
    likely = "; ".join(f"{name} gives {labels[0]} {100 * p[chosen[0]]:.1f} %" for name, p in columns.items())
    alt = f"The {len(chosen)} most likely next tokens: {likely}."
    alt += f" Nowhere are they more than {100 * apart:.2g} percentage points apart."
    return described(fig, alt, title)
