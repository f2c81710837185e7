"""One call of a function: its result or error, what it printed, what it changed; within a time limit."""

from __future__ import annotations

import copy
import functools
import inspect
import io
import traceback
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import is_torch
from .compare import equal
from .limit import TooSlow, time_limit
from .spec import Case, Exercise, Finding, Function

SECONDS = 10.0  # for one call of a student's function; every case is small


@dataclass(frozen=True)
class Outcome:
    """What one call did: a result or an exception, what it printed, whether it changed its arguments."""

    result: Any = None
    error: BaseException | None = None
    printed: str = ""
    mutated: bool = False
    view: bool = False
    warned: str = ""  # the first warning, say of a division by zero

    def same_as(self, other: Outcome, tolerance: float = 0.0) -> bool:
        """Whether two calls cannot be told apart by their results."""
        if self.error or other.error:
            return _alike(self.error, other.error)
        return self.mutated == other.mutated and equal(self.result, other.result, tolerance)


def _alike(a: BaseException | None, b: BaseException | None) -> bool:
    """Whether two errors are of one sort, for a diagnosis; numpy raises ValueError for shapes in more ways than one."""
    if isinstance(a, Finding) and isinstance(b, Finding):
        return type(a) is type(b) and a.args == b.args
    if isinstance(a, Finding) or isinstance(b, Finding):
        return False
    related = (
        isinstance(a, ValueError) and isinstance(b, ValueError) and (isinstance(a, type(b)) or isinstance(b, type(a)))
    )
    return (type(a) is type(b) or related) and all((w in str(a)) == (w in str(b)) for w in ("broadcast", "reshape"))


def is_stub(error: BaseException | None, function: Function) -> bool:
    """Whether ``error`` is the ``NotImplementedError`` that the body of ``function`` itself raises."""
    if not isinstance(error, NotImplementedError) or error.__traceback__ is None:
        return False
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return last.f_code is getattr(inspect.unwrap(function), "__code__", None)


def attempt(spec: Exercise, function: Function, case: Case, seconds: float | None = None) -> Outcome:
    """Call a function on a copy of a case, within a time limit (for students' functions), its printing caught."""
    arguments = copy.deepcopy(case)
    printed = io.StringIO()
    try:
        with time_limit(seconds), redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = spec.run(function, arguments)
    except (Exception, TooSlow, SystemExit) as error:
        return Outcome(error=error, printed=printed.getvalue())
    mutated = not all(_unchanged(before, after) for before, after in zip(case, arguments))
    view = not spec.may_view and any(_shares_memory(result, argument) for argument in arguments)
    warned = next((str(w.message) for w in caught if not issubclass(w.category, ResourceWarning)), "")
    return Outcome(_copied(result), None, printed.getvalue(), mutated, view, warned)


@functools.lru_cache(maxsize=4)
def cases_of(spec: Exercise) -> tuple[Case, ...]:
    """The cases of an exercise; computed once, since a call gets a copy."""
    return tuple(spec.all_cases())


@functools.lru_cache(maxsize=4)
def expected_of(spec: Exercise) -> tuple[Outcome, ...]:
    """What the oracle makes of every case."""
    return tuple(attempt(spec, spec.oracle, case) for case in cases_of(spec))


@functools.lru_cache(maxsize=64)
def outcomes_of(spec: Exercise, wrong: Function) -> tuple[Outcome, ...]:
    """What a mistake of the catalogue makes of every case."""
    return tuple(attempt(spec, wrong, case) for case in cases_of(spec))


def _copied(result: Any) -> Any:
    """A copy that later calls cannot change; a generator and the like, which nobody can copy, as it is."""
    try:
        return copy.deepcopy(result)
    except Exception:
        return result


def _unchanged(before: Any, after: Any) -> bool:
    if hasattr(before, "state_dict"):
        return equal(dict(before.state_dict()), dict(after.state_dict()))
    return equal(before, after) or not isinstance(before, np.ndarray | list | dict | bytearray)


def _shares_memory(result: Any, argument: Any) -> bool:
    arrays = []
    for value in (result, argument):
        value = value.detach().numpy() if is_torch(value) else value
        if not isinstance(value, np.ndarray) or not value.size:
            return False
        arrays.append(value)
    return np.shares_memory(arrays[0], arrays[1])
