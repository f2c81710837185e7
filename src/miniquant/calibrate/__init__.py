"""Better integers in the same bytes: AWQ, GPTQ and SmoothQuant, from a model and calibration text; and rotations.

None of them knows a file format. What comes out is a model of the same shape, so it goes into every format that the
model itself goes into.
"""

from .awq import awq
from .gptq import gptq
from .inputs import calibration_tokens
from .outliers import plant_outliers
from .rotation import fold_norms, rotate
from .rounding import round_to_nearest
from .smoothquant import smoothquant, w8a8

__all__ = [
    "awq",
    "calibration_tokens",
    "fold_norms",
    "gptq",
    "plant_outliers",
    "rotate",
    "round_to_nearest",
    "smoothquant",
    "w8a8",
]
