"""The course as one book on paper: every page of the built site, in the order of its contents, as a PDF with links.

Figures are vectors, as in the pages. What a page folds away (hints, causes, code of a picture) stands at the end of its
chapter as numbered notes, and each note links back. Left out are the solved labs, which repeat the labs cell by cell,
and the reference of the library's modules.

    python tools/pdf.py [_build/html] [_build/miniquant.pdf]

Needs Python's ``playwright`` and ``pikepdf``, and a Chromium on the machine; CHROMIUM may name it.
"""

from __future__ import annotations

import argparse
import html
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parents[1]
TOC = ROOT / "book" / "_toc.yml"
LEFT_OUT = ("Solutions",)  # captions of the contents
NO_CHAPTERS = "book/api/"  # how the places of pages begin that are for those who write programs
LARGEST = 30_000_000  # bytes of the PDF
NOT_ON_PAPER = ", ".join(
    (
        *("a.headerlink", ".viewcode-link", "button", "script", "style", "nav", "dialog"),
        *(".mq-bar", ".mq-start", ".mq-live-bar", ".mq-exhibit", ".prev-next-footer"),
    )
)
STYLE = """
@page { size: A4; margin: 18mm 16mm 20mm; }
html { font-size: 10pt; }
body { background: white; color: black; }
article { max-width: none; padding: 0 !important; }
article.chapter { break-before: page; }
h1 { margin-top: 0; }
h1, h2, h3, summary, .note-mark { break-after: avoid; }
pre, .highlight pre { white-space: pre-wrap !important; overflow-wrap: anywhere; font-size: 8pt; }
svg, img { max-width: 100% !important; min-width: 0 !important; height: auto; }
pre, .highlight, .cell, .cell_input, .cell_output, ul, ol, dl, table { break-inside: auto !important; }
.mq-figure, svg, img, .mq-report, tr { break-inside: avoid; }
table { font-size: 8pt; overflow-wrap: anywhere; }
.part { break-before: page; padding-top: 35%; text-align: center; }
.title { padding-top: 40%; text-align: center; }
.part-name { font-size: 20pt; }
.contents { break-before: page; background: none; }
.contents li { list-style: none; display: flex; gap: 1em; justify-content: space-between; }
.note-mark { font-size: 8.5pt; }
.notes { font-size: 8.5pt; border-top: 1px solid #999; margin-top: 2em; }
"""


class PdfError(Exception):
    """The book cannot be made; the message says what to do."""


class Chapter(NamedTuple):
    """A page of the site: the part that begins with it ("" inside one), its place in the site, its key in the book."""

    part: str
    place: str

    @property
    def key(self) -> str:
        """The first half of every id of this chapter."""
        return "p-" + re.sub(r"\W+", "-", self.place.removesuffix(".html"))


def chapters() -> list[Chapter]:
    """The pages in the order of the contents."""

    def walk(entries: list[dict[str, object]]) -> Iterator[str]:
        for entry in entries:
            yield f"{entry['file']}.html"
            yield from walk(entry.get("sections", []))  # type: ignore[arg-type]

    toc = yaml.safe_load(TOC.read_text("utf-8"))
    found = [Chapter("", f"{toc['root']}.html")]
    for part in toc["parts"]:
        if part["caption"] not in LEFT_OUT:
            places = [place for place in walk(part["chapters"]) if not place.startswith(NO_CHAPTERS)]
            found += [Chapter(part["caption"] if i == 0 else "", place) for i, place in enumerate(places)]
    return found


def article(site: Path, chapter: Chapter, keys: dict[str, str]) -> tuple[str, Tag]:
    """Title and content of a page for the book: ids of its own, links into the book, folds as notes.

    keys: the key of every page that is in the book. A link to another page of the site becomes plain text.
    """
    path = site / chapter.place
    if not path.is_file():
        raise PdfError(f"{path} is not built; make book builds the site")
    soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    found = soup.find("article")
    assert isinstance(found, Tag)
    for tag in found.select(NOT_ON_PAPER):
        if not tag.find_parent("svg"):
            tag.decompose()
    for tag in found.find_all(id=True):
        if not tag.find_parent("svg"):  # names inside a figure serve that figure
            tag["id"] = f"{chapter.key}--{tag['id']}"
    for tag in found.select("[src]"):
        tag["src"] = (path.parent / unquote(urlsplit(str(tag["src"])).path)).resolve().as_uri()
    for link in found.select("a[href]"):
        target = in_book(str(link["href"]), chapter, keys)
        if target:
            link["href"] = target
        else:
            link.unwrap()
    heading = found.find("h1")
    title = heading.get_text(" ", strip=True) if isinstance(heading, Tag) else chapter.place
    folds_as_notes(soup, found, chapter.key)
    found["id"], found["class"] = chapter.key, "bd-article chapter"
    return title, found


def in_book(href: str, chapter: Chapter, keys: dict[str, str]) -> str:
    """Where a link leads in the book; "" if it leads to a part of the site that the book does not have."""
    if urlsplit(href).scheme:
        return href
    path, _, anchor = href.partition("#")
    place = (
        posixpath.normpath(posixpath.join(posixpath.dirname(chapter.place), unquote(path))) if path else chapter.place
    )
    if place not in keys:
        return ""
    return f"#{keys[place]}--{anchor}" if anchor else f"#{keys[place]}"


def folds_as_notes(soup: BeautifulSoup, found: Tag, key: str) -> None:
    """Every fold becomes a line that names a note; the notes stand at the end, in order, each with a way back."""
    notes = soup.new_tag("section", attrs={"class": "notes"})
    while isinstance(fold := found.find("details"), Tag):  # a fold in a fold is a note, too: it comes later
        number = len(notes.find_all("div", class_="note")) + 1
        summary = fold.find("summary")
        says = re.sub(r"\s*Hide .*", "", summary.get_text(" ", strip=True)) if isinstance(summary, Tag) else ""
        if isinstance(summary, Tag):
            summary.decompose()
        mark = soup.new_tag("p", attrs={"class": "note-mark"})
        link = soup.new_tag("a", href=f"#{key}--note-{number}", id=f"{key}--mark-{number}")
        link.string = f"{says}: note {number}"
        mark.append(link)
        note = soup.new_tag("div", id=f"{key}--note-{number}", attrs={"class": "note"})
        head = soup.new_tag("p")
        back = soup.new_tag("a", href=f"#{key}--mark-{number}")
        back.string = f"Note {number}. {says}"
        head.append(back)
        fold.replace_with(mark)
        note.append(head)
        note.extend(list(fold.children))
        notes.append(note)
        if not notes.parent:
            found.append(notes)
    if notes.parent:
        title = soup.new_tag("h2")
        title.string = "Notes"
        notes.insert(0, title)


def book(site: Path, pages: dict[str, int] | None = None) -> str:
    """The book as one page of HTML, for a browser to print.

    pages: the number of the page on which the chapter of each key begins, once that is known, for the contents
    """
    listed = chapters()
    keys = {chapter.place: chapter.key for chapter in listed}
    parts, contents = [], []
    for chapter in listed:
        title, found = article(site, chapter, keys)
        if chapter.part:
            parts.append(f'<section class="part"><p class="part-name">{html.escape(chapter.part)}</p></section>')
            contents.append(f"<li><b>{html.escape(chapter.part)}</b></li>")
        number = (pages or {}).get(chapter.key, "")
        contents.append(f'<li><a href="#{chapter.key}">{html.escape(title)}</a><span>{number}</span></li>')
        parts.append(str(found))
    first = BeautifulSoup((site / listed[0].place).read_text("utf-8"), "html.parser")
    folder = (site / listed[0].place).parent
    sheets = [
        f'<link rel="stylesheet" href="{(folder / str(link["href"]).partition("?")[0]).resolve().as_uri()}">'
        for link in first.select('link[rel="stylesheet"]')
    ]
    sources = ((site / chapter.place).read_text("utf-8") for chapter in listed)
    settings = re.search(r"<script>(window\.MathJax = .*?)</script>", "".join(sources))
    mathjax = (site / "_static" / "mathjax" / "startup.js").as_uri()
    formulas = f'<script>{settings[1]}</script><script defer src="{mathjax}"></script>' if settings else ""
    text = "\n".join(parts)
    return f"""<!doctype html>
<html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8"><title>miniquant</title>
{"".join(sheets)}<style>{STYLE}</style>
{formulas}</head><body>
<section class="title"><h1 id="title">miniquant</h1><p>A teaching lab on quantized model files</p></section>
<nav class="contents"><h2>Contents</h2><ul>{"".join(contents)}</ul></nav>
{text}
</body></html>"""


# ---- printing --------------------------------------------------------------------------------------------------------


def print_book(text: str, target: Path) -> None:
    """Print a page of HTML with Chromium. Raises ``PdfError`` if there is none."""
    from playwright.sync_api import sync_playwright

    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        raise PdfError("there is no Chromium here; install one, or name it in CHROMIUM")
    source = target.with_suffix(".html")
    source.write_text(text, "utf-8")
    foot = '<div style="width:100%;text-align:center;font-size:8px"><span class="pageNumber"></span></div>'
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        page.set_default_timeout(300_000)
        page.goto(source.as_uri())
        page.wait_for_function("!window.MathJax || (MathJax.startup && MathJax.startup.promise)")
        page.evaluate("async () => { if (window.MathJax) await MathJax.startup.promise; await document.fonts.ready; }")
        page.pdf(
            path=target,
            prefer_css_page_size=True,
            print_background=True,
            outline=True,
            tagged=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=foot,
        )
        chromium.close()
    source.unlink()


def beginnings(pdf: Path) -> dict[str, int]:
    """The page on which each place that a link names is, by its id; the first page is 1."""
    import pikepdf

    with pikepdf.open(pdf) as file:
        numbers = {page.objgen: number for number, page in enumerate(file.pages, 1)}
        return {name.removeprefix("/"): numbers[place[0].objgen] for name, place in places(file).items()}


def places(file: Any) -> dict[str, Any]:
    """The named places of a PDF: arrays that begin with the page."""
    return dict(file.Root.get("/Dests", {}).items())


def pack(pdf: Path) -> None:
    """Write the same PDF with its many small objects in compressed streams, which a browser does not do."""
    import pikepdf

    pikepdf.settings.set_flate_compression_level(9)
    with pikepdf.open(pdf, allow_overwriting_input=True) as file:
        file.docinfo["/Title"] = "miniquant"
        streams = pikepdf.ObjectStreamMode.generate
        file.save(pdf, object_stream_mode=streams, recompress_flate=True, deterministic_id=True)


def complaints(pdf: Path) -> list[str]:
    """What is wrong with the PDF: its size, a link that leads nowhere."""
    import pikepdf

    wrong = []
    with pikepdf.open(pdf) as file:
        known = set(places(file))
        for number, page in enumerate(file.pages, 1):
            for link in page.get("/Annots", []):
                target = link.get("/Dest", link.get("/A", {}).get("/D"))
                if isinstance(target, pikepdf.Name) and str(target) not in known:
                    wrong.append(f"page {number}: a link to {target}, which is nowhere")
    if pdf.stat().st_size > LARGEST:
        wrong.append(f"{pdf.stat().st_size:,} bytes, at most {LARGEST:,} are allowed")
    return wrong


def make(site: Path, target: Path) -> None:
    """Print twice: the first time tells on which pages the chapters begin, the second has these in its contents."""
    target.parent.mkdir(parents=True, exist_ok=True)
    print("== laying out", flush=True)
    print_book(book(site), target)
    print("== with page numbers", flush=True)
    print_book(book(site, beginnings(target)), target)
    pack(target)


def main() -> int:
    """The command line: 1 if the book cannot be made, or is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("pdf", nargs="?", type=Path, default=ROOT / "_build" / "miniquant.pdf")
    options = parser.parse_args()
    try:
        make(options.site.resolve(), options.pdf.resolve())
    except PdfError as error:
        print(f"pdf: {error}", file=sys.stderr)
        return 1
    wrong = complaints(options.pdf)
    for line in wrong:
        print(f"pdf: {line}", file=sys.stderr)
    print(f"{options.pdf}: {options.pdf.stat().st_size / 1e6:.1f} MB")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
