"""A pytest plugin: outputs that depend on Python's documentation are compared where it is the text they were made with.

Some labs calibrate a model, or measure it, on the documentation of the Python that runs. Another version documents
itself in other words, and the figures change with them. ``-p tools.measured_text`` compares two texts, by their hashes,
with those of the Python that the stored outputs come from. If one differs, every cell of the labs that depend on it
still runs and must not fail, but its outputs are not compared. The end of the test run says so.

All other labs measure on a page that comes with the library, and are compared everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from miniquant.models.corpus import held_out_documents, text_hash, training_documents

MADE_WITH = "3.11.7"  # the Python of the stored outputs
OTHER = "MINIQUANT_OTHER_TEXTS"  # names of the texts that differ here; the workers of a run need not look again


class Text(NamedTuple):
    """A text: how to get it, its hash where the outputs were made, and how to know a lab that depends on it."""

    documents: Callable[[], list[str]]
    made_with: str
    named: re.Pattern[str]


TEXTS = {
    "held-out": Text(
        lambda: held_out_documents("topics"),
        "594a1023f186",
        re.compile(r"held_out_|board\(choose_types"),
    ),
    "training": Text(
        training_documents,
        "7ddf7d335e8b",
        re.compile(r"calibration_tokens|training_documents"),
    ),
}


def differs(name: str) -> bool:
    """Whether the text of this name is another one here than where the outputs were made."""
    return text_hash(TEXTS[name].documents()) != TEXTS[name].made_with


def others() -> list[str]:
    """The names of the texts that are other ones here."""
    if OTHER not in os.environ:
        os.environ[OTHER] = " ".join(filter(differs, TEXTS))
    return os.environ[OTHER].split()


def depends(notebook: Path) -> bool:
    """Whether a lab's outputs depend on a text that is another one here."""
    said = notebook.read_text("utf-8")
    return any(TEXTS[name].named.search(said) for name in others())


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was not compared, and why."""
    if others():
        terminalreporter.line(
            f"outputs that depend on the {' and the '.join(others())} text were not compared: "
            f"this Python documents itself in other words than {MADE_WITH}"
        )


def pytest_collection_modifyitems(items: Sequence[Any]) -> None:
    """The cells of these labs run, and their outputs are not compared."""
    known: dict[Path, bool] = {}
    for item in items:
        if hasattr(item, "cell_num"):
            if item.path not in known:
                known[item.path] = depends(item.path)
            if known[item.path]:
                item.options["check"] = False
