"""What a strategy draws, counted. It runs beside the student's function: no oracle is here."""

from __future__ import annotations

from numbers import Integral

from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from ...lab.compare import kind
from ...lab.spec import Finding
from .falsify import draws

DRAWS, OFTEN = 100, 5
EMPTY = "a model without tensors"


def features(drawn):
    """What a draw has of that which the planted bugs need."""
    names, shapes = list(drawn), list(drawn.values())
    return {
        EMPTY: not drawn,
        "two names or more": len(drawn) > 1,
        "two names or more that are not sorted": names != sorted(names),
        "a vector": any(len(shape) == 1 for shape in shapes),
        "a matrix of two rows or more of whole blocks": any(len(s) == 2 and s[0] > 1 and s[1] % 32 == 0 for s in shapes),
        "a matrix whose rows are not whole blocks": any(len(s) == 2 and s[1] % 32 for s in shapes),
    }


def problem_of(drawn, names):
    """What makes a draw no valid input; empty if it is one."""
    if not isinstance(drawn, dict):
        return "a draw must be a dict, name -> shape"
    if len(drawn) > 5:
        return "a draw has more than five names"
    if unknown := [name for name in drawn if name not in names]:
        return f"a draw has a name that is not in `names`: {unknown[0]!r}"
    for shape in drawn.values():
        if not isinstance(shape, tuple):
            return "a shape must be a tuple"
        if len(shape) not in (1, 2):
            return "a shape has one dim or two"
        if not all(isinstance(dim, Integral) and not isinstance(dim, bool) for dim in shape):
            return "the dims of a shape must be ints"
        if not 1 <= shape[-1] <= 300:
            return "n must be from 1 to 300"
        if not 1 <= shape[0] <= 8 and len(shape) == 2:
            return "the number of rows must be from 1 to 8"
    return ""


def judged(function, case):
    """The first draw that is not valid, and how many of a hundred draws have each kind."""
    strategy = function(*case)
    if isinstance(strategy, type) or not isinstance(strategy, st.SearchStrategy):
        raise Finding("a strategy is asked for, and your function returned something else", f"{kind(strategy)}: {strategy!r}"[:200])
    try:
        drawn = draws(strategy, DRAWS)
    except HypothesisException as error:
        raise Finding("hypothesis cannot draw from this strategy", f"{type(error).__name__}: {error}"[:200]) from None
    bad = next((f"{each!r}: {problem}" for each in drawn if (problem := problem_of(each, case[0]))), "")
    kinds = list(features({}))
    counts = {name: 0 if bad else sum(features(each)[name] for each in drawn) for name in kinds}
    return {"a draw that is no valid model": bad or "none", **{name: _said(name, counts[name], bad) for name in kinds}}


def _said(name, count, bad):
    """Whether a kind was drawn often enough; without its count, which depends on the modules that are imported."""
    wanted = 1 if name == EMPTY else OFTEN
    if bad:
        return "not counted, since not every draw is valid"
    return f"in {'at least' if count >= wanted else 'fewer than'} {wanted} of {DRAWS} draws"
