"""What a newcomer may expect of each page: rules for ``check_site``, one function a rule.

A lab offers its notebook; a solved lab says that it is one and leads back; a page says what it is about and is light.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from check_site import Page

LAB = re.compile(r"(?:es/)?(notebooks|solutions)/(\d\d)-[^/]*\.html")
HEAVIEST = {"book/index.html": 300_000, "notebooks/": 600_000}  # bytes, compressed as a host sends them
FONT = re.compile(r"""url\(["']?([^"')]+\.woff2?)["']?\)""")
PACKED = {".html", ".css", ".js", ".svg"}
FORMULAS = ("startup", "core", "input/tex", "output/chtml", "output/chtml/fonts/tex", "a11y/assistive-mml")


def newcomer_problems(site: Path, name: str, page: Page) -> Iterator[str]:
    """What is missing on one page."""
    if page.redirects:
        return
    if (count := page.metas.count("viewport")) != 1:
        yield f"the page has {count} viewport tags"
    if "robots" not in page.metas:
        for tag in ("description", "og:title", "og:description"):
            if (count := page.metas.count(tag)) != 1:
                yield f"the page has {count} tags {tag!r}"
    parts = re.split(r" [·—-] ", page.title.strip())
    if len(set(parts)) < len(parts):
        yield f"the title says one thing twice: {page.title.strip()!r}"
    if page.font_icons:
        yield f"{page.font_icons} icons need an icon font"
    if any("fontawesome" in url for url in page.loads):
        yield "loads the icon font"
    if page.formulas_from and not page.formulas:
        yield "loads MathJax and has no formula"
    if page.formulas and not page.formulas_from:
        yield "has formulas and no MathJax"
    if page.mute_toggles:
        yield f"{page.mute_toggles} buttons of side panels do not say whether the panel is open"
    if not name.startswith("solutions/") and any("solutions/" in url for url in page.next):
        yield "Next leads into a solution"
    yield from lab_problems(name, page)
    yield from weight_problems(site, name, page)


def lab_problems(name: str, page: Page) -> Iterator[str]:
    """A lab offers its file, its line for the terminal and its solution; a solved lab is marked and leads back."""
    match = LAB.fullmatch(name)
    if not match:
        return
    folder, number = match.groups()
    file = PurePosixPath(name).name
    if folder == "notebooks":
        up = "../../" if name.startswith("es/") else "../"
        wanted = [file.replace(".html", ".ipynb"), f"{up}solutions/{file}"]
        if f"make lab LAB={number}" not in page.copied:
            yield f"the page does not say `make lab LAB={number}`"
    elif number == "03" and "gguf-export" in file:
        return
    else:
        wanted = [f"../notebooks/{file}"]
        for what, text in (("title", page.title), ("heading", page.heading)):
            if "(solved)" not in text:
                yield f"the {what} does not say that the lab is solved"
        if any(text == "solved lab" and url.startswith("#") for url, text in page.named_links):
            yield "the page sends its reader to itself for the solution"
    for url in wanted:
        if url not in page.links:
            yield f"the page has no link to {url}"


def weight_problems(site: Path, name: str, page: Page) -> Iterator[str]:
    """The home page and the labs are light enough for a phone."""
    limit = next((limit for start, limit in HEAVIEST.items() if name.removeprefix("es/").startswith(start)), None)
    if limit and (heavy := weight(site, name, page)) > limit:
        yield f"weighs {heavy // 1000} kB compressed; at most {limit // 1000} are allowed"


def weight(site: Path, name: str, page: Page) -> int:
    """How many bytes a reader loads for a page, compressed, with everything that it asks for, formulas included."""
    folder = (site / name).parent
    urls = {urlsplit(url).path for url in page.loads if not url.startswith(("data:", "#"))}
    files = {(folder / unquote(url)).resolve() for url in urls if url}
    for url in page.formulas_from:
        home = (folder / urlsplit(url).path).resolve().parent
        files |= {home / f"{part}.js" for part in FORMULAS}
    styles = {file for file in files if file.suffix == ".css" and file.is_file()}
    files |= {font for style in styles for font in fonts(style, style.stat().st_mtime_ns)}
    return sum(sent(file, file.stat().st_mtime_ns) for file in {site / name, *files} if file.is_file())


@cache
def fonts(style: Path, changed: int) -> set[Path]:
    """The fonts that a style sheet asks for; ``changed`` is the time of its last change."""
    return {(style.parent / url).resolve() for url in FONT.findall(style.read_text("utf-8"))}


@cache
def sent(file: Path, changed: int) -> int:
    """The bytes that a host sends for a file; ``changed`` is the time of its last change."""
    data = file.read_bytes()
    return len(gzip.compress(data, 6)) if file.suffix in PACKED else len(data)


def common_problems(site: Path, pages: Mapping[str, Page]) -> list[str]:
    """What is wrong with the site as a whole."""
    titles = Counter(page.title.strip() for page in pages.values() if not page.redirects)
    problems = [f"{count} pages have the title {title!r}" for title, count in titles.items() if count > 1]
    if "404.html" not in pages:
        problems.append("404.html is missing")
    problems += [f"{path.relative_to(site)} is there, and no page needs it" for path in site.rglob("fontawesome.js")]
    return problems
