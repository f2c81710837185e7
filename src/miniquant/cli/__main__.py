"""``python -m miniquant.cli``."""

from . import run

run()
