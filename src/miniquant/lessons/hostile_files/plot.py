"""The figure of lab 23: what a fuzzer finds in a reader while it is hardened, check by check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from ...plots.style import COLOURS, HATCHES, WIDTH, described, mark_guess, picture
from .fuzz import Found


@picture
def hardening(stages: Mapping[str, Found], *, guess: Any = None, title: str = "") -> Figure:
    """One bar for each stage: how many of its damaged files did which harm.

    stages: what was added -> what the fuzzer found then; guess: the number of the first stage, as somebody predicted it
    """
    kinds = list(dict.fromkeys(kind for found in stages.values() for kind in found.harms))
    fig, ax = plt.subplots(figsize=(WIDTH, 0.34 * len(stages) + 1.4))
    for row, found in enumerate(stages.values()):
        left = 0
        for index, kind in enumerate(kinds):
            count = found.harms.get(kind, 0)
            style = {"color": COLOURS[index % 8], "hatch": HATCHES[index % 8], "edgecolor": "black", "linewidth": 0.5}
            ax.barh(row, count, left=left, label=kind if row == 0 else None, **style)
            left += count
        ax.text(left, row, f" {left:,}" if left else " none", va="center")
    ax.set_yticks(range(len(stages)), list(stages))
    ax.invert_yaxis()
    ax.margins(x=0.08)
    ax.set_xlabel("damaged files that did harm")
    handles, labels = ax.get_legend_handles_labels()
    mark_guess(ax, guess, along="x")
    fig.legend(handles, labels, loc="outside lower center", ncols=3)
    counts = [sum(found.harms.values()) for found in stages.values()]
    first, *_, last = [*stages, *stages]
    alt = f"Bars that grow shorter: {counts[0]:,} harmful files of the stage {first!r}, {counts[-1]:,} of {last!r}."
    return described(fig, alt, title)
