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

from browse_site import FLAGS, SCREEN, opened, served
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.models.corpus import load_tokenizer
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import write_minigpt

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
    write(page, "lab00-004", RIGHT)
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


def own_file(page: Page, address: str, folder: Path, figures: dict[str, float]) -> Iterator[str]:
    """Labs 14 and 15: llama.cpp in the page speaks from its file as the native one does, and refuses a wrong one."""
    press(page, f"{address}/notebooks/15-gguf-blocks.html")
    begun = time.monotonic()
    run(page, "lab11-063", "15-minigpt-f32.gguf", 180)
    figures["GGUF written"] = time.monotonic() - begun
    said = spoken(page, "lab11-063", "spoke")
    path = folder / "native.gguf"
    write_minigpt(path, load_pretrained(), load_tokenizer(), "F32")
    with LlamaCpp(path) as llama:
        tokens = llama.greedy(llama.tokenize(PROMPT), 11)
        native = PROMPT + llama.text(tokens).decode()
    if said != native:
        yield f"llama.cpp in the page says {said!r}, the native one {native!r}"
    press(page, f"{address}/notebooks/14-gguf.html")
    run(page, "lab11-010", "14-pitfall-magic.gguf", 120)
    refused = spoken(page, "lab11-010", "refused")
    if "magic" not in refused:
        yield f"llama.cpp's message about a wrong magic is not shown: {refused!r}"


def spoken(page: Page, number: str, state: str) -> str:
    """Load the first file that a cell wrote in llama.cpp; what is shown then."""
    box = cell(page, number).locator(".mq-live-llama").first
    box.get_by_role("button").click()
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
        for part in (first_lab, own_file):
            if only in part.__name__:
                problems += part(page, address, Path(folder), figures)
    print("; ".join(f"{name}: {seconds:.1f} s" for name, seconds in figures.items()))
    return problems


def main() -> int:
    """The command line; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--only", default="", help="first_lab or own_file")
    options = parser.parse_args()
    problems = walk(options.site.resolve(), options.only)
    print("\n".join(dict.fromkeys(problems)) or "the walk through the live site found nothing wrong")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
