"""The figure of benchmarks: rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from .style import COLOURS, DARK, MARKERS, WIDTH, described, mark_guess, picture


@picture
def throughput_bars(table: Mapping[str, float], *, unit: str = "MB/s", guess: Any = None, title: str = "") -> Figure:
    """Benchmarks: a bar for each entry, its value written at the end.

    table: {what was measured: rate in ``unit``}; guess: a rate that somebody predicted, a dotted line
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 0.9 + 0.27 * len(table)))
    rows = range(len(table))
    ax.barh(rows, list(table.values()), 0.65, color=COLOURS[0], edgecolor="black", linewidth=0.6)
    for row, value in zip(rows, table.values()):
        ax.text(value, row, f" {value:,.0f}" if value >= 100 else f" {value:.3g}", va="center", fontsize=8.5)
    ax.set_yticks(rows, list(table))
    ax.set_ylim(len(table) - 0.5, -0.5)
    known = [*table.values(), *([float(guess)] if guess is not None and math.isfinite(float(guess)) else [])]
    ax.set_xlim(0, 1.15 * max(known, default=1))
    mark_guess(ax, guess, along="x")
    ax.set_xlabel(unit)
    ax.grid(axis="x")
    fastest, slowest = max(table, key=table.__getitem__), min(table, key=table.__getitem__)
    alt = (
        f"{len(table)} rates in {unit}, from {slowest} at {table[slowest]:,.3g} to {fastest} at {table[fastest]:,.3g}."
    )
    return described(fig, alt, title)


@picture
def rate_dots(rows: Mapping[str, Mapping[str, float]], *, limit: str, unit: str = "MB/s", title: str = "") -> Figure:
    """Benchmarks of the same jobs by several programs: a row for each job, a mark for each program.

    rows: {job: {program: rate in ``unit``}}; limit: the entry of a row that is drawn as the roofline, such as copying
    """
    programs = list(dict.fromkeys(name for row in rows.values() for name in row if name != limit))
    fig, ax = plt.subplots(figsize=(WIDTH, 1.2 + 0.22 * len(rows)))
    for i, program in enumerate(programs):
        at = [(row[program], place) for place, row in enumerate(rows.values()) if program in row]
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        x, y = zip(*at)
        ax.scatter(x, y, s=34, marker=marker, color=colour, edgecolor="black", linewidth=0.6, label=program, zorder=3)
    ends = [(row[limit], y) for y, row in enumerate(rows.values())]
    ax.plot(*zip(*ends), color=DARK[1], linewidth=1.4, linestyle="--", label=limit)
    ax.set_xscale("log")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(unit)
    ax.grid()
    fig.legend(loc="outside lower center", ncols=4, fontsize=8.5)
    medians = [
        f"{program} {median(row[program] for row in rows.values() if program in row):,.3g}" for program in programs
    ]
    alt = f"{len(rows)} jobs, rates in {unit} on a logarithmic axis; the medians: {', '.join(medians)}; "
    return described(fig, f"{alt}{limit} {median(rate for rate, _ in ends):,.3g}.", title)
