"""The exercise ``damped_hessian``."""

from .gptq import DAMPED_HESSIAN as EXERCISE

__all__ = ["EXERCISE"]
