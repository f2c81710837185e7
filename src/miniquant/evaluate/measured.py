"""The course's table of everything, as a run left it: every row of every model, window by window.

    table = read_table("experiments/27-better-four-bits/results.json")
    table["MiniGPT"].kl("Q4_K")                       # nats a token, with its interval
    table["MiniGPT"].kl_ratio("Q4_1 GPTQ", "Q4_1")    # on the same windows, in pairs

The file holds samples and no statistics: any two rows can be compared.
"""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ..core.errors import MiniquantError
from .paired import Bootstrap, Interval, gap_closed

Program = Literal["pytorch", "llamacpp"]
FLOAT = "F32"  # the row without any rounding


class Row(NamedTuple):
    """One way to store a model: the type of its layers, how integers were chosen, and the row without that choice.

    n_bytes: of the file; bits: of a weight in the layers, scales included; ``None`` where there is no file
    """

    kind: str
    how: str
    plain: str
    n_bytes: int | None
    bits: float | None
    samples: dict[str, dict[str, np.ndarray]]  # program -> "nll" and "kl" -> (windows,), nats a token
    about: dict[str, Any]


class ModelTable:
    """The rows of one model, and their figures with intervals over the same windows."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.about = {key: value for key, value in stored.items() if key != "rows"}
        self.rows = {name: _row(row) for name, row in stored["rows"].items()}

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Of this model's windows."""
        return Bootstrap(self.about["windows"])

    def ran(self, name: str, program: Program) -> bool:
        """Whether a program has computed a row."""
        return program in self.rows[name].samples

    def kl(self, name: str, program: Program = "pytorch") -> Interval:
        """KL(float model || this row), in nats a token."""
        return self.bootstrap.mean(self._samples(name, program, "kl"))

    def perplexity(self, name: str, program: Program = "pytorch") -> Interval:
        """exp of the mean NLL. Its interval says how much the text varies; compare rows by ``nll_change``."""
        return self.bootstrap.interval(np.exp, self._samples(name, program, "nll"))

    def nll_change(self, name: str, program: Program = "pytorch", other: str = FLOAT) -> Interval:
        """The NLL of a row less that of another, in nats a token, in pairs."""
        return self.bootstrap.difference(*(self._samples(row, program, "nll") for row in (name, other)))

    def kl_ratio(self, name: str, other: str, program: Program = "pytorch") -> Interval:
        """The KL of a row over that of another, in pairs."""
        return self.bootstrap.ratio(*(self._samples(row, program, "kl") for row in (name, other)))

    def gap_closed(self, name: str, program: Program = "pytorch") -> Interval:
        """Which part of the perplexity that plain rounding loses is there again."""
        samples = (self._samples(row, program, "nll") for row in (name, self.rows[name].plain, FLOAT))
        return self.bootstrap.interval(gap_closed, *samples)

    def verdict(self, name: str, other: str, program: Program = "pytorch") -> str:
        """Better, worse, or "may be chance", where the interval of the ratio of their KL holds 1."""
        ratio = self.kl_ratio(name, other, program)
        return "may be chance" if ratio.holds(1) else "better" if ratio.value < 1 else "worse"

    def _samples(self, name: str, program: Program, figure: str) -> np.ndarray:
        if name not in self.rows:
            raise MiniquantError(f"no row {name!r} in the table; there are {', '.join(self.rows)}")
        if not self.ran(name, program):
            raise MiniquantError(f"{name} was not computed by {program}")
        return self.rows[name].samples[program][figure]


def _row(stored: dict[str, Any]) -> Row:
    samples: dict[str, dict[str, np.ndarray]] = {
        program: {figure: np.array(values, np.float64) for figure, values in stored[program].items()}
        for program in ("pytorch", "llamacpp")
        if program in stored
    }
    about = {key: value for key, value in stored.items() if key not in ("pytorch", "llamacpp")}
    return Row(stored["kind"], stored["how"], stored["plain"], stored["bytes"], stored["bits"], samples, about)


def read_table(path: str | os.PathLike[str]) -> dict[str, ModelTable]:
    """The models of a results.json of ``experiments/27-better-four-bits``, by name."""
    stored = json.loads(Path(path).read_text("utf-8"))
    return {label: ModelTable(model) for label, model in stored["models"].items()}
