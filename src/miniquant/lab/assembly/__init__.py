"""The student's functions, taken from the notebooks of several labs and put into a folder that runs."""

from .deliver import Assembled, assemble
from .module import Assembly, build

__all__ = ["Assembled", "Assembly", "assemble", "build"]
