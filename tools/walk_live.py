"""Walk through the live site in Chromium, as a student does: wrong answer, cause, right answer, reload, export.

python tools/walk_live.py [_build/html]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from accessible import complaints, show_theme
from browse_site import PHONE, SCREEN, TOO_WIDE, chromium, opened, served, until
from playwright.sync_api import Locator, Page

from miniquant.evaluate.llamacpp import LlamaCpp

ROOT = Path(__file__).resolve().parents[1]
MINUTES = 180_000  # milliseconds for a step on a busy machine
RUNS = 240  # seconds for a cell, those above it, and Python's start
TRY, RUN = re.compile("Try it here|Pruébalo aquí"), re.compile("Run cell|Ejecutar la celda")
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
    cell(page, number).locator(".cm-content").click()
    cell(page, number).locator(".cm-focused").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    assert stands(page, number, text), f"cell {number} holds {typed(page, number)!r}, not what was typed: {text!r}"


def typed(page: Page, number: str) -> str:
    """What stands in a cell's editor."""
    return "\n".join(line.strip("\n") for line in cell(page, number).locator(".cm-line").all_inner_texts())


def stands(page: Page, number: str, text: str) -> bool:
    """Whether a text comes to stand in a cell's editor."""
    return until(lambda: typed(page, number).strip() == text.strip(), bool)


def run(page: Page, number: str, shows: str, by_keyboard: bool = False) -> float:
    """Run a cell and wait until it shows a text; the seconds that took."""
    place, begun = cell(page, number), time.monotonic()
    runs = int(place.get_attribute("data-runs") or 0)
    if by_keyboard:
        page.keyboard.press("Shift+Enter")
    else:
        place.get_by_role("button", name=RUN).click()
    until(lambda: int(place.get_attribute("data-runs") or 0), lambda now: now > runs, RUNS)
    took = time.monotonic() - begun
    outputs = place.locator(".cell_output").filter(visible=True)
    text = until(outputs.all_inner_texts, lambda parts: any(shows in part for part in parts))
    assert any(shows in part for part in text), f"cell {number} shows {text}, not {shows!r}"
    return took


def press(page: Page, url: str) -> float:
    """Open a lab and press *Try it here*; the time of the press."""
    page.goto(url, wait_until="load")
    page.evaluate("() => { window.confirm = () => true }")
    begun = time.monotonic()
    page.get_by_role("button", name=TRY).click()
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
    figures["endless loop"] = run(page, "lab00-018", "has no end")
    figures["after it"] = run(page, "lab00-005", "✓ passed")
    write(page, "lab00-018", DEAF)
    figures["a loop that catches everything"] = run(page, "lab00-018", "Python was started again")
    run(page, "lab00-005", "✓ passed")
    cell(page, "lab00-018").scroll_into_view_if_needed()
    write(page, "lab00-018", "print('kept')")
    press(page, f"{address}/notebooks/00-five-minutes.html")
    done = until(page.locator(".bd-links .mq-done").all_inner_texts, ["1 of 3"].__eq__)
    if done != ["1 of 3"]:
        yield f"the list of pages shows {done} for one exercise passed of three"
    if not stands(page, "lab00-004", RIGHT):
        yield "after a reload the answer is not what was typed"
    run(page, "lab00-005", "✓ passed")
    with page.expect_download() as found:
        page.get_by_role("button", name="Export .ipynb").click()
    file = folder / "00-five-minutes.ipynb"
    found.value.save_as(file)
    yield from exported(file)
    cell(page, "lab00-004").get_by_role("button", name="Reset magic_bytes").click()
    if not until(lambda: "NotImplementedError" in typed(page, "lab00-004"), bool):
        yield "Reset does not bring the exercise back"
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_text("cells were taken").wait_for()
    if not stands(page, "lab00-004", RIGHT):
        yield "the import does not bring the answer back"


def by_keyboard(page: Page) -> Iterator[str]:
    """One exercise without a mouse: correct the answer, leave the editor, run the check, see where the focus is."""
    name = "document.activeElement.ariaLabel ?? document.activeElement.textContent"
    outline = "getComputedStyle(document.activeElement.closest('.cm-editor') ?? document.activeElement).outlineStyle"

    def focus(wanted: str) -> str:
        return until(lambda: page.evaluate(name), wanted.__eq__)

    def seen() -> bool:
        return until(lambda: page.evaluate(outline) != "none", bool)

    def leave(editor: str) -> None:
        """Escape, then Tab; an editor that waited too long between the two has indented instead."""
        for _ in range(3):
            page.keyboard.press("Escape")
            page.keyboard.press("Tab")
            if page.evaluate(name) != editor:
                return
            page.keyboard.press("Control+z")

    first, second = (cell(page, number).locator(".cm-content") for number in ("lab00-004", "lab00-005"))
    label, other = first.get_attribute("aria-label") or "", second.get_attribute("aria-label") or ""
    first.focus()
    focus(label)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(RIGHT)
    stands(page, "lab00-004", RIGHT)
    page.keyboard.press("Tab")
    if focus(label) != label:
        yield "Tab leaves the editor, and does not indent"
    page.keyboard.press("Control+z")
    if not stands(page, "lab00-004", RIGHT):
        yield f"Control+Z does not take the indent back: {typed(page, 'lab00-004')!r}"
    leave(label)  # to Run
    for _ in ("Reset", "the next editor"):
        page.keyboard.press("Tab")
    if focus(other) != other:
        yield f"Escape, then Tab leads from the editor to {page.evaluate(name)!r}, not to the next cell"
    if not seen():
        yield "an editor does not show that it has the focus"
    run(page, "lab00-005", "✓ passed", by_keyboard=True)
    leave(other)
    if focus("Run cell 4") != "Run cell 4" or not seen():
        yield f"after the editor the focus is on {page.evaluate(name)!r}, or cannot be seen"
    said = page.locator(".mq-live-bar [role=status]")
    if "ready" not in until(said.inner_text, lambda text: "ready" in text):
        yield "the status does not say that Python is ready"


def every_look(page: Page, what: str) -> Iterator[str]:
    """What axe finds on a page with running cells, on a phone and on a screen, light and dark; and what is too wide."""
    for size in (PHONE, SCREEN):
        for scheme in ("dark", "light"):
            page.set_viewport_size(size)
            show_theme(page, scheme)
            found = [*complaints(page), *page.evaluate(TOO_WIDE)]
            yield from (f"{what}, {size['width']} px, {scheme}: {line}" for line in found)


def in_spanish(page: Page, address: str, folder: Path, figures: dict[str, float]) -> Iterator[str]:
    """Lab 00 in Spanish: the bar, a wrong answer, its report; the switch keeps the place and what was typed."""
    press(page, f"{address}/es/notebooks/00-five-minutes.html")
    write(page, "lab00-004", WRONG)
    run(page, "lab00-005", "todavía no es correcto")
    said = cell(page, "lab00-005").locator(".cell_output").filter(visible=True).first.inner_text()
    if "se espera" not in said or "not right yet" in said:
        yield f"the report is not in Spanish: {said}"
    if page.get_by_text("Python is ready").count():
        yield "the bar is not in Spanish"
    cell(page, "lab00-018").scroll_into_view_if_needed()
    page.locator(".mq-languages a").click()
    page.wait_for_url(re.compile(r"/notebooks/00-five-minutes\.html#"))
    if "/es/" in page.url or page.locator(page.url[page.url.index("#") :]).count() != 1:
        yield f"the switch leads to {page.url}"
    page.get_by_role("button", name=TRY).click()
    page.locator(".cm-content").first.wait_for()
    if not stands(page, "lab00-004", WRONG):
        yield "the English page does not have what was typed in the Spanish one"


def left_out(page: Page, address: str, folder: Path, figures: dict[str, float]) -> Iterator[str]:
    """Lab 03: a cell that cannot run leads to the earlier cell to blame, by its number."""
    press(page, f"{address}/notebooks/03-pickle.html")
    run(page, "lab02-014", "pickle of")  # its stored output
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
    run(page, "lab11-063", "15-minigpt-f32.gguf")
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
    run(page, "lab11-010", "14-pitfall-magic.gguf")
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
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(file.parent)}}
    ).execute()
    shown = json.dumps([c["outputs"] for c in book.cells if c["id"] == "lab00-005"])
    if "passed" not in shown:
        yield f"the exported notebook does not pass in Jupyter: {shown[:200]}"


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
        page.set_default_timeout(MINUTES)
        for part in (first_lab, in_spanish, left_out, own_file):
            if only in part.__name__:
                problems += part(page, address, Path(folder), figures)
    print("; ".join(f"{name}: {seconds:.1f} s" for name, seconds in figures.items()))
    return problems


def main() -> int:
    """The command line; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--only", default="", help="first_lab, in_spanish, left_out or own_file")
    options = parser.parse_args()
    problems = walk(options.site.resolve(), options.only)
    print("\n".join(dict.fromkeys(problems)) or "the walk through the live site found nothing wrong")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
