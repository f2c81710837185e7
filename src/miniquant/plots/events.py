"""The figure of events: which came when."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from .style import DARK, MARKERS, PAPER, WIDTH, described, picture


@picture
def timeline(events: Sequence[tuple[str, float, str]], *, title: str = "") -> Figure:
    """Events from top to bottom, the years on an axis of their own.

    events: (what, year with its fraction, kind); a kind has one marker and one colour
    """
    kinds = list(dict.fromkeys(kind for *_, kind in events))
    fig, ax = plt.subplots(figsize=(WIDTH, 1.1 + 0.33 * len(events)))
    first, last = min(year for _, year, _ in events), max(year for _, year, _ in events)
    span = last - first or 1.0
    for row, (what, year, kind) in enumerate(events):
        i = kinds.index(kind)
        ax.plot(year, row, MARKERS[i % 6], color=DARK[i % 4], label=kind if row == _first(events, kind) else None)
        left = year < first + 0.45 * span
        shift = 0.02 * span if left else -0.02 * span
        text = "\n".join(textwrap.wrap(f"{int(year)}: {what}", 60))
        clear = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}  # the lines stay behind the text
        ax.text(year + shift, row, text, ha="left" if left else "right", va="center", fontsize=8.5, bbox=clear)
        ax.plot([year, year], [row, len(events) - 0.4], color="#BBBBBB", linewidth=0.5, zorder=0)
    ax.set_ylim(len(events) - 0.4, -0.6)
    ax.set_xlim(first - 0.03 * span, last + 0.03 * span)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("year")
    fig.legend(loc="outside lower center", ncols=3)
    return described(fig, "; ".join(f"{year:.1f}: {what}" for what, year, _ in events) + ".", title)


def _first(events: Sequence[tuple[str, float, str]], kind: str) -> int:
    return next(row for row, event in enumerate(events) if event[2] == kind)
