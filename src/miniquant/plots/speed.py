"""The figure of benchmarks: rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from .style import COLOURS, WIDTH, described, mark_guess, picture


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
