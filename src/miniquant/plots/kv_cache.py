"""Figures of the KV cache: how it grows beside the weights, and what its keys and values look like."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .style import DARK, LINES, MARKERS, WIDTH, described, mark_guess, picture


@picture
def cache_growth(
    models: Mapping[str, tuple[int, int]], *, most: int = 2**17, guess: object = None, title: str = ""
) -> Figure:
    """The bytes of the cache against the context, with the weights as a level line; a marker where both are equal.

    models: {name: (bytes of the weights, bytes of the cache for one token)}; most: the longest context. ``guess`` is a
    prediction of a context, drawn as a line.
    """
    contexts = np.geomspace(256, most, 60)
    fig, ax = plt.subplots(figsize=(WIDTH, 3.6))
    said, largest = [], max(weights for weights, _ in models.values())
    for i, (name, (weights, per_token)) in enumerate(models.items()):
        colour, dash = DARK[i % 4], LINES[i % 4]
        ax.plot(contexts, contexts * per_token / 1e9, dash, color=colour, label=f"{name}: cache")
        ax.axhline(weights / 1e9, color=colour, linestyle=dash, linewidth=0.8)
        offset = (2, 3) if weights == largest else (2, -10)
        ax.annotate(f"{name}: weights", (256, weights / 1e9), offset, textcoords="offset points", color=colour)
        equal = weights / per_token
        text = f"{name}: cache and weights are equal at {equal:,.0f} tokens"
        if equal <= most:
            ax.plot(equal, weights / 1e9, MARKERS[i % 6], color=colour, markersize=7)
        said.append(text if equal <= most else f"{name}: the cache stays smaller than the weights")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    ax.set_xlabel("context (tokens)")
    ax.set_ylabel("GB (10⁹ bytes)")
    ax.grid()
    mark_guess(ax, guess, "x")
    if (inside := ax.get_legend()) is not None:
        inside.remove()  # one legend below, with the guess in it
    fig.legend(loc="outside lower center", ncols=3)
    return described(fig, f"The cache and the weights against the context. {'; '.join(said)}.", title)


@picture
def stripes(panels: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """Keys or values of one head as a grey picture, a row for a token and a column for a channel.

    panels: {name: (tokens, channels)}; black is three times the root mean square of the panel, or more
    """
    rows = -(-len(panels) // 2)
    fig, axes = plt.subplots(rows, 2, figsize=(WIDTH, 0.4 + 2.3 * rows), squeeze=False, sharex=True, sharey=True)
    said, image = [], None
    for ax, (name, x) in zip(axes.ravel(), panels.items(), strict=False):
        x = np.asarray(x, np.float64)
        sizes = np.sqrt((x**2).mean(axis=0))
        image = ax.imshow(
            np.abs(x) / np.sqrt((x**2).mean()), cmap="gray_r", vmin=0, vmax=3, aspect="auto", interpolation="none"
        )
        ax.set_title(name)
        said.append(f"{name}: the largest channel is {sizes.max() / np.median(sizes):.1f} times the median")
    for ax in axes[:, 0]:
        ax.set_ylabel("token")
    for ax in axes[-1]:
        ax.set_xlabel("channel")
    assert image is not None
    bar = fig.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("size / root mean square of the panel")
    return described(fig, f"Sizes by token and channel. {'; '.join(said)}.", title)
