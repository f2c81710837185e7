"""The error of every layer's output, in the order of computation: where damage begins, and how it goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .style import DARK, LINES, MARKERS, WIDTH, described, mark_guess, picture

COLOURS = (*DARK, "#AA3377")


@picture
def layer_curves(
    series: Mapping[str, Mapping[str, float]], *, limit: float | None = None, title: str = "", guess: Any = None
) -> Figure:
    """Largest absolute errors of the modules' outputs on a logarithmic axis, a line for each model.

    series: {model: {module: error}}, every model with the same modules, in the order of computation. The axis is
    divided by layer (``layers.0.attn.qkv`` belongs to layer 0). Zeros lie at the lower edge, labelled "exactly 0"; the
    first module whose error is not 0 has a larger marker. ``guess`` is a predicted error.
    """
    names = list(next(iter(series.values())))
    groups = _groups(names)
    positive = [e for errors in series.values() for e in errors.values() if 0 < e < math.inf]
    known = [*positive, *([limit] if limit else [])] or [1e-6]
    zero, top = 10 ** (math.floor(math.log10(min(known))) - 1.0), 10 ** (math.ceil(math.log10(max(known))) + 0.3)
    fig, ax = plt.subplots(figsize=(WIDTH, 3.6))
    for i, (label, errors) in enumerate(series.items()):
        places = [top if not math.isfinite(errors[n]) else max(errors[n], zero) for n in names]
        style: dict[str, Any] = {
            "color": COLOURS[i % len(COLOURS)],
            "marker": MARKERS[i % len(MARKERS)],
            "clip_on": False,
        }
        ax.plot(places, LINES[i % len(LINES)], label=label, markersize=3.5, linewidth=1.1, **style)
        first = _first_damaged(errors)
        if first:
            at = names.index(first)
            ax.plot(at, places[at], markersize=9, markeredgecolor="black", zorder=4, **style)
    ax.set_yscale("log")
    ax.set_ylim(zero, top)
    ax.set_xlim(-0.7, len(names) - 0.3)
    ax.minorticks_off()
    ticks = [10.0**e for e in range(math.ceil(math.log10(zero) + 0.01), math.floor(math.log10(top)) + 1)]
    ticks = ticks[:: math.ceil(len(ticks) / 7)]
    ax.set_yticks([zero, *ticks])
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda y, _: "exactly 0" if y <= zero * 1.01 else f"$10^{{{round(math.log10(y))}}}$")
    )
    ax.set_ylabel("largest absolute error of the output")
    ax.grid(axis="y")
    middles = [(a + b - 1) / 2 for _, a, b in groups]
    ax.set_xticks(middles, [name for name, _, _ in groups])
    ax.set_xlabel("module, in the order of computation")
    ax.tick_params(axis="x", length=0)
    for _, begin, _ in groups[1:]:
        ax.axvline(begin - 0.5, color="#999999", linewidth=0.8)
    if limit:
        ax.axhline(limit, color="black", linestyle="--", linewidth=1.2)
        ax.text(len(names) - 0.4, limit, f"limit {limit:g}", ha="right", va="bottom", fontsize=8.5)
    mark_guess(ax, guess, "y")
    fig.legend(loc="outside lower center", ncols=min(3, len(series)))
    return described(fig, _alt(series, limit), title)


def _first_damaged(errors: Mapping[str, float]) -> str | None:
    """The first module whose error is not 0: the place where the damage begins. None if there is none.

    >>> _first_damaged({"tok_emb": 0.0, "layers.0.ln1": 1e-7, "layers.0": 0.5})
    'layers.0.ln1'
    """
    return next((name for name, error in errors.items() if error != 0), None)


def _groups(names: list[str]) -> list[tuple[str, int, int]]:
    """The layers as (label, first place, place after the last), and what comes before and after them.

    >>> _groups(["tok_emb", "layers.0.ln1", "layers.0", "layers.1", "ln_f", "logits"])
    [('start', 0, 1), ('layer 0', 1, 3), ('layer 1', 3, 4), ('end', 4, 6)]
    """
    groups: list[tuple[str, int, int]] = []
    for place, name in enumerate(names):
        parts = name.split(".")
        label = f"layer {parts[1]}" if parts[0] == "layers" and len(parts) > 1 else "end" if groups else "start"
        if label == "end" and groups[-1][0] == "start":
            label = "start"
        if groups and groups[-1][0] == label:
            groups[-1] = (label, groups[-1][1], place + 1)
        else:
            groups.append((label, place, place + 1))
    return groups


def _alt(series: Mapping[str, Mapping[str, float]], limit: float | None) -> str:
    parts = []
    for label, errors in series.items():
        first = _first_damaged(errors)
        worst = max(errors.values(), key=lambda e: (not e <= math.inf, e))
        text = "exactly 0 everywhere" if first is None else f"not 0 from {first} on, at most {worst:.2g}"
        parts.append(f"{label}: {text}")
    ending = f" The limit is {limit:g}." if limit else ""
    what = "Largest absolute error of each module's output, in the order of computation"
    return f"{what}; {'; '.join(parts)}.{ending}"
