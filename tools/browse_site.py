"""Look at the built site in a real browser: Chromium, on a screen and on a phone, in light and dark.

Every page is looked at with all its folds open; of those that show a module's source, one in ten. The contrast is
measured on the screen. The look fails on what axe finds, an error in the console, a request to another host, a page
that is wider than the screen, a navigation button that does nothing on a phone, a panel that does not close, a search
that does not find what it should, a byte view or the exhibit that does not follow the keyboard, and a page that is dark
or cut on paper.

    python tools/browse_site.py [_build/html] [--screenshots FOLDER] [--only PART-OF-A-NAME]

Needs Python's ``playwright`` and ``axe-playwright-python``, and a Chromium on the machine; CHROMIUM may name it. Each
core of the machine gets a browser and its share of the pages.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from accessible import THEMES, WITHOUT_CONTRAST, complaints, show_theme
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
Answer = TypeVar("Answer")
PATIENCE = 30  # seconds for what a quiet machine shows at once
PHONE, SCREEN = {"width": 375, "height": 740}, {"width": 1280, "height": 900}
SOURCES, ONE_IN = "_modules/", 10  # pages of one kind, which Sphinx makes of the library's source
COLOURS_ON_A_PHONE = ("book/index.html", "notebooks/06-int8.html")  # what only a phone shows: header and panels
OPEN_FOLDS = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = e => e && e !== document.documentElement &&
    (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  return [...document.querySelectorAll("main *")]
    .filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
    .slice(0, 3).map(e => `${e.tagName.toLowerCase()} "${(e.textContent || "").replace(/[ \\n]+/g, " ").slice(0, 40)}"`)
    .concat([`the page is ${document.documentElement.scrollWidth} wide`]);
}"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_: object) -> None:
        """No line for every request."""


class QuietServer(ThreadingHTTPServer):
    """A browser that leaves a page drops what it was loading; that is no error."""

    def handle_error(self, *_: object) -> None:
        """Nothing to say."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a server of this folder, on this machine only."""
    server = QuietServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this machine."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, problems: list[str], size: dict[str, int], scheme: str) -> Iterator[Page]:
    """A page whose complaints are added to ``problems``."""
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()

    def where() -> str:
        return f"{urlsplit(page.url).path} ({size['width']} px, {scheme})"

    def look_at(request: object) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            problems.append(f"{where()}: asks another host for {request.url[:100]}")

    page.on("request", look_at)
    page.on("console", lambda m: problems.append(f"{where()}: console: {m.text[:200]}") if m.type == "error" else None)
    page.on("pageerror", lambda e: problems.append(f"{where()}: error: {str(e)[:200]}"))
    page.on("response", lambda r: problems.append(f"{where()}: {r.status} {r.url}") if r.status >= 400 else None)
    try:
        yield page
    finally:
        context.close()


def until(ask: Callable[[], Answer], right: Callable[[Answer], object], seconds: float = PATIENCE) -> Answer:
    """Ask until the answer is right or the time is over; the last answer."""
    end = time.monotonic() + seconds
    while not right(answer := ask()) and time.monotonic() < end:
        time.sleep(0.05)
    return answer


def visit(page: Page, url: str) -> None:
    """Open a page and wait until its scripts have done their work, formulas included."""
    page.goto(url, wait_until="load")
    page.evaluate("""() => window.showFormulas?.() && Promise.race([
      window.showFormulas().then(() => null),
      new Promise((_, no) => setTimeout(() => no(new Error("the formulas do not appear")), 20_000)),
    ])""")


def phone_button(page: Page) -> str:
    """What is wrong with the button that opens the navigation on a phone; empty if it works."""
    button = page.locator("button.primary-toggle").first
    link = page.locator(".bd-sidebar-primary .bd-links a, #pst-primary-sidebar-modal .bd-links a").first
    if not button.is_visible():
        return "no navigation button on a phone"
    button.click()
    try:
        link.wait_for(state="visible", timeout=3000)
        page.wait_for_timeout(400)  # it slides in
        box = link.bounding_box()
    except Exception as error:
        return f"the navigation button opens nothing ({type(error).__name__})"
    return "" if box and box["x"] >= 0 else "the navigation stays outside the screen"


def byte_view(page: Page, address: str) -> str:
    """What is wrong with the byte view of lab 00's solution on a phone; empty if the keyboard can read it."""
    visit(page, f"{address}/solutions/01-bytes.html")
    view = page.locator("form.mq-view").first
    lines = view.locator(".mq-row").first.bounding_box()["height"]
    if not 40 < lines < 64:
        return f"a row of 16 bytes is not two lines on a phone: {lines:.0f} px"
    over = "cells => cells.filter(e => e.scrollWidth > e.clientWidth + 3).length"
    if wide := page.locator("form.mq-view .mq-cells").evaluate_all(over):
        return f"{wide} rows of bytes lie over the letters beside them"
    first = view.locator("input").first
    first.focus()
    page.keyboard.press("ArrowRight")
    names = [view.locator("input").nth(i).get_attribute("aria-label") for i in range(2)]
    shown = "e => getComputedStyle(e, '::after').content"
    chosen = page.evaluate("document.activeElement.ariaLabel")
    if chosen != names[1] or names[1][:20] not in view.locator("input:checked").evaluate(shown):
        return f"the arrow key went from {names[0]!r} to {chosen!r}, which is not explained"
    page.keyboard.press("Escape")
    if view.locator("input:checked").evaluate(shown) != "none":
        return "Escape does not clear what is explained"
    page.keyboard.press("Tab")
    return "a byte view is more than one stop of the Tab key" if view.locator(":focus").count() else ""


def exhibit(page: Page, address: str) -> str:
    """What is wrong with the exhibit of part II, used with the keyboard alone; empty if it follows."""
    visit(page, f"{address}/book/part-2-quantization.html")
    place = page.locator(".mq-exhibit")
    said = place.locator("dd").all_inner_texts
    before = said()
    place.locator("input").first.focus()
    page.keyboard.press("ArrowRight")  # five bits
    after = said()
    if not before[2].startswith("34:") or not after[2].startswith("42:"):
        return f"five bits in the place of four change the bytes from {before[2][:20]!r} to {after[2][:20]!r}"
    place.locator(".mq-ex-stage").focus()
    page.keyboard.press("Home")
    for _ in range(8):
        page.keyboard.press("PageUp")
    error, wide = (float(texts[0].split()[0]) for texts in (after, said()))
    if not wide > 1.5 * error:
        return f"an outlier leaves the error at {wide} after {error}"
    return ""


def on_paper(page: Page, address: str) -> str:
    """What is wrong with a page that is printed from the dark theme; empty if it is light and whole."""
    visit(page, f"{address}/notebooks/06-int8.html")
    page.emulate_media(media="print")
    page.wait_for_timeout(1000)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    closed = page.locator(".bd-article details:not([open]):visible").count()
    cut = page.evaluate(
        "[...document.querySelectorAll('.bd-article pre')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    page.emulate_media(media="screen")
    if sum(map(float, re.findall(r"[\d.]+", colour)[:3])) < 3 * 240 and colour != "rgba(0, 0, 0, 0)":
        return f"a page printed from the dark theme has the background {colour}"
    return f"on paper {closed} boxes are closed, and {cut} pieces of code cut" if closed or cut else ""


def panels(page: Page, address: str) -> Iterator[str]:
    """What is wrong with the two side panels of a phone: a tap on a link closes them, and so does their button."""
    for which, link in (("primary", ".bd-links a.current"), ("secondary", ".page-toc a[href]")):
        visit(page, f"{address}/notebooks/00-five-minutes.html")
        button, panel = page.locator(f".{which}-toggle").first, page.locator(f"#pst-{which}-sidebar-modal")
        for closer in (link, ".mq-close"):
            button.click()
            page.wait_for_timeout(400)
            if button.get_attribute("aria-expanded") != "true":
                yield f"the {which} button does not say that its panel is open"
            try:
                panel.locator(closer).first.click(timeout=3000)
                panel.wait_for(state="hidden", timeout=3000)
            except Exception as error:
                yield f"the {which} panel does not close after a tap on {closer} ({type(error).__name__})"
                break
            if button.get_attribute("aria-expanded") != "false":
                yield f"the {which} button does not say that its panel is closed"


SEARCHES = {  # what somebody types: a link or a text that the results begin with, or hold
    "how do I start": "notebooks/00-five-minutes",
    "quantise": "quanti",
    "quantiztion": "Did you mean quantization",
    "nibble": "In solved labs",
    "lab 7": "notebooks/07-",
}


def search(page: Page, address: str, words: str) -> tuple[int, str]:
    """How many pages the search finds; its first link, and all its text."""
    visit(page, f"{address}/search.html?q={words.replace(' ', '+')}")
    try:
        page.get_by_text("Search finished").first.wait_for(timeout=10_000)
        page.locator("#search-results .context").first.wait_for(timeout=10_000)
    except Exception:
        return 0, ""
    first = page.locator("#search-results li a").first.get_attribute("href") or ""
    return page.locator("#search-results li").count(), f"{first} {page.locator('#search-results').inner_text()}"


def look(address: str, shots: Path | None, names: list[str]) -> list[str]:
    """Look at some pages, on a screen and on a phone, in light and dark; the problems, one line each."""
    problems: list[str] = []
    with chromium() as browser:
        for size in (SCREEN, PHONE):
            with opened(browser, problems, size, "light") as page:
                for name in names:
                    show_theme(page, "light")
                    visit(page, f"{address}/{name}")
                    where = f"{name} ({size['width']} px"
                    for scheme in THEMES if shots else ():
                        show_theme(page, scheme)
                        file = f"{name.removesuffix('.html').replace('/', '-')}-{size['width']}-{scheme}.png"
                        page.screenshot(path=shots / file, full_page=True)
                    page.evaluate(OPEN_FOLDS)
                    if wide := page.evaluate(TOO_WIDE):
                        problems.append(f"{where}): wider than the screen: {'; '.join(wide)}")
                    colours = size is SCREEN or name in COLOURS_ON_A_PHONE
                    for scheme, options in (THEMES if colours else WITHOUT_CONTRAST).items():
                        show_theme(page, scheme)
                        problems += [f"{where}, {scheme}): {line}" for line in complaints(page, options)]
    return problems


def look_at_all(site: Path, address: str, shots: Path | None, only: str) -> list[str]:
    """Look at every page, with one browser for each core; the problems, one line each."""
    files = {p.relative_to(site).as_posix(): p for p in site.rglob("*.html") if "_static" not in p.parts}
    names = [n for n, p in files.items() if only in n and 'http-equiv="Refresh"' not in p.read_text("utf-8")]
    if not only:
        sources = sorted(name for name in names if name.startswith(SOURCES))
        names = sorted({*names} - {*sources}) + sources[::ONE_IN]
    names.sort(key=lambda name: files[name].stat().st_size)  # so the shares are equally large
    cores, begun = os.cpu_count() or 1, time.monotonic()
    shares = list(filter(None, (names[i::cores] for i in range(cores))))
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as workers:
        found = [line for each in workers.map(functools.partial(look, address, shots), shares) for line in each]
    print(f"{len(names)} pages in {time.monotonic() - begun:.0f} s: {len(found)} problems")
    return found


def use(browser: Browser, address: str, shots: Path | None) -> list[str]:
    """Use the parts of the site that move: panels, byte view, exhibit, search, print; the problems, one line each."""
    problems: list[str] = []
    with opened(browser, problems, PHONE, "light") as page:
        page.goto(f"{address}/")  # leads on to the first page
        page.wait_for_url("**/book/index.html")
        if problem := phone_button(page):
            problems.append(problem)
        if shots:
            page.screenshot(path=shots / "navigation-375-light.png")
        problems += filter(None, (walk(page, address) for walk in (byte_view, exhibit)))
        problems += panels(page, address)
        for words, wanted in SEARCHES.items():
            found, text = search(page, address, words)
            if not found or wanted.lower() not in text.lower():
                problems.append(f"the search for {words!r} finds {found} pages and does not show {wanted!r}")
            if "Print to PDF" in text or "\nContents\n" in text:
                problems.append(f"the search for {words!r} quotes the contents of a page and not its text")
        if shots:
            page.screenshot(path=shots / "search-375-light.png")
    with opened(browser, problems, SCREEN, "dark") as page:
        problems += filter(None, [on_paper(page, address)])
    return problems


def main() -> int:
    """The command line; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=Path("_build/html"))
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of every page")
    parser.add_argument("--only", default="", help="pages whose name contains this")
    options = parser.parse_args()
    shots, site = options.screenshots, options.site.resolve()
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    with served(site) as address:
        problems = look_at_all(site, address, shots, options.only)
        with chromium() as browser:
            problems += use(browser, address, shots)
    print("\n".join(dict.fromkeys(problems)) or "the look at the site found nothing wrong")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
