"""One call of a function: its result or error, what it printed, what it changed; within limits."""

from __future__ import annotations

import copy
import dis
import functools
import inspect
import io
import re
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..core.arrays import is_torch
from ..core.errors import MiniquantError
from .changes import Change, Watched, change_of
from .compare import equal
from .limit import MEMORY, WAITING, TooSlow, memory_limit, time_limit
from .spec import Case, Exercise, Finding, Function

HUGE = 14_000  # bits; Python does not write out integers of more than 4300 digits
SECONDS = 10.0  # of the processor, for one call of a student's function; every case is small


@dataclass(frozen=True)
class Outcome:
    """What one call did: a result or an exception, what it printed, which argument it changed.

    ``result`` is a copy of ``own``, the object that the function gave and may change later. ``kept``: an earlier call
    gave the same object, or one in the same memory.
    """

    result: Any = None
    error: BaseException | None = None
    printed: str = ""
    change: Change | None = None
    view: bool = False
    warned: str = ""  # the first warning, say of a division by zero
    own: Any = field(default=None, repr=False, compare=False)
    kept: bool = False

    @property
    def mutated(self) -> bool:
        """Whether the call changed an argument."""
        return self.change is not None

    def same_as(self, other: Outcome, tolerance: float = 0.0) -> bool:
        """Whether two calls cannot be told apart: by their results, or by their errors and what these say."""
        if self.error or other.error:
            return same_error(self.error, other.error) > 0
        if (self.mutated, self.kept) != (other.mutated, other.kept):
            return False
        return equal(self.result, other.result, tolerance)


class Far:
    """A function that runs in another process; ``told`` is what its last call did there, beside what it gave.

    ``seconds`` is the limit that a call has to keep there. ``observed``: what it gives was observed there already.
    An error that it raises has an ``Origin``, since nothing can be seen of the call but what was told.
    """

    told: Outcome = Outcome()
    seconds: float | None = None
    observed: bool = False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function there."""
        raise NotImplementedError


@dataclass(frozen=True)
class Origin:
    """Where an error of another process was raised: by a ``raise`` of its own, by a stub; and its trace."""

    own: bool
    stub: bool
    trace: str = ""


def origin_of(error: BaseException | None) -> Origin | None:
    """The origin of an error of another process; None for an error of this one."""
    found = getattr(error, "origin", None)
    return found if isinstance(found, Origin) else None


def same_error(a: BaseException | None, b: BaseException | None) -> int:
    """2 if two errors say the same, 1 if both are refusals that somebody wrote in their own words, 0 otherwise.

    An error that Python or numpy raised by itself says the same only if its message does, numbers apart.
    """
    if a is None or b is None:
        return 0
    if isinstance(a, Finding) or isinstance(b, Finding):
        return 2 * (type(a) is type(b) and a.args == b.args)
    if is_own(a) and is_own(b):
        return int(isinstance(a, type(b)) or isinstance(b, type(a)))
    if is_own(a) or is_own(b):
        return 0
    return 2 * (type(a) is type(b) and _words(a) == _words(b))


def is_own(error: BaseException) -> bool:
    """Whether an error comes from a ``raise`` in the code of a student or a lesson, not from Python or a library."""
    if origin := origin_of(error):
        return origin.own
    if error.__traceback__ is None:
        return isinstance(error, MiniquantError)
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    home = str(frame.f_globals.get("__name__", "")).split(".")[0]
    raising = frame.f_code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raising and home not in sys.stdlib_module_names and home not in ("numpy", "torch")


def _words(error: BaseException) -> str:
    return re.sub(r"0x[0-9a-f]+|-?\d+(\.\d+)?", "#", str(error))


def is_stub(error: BaseException | None, function: Function) -> bool:
    """Whether ``error`` is the ``NotImplementedError`` that the body of ``function`` itself raises."""
    if origin := origin_of(error):
        return origin.stub and isinstance(error, NotImplementedError)
    if not isinstance(error, NotImplementedError) or error.__traceback__ is None:
        return False
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return last.f_code is getattr(inspect.unwrap(function), "__code__", None)


def attempt(spec: Exercise, function: Function, case: Case, seconds: float | None = None) -> Outcome:
    """Call a function on a copy of a case, its printing caught; with ``seconds``, within limits of time and memory."""
    arguments = copy.deepcopy(case)
    printed = io.StringIO()
    memory = MEMORY if seconds is not None else None
    far = function if isinstance(function, Far) else None
    if far:
        far.seconds = seconds
    watch = spec.observe and function is not spec.oracle and not far
    watched = Watched(function) if watch else None  # it may be given copies

    def change() -> Change | None:
        return change_of(case, arguments) or (watched.change if watched else far.told.change if far else None)

    try:
        with (
            redirect_stdout(printed),  # outside of the limits: an alarm must not come while it is undone
            warnings.catch_warnings(record=True) as caught,
            memory_limit(memory),
            time_limit(seconds and WAITING * seconds),
            time_limit(seconds, processor=True),
        ):
            warnings.simplefilter("always")
            result = far(*arguments) if far and far.observed else spec.run(watched or function, arguments)
    except (Exception, TooSlow, SystemExit) as error:
        spoiled = watched and watched.change and watched.returned and not isinstance(error, Finding)
        if not watched or not spoiled:
            return Outcome(error=error, printed=_printed(printed, far), change=change())
        result = watched.given  # what looks at it cannot, since the function has changed what it was given
    if bits := _bits_of(result):
        large = Finding(f"the result has an integer of {bits:,} bits", f"an integer of {bits:,} bits")
        return Outcome(error=large, printed=_printed(printed, far), change=change())
    told = far.told if far else Outcome()
    view = told.view or any(_is_given(result, argument) for argument in arguments)
    warned = next((str(w.message) for w in caught if not issubclass(w.category, ResourceWarning)), told.warned)
    printed_text, viewed = _printed(printed, far), view and not spec.may_view
    own = watched.given if watched else result
    return Outcome(_copied(result), None, printed_text, change(), viewed, warned, own, told.kept)


def _printed(here: io.StringIO, far: Far | None) -> str:
    """What a call printed, in this process or in its own."""
    return here.getvalue() or (far.told.printed if far else "")


def attempts(
    spec: Exercise,
    function: Function,
    cases: Iterable[Case],
    seconds: float | None = None,
    earlier: list[Any] | None = None,
) -> Iterator[Outcome]:
    """A call for each case, in order; each outcome knows whether an earlier call gave the same memory.

    ``earlier`` are results of calls before these; the results of these are added to it.
    """
    earlier = [] if earlier is None else earlier
    for case in cases:
        outcome = attempt(spec, function, case, seconds)
        own = changeable_parts(outcome.own)
        kept = any(_is_kept(part, other) for part in own for other in earlier)
        earlier += own
        yield replace(outcome, kept=kept) if kept else outcome


@functools.lru_cache(maxsize=256)  # a course of exercises: tests and graders come back to each of them
def cases_of(spec: Exercise) -> tuple[Case, ...]:
    """The cases of an exercise; computed once, since a call gets a copy."""
    return tuple(spec.all_cases())


@functools.lru_cache(maxsize=256)
def expected_of(spec: Exercise) -> tuple[Outcome, ...]:
    """What the oracle makes of every case.

    Raises ``ModuleNotFoundError`` where the oracle asks torch and there is none, and ``MiniquantError`` where what
    observes it fails, say for want of a process: then nothing can be judged.
    """
    outcomes = tuple(attempt(spec, spec.oracle, case) for case in cases_of(spec))
    for outcome in outcomes:
        if isinstance(outcome.error, ModuleNotFoundError) and outcome.error.name == "torch":
            raise outcome.error
        if isinstance(outcome.error, Finding):
            raise MiniquantError(f"{spec.name} cannot be checked now: {outcome.error.what}: {outcome.error.got}")
    return outcomes


@functools.lru_cache(maxsize=4096)
def outcomes_of(spec: Exercise, wrong: Function) -> tuple[Outcome, ...]:
    """What a mistake of the catalogue makes of every case."""
    return tuple(attempts(spec, wrong, cases_of(spec), SECONDS))


def _bits_of(result: Any) -> int:
    """How many bits an integer in a result has, if Python would not write it out; 0 otherwise."""
    parts = result if isinstance(result, tuple | list) else [result]
    return max((part.bit_length() for part in parts if type(part) is int and part.bit_length() > HUGE), default=0)


def _copied(result: Any) -> Any:
    """A copy that later calls cannot change; a generator and the like, which nobody can copy, as it is."""
    try:
        return copy.deepcopy(result)
    except Exception:
        return result


def changeable_parts(result: Any) -> list[Any]:
    """A result, and what it holds if it is a container: what of these a later call could change."""
    held = result.values() if isinstance(result, dict) else result if isinstance(result, tuple | list) else []
    return [part for part in (result, *held) if _changeable(part)]


def _changeable(part: Any) -> bool:
    return (
        bool(part.flags.writeable) if isinstance(part, np.ndarray) else isinstance(part, list | dict | set | bytearray)
    )


def _is_kept(part: Any, earlier: Any) -> bool:
    return part is earlier or _shares_memory(part, earlier)


def _is_given(result: Any, argument: Any) -> bool:
    """Whether a result, or one of several, lies in the memory of an argument, or is the dict or list itself."""
    parts = result if isinstance(result, tuple) else (result,)
    return any(_shares_memory(part, argument) or (part is argument and _changeable(part)) for part in parts)


def _shares_memory(result: Any, argument: Any) -> bool:
    arrays = []
    for value in (result, argument):
        if not isinstance(value, np.ndarray):
            if not is_torch(value):
                return False
            try:
                value = value.detach().numpy()
            except TypeError:  # bfloat16 and the like, which numpy does not have
                return False
        if not value.size:
            return False
        arrays.append(value)
    return np.shares_memory(arrays[0], arrays[1])
