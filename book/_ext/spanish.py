"""The two languages of the site: a switch on every page, and what the Spanish site needs besides its sources.

The Spanish site lies in the folder ``es`` of the English one, with the same names of pages and the same anchors.
"""

from __future__ import annotations

import html
import json
import os
import re
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from docutils import nodes
from page_finish import every_page
from sphinx.application import Sphinx

from miniquant.core.language import FOLDER, Catalogue, read_po

ROOT = Path(__file__).resolve().parents[2]
NAME = "es"
LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)*)([\w./-]+?)\.(md|ipynb)(#[^)\s]*)?\)")
CITE = re.compile(r"\{cite\}`(\w+)`")
TEXT = re.compile(r"(<(script|style|pre|code|template|textarea)\b.*?</\2>)|>([^<>]*[A-Za-z][^<>]*)(?=<)", re.S)
SPOKEN = re.compile(r'\b(aria-label|title|placeholder|content|data-bs-title|alt)="([^"]*[A-Za-z][^"]*)"')


def is_spanish(app: Sphinx) -> bool:
    """Whether this is the build of the Spanish site."""
    return app.config.language == NAME


@cache
def pages() -> frozenset[str]:
    """The names of the pages that the Spanish site has."""
    toc = yaml.safe_load((ROOT / NAME / "_toc.yml").read_text("utf-8"))
    return frozenset([toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])])


# ---- anchors ---------------------------------------------------------------------------------------------------------


@cache
def slugs() -> dict[str, str]:
    """The English anchor of every Spanish heading."""
    found = {}
    for path in sorted((ROOT / NAME / "locale").rglob("*.po")):
        for message, translation in read_po(path).items():
            english, spanish = (re.match(r"#+ (.*)", text) for text in (message, translation))
            if english and spanish:
                found[_plain(spanish[1])] = nodes.make_id(_plain(english[1]))
    return found


def _plain(heading: str) -> str:
    text = re.sub(r"\{\w+\}`([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", heading)
    return re.sub(r"[`*$]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)).strip()


def slug(title: str) -> str:
    """The anchor of a Spanish heading: that of the English one, so that a link serves both sites."""
    if exercise := re.fullmatch(r"Ejercicio: (\w+)", title):
        return nodes.make_id(f"Exercise: {exercise[1]}")
    return slugs().get(title, nodes.make_id(title))


def english_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Give every section the English anchor first."""
    if not is_spanish(app):
        return
    taken = set(doctree.ids)
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title)
        anchor = slug(title.astext()) if title is not None else ""
        if anchor and anchor not in section["ids"] and anchor not in taken:
            section["ids"].insert(0, anchor)
            doctree.ids[anchor] = section
            taken.add(anchor)


# ---- links to pages that are in English only -------------------------------------------------------------------------


def english_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Write links to pages that are in English alone as HTML: they lead out of the folder of the Spanish site."""
    if not is_spanish(app):
        return
    text = source[0]
    if app.env.doc2path(page).endswith(".ipynb"):
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = linked("".join(cell["source"]), page)
        source[0] = json.dumps(notebook)
    else:
        source[0] = linked(text, page)


def linked(text: str, page: str) -> str:
    """Markdown of a page with its links to pages that are in English alone as HTML."""

    def link(found: re.Match[str]) -> str:
        words, up, name, kind, anchor = found.groups()
        target = os.path.normpath(PurePosixPath(NAME, page).parent / up / name).replace(os.sep, "/")
        if target.removeprefix(f"{NAME}/") in pages() and target.startswith(f"{NAME}/"):
            return found[0]
        target = target.removeprefix(f"{NAME}/")
        words = words or _title(ROOT / f"{target}.{kind}")
        return f'<a href="../../{target}.html{anchor or ""}" hreflang="en">{words}</a>'

    return CITE.sub(_cited, LINK.sub(link, text))


def _cited(found: re.Match[str]) -> str:
    entry = re.search(r"@\w+\{" + found[1] + r",(.*?)\n\}", (ROOT / "book/references.bib").read_text("utf-8"), re.S)
    words = found[1]
    if entry:
        field = dict(re.findall(r"(\w+)\s*=\s*\{+(.*?)\}+,?\s*\n", entry[1] + "\n"))
        author = re.split(r" and |,", field.get("author", found[1]))[0].strip("{} ")
        words = f"{author}, {field['year']}" if "year" in field else author
    return f'<a href="../../book/references.html" hreflang="en">[{html.escape(words)}]</a>'


def _title(path: Path) -> str:
    found = re.search(r"^# (.*)", path.read_text("utf-8"), re.M)
    return found[1] if found else path.stem


# ---- every page ------------------------------------------------------------------------------------------------------


def switch(page: str, here: str) -> str:
    """The switch between the languages for a page; ``here`` is the language of this site."""
    up = "../" * page.count("/")
    name = f"{page}.html"
    if here == NAME:
        return (
            f'<nav class="mq-languages" aria-label="Idioma"><a href="{up}../{name}" hreflang="en" lang="en">English</a>'
            ' · <span aria-current="true">Español</span></nav>'
        )
    if page in pages():
        other = f'<a href="{up}{NAME}/{name}" hreflang="es" lang="es">Español</a>'
    else:
        other = '<span class="mq-only" title="This page is in English only">Español</span>'
    return f'<nav class="mq-languages" aria-label="Language"><span aria-current="true">English</span> · {other}</nav>'


def alternates(page: str, base: str) -> str:
    """What tells search engines of the page in the other language."""
    if page not in pages() or not base:
        return ""
    base = base.rstrip("/")
    return "".join(
        f'<link rel="alternate" hreflang="{language}" href="{base}/{folder}{page}.html">'
        for language, folder in (("en", ""), (NAME, f"{NAME}/"))
    )


def with_switch(page: str, name: str, here: str, base: str) -> str:
    """A page with the switch before the buttons of its header."""
    mark = '<div class="article-header-buttons">'
    page = page.replace(mark, f"{mark}{switch(name, here)}", 1)
    return page.replace("</head>", f"{alternates(name, base)}</head>", 1)


def spoken(page: str) -> str:
    """A page with the words of its interface in Spanish: each text between two tags that the catalogues have."""

    def text(found: re.Match[str]) -> str:
        if found[1]:
            return found[0]
        return f">{_escaped(found[3])}"

    def attribute(found: re.Match[str]) -> str:
        return f'{found[1]}="{html.escape(said(html.unescape(found[2])))}"'

    head, body, rest = page.partition("<body")
    return head + body + SPOKEN.sub(attribute, TEXT.sub(text, rest))


def _escaped(text: str) -> str:
    core = text.strip()
    plain = html.unescape(core)
    new = said(plain)
    return text if new == plain else text.replace(core, html.escape(new, quote=False), 1)


@cache
def said(text: str) -> str:
    """A text of the interface in Spanish; what the catalogue of the site has not as a whole stays as it is."""
    new, missing = site_catalogue().look_up(text)
    return text if missing else new


@cache
def site_catalogue() -> Catalogue:
    """The words of the interface, and templates among them."""
    return Catalogue(site())


@cache
def site() -> dict[str, str]:
    """The words of the interface of the site."""
    return read_po(FOLDER / NAME / "site.po")


def write_words(app: Sphinx, error: Exception | None) -> None:
    """What the scripts of the Spanish site say, for ``spoken.js``; and links to what is in English alone."""
    if error or app.builder.name != "html" or not is_spanish(app):
        return
    out = Path(app.outdir)
    (out / "_static" / "spoken.json").write_text(json.dumps(site(), ensure_ascii=False), "utf-8")
    for path in out.rglob("*.html"):
        place = path.relative_to(out)
        text = path.read_text("utf-8")
        new = re.sub(r'\bhref="([^"#:?]+)', partial(_outside, place=place, out=out), text)
        if new != text:
            path.write_text(new, "utf-8")


def _outside(link: re.Match[str], place: Path, out: Path) -> str:
    target = os.path.normpath(place.parent / link[1])
    if (out / target).exists() or target.startswith("..") or not target.endswith((".html", ".ipynb")):
        return link[0]
    return f'href="{"../" * len(place.parts)}{target}'.replace(os.sep, "/")


def wrap_templates(app: Sphinx) -> None:
    """Put the switch into every page; in the Spanish site, translate what its templates say."""

    def finished(page: str, context: dict[str, Any]) -> str:
        name = context.get("pagename")
        if not name or "</head>" not in page:
            return page
        here = NAME if is_spanish(app) else "en"
        page = with_switch(page, name, here, app.config.html_baseurl)
        return spoken(page) if here == NAME else page

    every_page(app, finished)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", wrap_templates, priority=600)
    app.connect("source-read", english_links)
    app.connect("doctree-read", english_anchors, priority=50)
    app.connect("build-finished", write_words, priority=960)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
