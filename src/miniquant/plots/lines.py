"""Figures of curves, and of lines that are fitted to points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..core.arrays import Array
from .style import DARK, LINES, MARKERS, WIDTH, described, picture


@picture
def curves(
    series: Mapping[str, tuple[Array, Array]],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    title: str = "",
) -> Figure:
    """Some curves in one frame, told apart by dash and marker.

    series: {name: (x, y)}, each (n,) and finite; the lowest point of every curve is named in the alt text
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.6))
    parts = []
    for i, (name, points) in enumerate(series.items()):
        x, y = (np.asarray(values, float).ravel() for values in points)
        if x.shape != y.shape or not x.size or not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError(f"the curve {name!r} needs as many x as y, at least one, and finite ones only")
        form = LINES[i % 4] + MARKERS[i % 6]
        ax.plot(x, y, form, color=DARK[i % 4], markersize=4.5, markevery=max(1, len(x) // 10), label=name)
        parts.append(f"{name} from {y[0]:.3g} to {y[-1]:.3g}, lowest {y.min():.3g} at {x[int(y.argmin())]:.3g}")
    ax.set_xscale("log" if log_x else "linear")
    ax.set_yscale("log" if log_y else "linear")
    whole = all(float(value).is_integer() for points in series.values() for value in np.asarray(points[0]).ravel())
    if whole and not log_x:  # after the scale, which sets a locator of its own
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid()
    fig.legend(loc="outside lower center", ncols=3)
    return described(fig, f"{y_label} against {x_label}: {'; '.join(parts)}.", title)


@picture
def fitted_lines(
    x: Array,
    y: Array,
    lines: Mapping[str, tuple[float, float]],
    *,
    x_label: str,
    y_label: str,
    reach: float | None = None,
    guess: Any = None,
    title: str = "",
) -> Figure:
    """Points and the lines that were fitted to them.

    x, y: (n,); lines: {name: (weight, bias)}; reach: how far to the right the lines go, if not to the last point
    guess: a prediction of y at the right end of the lines, a number or nan; it is drawn as a point
    """
    a, b = np.asarray(x, float).ravel(), np.asarray(y, float).ravel()
    ends = np.array([0.0, max(float(a.max()), reach or 0.0)])
    fig, ax = plt.subplots(figsize=(WIDTH, 3.8))
    ax.plot(a, b, "o", color="black", label="data", zorder=3)
    for i, (name, (weight, bias)) in enumerate(lines.items()):
        form, label = LINES[i % 4] + MARKERS[(i + 1) % 6], f"{name}: {weight:.2f} · x {bias:+.2f}"
        ax.plot(ends, weight * ends + bias, form, color=DARK[i % 4], markersize=4.5, label=label)
    expected = math.nan if guess is None else float(guess)
    if math.isfinite(expected):
        ax.plot(ends[-1:], [expected], "*", color="black", markersize=12, label="your guess", zorder=4)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid()
    fig.legend(loc="outside lower center", ncols=2)
    listed = "; ".join(f"{name} has slope {w:.2f} and crosses zero at {c:.2f}" for name, (w, c) in lines.items())
    guessed = f" The guess is {expected:.2f} at {ends[-1]:g}." if math.isfinite(expected) else ""
    return described(fig, f"{len(a)} points and {len(lines)} lines: {listed}.{guessed}", title)
