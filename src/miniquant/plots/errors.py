"""The figure of errors: the largest one of every tensor or layer, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .style import MARKERS, WIDTH, described, picture


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
                ax.text(place, row, f" {error}", va="center", fontsize=8.5)
    ax.set_xscale("log")
    ax.set_xlim(zero, top)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_yticks(range(len(names)), names, fontsize=8.5)
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
        ax.text(limit, -0.75, f"limit {limit:g}", ha="center", va="bottom", fontsize=8.5)
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
