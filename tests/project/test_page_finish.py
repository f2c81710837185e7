"""The last step of every page of the site, on a page of a few lines."""

from __future__ import annotations

import pytest
from page_finish import PATHS, About, finish, icon, shortened, trimmed, without_icon_font

PAGE = """<html><head>
    <meta charset="utf-8" />
    <meta name="viewport" content="a" /><meta name="viewport" content="b"/>
    <title>Old</title>
    <script>document.documentElement.dataset.mode = "auto";</script>
    <script src="fontawesome.js"></script>
    <script src="one.js"></script>
    <script>window.MathJax = {}</script>
    <script defer src="mathjax/startup.js?v=1"></script>
</head><body><i class="fa-solid fa-sun fa-lg" data-mode="light" title="Light"></i>
<button class="sidebar-toggle primary-toggle btn" title="Toggle"><span class="fa-solid fa-bars"></span></button>
<p>Text</p></body></html>"""
ABOUT = About("A & B", 'What "it" is.')


def test_scripts_come_after_the_text_and_the_colours_before_it():
    head, _, body = finish(PAGE, ABOUT).partition("</head>")
    assert head.count("<script") == 1
    assert "dataset.mode" in head
    assert body.index("<p>Text</p>") < body.index('<script src="one.js">') < body.index("</body>")


def test_the_icon_font_is_gone_and_every_icon_is_drawn():
    page = finish(PAGE, ABOUT)
    assert "fontawesome" not in page
    assert "fa-" not in page
    assert page.count("<svg") == 2
    assert 'data-mode="light"' in page
    assert "Light" not in page


def test_a_page_of_a_part_and_the_caption_of_each_part_carry_its_name():
    caption = '<p class="caption"><span class="caption-text">{}</span></p>'
    page = PAGE.replace("<p>Text</p>", caption.format("Bits &amp; bytes") + caption.format("Formats"))
    about = About("A", "B", part="II", captions={"Bits & bytes": "III"})
    done = finish(page, about)
    assert '<body data-part="II">' in done
    assert done.count("data-part=") == 2 and '<span class="caption-text" data-part="III">Bits &amp; bytes' in done
    assert "data-part" not in finish(page, ABOUT)


def test_every_fold_is_a_plain_one():
    fold = (
        '<details class="sd-sphinx-override sd-dropdown sd-card sd-mb-3" open="open">\n'
        '<summary class="sd-summary-title sd-card-header">\n<span class="sd-summary-text">More</span>'
        '<span class="sd-summary-state-marker sd-summary-chevron-right"><svg></svg></span></summary>'
        '<div class="sd-summary-content sd-card-body docutils">\n<p>Text</p></div></details>'
    )
    done = finish(PAGE.replace("<p>Text</p>", fold), ABOUT)
    assert '<details class="mq-fold" open="open">' in done and "sd-card" not in done and "marker" not in done
    assert '<span class="sd-summary-text">More</span></summary><div>\n<p>Text</p></div></details>' in done


def test_what_opens_the_pages_below_another_one_has_the_name_of_that_page():
    link = '<a class="reference internal" href="a.html">A &amp; <code>b</code></a>'
    fold = "<details><summary><span></span></summary></details>"
    page = finish(PAGE.replace("<p>Text</p>", f"<li>{link}{fold}</li><details><summary>C</summary></details>"), ABOUT)
    assert f'{link}<details><summary aria-label="Pages below: A &amp; b">' in page
    assert page.count("Pages below") == 1


@pytest.mark.parametrize(("formula", "count"), [("", 0), ('<span class="math notranslate">x</span>', 1)])
def test_mathjax_is_named_only_on_a_page_with_a_formula_and_never_loaded_by_the_page(formula, count):
    page = finish(PAGE.replace("<p>Text", f"<p>{formula}Text"), ABOUT)
    assert page.count('data-src="mathjax/startup.js?v=1"') == count
    assert page.count("window.MathJax") == count
    assert '<script defer src="mathjax' not in page


def test_a_page_has_one_viewport_its_title_and_what_it_is_about():
    page = finish(PAGE, ABOUT)
    assert page.count('name="viewport"') == 1
    assert "<title>A &amp; B</title>" in page
    assert '<meta name="description" content="What &quot;it&quot; is.">' in page
    assert '<meta property="og:title" content="A &amp; B">' in page
    assert "og:url" not in page
    assert 'og:url" content="https://example.org/a.html"' in finish(PAGE, About("A", "B", "https://example.org/a.html"))


def test_a_description_that_the_page_has_is_kept():
    page = finish(PAGE.replace("<title>", '<meta content="Mine" name="description" /><title>'), ABOUT)
    assert page.count('name="description"') == 1
    assert 'og:description" content="Mine"' in page


def test_the_toggle_says_what_it_opens_and_whether_it_is_open():
    page = finish(PAGE, ABOUT)
    assert 'aria-label="Pages of the course" aria-expanded="false" aria-controls="pst-primary-sidebar"' in page


def test_an_icon_that_nobody_has_drawn_stops_the_build():
    with pytest.raises(StopIteration):
        icon("fa-solid fa-unheard-of")
    assert all(icon(f"fas fa-{name}").endswith("</svg>") for name in PATHS)


@pytest.mark.parametrize(
    ("text", "length", "short"),
    [
        ("as long", 7, "as long"),
        ("First one. Second one.", 12, "First one."),
        ("no sentence ends here", 15, "no sentence …"),
    ],
)
def test_a_description_ends_with_a_sentence_or_a_word(text, length, short):
    assert shortened(text, length) == short


def test_a_style_sheet_keeps_everything_but_the_icon_font():
    gone = '@font-face{font-family:"Font Awesome 6 Free";src:url(a.woff2)}.fa,.fas{a:b}.fa-sun:before{c:d}'
    kept = "p.fair{e:f}.fade:not(.show){g:h}.fas,p{i:j}@media print{b{k:l}}"
    assert without_icon_font(gone + kept) == kept


@pytest.mark.parametrize(
    ("css", "left"),
    [
        (".a{x:y}.b{x:y}", ".a{x:y}"),
        (".b .a,p,.a>.b{x:y}", "p{x:y}"),
        ("p:not(.b),.a:is(.b,.c):not(:is(.b)){x:y}", "p:not(.b),.a:is(.b,.c):not(:is(.b)){x:y}"),
        ("@media print{.b{x:y}}@media print{.a{x:y}.b{x:y}}", "@media print{.a{x:y}}"),
        ('@import "c";.b{x:y}', '@import "c";'),
        ("@keyframes b{from{x:1.5s}}", "@keyframes b{from{x:1.5s}}"),
        ('/* .a{ */.b{x:y}[href$=".b"]{x:y}', '[href$=".b"]{x:y}'),
        (".b\\:c{x:y}", ".b\\:c{x:y}"),
    ],
)
def test_rules_for_classes_that_no_page_has_are_left_out(css, left):
    assert trimmed(css, {"a"}) == left
