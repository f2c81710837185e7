"""The last step of every page: icons drawn in place, no script before the text, and what search engines read.

``finish`` takes the HTML that the theme made and returns what is written. It needs no Sphinx, so tests call it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PATHS = {  # icons of 24 by 24, drawn with a pen of width 2
    "angle-left": '<path d="M15 5l-7 7 7 7"/>',
    "angle-right": '<path d="M9 5l7 7-7 7"/>',
    "arrow-up": '<path d="M12 20V5M5 12l7-7 7 7"/>',
    "bars": '<path d="M3 6h18M3 12h18M3 18h18"/>',
    "chevron-down": '<path d="M5 9l7 7 7-7"/>',
    "circle-half-stroke": '<circle cx="12" cy="12" r="9"/><path fill="currentColor" d="M12 3v18a9 9 0 0 0 0-18z"/>',
    "expand": '<path d="M3 9V3h6M15 3h6v6M21 15v6h-6M9 21H3v-6"/>',
    "list": '<path d="M9 6h12M9 12h12M9 18h12M3 6h1M3 12h1M3 18h1"/>',
    "magnifying-glass": '<circle cx="10" cy="10" r="7"/><path d="M15 15l6 6"/>',
    "moon": '<path d="M20 14A8.5 8.5 0 1 1 10 4a7 7 0 0 0 10 10z"/>',
    "sun": '<circle cx="12" cy="12" r="4"/><path d="M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1 1M18 18l1 1M5 19l1-1M18 6l1-1"/>',  # noqa: E501
}
DRAWN = 'viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"'
_ICON = re.compile(r'<(i|span) class="([^"]*\bfa-[^"]*)"([^>]*)>\s*</\1>')
_SCRIPT = re.compile(r"[ \t]*<script\b[^>]*>.*?</script>\n?", re.S)
_PRELOAD = re.compile(r'<link rel="preload" as="script"[^>]*>\n?')
_VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>')
_FORMULA = re.compile(r'class="[^"]*\bmath\b')
_SELECTOR = re.compile(r"(?:[^,(]|\((?:[^()]|\([^()]*\))*\))+")
_FOLD = re.compile(r'<a class="[^"]*"[^>]*>((?:(?!</a>).)*)</a><details(?: open="[^"]*")?><summary>')
_TOGGLES = {
    "primary": ("pst-primary-sidebar", "Pages of the course"),
    "secondary": ("pst-secondary-sidebar", "On this page"),
}


@dataclass(frozen=True)
class About:
    """What the head of a page says about it; ``address`` is empty as long as nobody knows where the site will be.

    ``part`` is the part of the course that the page belongs to, such as ``II``; ``captions`` are the names of all parts
    by the captions that they have in the list of pages. Each part has a colour of its own.
    """

    title: str
    description: str
    address: str = ""
    part: str = ""
    captions: Mapping[str, str] = field(default_factory=dict)


def every_page(app: Sphinx, change: Callable[[str, dict[str, Any]], str]) -> None:
    """Let ``change`` have every page, with the context of its template, before it is written."""
    if app.builder.name != "html":
        return
    render = app.builder.templates.render
    app.builder.templates.render = lambda template, context: change(render(template, context), context)


def finish(page: str, about: About) -> str:
    """The page as it is written."""
    page = _ICON.sub(lambda found: icon(found[2], found[3]), page)
    head, mark, rest = page.partition("</head>")
    if not mark:
        return page
    head = _VIEWPORT.sub("", _PRELOAD.sub("", head)).replace(
        '<meta charset="utf-8" />',
        '<meta charset="utf-8" />\n    <meta name="viewport" content="width=device-width, initial-scale=1">',
        1,
    )
    head = re.sub(r"<title>.*?</title>", lambda _: f"<title>{html.escape(about.title)}</title>", head, flags=re.S)
    head, late = _scripts_apart(head, bool(_FORMULA.search(rest)))
    body, end, last = rest.rpartition("</body>")
    body = body.replace('<img alt="', '<img decoding="async" fetchpriority="low" alt="')
    if about.part:
        body = body.replace("<body", f'<body data-part="{about.part}"', 1)
    body = _plain_folds(_folds(_toggles(_coloured(body, about.captions))))
    return "".join([head, _metadata(head, about), mark, body, late, end, last])


def icon(classes: str, attributes: str = "") -> str:
    """An icon of the theme's font as a drawing; the name of its button says what it means."""
    name = next(part.removeprefix("fa-") for part in classes.split() if part.removeprefix("fa-") in PATHS)
    kept = " ".join(part for part in classes.split() if not part.startswith("fa"))
    mode = "".join(re.findall(r' data-mode="[a-z]+"', attributes))
    large = " mq-large" if "fa-lg" in classes else ""
    shown = f"mq-icon{large} {kept}".strip()
    return f'<svg class="{shown}" {DRAWN} aria-hidden="true"{mode}>{PATHS[name]}</svg>'


def _scripts_apart(head: str, formula: bool) -> tuple[str, str]:
    """The head without scripts, but for the one that sets the colours; and the others, which come after the text."""
    late = []

    def keep(found: re.Match[str]) -> str:
        script = found[0]
        if "dataset.mode" in script or "application/ld+json" in script:
            return script
        mathjax = "mathjax" in script.lower()
        if "fontawesome" in script or (mathjax and not formula):
            return ""
        if mathjax and (source := re.search(r'src="([^"]*)"', script)):
            script = (
                f'    <template id="mq-formulas" data-src="{source[1]}"></template>\n'  # site.js loads it when needed
            )
        if script not in late:
            late.append(script)
        return ""

    return _SCRIPT.sub(keep, head), "".join(late)


def _metadata(head: str, about: About) -> str:
    said = re.search(r'<meta (?:content="([^"]*)" name="description"|name="description" content="([^"]*)")', head)
    text = (said[1] or said[2]) if said else html.escape(about.description)
    tags = [] if said else [f'<meta name="description" content="{text}">']
    tags.append(f'<meta property="og:title" content="{html.escape(about.title)}">')
    tags.append(f'<meta property="og:description" content="{text}">')
    tags.append('<meta property="og:type" content="article">')
    tags.append('<meta property="og:site_name" content="miniquant">')
    if about.address:
        tags.append(f'<meta property="og:url" content="{html.escape(about.address)}">')
    return "\n".join(["", *tags, ""])


def _coloured(body: str, captions: Mapping[str, str]) -> str:
    """In the list of pages, the caption of a part has the colour of the part."""

    def named(found: re.Match[str]) -> str:
        part = captions.get(html.unescape(found[1]).strip())
        return f'{found[0]} data-part="{part}"' if part else found[0]

    return re.sub(r'<span class="caption-text"(?=>([^<]*)<)', named, body)


def _toggles(body: str) -> str:
    """The two buttons that open the side panels say what they open, and whether it is open."""
    for which, (panel, label) in _TOGGLES.items():
        body = re.sub(
            rf'<button class="sidebar-toggle {which}-toggle([^"]*)" title="[^"]*"[^>]*>',
            lambda found, w=which, p=panel, n=label: (
                f'<button class="sidebar-toggle {w}-toggle{found[1]}" aria-label="{n}" aria-expanded="false" '
                f'aria-controls="{p}">'
            ),
            body,
        )
    return body


def _folds(body: str) -> str:
    """In the list of pages, what opens the pages below another one has a name."""

    def named(found: re.Match[str]) -> str:
        title = html.unescape(re.sub("<[^>]*>", "", found[1])).strip()
        return f'{found[0][:-1]} aria-label="Pages below: {html.escape(title)}">'

    return _FOLD.sub(named, body)


def _plain_folds(body: str) -> str:
    """What folds is a plain ``details`` everywhere, so that all of them look alike; style sheets do the rest."""
    body = re.sub(r'<span class="sd-summary-state-marker[^"]*">.*?</span>', "", body, flags=re.S)
    body = re.sub(r'<details class="sd-[^"]*sd-dropdown[^"]*"', '<details class="mq-fold"', body)
    return body.replace('<summary class="sd-summary-title sd-card-header">', "<summary>").replace(
        '<div class="sd-summary-content sd-card-body docutils">', "<div>"
    )


def shortened(text: str, length: int = 200) -> str:
    """The beginning of a text, up to a whole sentence or a whole word.

    >>> shortened("One sentence. Another one, which is longer than there is room.", 30)
    'One sentence.'
    >>> shortened("one two three four", 10)
    'one two …'
    """
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    sentence = text[: length + 1].rfind(". ")
    if sentence > 0.3 * length:
        return text[: sentence + 1]
    return text[: length - 1].rpartition(" ")[0].rstrip(",;:") + " …"


def trimmed(css: str, words: Set[str]) -> str:
    """A style sheet without the rules for classes that nothing on the site has. words: all that may be a class

    >>> trimmed(".a:not(.z) b,.c{x:y}@media print{.c{x:y}}@media print{.a{x:y}}", {"a"})
    '.a:not(.z) b{x:y}@media print{.a{x:y}}'
    """

    def kept(rule: re.Match[str]) -> str:
        before, mark, selectors = rule[1].rpartition(";")
        left = [each for each in _SELECTOR.findall(selectors) if _classes(each) <= words]
        return f"{before}{mark}{','.join(left)}{{{rule[2]}}}" if left else before + mark

    css = re.sub(r"([^{}]+)\{([^{}]*)\}", kept, re.sub(r"/\*.*?\*/", "", css, flags=re.S))
    return re.sub(r"@(?:media|supports)[^{}]*\{\s*\}", "", css)


def _classes(selector: str) -> set[str]:
    """The classes that an element must have; what stands in brackets, as in ``:not(.a)``, may be missing."""
    bare = selector
    while "(" in bare and bare != (bare := re.sub(r"\([^()]*\)", "", bare)):
        pass
    return set() if "\\" in bare else set(re.findall(r"\.(-?[A-Za-z_][\w-]*)", re.sub(r"\[[^\]]*\]", "", bare)))


def without_icon_font(css: str) -> str:
    """A style sheet without the rules and files of the icon font, which no page uses any more."""
    css = re.sub(r"@font-face\{[^}]*Font ?Awesome[^}]*\}", "", css)
    return re.sub(r"([^{}]+)\{[^{}]*\}", lambda rule: "" if _is_icon(rule[1]) else rule[0], css)


def _is_icon(selectors: str) -> bool:
    return all(re.match(r"\.fa(?:[bdlrs]|-[\w-]+)?(?![\w-])", each.strip()) for each in selectors.split(","))
