"""How much is tried: little in everyday runs, more with ``MINIQUANT_THOROUGH=1``, say before a release."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("MINIQUANT_THOROUGH") == "1"


def tried(usual: int, thorough: int) -> int:
    """The number that a test should take for one that is drawn or taken in turns."""
    return thorough if THOROUGH else usual
