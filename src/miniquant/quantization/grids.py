"""What weights are rounded to: a grid of evenly spaced numbers for each group of a row, apart from any file format.

``x_hat = scale * q + minimum``, with ``q`` an integer from ``low`` to ``high``. A zero point ``z`` is the minimum
``-scale * z``. Whoever chooses integers more cleverly than by rounding (GPTQ) needs the grid alone.

Source: ggml's ``ggml-quants.c`` (``quantize_row_*_ref``) for the scales and mins of its types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..core.arrays import row_chunks
from ..core.errors import QuantizationError


class Grid(NamedTuple):
    """The numbers that each group of weights may take: ``scale * q + minimum`` for ``q`` from ``low`` to ``high``.

    scale: (out, groups) float32, already rounded to what a file stores
    minimum: (out, groups) float32; ``-scale * z`` for a zero point ``z``, 0 for a symmetric signed grid
    """

    scale: np.ndarray
    minimum: np.ndarray
    low: int
    high: int

    @classmethod
    def symmetric(cls, scale: np.ndarray, low: int, high: int) -> Grid:
        """Without a minimum: ``scale * q``.   scale: (out, groups) floating point."""
        scale = scale.astype(np.float32, copy=False)
        return cls(scale, np.zeros_like(scale), low, high)

    def rows(self, rows: slice | np.ndarray) -> Grid:
        """The grid of some rows of the matrix: a slice, or their indices."""
        return self._replace(scale=self.scale[rows], minimum=self.minimum[rows])


class Rounding(Protocol):
    """Rounds float32 to whole numbers, in place if ``out`` is the array itself: ``np.rint``, or ``round_half_away``."""

    def __call__(self, x: np.ndarray, /, *, out: np.ndarray) -> np.ndarray:
        """x: any shape, float32   ->   ``out``, float32 of that shape."""
        ...


class QuantizedMatrix(NamedTuple):
    """A matrix on its grid.   q: (out, in) int16, and the grid that says what the integers stand for."""

    q: np.ndarray
    grid: Grid


class GridRule(Protocol):
    """A rule that chooses the grid of a matrix; ``group_size`` is ``None`` where a row is one group."""

    @property
    def name(self) -> str:
        """What messages and ``GRID_RULES`` call it."""
        ...

    @property
    def group_size(self) -> int | None:
        """How many neighbours of a row share a scale; ``None`` for the whole row."""
        ...

    def fit(self, w: np.ndarray) -> Grid:
        """w: (out, in) float32   ->   its grid. Some columns alone will do, if they are whole groups."""
        ...


def quantize(w: np.ndarray, grid: Grid, rounding: Rounding = np.rint) -> np.ndarray:
    """The integers of the nearest grid points: ``round_half_even((w - minimum) / scale)``, clipped.

    w: (out, in) float32   ->   (out, in) int16. Where the scale is 0, the integer nearest to 0 that the grid has.
    ``rounding(x, out=x)`` takes float32 to float32; ``np.rint`` is half to even.

    Raises ``QuantizationError`` if a weight is not finite, or the grid has other rows or groups.

    >>> grid = Grid(np.float32([[0.5]]), np.float32([[-1.0]]), 0, 15)
    >>> quantize(np.float32([[-2.0, -1.0, 0.0, 0.75, 1.25, 99.0]]), grid).tolist()
    [[0, 0, 2, 4, 4, 15]]
    """
    check_finite(w)
    return quantize_finite(w, grid, rounding)


def quantize_finite(
    w: np.ndarray, grid: Grid, rounding: Rounding = np.rint, dtype: type[np.signedinteger] = np.int16
) -> np.ndarray:
    """``quantize`` for weights that are known to be finite, into integers of ``dtype``, which must hold the grid's."""
    groups = group_shape(w.shape, grid)
    divisor, minimum = divisor_of(grid.scale)[..., None], grid.minimum[..., None]  # (out, groups, 1)
    shifted = has_minimum(grid)
    out = np.empty(w.shape, dtype)
    for rows in row_chunks(w.shape):
        chunk = w[rows].astype(np.float32, copy=False)
        q = chunk.reshape(len(chunk), *groups)  # (rows, groups, group_size)
        with np.errstate(over="ignore"):  # a quotient far beyond the grid is clipped like anything beyond it
            q = (q - minimum[rows] if shifted else q) / divisor[rows]
        q = rounding(q, out=q)
        np.clip(q, grid.low, grid.high, out=q)
        out[rows] = q.reshape(chunk.shape)
    return out


def dequantize(q: np.ndarray, grid: Grid, out: np.ndarray | None = None) -> np.ndarray:
    """The weights that integers stand for: ``scale * q + minimum``.

    q: (out, in) integers   ->   (out, in) float32, written into ``out`` if it is given

    Raises ``QuantizationError`` if the grid has other rows or groups.

    >>> dequantize(np.int16([[0, 2, 15]]), Grid(np.float32([[0.5]]), np.float32([[-1.0]]), 0, 15)).tolist()
    [[-1.0, 0.0, 6.5]]
    """
    shape = len(q), *group_shape(q.shape, grid)  # (out, groups, group_size)
    out = np.empty(q.shape, np.float32) if out is None else out
    w = out.reshape(shape)
    np.multiply(q.reshape(shape), grid.scale[..., None], out=w, casting="same_kind")
    if has_minimum(grid):
        w += grid.minimum[..., None]
    return out


def has_minimum(grid: Grid) -> bool:
    """Adding 0 would change a number after all: -0.0 becomes 0.0, and a signed type of ggml adds nothing."""
    return grid.low >= 0 or bool(grid.minimum.any())


def group_shape(shape: tuple[int, ...], grid: Grid) -> tuple[int, int]:
    """(groups, group_size) of a matrix (out, in) on this grid.

    Raises ``QuantizationError`` if the grid has other rows, or groups that do not divide a row.
    """
    scale, minimum = grid.scale.shape, grid.minimum.shape
    if len(shape) != 2 or len(scale) != 2 or scale != minimum or scale[0] != shape[0]:
        raise QuantizationError(
            f"scales of shape {scale} and mins of shape {minimum} do not fit a matrix of shape {shape}"
        )
    if shape[1] % scale[1] if scale[1] else shape[1]:
        raise QuantizationError(f"rows of {shape[1]} weights do not divide into the grid's {scale[1]} groups")
    return scale[1], shape[1] // max(1, scale[1])


def check_finite(w: np.ndarray) -> None:
    """Raise ``QuantizationError`` if a weight is not finite, and say which.   w: (out, in)."""
    for rows in row_chunks(w.shape):
        if not np.isfinite(w[rows]).all():
            row, column = np.argwhere(~np.isfinite(w[rows]))[0]
            row += rows.start
            raise QuantizationError(
                f"the weight at [{row}, {column}] is {w[row, column]}; quantization needs finite weights"
            )


def divisor_of(scale: np.ndarray) -> np.ndarray:
    """What to divide by for a scale: itself, and infinity instead of 0, so that every quotient is 0 then."""
    return np.where(scale == 0, np.float32(np.inf), scale)


# ---- rules that choose a grid ----------------------------------------------------------------------------------------


def round_to_float16(x: np.ndarray, what: str) -> np.ndarray:
    """Rounded to what float16 holds, as float32. Raises ``QuantizationError`` beyond 65504, and names ``what``."""
    with np.errstate(over="ignore"):
        out = x.astype(np.float16).astype(np.float32)
    if not np.isfinite(out).all():
        bad = x[~np.isfinite(out)][0]
        raise QuantizationError(f"a {what} would be {bad:g}, and float16 ends at 65504; store this tensor as f32")
    return out


def split_into_groups(w: np.ndarray, group_size: int | None) -> np.ndarray:
    """(out, in)   ->   (out, groups, group_size) float32; ``None`` makes each row one group.

    Raises ``QuantizationError`` if a row does not divide into groups.
    """
    if w.ndim != 2:
        raise QuantizationError(f"expected a matrix (out, in), found shape {w.shape}; 1-D tensors stay f32")
    out, width = w.shape
    if group_size is not None and (group_size < 1 or width % group_size):
        raise QuantizationError(
            f"rows of {width} weights do not divide into groups of {group_size}; "
            "choose a group size that divides the row, or one group a row"
        )
    groups, size = (1, width) if group_size is None else (width // group_size, group_size)
    return w.astype(np.float32, copy=False).reshape(out, groups, size)


@dataclass(frozen=True)
class Symmetric:
    """``scale = float16(absmax / divisor)``, no minimum."""

    name: str
    group_size: int | None
    divisor: int
    low: int
    high: int

    def fit(self, w: np.ndarray) -> Grid:
        """w: (out, in) float32   ->   the grid of every group."""
        groups = split_into_groups(w, self.group_size)
        absmax = np.empty(groups.shape[:2], np.float32)
        for rows in row_chunks(groups.shape):
            np.abs(groups[rows]).max(axis=2, initial=0, out=absmax[rows])
        if not np.isfinite(absmax).all():
            check_finite(w)
        return Grid.symmetric(round_to_float16(absmax / np.float32(self.divisor), "scale"), self.low, self.high)


@dataclass(frozen=True)
class SignedAbsmax:
    """Q4_0: ``scale = float16(extreme / -8)``; the extreme keeps its sign and becomes -8, so scales may be negative."""

    name: str
    group_size: int = 32
    low: int = -8
    high: int = 7

    def fit(self, w: np.ndarray) -> Grid:
        """w: (out, in) float32   ->   the grid of every group."""
        check_finite(w)
        groups = split_into_groups(w, self.group_size)
        first = np.abs(groups).argmax(axis=2)[..., None]  # of several, ggml takes the first
        extreme = np.take_along_axis(groups, first, axis=2)[..., 0]
        scale = round_to_float16(extreme / np.float32(self.low), "scale")
        return Grid.symmetric(scale, self.low, self.high)


@dataclass(frozen=True)
class MinMaxAsymmetric:
    """Q4_1: the smallest weight is the minimum, ``scale = float16((largest - smallest) / 15)``."""

    name: str
    group_size: int = 32
    high: int = 15

    def fit(self, w: np.ndarray) -> Grid:
        """w: (out, in) float32   ->   the grid of every group."""
        check_finite(w)
        groups = split_into_groups(w, self.group_size)
        smallest = groups.min(axis=2)
        with np.errstate(over="ignore"):
            scale = round_to_float16((groups.max(axis=2) - smallest) / np.float32(self.high), "scale")
        return Grid(scale, round_to_float16(smallest, "minimum"), 0, self.high)


# Q8_0, Q4_0 and Q4_1 are the names that ggml gives to these rules; which bytes store the result is for formats.gguf.
GRID_RULES: dict[str, GridRule] = {
    rule.name: rule
    for rule in (
        Symmetric("Q8_0", 32, 127, -127, 127),
        SignedAbsmax("Q4_0"),
        MinMaxAsymmetric("Q4_1"),
        Symmetric("int8", None, 127, -127, 127),
        Symmetric("int4_g64", 64, 7, -7, 7),
        Symmetric("int3_g64", 64, 4, -4, 3),  # so few steps that one more is worth more than an exact largest weight
        Symmetric("int2_g64", 64, 2, -2, 1),
    )
}
