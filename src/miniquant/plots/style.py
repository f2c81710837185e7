"""One look for every figure: palette, hatches, white paper, and the wrapper that draws, closes and hands out SVG."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#D55E00", "#BBBBBB")  # Okabe and Ito
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++", "oo", "--")
LINES = ("-", "--", ":", "-.")
DARK = ("#0072B2", "#D55E00", "#333333", "#009E73")  # for lines: dark enough on white
MARKERS = ("o", "s", "^", "D", "v", "P")
WIDTH = 7.0  # inches: a page on a phone still shows the labels
DPI = 110
INK, PAPER = "#010101", "#FEFEFE"  # black and white to the eye; a page with a dark theme knows them and puts its own
STYLE = {
    "figure.dpi": DPI,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "legend.facecolor": PAPER,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "axes.titlecolor": INK,
    "svg.fonttype": "none",
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
PART_STYLES = {  # what a part of a file is drawn as, in every figure: (colour, hatch)
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


def picture(function: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in one style whatever the caller's is, leave the caller's untouched, and close the figure.

    A notebook that shows the figure stores it as PNG and as SVG.
    """

    @wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Figure:
        open_before = set(plt.get_fignums())
        with plt.style.context(["default", STYLE]):
            try:
                fig = function(*args, **kwargs)
                fig._repr_svg_ = partial(svg, fig)  # type: ignore[attr-defined]  # IPython looks for it
                return fig
            finally:
                for number in set(plt.get_fignums()) - open_before:
                    plt.close(number)

    return draw


def _short(tag: re.Match[str]) -> str:
    """A tag without digits that nobody sees: a hundredth of a point is enough. Text between tags stays as it is."""
    return re.sub(r"(\.\d\d)\d+", r"\1", tag[0])


def svg(fig: Figure) -> str:
    """The figure as SVG. Its text is text, and no name in it is that of a part of another figure."""
    file = io.StringIO()
    own = {"svg.hashsalt": fig.get_label() or getattr(fig, "alt", ""), "figure.constrained_layout.use": False}
    with plt.style.context(["default", STYLE, own]):  # the figure keeps the layout that it was made with
        fig.savefig(file, format="svg", bbox_inches="tight", dpi=2 * DPI, metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r"<style[^>]*>\*\{(.*?)\}</style>", r"<style>svg *{\1}</style>", text)
    text = re.sub(r"(font-family: )[^;]*?((?:monospace|sans-serif);)", r"\1\2", text)  # a page has its own fonts
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    text = re.sub(r"<[^>]*>", _short, text)
    return re.sub(r"\s*\n\s*", "\n", text)


def described(fig: Figure, alt: str, title: str = "") -> Figure:
    """Attach the sentence that says what the data show, and the title."""
    if title:
        fig.suptitle("\n".join(textwrap.wrap(title, 80)), fontsize=10.5)
    fig.alt = alt  # type: ignore[attr-defined]  # the sentence travels with the figure
    return fig


def part_style(name: str, index: int) -> tuple[str, str]:
    """The colour and hatch of a part of a file; ``index`` decides for a part that is not known."""
    return PART_STYLES.get(name, (COLOURS[index % len(COLOURS)], HATCHES[index % len(HATCHES)]))


def mark_guess(axes: Axes, guess: Any, along: str = "y") -> None:
    """Draw a guess as a dotted line with a label; nothing if there is none.

    guess: a prediction, a number or nan; along: the axis that it is a number on, "x" or "y"
    """
    value = math.nan if guess is None else float(guess)
    if not math.isfinite(value):
        return
    style: dict[str, Any] = {"color": DARK[1], "linestyle": ":", "linewidth": 1.6, "label": "your guess", "zorder": 3}
    if along == "x":
        axes.axvline(value, **style)
    else:
        axes.axhline(value, **style)
    axes.legend()
