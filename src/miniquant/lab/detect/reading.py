"""Numbers that were read from bytes in the wrong place: those of another field, a byte too early, of another width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..verdict import Call, Facts
from .seen import Seen

FAR = 16  # bytes
PROOFS = 3  # numbers that stand as many bytes too early: a 0 stands nearly everywhere


def of_reading(facts: Facts, call: Call, expected: Any, got: Any) -> Iterator[Seen]:
    """Where in the bytes the wrong numbers of a result stand; ``expected`` is a tuple whose parts have names."""
    names = getattr(expected, "_fields", ())
    if facts.spec.places is None or not names or not isinstance(got, tuple | list) or len(got) != len(names):
        return
    known = dict(facts.spec.places(*call.case))
    data = next((part for part in call.case if isinstance(part, bytes)), b"")
    for name, right, mine in zip(names, expected, got):
        if name in known and _whole(right) and _whole(mine) and int(right) != int(mine):
            yield from _of_number(data, name, known, int(mine))


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _of_number(data: bytes, name: str, known: dict[str, tuple[int, int]], mine: int) -> Iterator[Seen]:
    start, stop = known[name]

    def there(a: int, b: int) -> bool:
        return 0 <= a < b <= len(data) and int.from_bytes(data[a:b], "little") == mine

    cure = "Count the bytes of the fields before it."
    for other, (a, b) in known.items():
        if other != name and there(a, b):
            yield Seen(f"{other} as {name}", f"in {name} stands the number of the field {other}", cure, 13, weak=True)
    for k in range(1, FAR + 1):
        for side, shift in (("early", -k), ("late", k)):
            if there(start + shift, stop + shift):
                text = f"{name} is what stands {k} byte{'s' * (k > 1)} too {side}"
                yield Seen(f"{name} read too {side}", text, cure, 14, needs=PROOFS)
    for width in (1, 2, 4, 8):
        if width != stop - start and there(start, start + width):
            text = f"{name} is the number in {width} byte{'s' * (width > 1)}, and the field has {stop - start}"
            yield Seen(
                f"{name} of {width} bytes", text, "Compare the format letters with the docstring.", 14, weak=True
            )
