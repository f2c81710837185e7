"""The one guard around the search for a cause: a result may be anything at all, and a check must not fail with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

ON = True  # the tests of the project set False: there a fault of a detector fails the test


@contextmanager
def guarded() -> Iterator[None]:
    """While the guard is on, a fault in the block ends the block, and nothing else; numpy warns of nothing in it."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception:
        if not ON:
            raise
