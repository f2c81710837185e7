"""What axe finds on a page: contrast, names, roles, what the keyboard cannot reach."""

from __future__ import annotations

from collections.abc import Iterator

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

TOLD = ("moderate", "serious", "critical")
OPTIONS = {
    "resultTypes": ["violations"],
    "preload": False,
}  # preloading asks for wrong addresses
STILL = "Promise.all(document.getAnimations().map((each) => each.finished.catch(() => null))).then(() => null)"
# Only the colours differ between the themes, so the other rules are asked once.
THEMES = {"light": OPTIONS, "dark": {**OPTIONS, "runOnly": ["color-contrast"]}}
# Contrast is most of the time that axe takes, and a page has the same colours at every width.
WITHOUT_CONTRAST = {"light": {**OPTIONS, "rules": {"color-contrast": {"enabled": False}}}}
RUN = "options => axe.run(document, options).then(found => found.violations)"
SHOWN = 3  # places of each rule
# axe keeps the private fields of each colour in weak maps, and reads the
# texts of the same few colours thousands of times. The same findings take less than half the time if the fields are
# kept on the object itself, and each text is read once.
ON_OBJECT = """class {
  #key = Symbol();
  has(of) { return this.#key in of; }
  get(of) { return of[this.#key]; }
  set(of, value) { of[this.#key] = value; return this; }
  add(of) { return this.set(of, true); }
  delete(of) { return delete of[this.#key]; }
}"""
REMEMBER = """(() => {
  const colour = axe.commons.color.Color.prototype, parse = colour.parseString, known = new Map();
  colour.parseString = function (text) {
    if (!known.has(text)) {
      parse.call(this, text);
      known.set(text, [this.r, this.g, this.b, this.alpha]);
    }
    [this.r, this.g, this.b, this.alpha] = known.get(text);
    return this;
  };
})();"""
START = f"((WeakMap, WeakSet) => {{{AXE_SCRIPT}}})({ON_OBJECT}, {ON_OBJECT}); {REMEMBER}"


def show_theme(page: Page, scheme: str) -> None:
    """Show a page in light or dark colours, and wait until they have changed."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("scheme => (document.documentElement.dataset.theme ?? scheme) === scheme", arg=scheme)
    page.evaluate(STILL)  # colours that change take a moment


def complaints(page: Page, options: dict[str, object] = OPTIONS) -> Iterator[str]:
    """One line for each rule that the page breaks, with its first places; what axe calls minor is left out."""
    if page.evaluate("!window.axe"):
        page.evaluate(START)
    for rule in page.evaluate(RUN, options):
        if rule["impact"] in TOLD:
            places = "; ".join(map(_place, rule["nodes"][:SHOWN]))
            yield f"axe, {rule['impact']}: {rule['help']} [{rule['id']}], {len(rule['nodes'])} times: {places}"


def _place(node: dict) -> str:
    checks = [*node["any"], *node["all"], *node["none"]]
    return f"{'/'.join(map(str, node['target']))} ({checks[0]['message'] if checks else ''})"
