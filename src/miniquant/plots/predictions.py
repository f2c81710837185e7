"""The figure of predictions: which token comes next, according to several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .style import COLOURS, HATCHES, WIDTH, described, picture


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
        colour, hatch = COLOURS[i % len(COLOURS)], HATCHES[i % len(HATCHES)]
        ax.barh(rows, 100 * p[chosen], height, label=name, edgecolor="black", linewidth=0.6, color=colour, hatch=hatch)
        for row, value in zip(rows, p[chosen]):
            ax.text(100 * value, row, f" {100 * value:.1f} %", va="center", fontsize=8.5)
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
