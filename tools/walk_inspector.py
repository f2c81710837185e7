"""Walk through the inspector in Chromium: good and bad files, a byte lit everywhere, an edit, two files, a link, 4 GB.

    python tools/walk_inspector.py [_build/html]

What the page says of a file is compared with what Python says of it here.
"""

from __future__ import annotations

import argparse
import pickle
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from accessible import complaints
from browse_site import PHONE, SCREEN, TOO_WIDE, chromium, opened, served, until
from playwright.sync_api import Locator, Page
from walk_live import MINUTES, ROOT

from miniquant.core.errors import MiniquantError
from miniquant.formats.gguf import read_gguf, write_gguf
from miniquant.formats.registry import open_any

SLOW = 60  # seconds for the first pages of a large file, on a busy machine
LARGE = 2**32 + 2**30  # bytes, more than 32 bits count
Q4 = "minigpt-q4_0.gguf"


def tool(page: Page, name: str) -> Locator:
    """A part of the inspector by its class."""
    return page.locator(f"#mq-inspector .mq-insp-{name}")


def ready(page: Page, states: tuple[str, ...] = ("open",)) -> None:
    """Wait until the inspector has read a file."""
    choice = ", ".join(f"#mq-inspector[data-state={state}]" for state in states)
    page.locator(choice).wait_for()


def opened_at(page: Page, at: int) -> None:
    """Wait until a byte is shown."""
    page.locator(f"#mq-inspector[data-at='{at}'] .mq-insp-byte.chosen[data-at='{at}']").wait_for()


@contextmanager
def reading(page: Page) -> Iterator[None]:
    """What is done here makes the inspector read a file; wait until it shows all of it."""
    page.evaluate("document.getElementById('mq-inspector').dataset.state = 'waiting'")
    yield
    ready(page)


def choose_file(page: Page, *paths: Path) -> float:
    """Give the page a file, as a person chooses one; the seconds until it is shown."""
    begun = time.monotonic()
    with reading(page):
        page.get_by_label("A model file").set_input_files(list(paths))
    return time.monotonic() - begun


def sample(page: Page, name: str) -> None:
    """Open a sample by its name."""
    page.get_by_label("Sample").select_option(name)
    with reading(page):
        page.get_by_role("button", name="Open the sample").click()


def linked(page: Page, address: str, samples: Path, figures: dict[str, float]) -> Iterator[str]:
    """A link opens a byte; the byte, the row, the strip and the block lead to each other."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/book/inspector.html", wait_until="load")
    page.locator("#mq-inspector[data-state=ready]").wait_for()
    if heavy := [url for url in asked if "/pyodide/" in url or url.endswith(".whl")]:
        yield f"before a file is chosen the page asks for {heavy[0]}"
    with read_gguf(samples / Q4) as file:
        name = "blk.0.ffn_up.weight"
        info = file.tensors[name]
        start, entry = file.data_start + info.offset, file.spans[f"tensor:{name}"]
        weights = file.tensor(name)
        size = file.n_bytes
    at = start + 18 * 5 + 2
    begun = time.monotonic()
    page.goto(f"{address}/book/inspector.html#sample={Q4}&at={at}", wait_until="load")
    page.reload()
    ready(page)
    opened_at(page, at)
    figures["first file, with Python's start"] = time.monotonic() - begun
    row = tool(page, "table").locator("tr.lit")
    if row.count() != 1 or name not in row.inner_text():
        yield f"byte {at} lights the rows {row.all_inner_texts()}"
    if name not in tool(page, "said").inner_text():
        yield f"the strip says {tool(page, 'said').inner_text()!r}"
    shown = [float(text) for text in tool(page, "numbers").locator("li").all_inner_texts()]
    if not np.allclose(shown, weights.reshape(-1)[5 * 32 : 6 * 32], rtol=1e-5):
        yield f"block 5 of {name} shows {shown[:4]}"
    if "d" not in tool(page, "decoded").locator("td button").all_inner_texts():
        yield "the parts of the block are not named"
    tool(page, "table").get_by_role("button", name=name, exact=True).click()
    opened_at(page, entry[0])
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    page.wait_for_function("before => document.getElementById('mq-inspector').dataset.at !== before", arg=str(entry[0]))
    last = int(page.locator("#mq-inspector").get_attribute("data-at") or 0)
    if not entry[0] < last < size:
        yield f"End on the strip leads to byte {last}"
    tool(page, "byte").locator("visible=true").first.click()
    page.keyboard.press("Control+Home")
    opened_at(page, 0)
    page.keyboard.press("ArrowRight")
    opened_at(page, 1)
    link = f"#sample={Q4}&at=1"
    if (shown_link := until(lambda: page.evaluate("location.hash"), link.__eq__)) != link:
        yield f"the address ends with {shown_link}"
    if tool(page, "grid").locator("[tabindex='0']").count() != 1:
        yield "the byte view is more than one stop of the Tab key"


def edits(page: Page, folder: Path, samples: Path) -> Iterator[str]:
    """A typed byte is read again, undone, saved; the file itself stays."""
    sample(page, Q4)
    tool(page, "byte").locator("visible=true").first.click()
    page.keyboard.press("Control+Home")
    opened_at(page, 0)
    for at in range(1, 9):
        page.keyboard.press("ArrowRight")
        opened_at(page, at)
    page.keyboard.type("c8")
    opened_at(page, 9)
    with reading(page):
        page.get_by_role("button", name="Read again").click()
    tool(page, "problem").get_by_text("A reader stops here").wait_for()
    whole = (samples / Q4).read_bytes()
    changed = whole[:8] + b"\xc8" + whole[9:]
    yield from same_error(page, changed, {})
    with page.expect_download() as found:
        page.get_by_role("button", name="Save the changed file").click()
    found.value.save_as(folder / "changed.gguf")
    if (folder / "changed.gguf").read_bytes() != changed:
        yield "the saved file is not the file with the changed byte"
    page.get_by_role("button", name="Undo byte 8").click()
    with reading(page):
        page.get_by_role("button", name="Read again").click()
    tool(page, "problem").wait_for(state="hidden")


def same_error(page: Page, data: bytes, beside: dict[str, bytes]) -> Iterator[str]:
    """Whether the page's message is the library's."""
    shown = tool(page, "problem").inner_text()
    try:
        open_any(data, beside).close()
    except MiniquantError as error:
        message = str(error).removeprefix("the bytes: ")
        if message not in shown:
            yield f"the library says {message!r}, the page {shown!r}"
    else:
        yield f"the library opens what the page refuses: {shown!r}"


def bad_files(page: Page, folder: Path, samples: Path) -> Iterator[str]:
    """Malformed files of every format, with the message that the library has for each."""
    whole = (samples / Q4).read_bytes()
    lite = (samples / "minigpt-int4.gguf-lite").read_bytes()
    tensors = ROOT / "src" / "miniquant" / "assets" / "minigpt.safetensors"
    config = (samples / "bump" / "config.json").read_bytes()
    files: dict[str, tuple[bytes, dict[str, bytes]]] = {
        "version.gguf": (whole[:4] + struct.pack("<I", 9) + whole[8:], {}),
        "cut.gguf": (whole[:-100], {}),
        "dtype.gguf-lite": (lite[:200], {}),
        "cut.safetensors": (tensors.read_bytes()[:-5], {}),
        "flipped.bump": ((samples / "minigpt.bump").read_bytes()[:-1] + b"\x01", {"config.json": config}),
        "import.pkl": (pickle.dumps(print, 2), {}),
        "nothing.txt": (b"no model file at all", {}),
    }
    for name, (data, beside) in files.items():
        paths = [folder / name, *(folder / other for other in beside)]
        paths[0].write_bytes(data)
        for path, text in zip(paths[1:], beside.values()):
            path.write_bytes(text)
        choose_file(page, *paths)
        yield from (f"{name}: {problem}" for problem in same_error(page, data, beside))
    for name in ("minigpt.bump", "minigpt.safetensors", "minigpt-int4.gguf-lite"):
        sample(page, name)
        if tool(page, "problem").is_visible():
            yield f"{name}: {tool(page, 'problem').inner_text()}"
    sample(page, "command.pkl")
    if ".system" not in tool(page, "body").get_by_text("What loading would import").locator("..").inner_text():
        yield "the pickle's import is not shown"


def two_files(page: Page, folder: Path, samples: Path) -> Iterator[str]:
    """The bytes in which two files differ are counted, and the next one is found."""
    whole = (samples / Q4).read_bytes()
    changed = bytearray(whole)
    places = (40, len(whole) // 2, len(whole) - 3)
    for at in places:
        changed[at] ^= 0xFF
    (folder / "other.gguf").write_bytes(changed)
    sample(page, Q4)
    page.get_by_label("A file to compare with").set_input_files(folder / "other.gguf")
    tool(page, "compared").get_by_text("bytes differ").wait_for()
    if not tool(page, "compared").inner_text().startswith("3 of "):
        yield f"the comparison says {tool(page, 'compared').inner_text()[:90]!r}"
    opened_at(page, places[0])
    for at in places[1:]:
        page.get_by_role("button", name="Next difference").click()
        opened_at(page, at)
        if not tool(page, "grid").locator(f".differs[data-at='{at}']").count():
            yield f"byte {at} is not marked"
    page.get_by_role("button", name="End the comparison").click()


def large(page: Page, folder: Path, figures: dict[str, float]) -> Iterator[str]:
    """A sparse file of more than 4 GB opens from its first pages, and shows its last byte."""
    path = folder / "large.gguf"
    write_gguf(path, {"w": (np.ones((1, 32), np.float32), "Q4_0")}, {"general.architecture": "llama"})
    with read_gguf(path) as file:
        start, end = file.data_start, file.spans["tensor:w"][1]
    width = (LARGE - start) // 18 * 32
    size = start + width // 32 * 18
    with path.open("r+b") as out:
        out.seek(end - 28)  # dims, type, offset
        out.write(struct.pack("<Q", width))
        out.truncate(size)
        out.seek(size - 18)
        out.write(struct.pack("<e", 0.5) + bytes(16))
    figures["a file of 5 GB"] = choose_file(page, path)
    if tool(page, "problem").is_visible():
        yield f"the large file: {tool(page, 'problem').inner_text()}"
    page.locator("#mq-inspector").get_by_label("Byte ", exact=False).first.fill(str(size - 1))
    page.get_by_role("button", name="Go", exact=True).click()
    opened_at(page, size - 1)
    numbers = tool(page, "numbers").locator("li").all_inner_texts()
    if numbers != ["-4"] * 32:
        yield f"the last block of the large file shows {numbers[:4]}"
    if figures["a file of 5 GB"] > SLOW:
        yield f"the large file took {figures['a file of 5 GB']:.1f} s"


def accessible(page: Page, where: str) -> Iterator[str]:
    """What axe finds in the inspector with a file open; and whether the page is too wide."""
    yield from (f"{where}: {line}" for line in complaints(page))
    yield from (f"{where}: too wide: {text}" for text in page.evaluate(TOO_WIDE))


def walk(site: Path) -> list[str]:
    """The problems of the whole walk, one line each."""
    problems: list[str] = []
    figures: dict[str, float] = {}
    samples = site / "_live" / "samples"
    with tempfile.TemporaryDirectory() as name, chromium() as browser, served(site) as address:
        folder = Path(name)
        with opened(browser, problems, SCREEN, "light") as page:
            page.set_default_timeout(MINUTES)
            problems += linked(page, address, samples, figures)
            problems += edits(page, folder, samples)
            problems += two_files(page, folder, samples)
            problems += accessible(page, "light screen")
            problems += bad_files(page, folder, samples)
            problems += large(page, folder, figures)
        for size, scheme in ((PHONE, "dark"), (PHONE, "light"), (SCREEN, "dark")):
            with opened(browser, problems, size, scheme) as page:
                page.set_default_timeout(MINUTES)
                page.goto(f"{address}/book/inspector.html#sample=wrong-count.gguf&at=8", wait_until="load")
                ready(page)
                opened_at(page, 8)
                problems += accessible(page, f"{scheme}, {size['width']} px")
    print("; ".join(f"{name}: {seconds:.1f} s" for name, seconds in figures.items()))
    return problems


def main() -> int:
    """The command line; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "_build" / "html")
    problems = walk(parser.parse_args().site.resolve())
    print("\n".join(dict.fromkeys(problems)) or "the walk through the inspector found nothing wrong")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
