"""The figures of the first part: curves of training, fitted lines, parameters by role, a timeline of file formats."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..core.arrays import Array
from .style import MARKERS, WIDTH, described, part_style, picture

LINES = ("-", "--", ":", "-.")
DARK = ("#0072B2", "#D55E00", "#333333", "#009E73")  # lines: dark enough on white


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
        style = {"linestyle": LINES[i % 4], "marker": MARKERS[i % 6], "markevery": max(1, len(x) // 10)}
        ax.plot(x, y, color=DARK[i % 4], markersize=4.5, label=name, **style)
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
    title: str = "",
) -> Figure:
    """Points and the lines that were fitted to them.

    x, y: (n,); lines: {name: (weight, bias)}; reach: how far to the right the lines go, if not to the last point
    """
    a, b = np.asarray(x, float).ravel(), np.asarray(y, float).ravel()
    ends = np.array([0.0, max(float(a.max()), reach or 0.0)])
    fig, ax = plt.subplots(figsize=(WIDTH, 3.8))
    ax.plot(a, b, "o", color="black", label="data", zorder=3)
    for i, (name, (weight, bias)) in enumerate(lines.items()):
        style = {"color": DARK[i % 4], "linestyle": LINES[i % 4], "marker": MARKERS[(i + 1) % 6], "markersize": 4.5}
        ax.plot(ends, weight * ends + bias, label=f"{name}: {weight:.2f} · x {bias:+.2f}", **style)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid()
    fig.legend(loc="outside lower center", ncols=2)
    listed = "; ".join(f"{name} has slope {w:.2f} and crosses zero at {c:.2f}" for name, (w, c) in lines.items())
    return described(fig, f"{len(a)} points and {len(lines)} lines: {listed}.", title)


@picture
def role_bars(roles: Mapping[str, int], *, what: str = "parameters", title: str = "") -> Figure:
    """How many parameters (or bytes) each role has, the largest on top, with its share.

    roles: {role: number}
    """
    order = sorted(roles, key=lambda role: -roles[role])
    total = sum(roles.values())
    fig, ax = plt.subplots(figsize=(WIDTH, 1.0 + 0.36 * len(order)))
    for row, role in enumerate(order):
        colour, hatch = part_style(role, row)
        ax.barh(row, roles[role], 0.7, color=colour, hatch=hatch, edgecolor="black", linewidth=0.6)
        text = f"{roles[role]:,} ({100 * roles[role] / total:.2g} %)"
        ax.text(roles[role] + 0.012 * max(roles.values()), row, text, va="center", fontsize=8)
    ax.set_yticks(range(len(order)), order)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_xlim(0, 1.25 * max(roles.values()))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    ax.set_xlabel(what)
    ax.set_ylabel("role")
    listed = ", ".join(f"{role} {roles[role]:,}" for role in order)
    return described(fig, f"{total:,} {what} by role: {listed}.", title)


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
        clear = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # the lines stay behind the text
        ax.text(year + shift, row, text, ha="left" if left else "right", va="center", fontsize=8, bbox=clear)
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
