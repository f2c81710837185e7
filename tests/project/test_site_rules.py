"""What a newcomer may expect of a page: every rule is met by a small site, and each notices what breaks it."""

from __future__ import annotations

import pytest
from check_site import site_problems

HEAD = """<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width">
<meta name="description" content="About it."><meta property="og:title" content="It">
<meta property="og:description" content="About it."><title>{title} · miniquant</title></head><body>"""
PAGES = {
    "index.html": HEAD + '<h1>Begin</h1><a class="right-next" href="notebooks/00-five.html">Next</a></body></html>',
    "search.html": HEAD + "<h1>Search</h1></body></html>",
    "404.html": '<html><head><meta name="viewport" content="w"><meta name="robots" content="noindex">'
    "<title>Not here</title></head><body><h1>Not here</h1></body></html>",
    "notebooks/00-five.html": HEAD
    + """<button class="sidebar-toggle primary-toggle" aria-expanded="false">Pages</button><h1>Lab 00</h1>
<a href="00-five.ipynb">Download</a><code>make lab LAB=00</code>
<button class="mq-copy" aria-label="Copy make lab LAB=00">Copy</button><a href="../solutions/00-five.html">Solved</a>
<span class="math">x</span><template data-src="../mathjax/startup.js"></template></body></html>""",
    "solutions/00-five.html": HEAD
    + """<h1>Lab 00 (solved)</h1><a href="../notebooks/00-five.html">Back</a></body></html>""",
    "notebooks/00-five.ipynb": "{}",
    "mathjax/startup.js": "",
    "searchindex.js": "Search.setIndex(" + "x" * 200 + ")",
}
TITLES = {"notebooks/00-five.html": "Lab 00", "solutions/00-five.html": "Lab 00 (solved)"}


@pytest.fixture
def site(tmp_path):
    """A home page, a lab and its solution without a fault."""
    for name, text in PAGES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("{title}", TITLES.get(name, name)))
    return tmp_path


def test_the_small_site_keeps_every_rule(site):
    assert site_problems(site) == []


LAB, SOLVED = "notebooks/00-five.html", "solutions/00-five.html"


@pytest.mark.parametrize(
    ("name", "before", "after", "says"),
    [
        (LAB, '<meta name="viewport"', '<meta name="viewport"><meta name="viewport"', "2 viewport tags"),
        (LAB, 'name="viewport"', 'name="other"', "0 viewport tags"),
        (LAB, 'name="description"', 'name="other"', "0 tags 'description'"),
        (LAB, "og:title", "og:other", "0 tags 'og:title'"),
        (LAB, "og:description", "og:other", "0 tags 'og:description'"),
        (LAB, "<title>Lab 00", "<title>miniquant", "says one thing twice"),
        (LAB, "<title>Lab 00", "<title>index.html", "2 pages have the title 'index.html · miniquant'"),
        (LAB, "<h1>", '<i class="fa-solid fa-bars"></i><h1>', "1 icons need an icon font"),
        (LAB, "<h1>", '<script src="fontawesome.js"></script><h1>', "loads the icon font"),
        (LAB, 'class="math"', "", "loads MathJax and has no formula"),
        (LAB, "<template", "<div", "has formulas and no MathJax"),
        (LAB, ' aria-expanded="false"', "", "do not say whether the panel is open"),
        (LAB, 'href="00-five.ipynb"', 'href="00-five.html"', "no link to 00-five.ipynb"),
        (LAB, "Copy make lab LAB=00", "Copy make lab", "does not say `make lab LAB=00`"),
        (LAB, "../solutions/00-five.html", "#", "no link to ../solutions/00-five.html"),
        (SOLVED, "<h1>Lab 00 (solved)", "<h1>Lab 00", "the heading does not say that the lab is solved"),
        (SOLVED, "<title>Lab 00 (solved)", "<title>Lab zero", "the title does not say that the lab is solved"),
        (SOLVED, "../notebooks/00-five.html", "#", "no link to ../notebooks/00-five.html"),
        (SOLVED, "<h1>", '<a href="#x">solved lab</a><h1 id="x">', "sends its reader to itself"),
        ("index.html", "notebooks/00-five.html", "solutions/00-five.html", "Next leads into a solution"),
    ],
)
def test_every_broken_rule_is_named(site, name, before, after, says):
    text = (site / name).read_text()
    assert before in text
    (site / name).write_text(text.replace(before, after, 1).replace("<div data-src", "<div data-other"))
    problems = site_problems(site)
    assert any(says in problem for problem in problems), problems


def test_a_lab_that_is_too_heavy_is_named_with_its_weight(site):
    picture = site / "notebooks" / "a.png"
    text = (site / LAB).read_text()
    (site / LAB).write_text(text.replace("<h1>", '<img src="a.png" alt="A lot"><h1>'))
    picture.write_bytes(bytes(590_000))
    assert site_problems(site) == []
    picture.write_bytes(bytes(600_000))
    assert [p for p in site_problems(site) if "weighs 600 kB compressed; at most 600" in p]


def test_the_font_of_a_style_sheet_counts(site):
    text = (site / LAB).read_text()
    (site / LAB).write_text(text.replace("</head>", '<link rel="stylesheet" href="a.css"></head>'))
    (site / "notebooks" / "a.css").write_text('@font-face { src: url("a.woff2") format("woff2"); }')
    (site / "notebooks" / "a.woff2").write_bytes(bytes(600_000))
    assert [p for p in site_problems(site) if "weighs 600 kB compressed; at most 600" in p]


def test_a_site_without_a_page_for_wrong_addresses_is_named(site):
    (site / "404.html").unlink()
    assert "404.html is missing" in site_problems(site)


def test_an_icon_font_that_nobody_loads_is_named(site):
    (site / "fontawesome.js").write_text("")
    assert any("no page needs it" in problem for problem in site_problems(site))
