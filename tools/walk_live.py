"""Walk through the live site in Chromium, as a student does: wrong answer, cause, right answer, reload, export.

python tools/walk_live.py [_build/html]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accessible import complaints
from browse_site import FLAGS, PHONE, SCREEN, TOO_WIDE, opened, served
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from miniquant.evaluate.llamacpp import LlamaCpp

ROOT = Path(__file__).resolve().parents[1]
MINUTE = 60_000
PROMPT = "An exception is raised when"
WRONG = """@exercise("magic_bytes")
def magic_bytes(magic, version):
    return np.array([magic, version], ">u4").tobytes()
"""
RIGHT = WRONG.replace(">u4", "<u4")
ENDLESS = "n = 0\nwhile True:\n    n += 1"
DEAF = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"


def cell(page: Page, number: str) -> Locator:
    """The cell with this id."""
    return page.locator(f'[data-cell="{number}"]')


def write(page: Page, number: str, text: str) -> None:
    """Type a cell anew, as a person does: mark everything, then insert the text."""
    editor = cell(page, number).locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def typed(page: Page, number: str) -> str:
    """What stands in a cell's editor."""
    return "\n".join(cell(page, number).locator(".cm-line").all_inner_texts())


def run(page: Page, number: str, shows: str, seconds: float = 60) -> float:
    """Press *Run* and wait until the cell shows a text; the seconds that took."""
    place, begun = cell(page, number), time.monotonic()
    runs = place.get_attribute("data-runs") or "0"
    place.get_by_role("button", name="Run cell").click()
    page.wait_for_function(
        "([id, runs]) => Number(document.querySelector(`[data-cell='${id}']`).dataset.runs ?? 0) > Number(runs)",
        arg=[number, runs],
        timeout=1000 * seconds,
    )
    took = time.monotonic() - begun
    text = place.locator(".cell_output").filter(visible=True).all_inner_texts()
    assert any(shows in part for part in text), f"cell {number} shows {text}, not {shows!r}"
    return took


def press(page: Page, url: str) -> float:
    """Open a lab and press *Try it here*; the time of the press."""
    page.goto(url, wait_until="load")
    page.evaluate("() => { window.confirm = () => true }")
    begun = time.monotonic()
    page.get_by_role("button", name="Try it here").click()
    page.locator(".cm-content").first.wait_for()
    return begun


def first_lab(page: Page, address: str, folder: Path, figures: dict[str, float]) -> Iterator[str]:
    """Lab 00: the whole way of one exercise."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/notebooks/00-five-minutes.html", wait_until="load")
    page.get_by_role("button", name="Try it here").wait_for()
    heavy = [url for url in asked if "/_live/" in url and not url.endswith(("/live.js", "/live.css"))]
    if heavy:
        yield f"before the press the page asks for {heavy[0]}"
    begun = press(page, f"{address}/notebooks/00-five-minutes.html")
    write(page, "lab00-004", WRONG)
    run(page, "lab00-005", "big-endian")
    figures["first check"] = time.monotonic() - begun
    yield from every_look(page, "a lab with a wrong answer")
    yield from by_keyboard(page)
    figures["later check"] = run(page, "lab00-005", "✓ passed")
    run(page, "lab00-016", "54")
    if not cell(page, "lab00-016").locator(".mq-bytes, table, [class*=hex], pre").count():
        yield "hexview shows no bytes"
    figures["endless loop"] = run(page, "lab00-018", "together")
    write(page, "lab00-018", ENDLESS)
    figures["endless loop"] = run(page, "lab00-018", "has no end", 20)
    figures["after it"] = run(page, "lab00-005", "✓ passed", 20)
    write(page, "lab00-018", DEAF)
    figures["a loop that catches everything"] = run(page, "lab00-018", "Python was started again", 90)
    run(page, "lab00-005", "✓ passed")
    cell(page, "lab00-018").scroll_into_view_if_needed()
    write(page, "lab00-018", "print('kept')")
    press(page, f"{address}/notebooks/00-five-minutes.html")
    done = page.locator(".bd-links .mq-done").all_inner_texts()
    if done != ["1 of 3"]:
        yield f"the list of pages shows {done} for one exercise passed of three"
    if typed(page, "lab00-004").strip() != RIGHT.strip():
        yield "after a reload the answer is not what was typed"
    run(page, "lab00-005", "✓ passed")
    with page.expect_download() as found:
        page.get_by_role("button", name="Export .ipynb").click()
    file = folder / "00-five-minutes.ipynb"
    found.value.save_as(file)
    yield from exported(file)
    cell(page, "lab00-004").get_by_role("button", name="Reset magic_bytes").click()
    if "NotImplementedError" not in typed(page, "lab00-004"):
        yield "Reset does not bring the exercise back"
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_text("cells were taken").wait_for()
    if typed(page, "lab00-004").strip() != RIGHT.strip():
        yield "the import does not bring the answer back"


def by_keyboard(page: Page) -> Iterator[str]:
    """One exercise without a mouse: correct the answer, leave the editor, run the check, see where the focus is."""
    focused = "document.activeElement.ariaLabel ?? document.activeElement.textContent"
    cell(page, "lab00-004").locator(".cm-content").focus()
    label = page.evaluate(focused)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(RIGHT)
    page.keyboard.press("Tab")
    if page.evaluate(focused) != label:
        yield "Tab leaves the editor, and does not indent"
    page.keyboard.press("Control+z")
    stops = ["Escape", "Tab", "Tab", "Tab"]  # Run, Reset, the next editor
    for key in stops:
        page.keyboard.press(key)
    if not page.evaluate("document.activeElement.closest('[data-cell=lab00-005] .cm-editor') !== null"):
        yield f"Escape, then Tab leads from the editor to {page.evaluate(focused)!r}, not to the next cell"
    place = cell(page, "lab00-005")
    place.locator(".cm-focused").wait_for()  # the editor says so a moment later; the one that was left may still say it
    if place.locator(".cm-focused").evaluate("e => getComputedStyle(e).outlineStyle") == "none":
        yield "an editor does not show that it has the focus"
    runs = place.get_attribute("data-runs")
    page.keyboard.press("Shift+Enter")
    page.wait_for_function("([box, runs]) => box.dataset.runs > runs", arg=[place.element_handle(), runs])
    if "✓ passed" not in place.inner_text():
        yield "the check that was run by keyboard does not say that the answer passed"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    shown = "getComputedStyle(document.activeElement).outlineStyle"
    if page.evaluate(focused) != "Run cell 4" or page.evaluate(shown) == "none":
        yield f"after the editor the focus is on {page.evaluate(focused)!r}, or cannot be seen"
    if "ready" not in page.locator(".mq-live-bar [role=status]").inner_text():
        yield "the status does not say that Python is ready"


def every_look(page: Page, what: str) -> Iterator[str]:
    """What axe finds on a page with running cells, on a phone and on a screen, light and dark; and what is too wide."""
    for size in (PHONE, SCREEN):
        for scheme in ("dark", "light"):
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
            found = [*complaints(page), *page.evaluate(TOO_WIDE)]
            yield from (f"{what}, {size['width']} px, {scheme}: {line}" for line in found)


def left_out(page: Page, address: str, folder: Path, figures: dict[str, float]) -> Iterator[str]:
    """Lab 03: a cell that cannot run leads to the earlier cell to blame, by its number."""
    press(page, f"{address}/notebooks/03-pickle.html")
    run(page, "lab02-014", "pickle of", 180)  # its stored output
    note = cell(page, "lab02-014").locator(".mq-live-note")
    link = note.get_by_role("link")
    number = cell(page, "lab02-004").locator(".mq-live-number").inner_text()
    if "PyTorch" not in note.inner_text() or link.inner_text() != number:
        yield f"a cell that uses what {number} makes says {note.inner_text()!r}"
    if page.locator(link.get_attribute("href") or "#").get_attribute("data-cell") != "lab02-004":
        yield f"the link to {number} leads to {link.get_attribute('href')}"
    write(page, "lab02-022", "print(seen)")
    run(page, "lab02-022", "Run that cell first")


def own_file(page: Page, address: str, folder: Path, figures: dict[str, float]) -> Iterator[str]:
    """Labs 14 and 15: llama.cpp in the page speaks from its file as the native one does, and refuses a wrong one."""
    press(page, f"{address}/notebooks/15-gguf-blocks.html")
    begun = time.monotonic()
    run(page, "lab11-063", "15-minigpt-f32.gguf", 180)
    figures["GGUF written"] = time.monotonic() - begun
    said = spoken(page, "lab11-063", "spoke")
    path = folder / "from-the-page.gguf"
    with page.expect_download() as found:
        cell(page, "lab11-063").get_by_role("button", name="Save 15-minigpt-f32.gguf").click()
    found.value.save_as(path)
    with LlamaCpp(path) as llama:
        ids = llama.greedy(llama.tokenize(PROMPT), 11)
        native = f"{PROMPT}{llama.text(ids).decode()}\n\n{len(ids)} tokens: {' '.join(map(str, ids))}"
    if said != native:
        yield f"llama.cpp in the page says {said!r}, the native one with the same bytes {native!r}"
    yield from every_look(page, "a lab with llama.cpp")
    press(page, f"{address}/notebooks/14-gguf.html")
    run(page, "lab11-010", "14-pitfall-magic.gguf", 120)
    refused = spoken(page, "lab11-010", "refused")
    if "magic" not in refused:
        yield f"llama.cpp's message about a wrong magic is not shown: {refused!r}"


def spoken(page: Page, number: str, state: str) -> str:
    """Load the first file that a cell wrote in llama.cpp; what is shown then."""
    box = cell(page, number).locator(".mq-live-llama").first
    box.get_by_role("button", name="in llama.cpp").click()
    page.wait_for_function("box => box.dataset.state", arg=box.element_handle())
    assert box.get_attribute("data-state") == state, box.inner_text()
    return box.locator("pre").inner_text()


def exported(file: Path) -> Iterator[str]:
    """Whether the exported notebook is valid, and its check passes in Jupyter."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(file, as_version=4)
    nbformat.validate(book)
    os.environ["MINIQUANT_PROGRESS"] = os.devnull
    NotebookClient(
        book, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(file.parent)}}
    ).execute()
    shown = json.dumps([c["outputs"] for c in book.cells if c["id"] == "lab00-005"])
    if "passed" not in shown:
        yield f"the exported notebook does not pass in Jupyter: {shown[:200]}"


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


def walk(site: Path, only: str = "") -> list[str]:
    """The problems of the whole walk, one line each."""
    problems: list[str] = []
    figures: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium() as browser,
        served(site) as address,
        opened(browser, problems, SCREEN, "light") as page,
    ):
        page.set_default_timeout(MINUTE)
        for part in (first_lab, left_out, own_file):
            if only in part.__name__:
                problems += part(page, address, Path(folder), figures)
    print("; ".join(f"{name}: {seconds:.1f} s" for name, seconds in figures.items()))
    return problems


def main() -> int:
    """The command line; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--only", default="", help="first_lab, left_out or own_file")
    options = parser.parse_args()
    problems = walk(options.site.resolve(), options.only)
    print("\n".join(dict.fromkeys(problems)) or "the walk through the live site found nothing wrong")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
