"""Pages fit their reader: code wraps under its indentation, wide columns are tables, figures follow the theme."""

from __future__ import annotations

import importlib.util
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from miniquant import plots

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("fit", ROOT / "book" / "_ext" / "fit.py")
fit = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fit)


def page(kind: str, text: str) -> str:
    return f'<div class="{kind} notranslate"><div class="highlight"><pre><span></span>{text}\n</pre></div>\n</div>'


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def test_every_line_of_code_has_a_box_that_knows_its_indentation_and_its_text_stays_the_same():
    code = 'def f(a):\n    <span class="k">return</span> a &lt; 2\n\n        deep = 1'
    made = fit.fitted(page("highlight-python", code), {})
    assert re.findall(r'<span class="mq-l" style="--i:(\d+)">', made) == ["0", "4", "0", "8"]
    assert text_of(made) == text_of(page("highlight-python", code))
    assert made.count("<span") == made.count("</span>")


@pytest.mark.parametrize("kind", ["highlight-text", "highlight-markdown", "output stream highlight-myst-ansi"])
def test_what_is_laid_out_by_hand_or_printed_gets_no_such_boxes(kind):
    assert "mq-l" not in fit.fitted(page(kind, "a\n  b"), {})


def test_printed_prose_may_wrap_and_printed_columns_may_not():
    stream = "output stream highlight-myst-ansi"
    for text, kind in (
        ("one line of words", "mq-prose"),
        ("  indented: 1\nnot", "mq-prose"),
        ("name   bytes\nw      4", "mq-columns"),
        ("a | b", "mq-columns"),
        ("a\tb", "mq-columns"),
    ):
        assert f'class="output {kind} stream' in fit.fitted(page(stream, text), {}), text


WIDE = """\
claim  what it says now{gap}verdict           cases
C-001  begins with GGUF{gap}as written          100
C-002  counts &lt;tensors&gt;{gap}not so               90"""


def test_columns_that_are_too_wide_become_a_table_with_its_header():
    gap = " " * 45
    made = fit.fitted(page("output stream highlight-myst-ansi", WIDE.format(gap=gap)), {})
    root = ElementTree.fromstring(made)
    assert [th.text for th in root.iter("th")] == ["claim", "what it says now", "verdict", "cases"]
    rows = [[td.text for td in tr.iter("td")] for tr in root.find(".//tbody")]
    assert rows == [["C-001", "begins with GGUF", "as written", "100"], ["C-002", "counts <tensors>", "not so", "90"]]
    narrow = fit.fitted(page("output stream highlight-myst-ansi", WIDE.format(gap="  ")), {})
    assert "<table" not in narrow and "mq-columns" in narrow


def test_wide_text_without_common_columns_stays_as_it_was_printed():
    text = "a  " + "word " * 20 + "\nlonger  " + "x" * 60 + "\n-  b"
    assert "<table" not in fit.fitted(page("output stream highlight-myst-ansi", text), {})


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    figure = plots.throughput_bars({"one": 1.0, "two": 2.0}, unit="tokens a second", title="Two rates")
    path = tmp_path_factory.mktemp("drawing") / "figure.svg"
    path.write_text(figure._repr_svg_(), "utf-8")
    return path


def test_a_figure_is_drawn_into_the_page_with_its_alternative_text_and_the_theme_s_colours(drawing):
    link = '<p><img alt="Two bars &amp; more" class="x" src="../_images/abc.svg" /></p>'
    made = fit.fitted(link, {"abc.svg": str(drawing)})
    svg = ElementTree.fromstring(made).find(".//{http://www.w3.org/2000/svg}svg")
    assert (svg.get("role"), svg.get("aria-label")) == ("img", "Two bars & more")
    assert "#010101" not in made and "#fefefe" not in made
    assert "currentColor" in made and "var(--pst-color-background)" in made
    assert "svg *{" not in made, "a style of one figure would be that of every drawing on the page"
    assert "Two rates" in text_of(made)


def test_no_letter_of_a_figure_is_smaller_than_eleven_pixels_on_a_phone(drawing):
    made = fit.inline(drawing.read_text("utf-8"), "two bars")
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', made)[1])
    shown = float(re.search(r"min-width:(\d+)px", made)[1])
    sizes = [float(size) for size in re.findall(r'<text style="font-size: ([\d.]+)px', made)]
    assert sizes and min(sizes) * shown / width >= 10.98


def test_two_figures_of_a_page_share_no_name_although_their_parts_are_alike(drawing):
    one = drawing.read_text("utf-8")
    made = [fit.inline(text, "bars") for text in (one, one.replace("Two rates", "Three"))]
    names = [set(re.findall(r'id="(\w+)"', html)) for html in made]
    assert names[0] and not names[0] & names[1]
    for html, known in zip(made, names):
        assert set(re.findall(r"(?:href=\"|url\()#(\w+)", html)) <= known


def test_a_drawing_whose_cell_writes_its_text_is_named_by_it(drawing):
    text = drawing.read_text("utf-8")
    body = f'<p>a</p><figure data-alt="A &quot;line&quot; &lt; b">{text}</figure><p>b</p>'
    made = fit.with_drawings(body, {})
    assert made == "<p>a</p>" + fit.inline(text, 'A "line" < b') + "<p>b</p>"
    assert 'aria-label="A &quot;line&quot; &lt; b"' in made


def test_other_images_and_drawings_stay_links(drawing):
    for link in ('<img alt="a" src="../_images/a.png" />', '<img alt="a" src="../_images/gone.svg" />'):
        assert fit.fitted(link, {"abc.svg": str(drawing)}) == link
