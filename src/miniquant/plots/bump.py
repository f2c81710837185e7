"""Figures of a running model: its arena as a staircase, and the memory that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..formats.gguf_lite.sizes import human
from .style import COLOURS, HATCHES, MARKERS, WIDTH, described, mark_guess, picture

if TYPE_CHECKING:
    from ..runtime.memory import Memory


@picture
def arena(spans: Mapping[str, tuple[int, int]], size: int, *, line: int = 64, title: str = "") -> Figure:
    """Buffers in one block of memory, a row each, from the first byte to the last: each step down moves right.

    spans: name -> (first byte, byte after the last), in the order of their reservation; size, line: bytes. What lies
    between the end of a buffer and the next multiple of ``line`` is padding. Raises ``ValueError`` without a buffer.
    """
    if not spans:
        raise ValueError("an arena without buffers has no picture; reserve one first")
    fig, ax = plt.subplots(figsize=(WIDTH, 0.9 + 0.27 * len(spans)))
    starts = [start for start, _ in spans.values()] + [size]
    waste = 0
    for row, (name, (start, end)) in enumerate(spans.items()):
        gap = max(0, min(starts[row + 1], -(-end // line) * line) - end)
        waste += gap
        ax.barh(row, end - start, left=start, height=0.7, color=COLOURS[0], edgecolor="black", linewidth=0.6)
        if gap:
            ax.barh(row, gap, left=end, height=0.7, color="white", edgecolor="black", linewidth=0.6, hatch="////")
        middle = (start + end) / 2
        label, right = f"{name}: {start:,}", middle < size / 2
        place = (end + gap + 0.008 * size) if right else start - 0.008 * size
        ax.text(place, row, label, va="center", ha="left" if right else "right", fontsize=8.5)
    off = [name for name, (start, _) in spans.items() if start % line]
    for start in dict.fromkeys(starts):
        ax.axvline(start, color="#999999", linewidth=0.4, linestyle=":", zorder=0)
    ax.set_xlim(0, 1.005 * size)
    ax.set_ylim(len(spans) - 0.4, -0.6)
    ax.set_yticks([])
    ax.set_xlabel("bytes from the beginning of the block (beside each name: where it begins; hatched: padding)")
    where = f"every one at a multiple of {line}" if not off else f"{', '.join(off)} at no multiple of {line}"
    alt = (
        f"{len(spans)} buffers in {size:,} bytes, one after another like stairs, {where}; {waste:,} bytes are padding."
    )
    return described(fig, alt, title)


@picture
def memory(measured: Mapping[str, Memory], *, guess: Any = None, title: str = "") -> Figure:
    """The memory that a process holds after opening a model and after each token, for several ways to run it.

    measured: way -> ``Memory``, all of one file; guess: how many times the file's size, a dotted line
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.0))
    parts = []
    for i, (way, found) in enumerate(measured.items()):
        y = np.array(found.tokens) / 1e6
        line = ("-", "--", "-.")[i % 3]
        ax.plot(range(len(y)), y, line, color=COLOURS[5 + i % 2], marker=MARKERS[i], markersize=4, label=way)
        parts.append(f"{way}, at most {human(found.peak)}")
    size = next(iter(measured.values())).file / 1e6
    ax.axhspan(0, size, color=COLOURS[7], alpha=0.45, hatch=HATCHES[2], zorder=0, label="the file")
    ax.set_xlabel("tokens generated (0: the model is open)")
    ax.set_ylabel("memory in MB")
    if guess is not None:
        mark_guess(ax, float(guess) * size)
    ax.set_ylim(0, None)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.grid(axis="y")
    return described(fig, f"Memory of a running model, its file of {size:.1f} MB: {'; '.join(parts)}.", title)
