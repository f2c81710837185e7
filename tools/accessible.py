"""What axe finds on a page: contrast, names, roles, what the keyboard cannot reach."""

from __future__ import annotations

from collections.abc import Iterator

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

TOLD = ("moderate", "serious", "critical")
OPTIONS = {
    "resultTypes": ["violations"],
    "preload": False,
}  # preloading asks for wrong addresses
STILL = "Promise.all(document.getAnimations().map((each) => each.finished.catch(() => null))).then(() => null)"
CONTRAST = {**OPTIONS, "runOnly": ["color-contrast"]}
SHOWN = 3  # places of each rule


def in_both_themes(page: Page) -> Iterator[str]:
    """What is wrong with a page in light colours, then the contrast of its dark ones; the page ends light."""
    yield from complaints(page)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("scheme => (document.documentElement.dataset.theme ?? scheme) === scheme", arg=scheme)
        page.evaluate(STILL)  # colours that change take a moment
        if scheme == "dark":
            yield from (f"dark: {line}" for line in complaints(page, CONTRAST))


def complaints(page: Page, options: dict[str, object] = OPTIONS) -> Iterator[str]:
    """One line for each rule that the page breaks, with its first places; what axe calls minor is left out."""
    for rule in Axe().run(page, options=options).response["violations"]:
        if rule["impact"] in TOLD:
            places = "; ".join(map(_place, rule["nodes"][:SHOWN]))
            yield f"axe, {rule['impact']}: {rule['help']} [{rule['id']}], {len(rule['nodes'])} times: {places}"


def _place(node: dict) -> str:
    checks = [*node["any"], *node["all"], *node["none"]]
    return f"{'/'.join(map(str, node['target']))} ({checks[0]['message'] if checks else ''})"
