"""The exercise ``gptq_column``."""

from .gptq import GPTQ_COLUMN as EXERCISE

__all__ = ["EXERCISE"]
