"""Everything that one wrong result shows beside the right one: its type, its parts, its numbers, their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..compare import equal
from ..verdict import Call, Facts
from .arguments import of_arguments
from .axes import of_axes
from .digits import of_digits
from .factors import of_factors
from .fields import of_fields
from .formulas import numbers_of, of_formulas, of_words, quantities_of
from .inside import of_inside, of_lengths
from .keys import of_key_names, of_moved, of_named
from .layout import of_bytes, of_dicts
from .leaves import of_leaves
from .numbers import of_numbers
from .orders import closely
from .parts import of_sequences, of_types
from .patterns import of_patterns
from .places import of_places
from .reading import of_reading
from .regions import of_regions
from .seen import Seen
from .sizes import sizes_of
from .texts import of_texts
from .trials import LAZY


def of_pair(facts: Facts, call: Call, expected: Any, got: Any, depth: int = 0, key: Any = None) -> Iterator[Seen]:
    """Everything that one pair of results shows."""
    if got is None and expected is not None:
        yield Seen(
            "None returned", "the result is None", "Each way through the function needs a `return`.", 3, plain=True
        )
        return
    if isinstance(got, LAZY):
        yield Seen(
            "nothing computed yet",
            f"the result is a {type(got).__name__}, which has computed nothing yet",
            "Use `list(...)`.",
            3,
            plain=True,
        )
        return
    if isinstance(got, BaseException):
        yield Seen(
            "an error returned",
            "you return the error object; only `raise` raises it",
            "Write `raise` in place of `return`.",
            2,
            plain=True,
        )
        return
    if isinstance(expected, bool | np.bool_) and isinstance(got, bool | np.bool_):
        text = f"the answer is {bool(got)}, and must be {bool(expected)}"
        yield Seen("the opposite answer", text, "", 20)
        return
    yield from of_types(expected, got, facts.spec.tolerance)
    yield from _of_tensors(expected, got)
    fields = facts.spec.fields(*call.case) if facts.spec.fields and not depth else None
    yield from of_bytes(expected, got, fields)
    yield from of_fields(expected, got, fields)
    yield from of_dicts(expected, got, facts.spec.tolerance)
    yield from of_key_names(expected, got, facts.spec.tolerance)
    yield from of_moved(expected, got, facts.spec.tolerance)
    yield from of_sequences(expected, got)
    yield from of_axes(expected, got)
    if not (facts.spec.observe and depth):  # else the texts are those of the check
        yield from of_texts(expected, got, quantities_of(facts.spec, call.case))
    near, tolerance = partial(closely, right=expected, tolerance=facts.spec.tolerance), facts.spec.tolerance
    yield from near(lambda: of_numbers(expected, got, sizes_of(facts, call), facts.spec.tolerance))
    if depth < 2:
        yield from near(lambda: of_formulas(expected, got, numbers_of(facts, call, key)))
        yield from of_digits(expected, got, dict(zip(facts.names, call.case)), quantities_of(facts.spec, call.case))
        yield from of_words(quantities_of(facts.spec, call.case), key, expected, got)
    yield from near(lambda: of_patterns(facts.names, call.case, call.expected.result, expected, got, tolerance))
    if depth < 2:
        yield from of_regions(facts.names, call.case, expected, got)
        given = {f"`{name}`": value for name, value in zip(facts.names, call.case)}
        arrays = {words: q for words, q in quantities_of(facts.spec, call.case).items() if isinstance(q, np.ndarray)}
        yield from of_arguments(given | arrays, expected, got)
    yield from near(lambda: of_places(expected, got, tolerance=facts.spec.tolerance))
    yield from of_reading(facts, call, expected, got)
    if not depth:
        yield from of_named(quantities_of(facts.spec, call.case), expected, got)
        yield from of_inside(facts, call, expected, got, sizes_of(facts, call))
        yield from of_leaves(expected, got, facts.spec.tolerance)
        yield from of_lengths(facts, call, expected, got, sizes_of(facts, call))
        yield from of_factors(facts, call, expected, got)
    if depth < 3:
        yield from _of_parts(facts, call, expected, got, depth)


def _of_tensors(expected: Any, got: Any) -> Iterator[Seen]:
    if (
        hasattr(expected, "requires_grad")
        and hasattr(got, "requires_grad")
        and got.requires_grad
        and not expected.requires_grad
    ):
        yield Seen("not detached", "the tensor still belongs to a computation of gradients", "Add `.detach()`.", 12)


def _of_parts(facts: Facts, call: Call, expected: Any, got: Any, depth: int) -> Iterator[Seen]:
    """What the wrong parts of a tuple, list or dict have in common."""
    if isinstance(expected, dict) and isinstance(got, dict) and expected.keys() == got.keys():
        parts = [(key, expected[key], got[key]) for key in expected]
        named = False
    elif isinstance(expected, list | tuple) and isinstance(got, list | tuple) and len(expected) == len(got):
        names = getattr(expected, "_fields", [f"item {i}" for i in range(len(expected))])
        parts = list(zip(names, expected, got))
        named = isinstance(expected, tuple)
    else:
        return
    wrong = [(name, a, b) for name, a, b in parts if not equal(a, b, facts.spec.tolerance, ordered=facts.spec.ordered)]
    if not wrong:
        return
    sets = [set(of_pair(facts, call, a, b, depth + 1, name)) for name, a, b in wrong]
    if named and len(wrong) == 1 and len(parts) > 1:
        name = wrong[0][0]
        for seen in sets[0]:
            yield replace(seen, title=f"{name}: {seen.title}", text=f"in {name}, {seen.text}")
        which = {"item 0": "the first item", f"item {len(parts) - 1}": "the last item"}.get(name, name)
        yield Seen(f"{which} is wrong", f"only {which} is wrong, and the rest is right", "", 41)
        return
    if named:
        names = [name for name, _, _ in wrong]
        if len(wrong) < len(parts):
            text = f"only {', '.join(names[:-1])} and {names[-1]} are wrong, and the rest is right"
            yield Seen(f"{' and '.join(names)} wrong", text, "", 39)
        for name, found in zip(names, sets):
            for seen in found:
                title, text = f"{name}: {seen.title}", f"in {name}, {seen.text}"
                yield replace(seen, title=title, text=text, rank=seen.rank + 2)
    turned = not named and facts.spec.ordered and isinstance(got, dict) and list(expected) != list(got)
    for common in set.intersection(*sets):
        where = "in every part that is wrong, " if "every part" not in common.text else ""
        weak = common.weak and len(wrong) == 1
        text = f"{where}{common.text}"
        yield replace(common, text=text, rank=common.rank + 1, weak=weak)
        if turned:
            more = f"{text}; the keys are in another order, too"
            yield replace(common, text=more, rank=common.rank + 0.9, weak=weak)
