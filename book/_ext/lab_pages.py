"""What the site adds to labs: a bar below the title, the notebook itself, the mark of a solved lab.

Nothing of this stands in the notebooks, where it would have no use.
"""

from __future__ import annotations

import html
import io
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from launch import links
from page_finish import About, every_page, finish, shortened, trimmed, without_icon_font
from PIL import Image, ImageChops, ImageStat
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

from miniquant.core.language import translated
from miniquant.lab.authoring.course import SOURCE, Lab, Part, all_labs, read_course

ROOT = Path(__file__).resolve().parents[2]
LAB = re.compile(r"(notebooks|solutions)/(\d\d)-")
NUMBER = re.compile(r"[-+−±~≈<≤]?\s?\d[\d,.\u202f ]*(e-?\d+)?\s?(%|×|[kKMG]i?B|B|bytes?|bits?|m?s|µs|min)?(/s)?|—|–|-|")
MATHJAX = re.compile(
    r"(startup|core|input/tex|output/chtml|a11y/assistive-mml)\.js|input/tex/extensions/|output/chtml/fonts/"
)
LARGE = 30_000  # bytes of a picture; smaller ones are left alone
ABOUT = {
    "genindex": "Every name of miniquant's reference, in the order of the alphabet.",
    "search": "Search the labs, the pages and the reference of miniquant.",
}
LOST = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>This page is not here: miniquant</title>
<meta name="description" content="The page that you asked for is not part of the course miniquant.">
<meta name="robots" content="noindex">
<link rel="icon" href="{root}_static/favicon.svg">
<style>
:root {{ background: #fff; color: #10151b; color-scheme: light dark; }}
a {{ color: #00629b; }}
@media (prefers-color-scheme: dark) {{ :root {{ background: #121212; color: #e6e6e6; }} a {{ color: #6cb8ea; }} }}
body {{ font: 1.1rem/1.6 system-ui, sans-serif; margin: 15vh auto; max-width: 32rem; padding: 0 1.2rem; }}
</style>
</head>
<body>
<main>
<h1>This page is not here</h1>
<p>Pages move when labs get other numbers. These are sure to be there:</p>
<ul>
<li><a href="{root}">the first page of the course</a></li>
<li><a href="{root}notebooks/00-five-minutes.html">lab 00</a></li>
<li><a href="{root}search.html">the search</a></li>
</ul>
</main>
</body>
</html>
"""


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _hours(minutes: int) -> str:
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def _labs() -> dict[str, Lab]:
    return {lab.file.removesuffix(".ipynb"): lab for lab in all_labs(_parts())}


def lab_bar(lab: Lab, bytes_shown: bool = False, address: str = "", branch: str = "main") -> str:
    """The bar of a student's lab; one that shows bytes leads to the inspector, too.

    address: of the repository; with one, the lab can be started on a machine that others provide
    """
    inspector = ' <a href="../book/inspector.html">The byte inspector</a>' * bytes_shown
    launch = "".join(f' <a href="{html.escape(url)}">{name}</a>' for name, url in links(address, branch, lab.file))
    page, count = lab.file.removesuffix(".ipynb"), lab.time.exercises
    return (
        '<div class="mq-bar" role="group" aria-label="This lab">\n<ul>'
        f"<li><strong>{lab.time.total} min</strong></li><li>{count} exercise{'s' * (count != 1)}</li>"
        f"<li>needs {html.escape(lab.needs)}</li></ul>\n"
        f'<p><a class="mq-button" href="{lab.file}" download>Download {lab.number} as .ipynb</a> '
        f"{copied(f'make lab LAB={lab.number}')} "
        f'<a href="../solutions/{page}.html">The solved lab</a>{inspector}{launch}</p>\n</div>\n'
    )


def copied(line: str) -> str:
    """A line for the terminal with a button that copies it."""
    return (
        f'<span class="mq-copied"><code>{html.escape(line)}</code>'
        f'<button type="button" class="mq-copy pst-js-only" aria-label="Copy {html.escape(line)}">Copy</button></span>'
    )


def mark_labs(app: Sphinx, doctree: nodes.document) -> None:
    """Put the bar under a lab's title; say of a solved lab that it is one. Align numbers, and put code at the end."""
    name = app.env.docname
    align_numbers(doctree)
    code_at_end(doctree)
    match = LAB.match(name)
    lab = _labs().get(name.partition("/")[2]) if match else None
    title = next(doctree.findall(nodes.title), None)
    if not (match and lab and title is not None):
        return
    app.env.note_dependency(str(ROOT / SOURCE))
    if match[1] == "notebooks":
        options = app.config.html_theme_options
        place = (options.get("repository_url", ""), options.get("repository_branch", "main"))
        new = _html(lab_bar(lab, "hexview(" in doctree.astext(), *place))
    else:
        title += nodes.Text(" (solved)")
        own_links(doctree)
        page = name.partition("/")[2]
        new = _html(
            '<div class="mq-solved" role="note"><p><strong>This lab is solved.</strong> Every exercise is filled in. '
            f'<a href="../notebooks/{page}.html">To the lab without the answers</a></p></div>\n'
        )
    title.parent.insert(title.parent.index(title) + 1, new)


def own_links(doctree: nodes.document) -> None:
    """In a solved lab, the fold "Solution" points to the cell above it instead of to its own page."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link.astext() == "solved lab":
            link.parent.replace_self(nodes.paragraph("", "The worked answer is in the exercise's cell above."))


def align_numbers(doctree: nodes.document) -> None:
    """Columns of numbers are read from the right."""
    for table in doctree.findall(nodes.table):
        body = [row.children for part in table.findall(nodes.tbody) for row in part.children]
        heads = [row.children for part in table.findall(nodes.thead) for row in part.children]
        width = max(map(len, body), default=0)
        if not body or any(len(row) != width for row in body):
            continue
        for column in range(width):
            texts = [row[column].astext().strip() for row in body]
            if any(re.search(r"\d", text) for text in texts) and all(NUMBER.fullmatch(text) for text in texts):
                for row in (*body, *(row for row in heads if len(row) == width)):
                    row[column]["classes"].append("mq-number")


def code_at_end(doctree: nodes.document) -> None:
    """The code of a cell with the tag ``code-at-end`` stands folded at the end of its page; its output stays."""
    for cell in list(doctree.findall(nodes.container)):
        if "tag_code-at-end" in cell.get("classes", ()):
            for code in [node for node in cell.children if "cell_input" in node.get("classes", ())]:
                cell.remove(code)
                last = [node for node in doctree.children if isinstance(node, nodes.section)][-1]
                fold = '<details class="mq-code"><summary>The code of the picture above</summary>'
                last += [_html(fold), code, _html("</details>")]


class Start(SphinxDirective):
    """``{start}``: the two buttons of the home page."""

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        address = self.config.html_theme_options.get("repository_url", "")
        clone = f"<p>{copied(f'git clone {address}')}</p>" if address else ""
        return [
            _html(
                '<div class="mq-start"><a class="mq-button mq-first" href="../notebooks/00-five-minutes.html">'
                'Start lab 00</a>\n<details class="mq-get"><summary class="mq-button">Get the course</summary>\n'
                f"{clone}<p>In the folder of the course, this line installs what is needed and opens the labs:</p>"
                f"<p>{copied('make lab')}</p><p>It needs Python and a few minutes the first time. "
                '<a href="troubleshooting.html">If it stops</a></p></details></div>\n'
            )
        ]


class Cards(SphinxDirective):
    """``{cards}``: the parts of the course, one card each."""

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        self.env.note_dependency(str(ROOT / SOURCE))
        cards = "".join(card(part) for part in _parts() if part.page)
        return [_html(f'<div class="mq-cards">\n{cards}</div>\n')]


def card(part: Part) -> str:
    """A part as a card: its time, what a student needs, what they leave with."""
    page = part.page.replace(".md", ".html")
    labs = f"{len(part.labs)} labs" if len(part.labs) != 1 else "1 lab"
    return (
        f'<section class="mq-card" data-part="{part.name}">'
        f'<h3><a href="{page}">Part {part.name}: {part.title}</a></h3>\n'
        f"<dl><dt>time</dt><dd>{_hours(part.minutes)}, {labs}</dd><dt>you need</dt><dd>{html.escape(part.needs)}</dd>"
        f"<dt>you leave with</dt><dd>{html.escape(part.leave)}</dd></dl></section>\n"
    )


def page_context(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """No page leads on into a solution; every page says what it is about."""
    for direction in ("next", "prev"):
        if "solutions/" in (context.get(direction) or {}).get("link", "") and not page.startswith("solutions/"):
            context[direction] = None
    names = {"genindex": translated("Index"), "search": translated("Search")}
    title = re.sub(r"<[^>]+>", "", names.get(page) or str(context.get("title", ""))) or page
    title = html.unescape(title)
    home = page == app.config.root_doc
    full = translated("miniquant: write a quantized model file byte by byte") if home else f"{title} · miniquant"
    base = app.config.html_baseurl
    address = f"{base.rstrip('/')}/{page}.html" if base else ""
    context["mq_about"] = About(full, describe(page, title, doctree), address, part_of(page), captions())


@cache
def _parts() -> list[Part]:
    """The course, which is asked for by every page and card, and takes a tenth of a second to read."""
    return read_course(ROOT)


@cache
def captions() -> dict[str, str]:
    """The names of the parts by their titles, which are their captions in the list of pages."""
    return {part.title: part.name for part in _parts() if part.page}


@cache
def part_of(page: str) -> str:
    """The part to which a page belongs: that of its lab, or of a part's own page; most pages belong to none."""
    own, name = LAB.match(page), page.partition("/")[2]
    for part in _parts():
        if part.page and (f"{name}.md" == part.page or (own and f"{name}.ipynb" in {lab.file for lab in part.labs})):
            return part.name
    return ""


def describe(page: str, title: str, doctree: nodes.document | None) -> str:
    """The first paragraph of a page, shortened."""
    if page.startswith("_modules"):
        return f"The source code of {title}, a part of miniquant."
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        text = re.sub(r"^What you build\.\s*", "", paragraph.astext())
        if len(text) > 40:
            return shortened(text)
    return translated(ABOUT.get(page, "")) or translated(
        f"{title}: a page of miniquant, a course on quantized model files."
    )


def wrap_templates(app: Sphinx) -> None:
    """Every page goes through ``finish`` before it is written."""

    def finished(page: str, context: dict[str, Any]) -> str:
        about = context.get("mq_about")
        page = finish(page, about) if about else page
        if context.get("pagename") == "search":
            page = page.replace("</body>", '<script src="_static/search.js"></script>\n</body>')
        return page

    every_page(app, finished)


def choose_formulas(app: Sphinx, config: Config) -> None:
    """MathJax without its menu, which is larger than all the rest."""
    config.mathjax_path = "mathjax/startup.js"
    parts = ["core", "input/tex", "output/chtml", "a11y/assistive-mml"]  # they bring the font when they are there
    options = {**(config.mathjax3_config or {}).get("options", {}), "enableMenu": False}
    config.mathjax3_config = {**(config.mathjax3_config or {}), "loader": {"load": parts}, "options": options}


def smaller(picture: Path) -> None:
    """Store a picture of many bytes with a palette of 256 colours, if that is smaller and nobody can see it."""
    with Image.open(picture) as opened:
        if opened.mode == "P" or opened.convert("RGBA").getextrema()[3][0] < 255:  # packed already, or transparent
            return
        before = opened.convert("RGB")
    after = before.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    difference = ImageStat.Stat(ImageChops.difference(before, after.convert("RGB")))
    packed = io.BytesIO()
    after.save(packed, "PNG", optimize=True)
    if max(difference.mean) < 1.5 and len(packed.getvalue()) < 0.8 * picture.stat().st_size:
        picture.write_bytes(packed.getvalue())


def write_files(app: Sphinx, error: Exception | None) -> None:
    """The notebooks to download, the page for a wrong address, the theme without its icon font."""
    if error or app.builder.name != "html":
        return
    out = Path(app.outdir)
    for name in app.env.found_docs:
        notebook = Path(app.srcdir) / f"{name}.ipynb"
        if LAB.match(name) and notebook.exists():
            (out / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(notebook, out / f"{name}.ipynb")
    root = re.sub(r"^https?://[^/]+", "", app.config.html_baseurl).rstrip("/") + "/"
    (out / "404.html").write_text(LOST.format(root=root), "utf-8")
    shutil.rmtree(out / "_static/vendor/fontawesome", ignore_errors=True)
    for path in out.glob("_static/scripts/fontawesome.js*"):
        path.unlink()
    for path in out.glob("_images/*.png"):
        if path.stat().st_size > LARGE:
            smaller(path)
    for path in (out / "_static/mathjax").rglob("*"):
        if path.is_file() and not MATHJAX.match(path.relative_to(out / "_static/mathjax").as_posix()):
            path.unlink()
    words = words_of(out)
    for path in [
        *out.glob("_static/styles/*.css"),
        *out.glob("_static/mystnb.*.css"),
        *out.glob("_static/sphinx-*.css"),
    ]:
        path.write_text(trimmed(without_icon_font(path.read_text("utf-8")), words), "utf-8")


def words_of(out: Path) -> set[str]:
    """All that may be the name of a class: those that the pages have, and every word of what may add one later."""
    words: set[str] = set()
    for page in out.rglob("*.html"):
        words.update(*(found.split() for found in re.findall(r'class="([^"]*)"', page.read_text("utf-8"))))
    scripts = [*out.glob("_static/*.js"), *out.glob("_static/scripts/*.js"), *(ROOT / "book/live").glob("*.*")]
    for file in [*scripts, *(ROOT / "src").rglob("*.py")]:
        words.update(re.findall(r"[\w-]+", file.read_text("utf-8")))
    return words


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("start", Start)
    app.add_directive("cards", Cards)
    app.connect("config-inited", choose_formulas, priority=900)
    app.connect("builder-inited", wrap_templates)
    app.connect("doctree-read", mark_labs, priority=100)  # before Sphinx reads titles
    app.connect("html-page-context", page_context, priority=950)
    app.connect("build-finished", write_files, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
