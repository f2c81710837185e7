"""Arrays of numpy and tensors of torch, handled alike; torch is imported only where a tensor is given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .errors import QuantizationError

Array = Any  # a numpy array or a torch tensor; what goes in comes out
CHUNK = 1 << 18  # weights handled at once: temporaries stay in the cache, whatever the tensor's size


def row_chunks(shape: tuple[int, int], size: int = CHUNK) -> list[slice]:
    """Slices of rows, about ``size`` elements each, at least one row. Rows of nothing are one slice, however many.

    >>> row_chunks((5, 4), size=8), row_chunks((2**32, 0))
    ([slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)], [slice(0, 4294967296, None)])
    """
    width = math.prod(shape[1:])
    rows = max(1, size // width if width else shape[0])
    return [slice(start, min(start + rows, shape[0])) for start in range(0, shape[0], rows)]


def to_numpy(w: Array, dtype: type = np.float32) -> np.ndarray:
    """A numpy view (or copy, where the type must change) of an array or tensor.

    Raises ``QuantizationError`` when float32 is asked for and ``w`` does not hold floating-point numbers, or holds
    some beyond float32; when another type is asked for and would change a number.
    """
    if is_torch(w):
        w = w.detach().cpu().contiguous()
        w = (w.float() if w.is_floating_point() and w.itemsize < 4 else w).numpy()  # bfloat16 has no numpy type
    w = np.asarray(w)
    if dtype == np.float32 and not np.issubdtype(w.dtype, np.floating):
        raise QuantizationError(f"expected floating-point weights, found {w.dtype}; convert them to float32 first")
    with np.errstate(over="ignore", invalid="ignore"):
        out: np.ndarray = w.astype(dtype, copy=False)
    if dtype == np.float32:
        if w.dtype.itemsize > 4 and not np.array_equal(np.isfinite(out), np.isfinite(w)):
            found = w[np.isfinite(w) & ~np.isfinite(out)][0]
            raise QuantizationError(f"the weight {found:g} is beyond float32, which ends at 3.4e38")
    elif out is not w and not np.array_equal(out, w, equal_nan=True):
        raise QuantizationError(f"expected numbers that {np.dtype(dtype)} holds, found others among {w.dtype}")
    return out


def bfloat16_to_float32(bits: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """bfloat16 as float32, of which it is the upper half: the lower half becomes zeros.

    bits: any shape, uint16   ->   float32 of that shape, written into ``out`` if it is given

    >>> bfloat16_to_float32(np.array([0x3F80, 0xC000], np.uint16)).tolist()
    [1.0, -2.0]
    """
    out = np.empty(bits.shape, np.float32) if out is None else out
    wide = out.view(np.uint32)
    wide[...] = bits
    wide <<= np.uint32(16)
    return out


def is_torch(w: object) -> bool:
    """Whether ``w`` is a torch tensor (a module, a shape or a dtype of torch is not); asks without importing torch."""
    return hasattr(w, "detach") and hasattr(w, "dtype")


def like(array: np.ndarray, original: Array) -> Array:
    """``array`` as what ``original`` is: a torch tensor on its device, or a numpy array."""
    if not is_torch(original):
        return array
    import torch

    return torch.from_numpy(np.array(array)).to(original.device)
