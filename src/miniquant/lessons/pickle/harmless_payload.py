"""The exercise ``harmless_payload``."""

from .payload import HARMLESS_PAYLOAD as EXERCISE

__all__ = ["EXERCISE"]
