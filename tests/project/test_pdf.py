"""The book on paper: its chapters, its links, its notes. Chromium prints it, and tools/pdf.py checks what it gave."""

from __future__ import annotations

import pdf
import pytest
from bs4 import BeautifulSoup
from places import ROOT

PAGE = """<html><head><link rel="stylesheet" href="../_static/a.css?v=1"></head><body><nav>menu</nav>
<article><h1 id="one">One<a class="headerlink" href="#one">#</a></h1><p><a href="b.html#two">next</a>
<a href="../solutions/a.html">solved</a> <a href="https://example.org/">far</a> <a href="#one">up</a></p>
<details><summary>Hint 1</summary><p>the idea <a href="b.html">there</a></p>
<details><summary>Hint 2</summary><p id="tool">the tool</p></details></details>
<img src="../_images/x.png?v=2"></article></body></html>"""
KEYS = {"notebooks/a.html": "p-notebooks-a", "notebooks/b.html": "p-notebooks-b"}


@pytest.fixture
def chapter(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "a.html").write_text(PAGE, "utf-8")
    return pdf.article(tmp_path, pdf.Chapter("", "notebooks/a.html"), KEYS)


def test_links_lead_into_the_book_or_to_the_world_and_none_to_a_page_that_is_left_out(chapter):
    title, found = chapter
    assert title == "One"
    hrefs = [link["href"] for link in found.select("p:not(.note-mark) > a") if "--note-" not in link["href"]]
    assert hrefs[:3] == ["#p-notebooks-b--two", "https://example.org/", "#p-notebooks-a--one"]
    assert "solved" in found.get_text() and "#p-notebooks-b" in hrefs


def test_what_is_folded_becomes_notes_in_order_and_every_note_leads_back(chapter):
    _, found = chapter
    assert not found.find_all(["details", "summary"])
    notes = found.select(".notes > .note")
    assert [note.get_text(" ", strip=True) for note in notes] == [
        "Note 1. Hint 1 the idea there Hint 2: note 2",
        "Note 2. Hint 2 the tool",
    ]
    ids = {tag["id"] for tag in found.select("[id]")}
    for link in found.select(".note-mark a, .note > p:first-child > a"):
        assert link["href"].lstrip("#") in ids
    assert "p-notebooks-a--tool" in ids


def test_a_picture_is_taken_from_where_the_site_has_it(chapter, tmp_path):
    assert chapter[1].img["src"] == (tmp_path / "_images" / "x.png").as_uri()


def test_a_page_that_is_not_built_is_named(tmp_path):
    with pytest.raises(pdf.PdfError, match=r"a\.html is not built; make book builds the site"):
        pdf.article(tmp_path, pdf.Chapter("", "notebooks/a.html"), KEYS)


def test_every_lab_and_no_solved_one_is_a_chapter_and_no_key_comes_twice():
    listed = pdf.chapters()
    labs = [chapter.place for chapter in listed if chapter.place.startswith("notebooks/")]
    assert labs == sorted(f"notebooks/{path.stem}.html" for path in (ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    assert not [chapter for chapter in listed if chapter.place.startswith(("solutions/", pdf.NO_CHAPTERS))]
    assert len({chapter.key for chapter in listed}) == len(listed)


def test_the_contents_name_every_chapter_with_its_page(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    for name in "ab":
        (tmp_path / "notebooks" / f"{name}.html").write_text(PAGE, "utf-8")
    listed = [pdf.Chapter("", "notebooks/a.html"), pdf.Chapter("Formats", "notebooks/b.html")]
    monkeypatch.setattr(pdf, "chapters", lambda: listed)
    soup = BeautifulSoup(pdf.book(tmp_path, {"p-notebooks-a": 7}), "html.parser")
    lines = [line.get_text(" ", strip=True) for line in soup.select(".contents li")]
    assert lines == ["One 7", "Formats", "One"]
    assert soup.link["href"] == (tmp_path / "_static" / "a.css").as_uri()
    ids = {tag["id"] for tag in soup.select("[id]")}
    assert all(link["href"].lstrip("#") in ids for link in soup.select('.contents a[href^="#"]'))
