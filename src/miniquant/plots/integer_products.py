"""Figures of products: how far other arithmetic is from a program's, value by value."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .style import COLOURS, DARK, HATCHES, LINES, MARKERS, WIDTH, described, picture

SMALLEST = 1e-10  # what is nearer is drawn here


@picture
def differences(series: Mapping[str, np.ndarray], *, what: str, title: str = "") -> Figure:
    """Histograms of sizes of differences on a logarithmic axis, a panel for each way to compute.

    series: {name: differences, any shape}; ``what`` names the values that differ
    """
    sizes = {name: np.maximum(np.abs(np.asarray(d, np.float64)).ravel(), SMALLEST) for name, d in series.items()}
    every = np.log10(np.concatenate(list(sizes.values())))
    edges = 10.0 ** np.linspace(np.floor(every.min()), np.ceil(every.max()), 61)
    fig, axes = plt.subplots(len(sizes), 1, figsize=(WIDTH, 0.7 + 1.25 * len(sizes)), sharex=True, squeeze=False)
    said = []
    for i, (ax, (name, values)) in enumerate(zip(axes.flat, sizes.items())):
        ax.hist(values, edges.tolist(), color=COLOURS[i], hatch=HATCHES[i], edgecolor="black", linewidth=0.3)
        ax.set_xscale("log")
        ax.set_ylabel("values")
        ax.set_title(name, loc="left")
        ax.grid(axis="x")
        said.append(f"{name}: half of them below {np.median(values):.1g}, all below {values.max():.1g}")
    axes.flat[-1].set_xlabel(f"size of the difference of {what}")
    return described(fig, f"Differences of {what}. {'; '.join(said)}.", title)


@picture
def along_a_model(
    series: Mapping[str, tuple[np.ndarray, np.ndarray]], ticks: Mapping[float, str], *, title: str = ""
) -> Figure:
    """How far from a program's values other ones are, step by step through a model, on a logarithmic axis.

    series: {name: (places of steps, differences in parts of the largest value there)}; ticks: {place: name of the step}
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.4))
    said = []
    for i, (name, (places, values)) in enumerate(series.items()):
        values = np.maximum(np.asarray(values, np.float64), SMALLEST)
        ax.plot(places, values, LINES[i % 4] + MARKERS[i % 6], color=DARK[i % 4], markersize=5, label=name)
        said.append(f"{name}: {values[0]:.1g} at first, {values[-1]:.1g} at the end")
    ax.set_yscale("log")
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.set_ylabel("largest difference, 1 = the largest value")
    ax.grid()
    fig.legend(loc="outside lower center", ncols=1)
    return described(fig, f"Differences along the model. {'; '.join(said)}.", title)
