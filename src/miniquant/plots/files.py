"""The figures of whole files: where the bytes go, what a smaller file costs, the bytes of a descriptor."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle, Wedge
from matplotlib.ticker import MaxNLocator

from ..formats.gguf_lite.read import GGUFLite
from ..formats.gguf_lite.sizes import FileSizes, human
from .style import COLOURS, DARK, MARKERS, PAPER, WIDTH, described, mark_guess, part_style, picture

if TYPE_CHECKING:
    from ..evaluate.estimate import Estimate


@picture
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
    largest = {label: max(parts, key=parts.__getitem__) for label, parts in groups}
    shares = "; ".join(f"{largest[n]} {_percent(parts[largest[n]], sizes.total)} {n}" for n, parts in groups)
    alt = (
        f"A file of {human(sizes.total)} beside torch.save's {human(torch_save)}, "
        f"{torch_save / sizes.total:.2f} times smaller; the largest parts: {shares}."
    )
    return described(fig, alt, title)


def _pie(ax: Axes, centre: tuple[float, float], radius: float, parts: dict[str, int], total: int) -> None:
    """A pie whose largest wedge looks left and whose small ones face their labels, in a column on the right."""
    x, y = centre
    order = sorted(parts, key=parts.__getitem__, reverse=True)
    angle = 180 + 180 * parts[order[0]] / total  # clockwise from here
    label_x, step = x + radius + 0.35, 0.2
    for i, name in enumerate(order):
        end = angle - 360 * parts[name] / total
        colour, hatch = part_style(name, i)
        ax.add_patch(Wedge(centre, radius, end, angle, facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.6))
        at = math.radians(max(end + 4, min(100, angle - 4)) if i == 0 else (angle + end) / 2)
        label_y = y + step * ((len(order) - 1) / 2 - i)
        inner, outer = ((x + r * math.cos(at), y + r * math.sin(at)) for r in (0.9 * radius, 1.06 * radius))
        elbow = [(label_x - 0.16, outer[1])] if i == 0 else []  # the largest wedge's line goes around the disc
        line = [inner, outer, *elbow, (label_x - 0.16, label_y), (label_x - 0.04, label_y)]
        ax.plot(*zip(*line), color="black", linewidth=0.6)
        swatch = Rectangle((label_x, label_y - 0.06), 0.16, 0.12, facecolor=colour, hatch=hatch, edgecolor="black")
        ax.add_patch(swatch)
        text = f"{name}: {human(parts[name])}, {_percent(parts[name], total)}"
        ax.text(label_x + 0.22, label_y, text, va="center", fontsize=8.5)
        angle = end


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.1f} %" if share >= 0.95 else f"{share:.2g} %"


@picture
def size_bars(sizes: Mapping[str, FileSizes], torch_save: int, *, bar: float | None, guess: Any = None) -> Figure:
    """Files compared: a bar each, stacked by role, with how many times smaller than ``torch.save`` it is at its end.

    sizes: {preset: sizes of its file}, torch_save: bytes, bar: the ratio that is required, drawn as a line;
    guess: a predicted ratio, drawn as a dotted line, or nan
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 1.6 + 0.36 * (len(sizes) + 1)))
    totals = sum((Counter(s.by_role) for s in sizes.values()), Counter())
    roles = sorted((role for role, n in totals.items() if n), key=lambda role: -totals[role])
    ax.barh(0, torch_save / 1e6, height=0.65, facecolor="#EEEEEE", edgecolor="black", linewidth=0.6)
    for i, role in enumerate(roles):
        colour, hatch = part_style(role, i)
        widths = [s.by_role.get(role, 0) / 1e6 for s in sizes.values()]
        lefts = [sum(s.by_role.get(r, 0) for r in roles[:i]) / 1e6 for s in sizes.values()]
        rows = range(1, len(sizes) + 1)
        ax.barh(rows, widths, 0.65, lefts, color=colour, hatch=hatch, edgecolor="black", linewidth=0.6, label=role)
    gap = 0.012 * max(torch_save, *(s.total for s in sizes.values())) / 1e6
    clear = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}  # the dashed line stays behind the text
    for row, s in enumerate(sizes.values(), start=1):
        text = f"{torch_save / s.total:.2f}×, {human(s.total)}"
        ax.text(s.total / 1e6 + gap, row, text, va="center", fontsize=8.5, bbox=clear, zorder=3)
    ax.text(torch_save / 1e6 + gap, 0, f"1×, {human(torch_save)}", va="center", fontsize=8.5, bbox=clear, zorder=3)
    ax.set_yticks(range(len(sizes) + 1), ["torch.save", *sizes])
    ax.set_ylim(len(sizes) + 0.5, -0.6)
    ax.set_xlim(0, 1.22 * max(torch_save, *(s.total for s in sizes.values())) / 1e6)
    ax.set_xlabel("size of the file (MB of 1,000,000 bytes)")
    ax.set_ylabel("preset")
    if bar:
        ax.axvline(torch_save / bar / 1e6, color="black", linestyle="--", linewidth=1.2)
        ax.text(torch_save / bar / 1e6, -0.65, f"{bar:g}× smaller", ha="center", va="bottom", fontsize=8.5)
    guessed = math.nan if guess is None else float(guess)
    if math.isfinite(guessed) and guessed > 0:
        ax.axvline(torch_save / guessed / 1e6, color=DARK[1], linestyle=":", linewidth=1.6, label="your guess")
    fig.legend(loc="outside lower center", ncols=3, fontsize=8.5)
    ratios = ", ".join(f"{name} {torch_save / s.total:.2f} times" for name, s in sizes.items())
    needed = f"; required: {bar:g} times" if bar else ""
    return described(fig, f"Files smaller than torch.save's {human(torch_save)}: {ratios}{needed}.")


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
        ax.text(roles[role] + 0.012 * max(roles.values()), row, text, va="center", fontsize=8.5)
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
def size_against_kl(points: Mapping[str, tuple[int, Estimate]]) -> Figure:
    """What a smaller file costs: size against KL divergence to the float model, with standard errors.

    points: {preset: (bytes, KL in nats a token)}; a KL of exactly 0 is drawn at the bottom, and is labelled so
    """
    fig = _against_kl(
        {name: (size / 1e6, kl) for name, (size, kl) in points.items()}, "size of the file (MB of 1,000,000 bytes)"
    )
    fig.axes[0].set_xlim(0, 1.05 * max(size for size, _ in points.values()) / 1e6)
    _label_points(fig)
    listed = ", ".join(f"{n} {human(s)} and {kl.mean:.2g} nats" for n, (s, kl) in points.items())
    return described(fig, f"File size against KL divergence to the float model: {listed}.")


@picture
def bits_against_kl(points: Mapping[str, tuple[float, Estimate]], *, guess: Any = None, title: str = "") -> Figure:
    """What fewer bits a weight cost: bits against KL divergence to the float model, with standard errors.

    points: {name: (bits a weight, KL in nats a token)}; guess: a KL, drawn as a line; nan or ``None`` is not drawn
    """
    fig = _against_kl(points, "bits a weight, scales included")
    mark_guess(fig.axes[0], guess)
    _label_points(fig)
    listed = ", ".join(f"{n} {bits:.4g} bits and {kl.mean:.2g} nats" for n, (bits, kl) in points.items())
    return described(fig, f"Bits a weight against KL divergence to the float model: {listed}.", title)


def _against_kl(points: Mapping[str, tuple[float, Estimate]], label: str) -> Figure:
    """Points with their standard errors on a logarithmic axis of KL; each has its name as ``gid``, for a label.

    Points whose names begin with the same word have the same colour and marker.
    """
    means = {name: kl.mean for name, (_, kl) in points.items()}
    lowest = 10 ** math.floor(math.log10(min((m for m in means.values() if m > 0), default=1e-6)) - 0.3)
    fig, ax = plt.subplots(figsize=(WIDTH, 4.2))
    kinds = list(dict.fromkeys(map(_kind, points)))
    for name, (x, kl) in points.items():
        i = kinds.index(_kind(name))
        error = [[min(kl.error, 0.999 * kl.mean)], [kl.error]] if kl.mean > 0 and math.isfinite(kl.error) else None
        colour = ("#0072B2", "#D55E00", "#333333")[i % 3]
        drawn = ax.errorbar(x, max(kl.mean, lowest), error, fmt=MARKERS[i % 6], color=colour, capsize=3, clip_on=False)
        drawn.lines[0].set_gid(name + (": exactly 0" if kl.mean == 0 else ""))
    ax.set_yscale("log")
    ax.set_ylim(bottom=lowest)
    ax.set_xlabel(label)
    ax.set_ylabel("KL to the float model (nats a token)")
    ax.grid()
    return fig


def _kind(name: str) -> str:
    """What comes first in a name, such as "INT4" or "int8": one colour and one marker for all that share it."""
    return re.split("[-, ]", name)[0]


def _label_points(fig: Figure) -> None:
    """Write the name of each point at the nearest free place around it, with a thin line to it."""
    ax = fig.axes[0]
    points: list[tuple[str, float, float]] = []
    for drawn in ax.lines:
        if name := drawn.get_gid():
            at_x, at_y = (float(np.ravel(along)[0]) for along in drawn.get_data())
            points.append((name, at_x, at_y))
    fig.draw_without_rendering()
    unit = fig.dpi / 72  # pixels a point
    frame = ax.get_window_extent()
    pixels = [ax.transData.transform((x, y)) for _, x, y in points]
    taken = [(x - 6 * unit, y - 6 * unit, x + 6 * unit, y + 6 * unit) for x, y in pixels]
    for (text, at_x, at_y), (x, y) in zip(points, pixels):
        width, height = 5.2 * unit * len(text), 10 * unit
        steps = sorted(((dx, dy) for dx in (9, -9, 24, -24) for dy in range(-60, 61, 6)), key=lambda s: math.hypot(*s))
        for dx, dy in steps:
            left, low = x + dx * unit - (width if dx < 0 else 0), y + dy * unit - height / 2
            box = (left, low, left + width, low + height)
            inside = frame.x0 <= box[0] and box[2] <= frame.x1 and frame.y0 <= box[1] and box[3] <= frame.y1 + height
            if inside and not any(a < box[2] and box[0] < c and b < box[3] and box[1] < d for a, b, c, d in taken):
                break
        taken.append(box)
        line = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
        ax.annotate(
            text,
            (at_x, at_y),
            (dx, dy),
            arrowprops=line,
            textcoords="offset points",
            ha="right" if dx < 0 else "left",
            va="center",
            fontsize=8.5,
        )


@picture
def descriptor_bytes(file: GGUFLite, name: str) -> Figure:
    """The bytes of one descriptor as boxes: a row a field, its decoded value under it.

    Raises ``KeyError`` if the file has no such tensor.
    """
    if name not in file.tensors:
        raise KeyError(f"no tensor {name!r} in {file.label}; the names are in .tensors")
    info, (start, end) = file.tensors[name], file.spans[name]
    data = file.read(start, end)
    n = len(name.encode())
    rows = [
        ("name_len", "u16", data[:2], f"{n} bytes of name follow"),
        ("name", "UTF-8", data[2 : 2 + n], repr(name)),
        ("n_dims", "u8", data[2 + n : 3 + n], f"{len(info.shape)}"),
        ("dims", "u32 each", data[3 + n : -9], " × ".join(map(str, info.shape)) or "none: a scalar"),
        ("dtype", "u8", data[-9:-8], f"{info.dtype.value}: {info.dtype.name}"),
        ("offset", "u64", data[-8:], f"{info.offset} bytes into the data section"),
    ]
    lines = sum(max(1, math.ceil(len(part) / 14)) for *_, part, _ in rows)
    height = 0.3 + 0.29 * lines + 0.3 * len(rows)
    fig = plt.figure(figsize=(WIDTH, height + 0.2))
    ax = fig.add_subplot(xlim=(-1.3, 5.5), ylim=(height, 0.1), aspect="equal")
    ax.axis("off")
    y, at = 0.2, start
    for i, (field, form, part, value) in enumerate(rows):
        ax.text(-1.3, y + 0.13, field, va="center", weight="bold")
        ax.text(-0.12, y + 0.13, f"byte {at}", va="center", ha="right", fontsize=7, color="#555555")
        for k, byte in enumerate(part):
            corner = (0.39 * (k % 14), y + 0.29 * (k // 14))
            ax.add_patch(Rectangle(corner, 0.36, 0.26, facecolor=(*COLOURS[:5], COLOURS[7])[i], edgecolor="black"))
            ax.text(corner[0] + 0.18, corner[1] + 0.13, f"{byte:02x}", ha="center", va="center", family="monospace")
        y += 0.29 * max(1, math.ceil(len(part) / 14))
        ax.text(0, y + 0.09, f"{form}: {value}", va="center", fontsize=8.5)
        y += 0.3
        at += len(part)
    ax.set_title(f"the descriptor of {name!r}: bytes {start} to {end - 1}", loc="left")
    alt = f"The {end - start} bytes of a descriptor by field: " + "; ".join(f"{f} {v}" for f, _, _, v in rows) + "."
    return described(fig, alt)
