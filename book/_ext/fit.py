"""What makes a page fit its reader: figures as drawings in the theme's colours, code and printed prose that wrap."""

from __future__ import annotations

import hashlib
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

IMAGE = re.compile(r'<img ([^>]*?)src="[^"]*?_images/([^"/]+\.svg)"([^>]*?)/?>')
COMPUTED = re.compile(r'<figure data-alt="([^"]*)">(.*?)</figure>', re.S)  # a drawing whose cell writes its text
_PRE = r'<div class="highlight"><pre>'
CODE = re.compile(
    rf'(<div class="(?:doctest )?highlight-(?:python|ipython3|default|sh|c|json)[^"]*">{_PRE})(.*?)(</pre>)', re.S
)
OUTPUT = re.compile(
    rf'<div class="output( (?:stream|text_plain) highlight-[^"]*">{_PRE})(.*?)(</pre>\n?</div>\n?</div>)', re.S
)
FITS = 76  # letters that a line of code or of an output has on a screen
LETTER = 11  # CSS pixels: no letter of a figure is smaller, on a phone too; what does not fit then scrolls
THEME = {  # what a figure is drawn in -> what a page puts there
    "#010101": "currentColor",
    "#fefefe": "var(--pst-color-background)",
    **{c: f"var(--mq-fig-{c[1:]}, {c})" for c in ("#dddddd", "#bbbbbb", "#999999", "#555555", "#333333")},
    **{c: f"var(--mq-fig-{c[1:]}, {c})" for c in ("#000000", "#0072b2", "#d55e00", "#009e73", "#f1f1f1", "#eeeeee")},
}


def inline(text: str, alt: str) -> str:
    """A figure of matplotlib (its SVG) as a part of the page: named by ``alt``, coloured by the theme."""
    text = text[text.index("<svg") :]
    head, body = text.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    if not box:
        raise ValueError("the drawing has no viewBox")
    width = float(box[1].split()[2])
    sizes = [float(size) for size in re.findall(r'<text style="font-size: ([\d.]+)px', body)]
    least = LETTER * width / min(sizes, default=9)
    body = re.sub(r"<style>svg \*\{.*?\}</style>", "", body)
    parts = re.split(r"(<pattern.*?</pattern>|<image.*?/>)", body, flags=re.S)  # every other one keeps its colours
    parts[::2] = [re.sub("#[0-9a-f]{6}\\b", lambda m: THEME.get(m[0], m[0]), part) for part in parts[::2]]
    own = hashlib.sha256(text.encode()).hexdigest()[:6]  # two figures may give the same name to one of their parts
    parts = [re.sub(r'(\bid="|href="#|url\(#)(\w+)', rf"\1\g<2>{own}", part) for part in parts]
    style = f"min-width:{least:.0f}px;max-width:{1.5 * width:.0f}px"
    return (
        f'<div class="mq-figure"><svg viewBox="{box[1]}" style="{style}" role="img" aria-label="{escape(alt)}" '
        f'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{"".join(parts).strip()}</div>'
    )


def with_drawings(body: str, files: dict[str, str]) -> str:
    """A page's HTML with its SVG images in the place of their links. files: {name in the site: source}"""

    def put(found: re.Match[str]) -> str:
        alt = re.search(r'alt="([^"]*)"', found[1] + found[3])
        source = files.get(found[2])
        text = Path(source).read_text("utf-8") if source else ""
        if "svg *{" not in text:
            return found[0]
        return inline(text, unescape(alt[1]) if alt else "")

    body = COMPUTED.sub(lambda found: inline(found[2], unescape(found[1])), body)
    return IMAGE.sub(put, body)


def wrapped_lines(code: str) -> str:
    """Highlighted code with each line in a box of its own, so that a line that wraps keeps its indentation."""
    lines = code.removesuffix("\n").split("\n")
    out = []
    for line in lines:
        text = unescape(re.sub(r"<[^>]*>", "", line))
        indent = len(text) - len(text.lstrip(" "))
        out.append(f'<span class="mq-l" style="--i:{indent}">{line}\n</span>')
    return "".join(out)


def is_prose(text: str) -> bool:
    """Whether printed text may wrap: no line has two columns, that is, a gap of two spaces after its first letter."""
    return not any(re.search(r"\S(?:  |\t)+\s*\S", line) or re.search("[|│┌└─]", line) for line in text.split("\n"))


def as_table(text: str) -> str:
    """Printed columns as an HTML table; empty if the text fits a page or its lines have no columns in common."""
    lines = [line for line in text.rstrip().split("\n") if line.strip()]
    width = max(map(len, lines), default=0)
    if width <= FITS or len(lines) < 3:
        return ""
    full = [line.ljust(width) for line in lines]
    blank = "".join(" " if all(line[i] == " " for line in full) else "x" for i in range(width))
    cuts = [0, *(gap.end() for gap in re.finditer("  +", blank) if gap.start())]
    if len(cuts) < 2:
        return ""
    rows = [[escape(line[a:b].strip()) for a, b in zip(cuts, [*cuts[1:], width])] for line in full]
    if any(not row[0] for row in rows) or max(len(cell) for row in rows for cell in row) > FITS:
        return ""
    headed = not re.search(r"\d", lines[0]) and all(re.search(r"\d", line) for line in lines[1:]) and all(rows[0])
    head = "".join(f'<th scope="col">{cell}</th>' for cell in rows.pop(0)) if headed else ""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    head = f"<thead><tr>{head}</tr></thead>" * headed
    return f'<div class="mq-printed"><table class="table">{head}<tbody>{body}</tbody></table></div>'


def fit(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Called by Sphinx for each page."""
    if body := context.get("body"):
        context["body"] = fitted(
            body, {name: str(Path(app.srcdir, source)) for source, name in app.builder.images.items()}
        )


def fitted(body: str, files: dict[str, str]) -> str:
    """A page's HTML that fits. files: {name of an image in the site: source}"""
    body = with_drawings(body, files)

    def output(found: re.Match[str]) -> str:
        text = unescape(re.sub(r"<[^>]*>", "", found[2]))
        if made := as_table(text):
            return made
        kind = "mq-prose" if is_prose(text) else "mq-columns"
        return f'<div class="output {kind}{found[1]}{found[2]}{found[3]}'

    body = OUTPUT.sub(output, body)
    return CODE.sub(lambda found: found[1] + wrapped_lines(found[2]) + found[3], body)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", fit, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
