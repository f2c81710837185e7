"""The check of the built site: a small site that is whole, and everything that it must notice."""

from __future__ import annotations

import pytest
from check_site import site_problems

PAGE = """<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width"><title>A page</title>
<meta name="description" content="About it."><meta property="og:title" content="It">
<meta property="og:description" content="About it.">
<link rel="stylesheet" href="style.css"><script src="code.js"></script></head>
<body><h1 id="top">A page</h1><p>Text</p>
<img src="picture.png" alt="Four bytes in a row"><a href="search.html">search</a>
<a href="#top">up</a><a href="https://example.org/">elsewhere</a></body></html>"""


@pytest.fixture
def site(tmp_path):
    """A site of two pages without a fault."""
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "search.html").write_text(PAGE.replace("<title>A page", "<title>Search"))
    (tmp_path / "404.html").write_text(PAGE.replace("<title>A page", "<title>Not here"))
    (tmp_path / "style.css").write_text("h1 { color: red; background: url('picture.png') }")
    (tmp_path / "code.js").write_text("")
    (tmp_path / "picture.png").write_bytes(b"png")
    (tmp_path / "searchindex.js").write_text("Search.setIndex(" + "x" * 200 + ")")
    return tmp_path


def test_a_site_without_a_fault_has_no_problems(site):
    assert site_problems(site) == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("code.js", "https://example.org/code.js", "from another host"),
        ("style.css", "//example.org/style.css", "from another host"),
        ('src="picture.png"', 'src="gone.png"', "which is not there"),
        ("<p>", "<p style=\"background: url('https://example.org/a.png')\">", "from another host"),
        ("<p>", "<style>@import 'https://example.org/a.css';</style><p>", "from another host"),
        ('href="search.html"', 'href="gone.html"', "leads nowhere"),
        ('href="#top"', 'href="#bottom"', "an anchor that is not there"),
        ('alt="Four bytes in a row"', "", "no alternative text"),
        ("Four bytes in a row", "", "empty alternative text"),
        ("Four bytes in a row", "_images/" + "0123456789abcdef" * 4 + ".png", "a file name as its alternative text"),
        ("<title>A page</title>", "", "no title"),
        ("<h1", "<h2", "no first heading"),
        ("<p>", '<p id="top">', "stands 2 times"),
        ("<p>Text", "<pre>&lt;Figure size 640x480 with 1 Axes&gt;</pre><p>Text", "a figure is shown as text"),
        ("<p>", '<svg role="img"></svg><p>', "no aria-label"),
    ],
)
def test_every_fault_of_a_page_is_named(site, before, after, says):
    assert before in PAGE
    (site / "index.html").write_text(PAGE.replace(before, after, 1))
    problems = site_problems(site)
    assert any(says in problem and problem.startswith("index.html") for problem in problems), problems


def test_a_style_sheet_that_loads_from_another_host_is_named(site):
    (site / "style.css").write_text("@import url(https://example.org/font.css);")
    assert any(p.startswith("style.css") and "another host" in p for p in site_problems(site))


@pytest.mark.parametrize("name", ["searchindex.js", "search.html"])
def test_a_site_without_search_is_named(site, name):
    (site / name).unlink()
    assert any(name in problem for problem in site_problems(site))
