"""The exercises of lab 02: a pickle is a program, what it may import, and how to keep it from running."""

from __future__ import annotations

from .machine import RUN_PICKLE
from .payload import HARMLESS_PAYLOAD, LOAD_RESTRICTED
from .scan import IMPORTS_OF, OFF_THE_LIST

EXERCISES = [RUN_PICKLE, HARMLESS_PAYLOAD, IMPORTS_OF, OFF_THE_LIST, LOAD_RESTRICTED]
