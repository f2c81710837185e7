"""The exercise ``off_the_list``."""

from .scan import OFF_THE_LIST as EXERCISE

__all__ = ["EXERCISE"]
