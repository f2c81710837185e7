"""Every figure that the labs show.

Each function returns a closed ``matplotlib`` Figure: a notebook shows it once, a script calls ``savefig``. Its ``alt``
is one sentence that says what the data show, computed from them. Hatches, markers and labels carry what colour carries.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle, Wedge
from matplotlib.ticker import FuncFormatter

from .gguf_io import GGUFLite
from .quantize import Array, to_numpy
from .sizes import FileSizes, human

if TYPE_CHECKING:
    from .evaluate import Estimate

COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#D55E00", "#BBBBBB")  # Okabe and Ito
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++", "oo", "--")
MARKERS = ("o", "s", "^", "D", "v", "P")
WIDTH = 7.0  # inches: a page on a phone still shows the labels
DPI = 110
STYLE = {
    "figure.dpi": DPI,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    "figure.constrained_layout.use": True,
}
KINDS = {  # what a part of a file is drawn as, in every figure: (colour, hatch)
    "weights": (COLOURS[0], ""),
    "Q4_PER_GROUP_64": (COLOURS[0], ""),
    "embeddings": (COLOURS[1], "////"),
    "F16": (COLOURS[1], "////"),
    "Q8_PER_CHANNEL": (COLOURS[2], "...."),
    "biases": (COLOURS[2], "...."),
    "norms": (COLOURS[3], "xxxx"),
    "F32": (COLOURS[3], "xxxx"),
    "scales": (COLOURS[4], "\\\\\\\\"),
    "scales (F16)": (COLOURS[4], "\\\\\\\\"),
    "header, metadata, descriptors": ("#555555", ""),
}


def _picture(function: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in one style whatever the caller's is, leave the caller's untouched, and close the figure."""

    @wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Figure:
        open_before = set(plt.get_fignums())
        with plt.style.context(["default", STYLE]):
            try:
                return function(*args, **kwargs)
            finally:
                for number in set(plt.get_fignums()) - open_before:
                    plt.close(number)

    return draw


def _described(fig: Figure, alt: str, title: str = "") -> Figure:
    if title:
        fig.suptitle("\n".join(textwrap.wrap(title, 80)), fontsize=10.5)
    fig.alt = alt
    return fig


def _kind(name: str, index: int) -> tuple[str, str]:
    return KINDS.get(name, (COLOURS[index % len(COLOURS)], HATCHES[index % len(HATCHES)]))


@_picture
def histograms(before: Array, after: Array, *, names: tuple[str, str] = ("before", "after"), title: str = "") -> Figure:
    """The weights before and after quantization, on one axis of values.

    before, after: any shape, numpy or torch, not empty
    """
    arrays = [to_numpy(w).ravel() for w in (before, after)]
    low, high = min(w.min() for w in arrays), max(w.max() for w in arrays)
    edges = np.linspace(low, high if high > low else low + 1, 121)
    fig, axes = plt.subplots(2, 1, figsize=(WIDTH, 4.2), sharex=True)
    distinct = [len(np.unique(w)) for w in arrays]
    for ax, w, name, count, style in zip(axes, arrays, names, distinct, ((COLOURS[0], ""), (COLOURS[1], "////"))):
        ax.hist(w, edges, color=style[0], hatch=style[1], edgecolor="black", linewidth=0.3, histtype="stepfilled")
        ax.set_ylabel("weights in a bin")
        ax.set_title(f"{name}: {count:,} distinct values among {w.size:,}", loc="left")
        ax.grid(axis="y")
    axes[1].set_xlabel("value of the weight")
    alt = (
        f"Two histograms of {arrays[0].size:,} weights from {low:.3g} to {high:.3g}: "
        f"{distinct[0]:,} distinct values {names[0]}, {distinct[1]:,} {names[1]}."
    )
    return _described(fig, alt, title)


@_picture
def error_heatmap(w: Array, w_hat: Array, *, title: str = "") -> Figure:
    """The absolute error of every weight of one matrix.

    w, w_hat: (out, in); a row of the picture is an output channel
    """
    a, b = to_numpy(w), to_numpy(w_hat)
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(f"expected two matrices (out, in) of one shape, found {a.shape} and {b.shape}")
    error = np.abs(a - b)
    fig, ax = plt.subplots(figsize=(WIDTH, 4.0))
    image = ax.imshow(error, cmap="cividis", aspect="auto", interpolation="nearest", vmin=0)
    ax.set_xlabel("input channel (column)")
    ax.set_ylabel("output channel (row)")
    fig.colorbar(image, ax=ax, label="absolute error")
    row, column = np.unravel_index(int(error.argmax()), error.shape)
    alt = (
        f"Heat map of the absolute error of a {a.shape[0]} by {a.shape[1]} matrix: mean {error.mean():.2g}, "
        f"largest {error.max():.2g} in row {row}, column {column}."
    )
    return _described(fig, alt, title)


@_picture
def error_bars(
    series: Mapping[str, Mapping[str, float]], *, limit: float | None, title: str = "", what: str = "tensor"
) -> Figure:
    """Largest absolute errors on a logarithmic axis, a row for each name and a marker for each series.

    series: {series name: {tensor or layer name: error}}. Zeros stand at the left edge, labelled "exactly 0";
    ``limit`` is drawn as a line; what is not finite stands at the right edge under its own name.
    """
    names = list(dict.fromkeys(name for errors in series.values() for name in errors))
    finite = [e for errors in series.values() for e in errors.values() if math.isfinite(e) and e > 0]
    known = [*finite, *([limit] if limit else [])] or [1e-6]
    zero, top = 10 ** (math.floor(math.log10(min(known))) - 1.0), 10 ** (math.ceil(math.log10(max(known))) + 0.5)
    fig, ax = plt.subplots(figsize=(WIDTH, 1.5 + 0.19 * len(names)))
    shift = 0.5 / max(1, len(series))
    for i, (label, errors) in enumerate(series.items()):
        rows = [names.index(n) + (i - (len(series) - 1) / 2) * shift for n in errors]
        places = [top if not math.isfinite(e) else max(e, zero) for e in errors.values()]
        colour = ("#0072B2", "#D55E00", "#009E73", "#555555")[i % 4]
        ax.plot(places, rows, MARKERS[i % 6], color=colour, markersize=4.5, label=label, clip_on=False, zorder=3)
        for place, row, error in zip(places, rows, errors.values()):
            if not math.isfinite(error):
                ax.text(place, row, f" {error}", va="center", fontsize=8)
    ax.set_xscale("log")
    ax.set_xlim(zero, top)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_yticks(range(len(names)), names, fontsize=7.5)
    ax.set_xlabel("largest absolute error")
    ax.set_ylabel(what)
    ax.grid(axis="x")
    ticks = [10.0**e for e in range(math.ceil(math.log10(zero) + 0.01), math.floor(math.log10(top)) + 1)]
    ticks = ticks[:: math.ceil(len(ticks) / 9)]
    exact = sum(e == 0 for errors in series.values() for e in errors.values())
    ax.set_xticks([zero, *ticks] if exact else ticks)
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: "exactly 0" if exact and x <= zero else f"$10^{{{round(math.log10(x))}}}$")
    )
    ax.minorticks_off()
    if limit:
        ax.axvline(limit, color="black", linestyle="--", linewidth=1.2)
        ax.text(limit, -0.75, f"limit {limit:g}", ha="center", va="bottom", fontsize=8)
    fig.legend(loc="outside lower center", ncols=2)
    return _described(fig, _errors_alt(series, limit, what, len(names)), title)


def _errors_alt(series: Mapping[str, Mapping[str, float]], limit: float | None, what: str, rows: int) -> str:
    parts = []
    for label, errors in series.items():
        worst = max(errors.values(), default=0.0, key=lambda e: (not e <= math.inf, e))
        beyond = sum(not e <= limit for e in errors.values()) if limit else 0
        note = f", {beyond} beyond the limit" if limit else ""
        parts.append(f"{label}: " + ("all exactly 0" if worst == 0 else f"at most {worst:.2g}") + note)
    ending = f" The limit is {limit:g}." if limit else ""
    return f"Largest absolute error of each {what} ({rows} of them); " + "; ".join(parts) + "." + ending


@_picture
def size_pies(sizes: FileSizes, torch_save: int, *, title: str = "") -> Figure:
    """One file by dtype and by role, beside what ``torch.save`` writes; a byte has the same area in all three discs.

    torch_save: bytes
    """
    ratio = math.sqrt(sizes.total / torch_save)
    radius = min(1.15, 3.2 / (2 + 2 * ratio))  # inches, of the torch.save disc; the axes count in inches too
    small = ratio * radius
    groups = [("by dtype", sizes.by_dtype), ("by role", sizes.by_role)]
    heights = [max(2 * small, 0.2 * sum(map(bool, parts.values()))) + 0.5 for _, parts in groups]
    height = max(sum(heights), 2 * radius + 0.7) + (0.3 if title else 0)
    fig = plt.figure(figsize=(WIDTH, height), layout="none")
    ax = fig.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, height), aspect="equal")
    ax.axis("off")
    middle = (height - (0.3 if title else 0)) / 2
    ax.add_patch(Circle((0.15 + radius, middle), radius, facecolor="#EEEEEE", edgecolor="black"))
    ax.text(0.15 + radius, middle, f"torch.save\n{human(torch_save)}", ha="center", va="center")
    top = middle + sum(heights) / 2
    for (label, parts), part_height in zip(groups, heights):
        ax.text(0.45 + 2 * radius + small, top - 0.12, f"the file, {label}: {human(sizes.total)}", va="center")
        centre = (0.45 + 2 * radius + small, top - 0.25 - (part_height - 0.25) / 2)
        _pie(ax, centre, small, {k: v for k, v in parts.items() if v}, sizes.total)
        top -= part_height
    largest = {label: max(parts, key=parts.get) for label, parts in groups}
    shares = "; ".join(f"{largest[n]} {_percent(parts[largest[n]], sizes.total)} {n}" for n, parts in groups)
    alt = (
        f"A file of {human(sizes.total)} beside torch.save's {human(torch_save)}, "
        f"{torch_save / sizes.total:.2f} times smaller; the largest parts: {shares}."
    )
    return _described(fig, alt, title)


def _pie(ax: Axes, centre: tuple[float, float], radius: float, parts: dict[str, int], total: int) -> None:
    """A pie whose largest wedge looks left and whose small ones face their labels, in a column on the right."""
    x, y = centre
    order = sorted(parts, key=parts.get, reverse=True)
    angle = 180 + 180 * parts[order[0]] / total  # clockwise from here
    label_x, step = x + radius + 0.35, 0.2
    for i, name in enumerate(order):
        end = angle - 360 * parts[name] / total
        colour, hatch = _kind(name, i)
        ax.add_patch(Wedge(centre, radius, end, angle, facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.6))
        at = math.radians(max(end + 4, min(100, angle - 4)) if i == 0 else (angle + end) / 2)
        label_y = y + step * ((len(order) - 1) / 2 - i)
        ax.plot(
            [x + 0.9 * radius * math.cos(at), x + radius * 1.08 * math.cos(at), label_x - 0.16, label_x - 0.04],
            [y + 0.9 * radius * math.sin(at), y + radius * 1.08 * math.sin(at), label_y, label_y],
            color="black",
            linewidth=0.6,
        )
        swatch = Rectangle((label_x, label_y - 0.06), 0.16, 0.12, facecolor=colour, hatch=hatch, edgecolor="black")
        ax.add_patch(swatch)
        text = f"{name}: {human(parts[name])}, {_percent(parts[name], total)}"
        ax.text(label_x + 0.22, label_y, text, va="center", fontsize=8)
        angle = end


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.1f} %" if share >= 0.95 else f"{share:.2g} %"


@_picture
def size_bars(sizes: Mapping[str, FileSizes], torch_save: int, *, bar: float | None) -> Figure:
    """Files compared: a bar each, stacked by role, with how many times smaller than ``torch.save`` it is at its end.

    sizes: {preset: sizes of its file}, torch_save: bytes, bar: the ratio that is required, drawn as a line
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 1.6 + 0.36 * (len(sizes) + 1)))
    roles = list(dict.fromkeys(role for s in sizes.values() for role, n in s.by_role.items() if n))
    ax.barh(0, torch_save / 1e6, height=0.65, facecolor="#EEEEEE", edgecolor="black", linewidth=0.6)
    for i, role in enumerate(roles):
        colour, hatch = _kind(role, i)
        widths = [s.by_role.get(role, 0) / 1e6 for s in sizes.values()]
        lefts = [sum(s.by_role.get(r, 0) for r in roles[:i]) / 1e6 for s in sizes.values()]
        rows = range(1, len(sizes) + 1)
        ax.barh(rows, widths, 0.65, lefts, color=colour, hatch=hatch, edgecolor="black", linewidth=0.6, label=role)
    for row, s in enumerate(sizes.values(), start=1):
        ax.text(s.total / 1e6, row, f" {torch_save / s.total:.2f}×, {human(s.total)}", va="center", fontsize=8)
    ax.text(torch_save / 1e6, 0, f" 1×, {human(torch_save)}", va="center", fontsize=8)
    ax.set_yticks(range(len(sizes) + 1), ["torch.save", *sizes])
    ax.set_ylim(len(sizes) + 0.5, -0.6)
    ax.set_xlim(0, 1.22 * max(torch_save, *(s.total for s in sizes.values())) / 1e6)
    ax.set_xlabel("size of the file (MB of 1,000,000 bytes)")
    ax.set_ylabel("preset")
    if bar:
        ax.axvline(torch_save / bar / 1e6, color="black", linestyle="--", linewidth=1.2)
        ax.text(torch_save / bar / 1e6, -0.65, f"{bar:g}× smaller", ha="center", va="bottom", fontsize=8)
    fig.legend(loc="outside lower center", ncols=3, fontsize=8)
    ratios = ", ".join(f"{name} {torch_save / s.total:.2f} times" for name, s in sizes.items())
    needed = f"; required: {bar:g} times" if bar else ""
    return _described(fig, f"Files smaller than torch.save's {human(torch_save)}: {ratios}{needed}.")


@_picture
def size_against_kl(points: Mapping[str, tuple[int, Estimate]]) -> Figure:
    """What a smaller file costs: size against KL divergence to the float model, with standard errors.

    points: {preset: (bytes, KL in nats a token)}; a KL of exactly 0 stands at the bottom, and is labelled so
    """
    means = {name: kl.mean for name, (_, kl) in points.items()}
    lowest = 10 ** math.floor(math.log10(min((m for m in means.values() if m > 0), default=1e-6)) - 0.3)
    fig, ax = plt.subplots(figsize=(WIDTH, 4.2))
    right = max(size for size, _ in points.values()) / 1e6
    for i, (name, (size, kl)) in enumerate(points.items()):
        y = max(kl.mean, lowest)
        error = [[min(kl.error, 0.999 * y)], [kl.error]] if kl.mean > 0 and math.isfinite(kl.error) else None
        ax.errorbar(size / 1e6, y, error, fmt=MARKERS[i % 6], color=("#0072B2", "#D55E00", "#333333")[i % 3], capsize=3)
        label = f"{name}: exactly 0" if kl.mean == 0 else name
        left = size / 1e6 > 0.7 * right
        ax.annotate(
            label,
            (size / 1e6, y),
            (-7 if left else 7, 5),
            textcoords="offset points",
            ha="right" if left else "left",
            fontsize=8,
        )
    ax.set_yscale("log")
    ax.set_ylim(bottom=lowest)
    ax.set_xlim(0, 1.05 * right)
    ax.set_xlabel("size of the file (MB of 1,000,000 bytes)")
    ax.set_ylabel("KL to the float model (nats a token)")
    ax.grid()
    listed = ", ".join(f"{n} {human(s)} and {kl.mean:.2g} nats" for n, (s, kl) in points.items())
    return _described(fig, f"File size against KL divergence to the float model: {listed}.")


@_picture
def descriptor_bytes(file: GGUFLite, name: str) -> Figure:
    """The bytes of one descriptor as boxes: a row a field, its decoded value under it.

    Raises ``KeyError`` if the file has no such tensor.
    """
    if name not in file.tensors:
        raise KeyError(f"no tensor {name!r} in {file.path}; the names are in .tensors")
    info, (start, end) = file.tensors[name], file.spans[name]
    with open(file.path, "rb") as stream:
        stream.seek(start)
        data = stream.read(end - start)
    n = len(name.encode())
    rows = [
        ("name_len", "u16", data[:2], f"{n} bytes of name follow"),
        ("name", "UTF-8", data[2 : 2 + n], repr(name)),
        ("n_dims", "u8", data[2 + n : 3 + n], f"{len(info.dims)}"),
        ("dims", "u32 each", data[3 + n : -9], " × ".join(map(str, info.dims)) or "none: a scalar"),
        ("dtype", "u8", data[-9:-8], f"{info.dtype.value}: {info.dtype.name}"),
        ("offset", "u64", data[-8:], f"{info.offset} bytes into the data section"),
    ]
    lines = sum(max(1, math.ceil(len(part) / 14)) for *_, part, _ in rows)
    height = 0.3 + 0.29 * lines + 0.3 * len(rows)
    fig = plt.figure(figsize=(WIDTH, height + 0.35))
    ax = fig.add_subplot(xlim=(-1.3, 5.5), ylim=(height, 0.1), aspect="equal")
    ax.axis("off")
    y, at = 0.2, start
    for i, (field, form, part, value) in enumerate(rows):
        ax.text(-1.3, y + 0.13, field, va="center", weight="bold")
        ax.text(-0.12, y + 0.13, f"byte {at}", va="center", ha="right", fontsize=7, color="#555555")
        for k, byte in enumerate(part):
            corner = (0.39 * (k % 14), y + 0.29 * (k // 14))
            ax.add_patch(Rectangle(corner, 0.36, 0.26, facecolor=COLOURS[i], edgecolor="black", linewidth=0.8))
            ax.text(corner[0] + 0.18, corner[1] + 0.13, f"{byte:02x}", ha="center", va="center", family="monospace")
        y += 0.29 * max(1, math.ceil(len(part) / 14))
        ax.text(0, y + 0.09, f"{form}: {value}", va="center", fontsize=8)
        y += 0.3
        at += len(part)
    ax.set_title(f"the descriptor of {name!r}: bytes {start} to {end - 1}", loc="left")
    alt = f"The {end - start} bytes of a descriptor by field: " + "; ".join(f"{f} {v}" for f, _, _, v in rows) + "."
    return _described(fig, alt)


@_picture
def number_line(values: Array, scale: float, qmax: int, *, title: str = "") -> Figure:
    """The levels of a symmetric quantizer, ``q * scale`` for q from -qmax to qmax, and where given weights land.

    values: (n,) floating point; beyond the last level they are clipped. ``scale`` is greater than 0.
    """
    w, scale = to_numpy(np.atleast_1d(np.asarray(values, np.float64))).ravel(), float(scale)
    if not scale > 0:
        raise ValueError(f"a number line needs a scale above 0, found {scale}")
    q = np.rint(w / scale).clip(-qmax, qmax)
    fig, ax = plt.subplots(figsize=(WIDTH, 2.3))
    levels = np.arange(-qmax, qmax + 1)
    ax.vlines(levels * scale, -0.12, 0.12, color="#0072B2", linewidth=1.2)
    ax.axhline(0, color="#555555", linewidth=0.8)
    for level in levels[:: max(1, math.ceil(len(levels) / 17))]:
        ax.text(level * scale, -0.2, str(level), ha="center", va="top", fontsize=8, color="#0072B2")
    for value, level in zip(w, q):
        arrow = {"arrowstyle": "->", "color": "#555555", "linewidth": 0.8}
        ax.annotate("", (level * scale, 0.14), (value, 0.72), arrowprops=arrow)
        ax.plot(value, 0.75, "o", color="#D55E00", markersize=4)
    reach = max(qmax * scale, float(np.abs(w).max(initial=0)))
    ax.set_xlim(-1.06 * reach, 1.06 * reach)
    ax.set_ylim(-0.5, 1.05)
    ax.set_yticks([-0.28, 0.75], ["level q", "weight"])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"value; neighbouring levels are one scale apart, {scale:.3g}")
    worst = float(np.abs(w - q * scale).max(initial=0))
    alt = (
        f"A number line of {len(levels)} levels {scale:.3g} apart; {len(w)} weights go to their nearest level, "
        f"moving by {worst:.3g} at most."
    )
    return _described(fig, alt, title)


@_picture
def throughput_bars(table: Mapping[str, float], *, unit: str = "MB/s", title: str = "") -> Figure:
    """Benchmarks: a bar for each entry, its value written at the end.

    table: {what was measured: rate in ``unit``}
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 0.9 + 0.27 * len(table)))
    rows = range(len(table))
    ax.barh(rows, list(table.values()), 0.65, color=COLOURS[0], edgecolor="black", linewidth=0.6)
    for row, value in zip(rows, table.values()):
        ax.text(value, row, f" {value:,.0f}" if value >= 100 else f" {value:.3g}", va="center", fontsize=8)
    ax.set_yticks(rows, list(table))
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(0, 1.15 * max(table.values(), default=1))
    ax.set_xlabel(unit)
    ax.grid(axis="x")
    fastest, slowest = max(table, key=table.get), min(table, key=table.get)
    alt = (
        f"{len(table)} rates in {unit}, from {slowest} at {table[slowest]:,.3g} to {fastest} at {table[fastest]:,.3g}."
    )
    return _described(fig, alt, title)
