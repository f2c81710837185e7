"""How far the tensors of two models are from each other, by numpy alone: who compares files need not wait for torch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..core.arrays import Array, to_numpy
from ..core.errors import MiniquantError


def tensor_errors(expected: Mapping[str, Array], found: Mapping[str, Array]) -> dict[str, float]:
    """max abs(expected - found) for every tensor, by name.

    Raises ``MiniquantError`` if the names or a shape differ. A NaN on either side, or the same infinity on both, gives
    NaN, which no limit accepts.
    """
    if expected.keys() != found.keys():
        name = sorted(expected.keys() ^ found.keys())[0]
        side = "missing from what was found" if name in expected else "not expected"
        raise MiniquantError(f"tensor {name!r} is {side}")
    errors = {}
    for name in expected:
        a, b = to_numpy(expected[name]), to_numpy(found[name])
        if a.shape != b.shape:
            raise MiniquantError(f"tensor {name!r}: expected shape {a.shape}, found {b.shape}")
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN
            errors[name] = float(np.abs(a - b).max()) if a.size else 0.0
    return errors


def over_limit(errors: Mapping[str, float], limit: float) -> list[str]:
    """The names whose error is not within the limit; NaN is not.

    >>> over_limit({"a": 0.0, "b": 2e-3, "c": float("nan")}, 1e-3)
    ['b', 'c']
    """
    return [name for name, error in errors.items() if not error <= limit]
