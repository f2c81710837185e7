"""Is the built site whole? Reads every page of ``_build/html``, needs no network and no browser.

It fails if
  * a page, a style sheet or a picture loads anything from another host (links that a reader may follow are fine);
  * a link or an anchor inside the site leads nowhere;
  * a figure is shown as text; an image has no alternative text, or a file's hash in its place; a drawing has no name;
  * a page has no title, no heading, or an id that stands twice;
  * the search index is missing;
  * a page breaks one of the rules of ``site_rules``: description, unique title, weight, the bar of a lab, and others.

    python tools/check_site.py [_build/html]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from site_rules import common_problems, newcomer_problems

LOADS = {  # element -> the attributes that make a browser fetch something
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "input": ("src",),
}
FETCHING_RELS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"}
CSS_LOADS = re.compile(r"""@import\s+(?:url\()?\s*["']?([^"')\s;]+)|url\(\s*["']?([^"')]+?)["']?\s*\)""")
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.S)
HASH = re.compile(r"[0-9a-f]{16,}")
FOREIGN = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.I)
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Page:
    """What one page holds that can be wrong."""

    title: str = ""
    headings: int = 0
    redirects: bool = False
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    heading: str = ""
    metas: list[str] = field(default_factory=list)
    named_links: list[tuple[str, str]] = field(default_factory=list)
    next: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    formulas: int = 0
    formulas_from: list[str] = field(default_factory=list)
    font_icons: int = 0
    mute_toggles: int = 0


class Reader(HTMLParser):
    """Collects a ``Page``."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.inside: list[str] = []
        self.link = ""  # where the link leads whose text comes next

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element loads, where it leads, and what it is called."""
        page, values = self.page, {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.inside.append(tag)
        if values.get("id"):
            page.ids.append(values["id"])
        page.headings += tag == "h1"
        page.loads += [values[name] for name in LOADS.get(tag, ()) if values.get(name)]
        page.loads += _css_urls(values.get("style", ""))
        if tag == "link" and FETCHING_RELS & set(values.get("rel", "").split()):
            page.loads.append(values.get("href", ""))
        if tag == "a" and values.get("name"):
            page.ids.append(values["name"])
        if tag in ("a", "area") and "href" in values:
            page.links.append(values["href"])
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            page.redirects = True
            page.links.append(values.get("content", "").partition("url=")[2])
        if tag == "img":
            self._image(values)
        self._newcomer(tag, values)
        if (
            tag == "svg"
            and values.get("role") == "img"
            and not (values.get("aria-label") or "aria-labelledby" in values)
        ):
            page.problems.append("a drawing (svg) has no aria-label and no aria-labelledby")

    def _newcomer(self, tag: str, values: dict[str, str]) -> None:
        page, classes = self.page, values.get("class", "").split()
        if tag == "meta":
            page.metas.append(values.get("name") or values.get("property", ""))
        if tag == "a":
            self.link = values.get("href", "")
            page.next += [self.link] if "right-next" in classes else []
        page.formulas += "math" in classes
        page.font_icons += any(name.startswith("fa-") for name in classes)
        source = values.get("data-src", "") or (values.get("src", "") if tag == "script" else "")
        page.formulas_from += [source] if "mathjax" in source.lower() else []
        page.mute_toggles += tag == "button" and "sidebar-toggle" in classes and "aria-expanded" not in values
        if tag == "button" and "mq-copy" in classes:
            page.copied.append(values.get("aria-label", "").removeprefix("Copy "))

    def _image(self, values: dict[str, str]) -> None:
        source = values.get("src", "?")[:80]
        if "alt" not in values:
            self.page.problems.append(f"the image {source} has no alternative text")
        elif HASH.search(values["alt"]) or values["alt"].endswith((".png", ".svg", ".jpg")):
            self.page.problems.append(
                f"the image {source} has a file name as its alternative text: {values['alt'][:60]}"
            )
        elif not values["alt"] and "logo" not in values.get("class", ""):
            self.page.problems.append(f"the image {source} has an empty alternative text")

    def handle_endtag(self, tag: str) -> None:
        """Leave the element."""
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Text counts in a title and in style sheets."""
        if self.inside and self.inside[-1] == "title" and "svg" not in self.inside:
            self.page.title += data
        if "h1" in self.inside:
            self.page.heading += data
        if "a" in self.inside and data.strip():
            self.page.named_links.append((self.link, data.strip()))
        if self.inside and self.inside[-1] == "style":
            self.page.loads += _css_urls(data)
        if data.startswith("<Figure size "):
            self.page.problems.append("a figure is shown as text; was the page executed without the inline backend?")


def _css_urls(text: str) -> list[str]:
    return [a or b for a, b in CSS_LOADS.findall(CSS_COMMENT.sub("", text))]


def read_pages(site: Path) -> dict[str, Page]:
    """Every page by its path below ``site``, with ``/`` between folders; documents in ``_static`` are no pages."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if not name.startswith("_static/"):
            reader = Reader()
            reader.feed(path.read_text("utf-8"))
            pages[name] = reader.page
    return pages


def page_problems(site: Path, name: str, pages: dict[str, Page]) -> list[str]:
    """What is wrong with one page."""
    page = pages[name]
    problems = list(page.problems)
    if not page.redirects:
        if not page.title.strip():
            problems.append("the page has no title")
        if not page.headings:
            problems.append("the page has no first heading")
    problems += newcomer_problems(site, name, page)
    problems += [f"the id {i!r} stands {n} times" for i, n in Counter(page.ids).items() if n > 1]
    problems += [problem for url in page.loads if (problem := _load_problem(site, (site / name).parent, url))]
    problems += [problem for url in page.links if (problem := _link_problem(site, name, url, pages))]
    return problems


def _load_problem(site: Path, folder: Path, url: str) -> str:
    for part in url.split(","):  # srcset; a data: URL has its own commas and is met first
        target = part.strip().split(" ")[0]
        if url.startswith("data:") or not target or target.startswith("#"):
            return ""
        if FOREIGN.match(target):
            return f"loads {target[:100]} from another host"
        path = unquote(urlsplit(target).path)
        if not _resolve(site, folder, path).exists():
            return f"loads {target[:100]}, which is not there"
    return ""


def _link_problem(site: Path, name: str, url: str, pages: dict[str, Page]) -> str:
    if url.startswith(("http:", "https:", "mailto:", "javascript:", "data:")):
        return ""
    if FOREIGN.match(url):
        return f"the link {url[:100]} has no scheme"
    parts = urlsplit(url)
    path = _resolve(site, (site / name).parent, unquote(parts.path)) if parts.path else site / name
    if path.is_dir():
        path = path / "index.html"
    if not path.exists():
        return f"the link {url[:100]} leads nowhere"
    target = path.relative_to(site.resolve() if path.is_absolute() else site).as_posix()
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].ids:
        return f"the link {url[:100]} names an anchor that is not there"
    return ""


def _resolve(site: Path, folder: Path, path: str) -> Path:
    base = site.resolve() if path.startswith("/") else folder.resolve()
    return (base / path.lstrip("/")).resolve()


def style_problems(site: Path) -> list[str]:
    """What a style sheet loads from another host, or does not find."""
    problems = []
    for path in sorted(site.rglob("*.css")):
        for url in _css_urls(path.read_text("utf-8", errors="replace")):
            if not url.startswith("data:") and (problem := _load_problem(site, path.parent, url)):
                problems.append(f"{path.relative_to(site).as_posix()}: {problem}")
    return problems


def site_problems(site: Path) -> list[str]:
    """Everything that is wrong with the site, one line each."""
    pages = read_pages(site)
    problems = [] if pages else ["there is no page; build the book first"]
    for name in pages:
        problems += [f"{name}: {problem}" for problem in dict.fromkeys(page_problems(site, name, pages))]
    problems += common_problems(site, pages)
    problems += style_problems(site)
    index = site / "searchindex.js"
    if not index.exists() or index.stat().st_size < 100:
        problems.append("searchindex.js is missing or empty")
    if "search.html" not in pages:
        problems.append("search.html is missing")
    return problems


def main() -> int:
    """The command line; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=Path("_build/html"))
    site = parser.parse_args().site
    problems = site_problems(site.resolve())
    for problem in problems:
        print(problem)
    print(f"{len(list(site.rglob('*.html')))} pages, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
