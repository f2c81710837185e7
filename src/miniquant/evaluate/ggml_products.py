"""ggml's own products of blocks, and how it rounds activations before them, by ``ctypes``.

A type of weights knows the type that activations are rounded to for it (``vec_dot_type``), and the function that
multiplies a row of one with a row of the other. Both are found in the table that ggml itself looks into.

Source: ``ggml_type_traits_cpu`` in ``ggml-cpu.h``; ``quantize_row_*_ref`` in ``ggml-quants.h``.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

import numpy as np

from ..core.errors import MiniquantError


class _CpuTraits(c.Structure):
    """The first fields of ``ggml_type_traits_cpu``; of a product: n, result, 0, row, 0, row, 0, 1."""

    _fields_ = [
        ("from_float", c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_int64)),
        (
            "vec_dot",
            c.CFUNCTYPE(
                *(None, c.c_int, c.c_void_p, c.c_size_t),
                *(c.c_void_p, c.c_size_t, c.c_void_p, c.c_size_t, c.c_int),
            ),
        ),
        ("vec_dot_type", c.c_int),
    ]


_REFERENCE = {8: "quantize_row_q8_0_ref", 9: "quantize_row_q8_1_ref", 15: "quantize_row_q8_K_ref"}  # by ggml_type
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {  # name: (result, arguments)
    "ggml_cpu_init": (None, []),
    "ggml_get_type_traits_cpu": (c.POINTER(_CpuTraits), [c.c_int]),
    **{name: (None, [c.c_void_p, c.c_void_p, c.c_int64]) for name in _REFERENCE.values()},
}


def round_activations(lib: Any, x: np.ndarray, kind: int, reference: bool) -> np.ndarray:
    """x: (rows, n) float32   ->   (rows, bytes) uint8."""
    lib.ggml_cpu_init()
    out = np.zeros((x.shape[0], lib.ggml_row_size(kind, x.shape[1])), np.uint8)
    by_processor = lib.ggml_get_type_traits_cpu(kind).contents.from_float
    (getattr(lib, _REFERENCE[kind]) if reference else by_processor)(x.ctypes.data, out.ctypes.data, x.size)
    return out


def products(lib: Any, w: np.ndarray, kind: int, x: np.ndarray) -> np.ndarray:
    """w: (rows, bytes), x: (tokens, bytes) uint8   ->   (tokens, rows) float32.

    Raises ``MiniquantError`` if the rows of x are not of the type that ggml multiplies with, or have another length.
    """
    lib.ggml_cpu_init()
    traits = lib.ggml_get_type_traits_cpu(kind).contents
    out = np.zeros((len(x), len(w)), np.float32)
    n = w.shape[1] // lib.ggml_type_size(kind) * lib.ggml_blck_size(kind)
    if x.shape[1] != lib.ggml_row_size(traits.vec_dot_type, n):
        raise MiniquantError(f"rows of {x.shape[1]} bytes are not {n} numbers of type {traits.vec_dot_type}")
    for t, row in enumerate(x):
        for r, weights in enumerate(w):
            place = out.ctypes.data + out.strides[0] * t + out.strides[1] * r
            traits.vec_dot(n, place, 0, weights.ctypes.data, 0, row.ctypes.data, 0, 1)
    return out
