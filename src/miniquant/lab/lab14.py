"""The exercises of lab 14: AWQ, GPTQ, SmoothQuant (the same bytes, better numbers)."""

from __future__ import annotations

from .lab14_awq import ACTIVATION_SIZE, AWQ_SCALES, SEARCH_CLIP
from .lab14_fold import FOLD_BLOCK, FOLD_INTO_NORM
from .lab14_gptq import DAMPED_HESSIAN, GPTQ_COLUMN
from .lab14_smooth import SMOOTH_SCALES

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
