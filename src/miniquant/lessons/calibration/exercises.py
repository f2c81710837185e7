"""The exercises of lab 14: AWQ, GPTQ, SmoothQuant (the same bytes, better numbers)."""

from __future__ import annotations

from .awq import ACTIVATION_SIZE, AWQ_SCALES, SEARCH_CLIP
from .fold import FOLD_BLOCK, FOLD_INTO_NORM
from .gptq import DAMPED_HESSIAN, GPTQ_COLUMN
from .smooth import SMOOTH_SCALES

EXERCISES = [
    ACTIVATION_SIZE,
    AWQ_SCALES,
    FOLD_INTO_NORM,
    FOLD_BLOCK,
    SEARCH_CLIP,
    DAMPED_HESSIAN,
    GPTQ_COLUMN,
    SMOOTH_SCALES,
]
