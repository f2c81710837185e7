"""E2M1, the float of four bits: a sign, two bits of exponent, one of mantissa. What MXFP4 and NVFP4 share.

The magnitudes are 0, 0.5, 1, 1.5, 2, 3, 4 and 6. ggml stores them doubled, as integers, and halves the scale.

Source: ``kvalues_mxfp4`` in ggml's ``ggml-common.h``, ``best_index_mxfp4`` in ``ggml-quants.c``; the OCP Microscaling
Formats (MX) Specification, section 5.3.3.
"""

from __future__ import annotations

import numpy as np

from .common import f32

_MAGNITUDES = np.array([0, 1, 2, 3, 4, 6, 8, 12], f32)
VALUES = np.concatenate([_MAGNITUDES, -_MAGNITUDES]) + f32(0)  # twice what they stand for; both zeros are positive


def nearest_value(x: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The index of the value of ``VALUES`` whose product with d is nearest; of two, that of smaller magnitude.

    x: (weights, blocks) float32, d: (blocks,) float32, not negative   ->   (weights, blocks) uint8
    """
    size, q = np.abs(x), np.zeros(x.shape, np.uint8)
    smallest = size.copy()
    for i, magnitude in enumerate(_MAGNITUDES[1:], 1):
        error = np.abs(magnitude * d - size)
        q[error < smallest] = i
        np.fmin(error, smallest, out=smallest)
    q += ((x < 0) & (q > 0)) * np.uint8(8)
    return q


def power_of_two(bits: np.ndarray) -> np.ndarray:
    """Half of the number that an E8M0 stands for: 2 ** (bits - 128).   uint8 -> float32, exact."""
    return np.ldexp(f32(1), bits.astype(np.int32) - 128)
