"""How numbers are quantized, in the terms of AMD's Quark: a specification says it.

A specification is a rule that chooses a grid (``grids.GridRule``), so whatever takes a rule takes one:
``scale = (high - low) / (steps)``, ``zero_point = low_integer - round(low / scale)``, as in PyTorch's observers.

Source: Quark's documentation, "Bridge from Quark to llama.cpp"; ``torch.ao.quantization.observer`` for the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import SchemeError
from .grids import Grid, check_finite, dequantize, divisor_of, quantize, round_to_float16, split_into_groups
from .observers import MinMax, Observer, Range


class Dtype(Enum):
    """The integers: a number of bits, signed or not."""

    int2 = "int2"
    int3 = "int3"
    int4 = "int4"
    int8 = "int8"
    uint4 = "uint4"
    uint8 = "uint8"

    @property
    def bits(self) -> int:
        """Bits of one integer."""
        return int(self.value[-1])

    @property
    def low(self) -> int:
        """The smallest integer.

        >>> Dtype.int3.low, Dtype.uint4.low
        (-4, 0)
        """
        return 0 if str(self.value).startswith("u") else -(1 << self.bits - 1)

    @property
    def high(self) -> int:
        """The largest integer."""
        return self.low + (1 << self.bits) - 1


class ScaleType(Enum):
    """What a scale, and the minimum that comes from a zero point, is rounded to before anything is divided by it.

    ``float``, Quark's name for any number that need not be a power of two, is float16: blocks of GGUF store no other.
    """

    float32 = "float32"
    float16 = "float16"
    float = "float16"


class RoundType(Enum):
    """Where a number halfway between two integers goes: to the even one, or away from 0 as C's ``roundf`` has it."""

    half_even = "half_even"
    half_away = "half_away"


class QSchemeType(Enum):
    """Which numbers share a scale: all of them, those of an output channel (row), or a group of neighbours in a row."""

    per_tensor = "per_tensor"
    per_channel = "per_channel"
    per_group = "per_group"


class Affine(NamedTuple):
    """A scale and a zero point: ``x_hat = (q - zero_point) * scale``.

    scale, zero_point: (out, groups); (1, 1) per tensor. float32 (float16 numbers where asked for), int32
    """

    scale: np.ndarray
    zero_point: np.ndarray


@dataclass(frozen=True)
class QuantizationSpec:
    """How to round numbers: to which integers, with which scales, shared by whom.

    ``symmetric``: the zero point is the middle of the integers (0 where they are signed), not chosen from the range.
    ``ch_axis``: the axis that keeps scales of its own; 0, the output channels, or ``None`` for a tensor as a whole.
    ``is_dynamic``: fitted to every call's numbers; not for weights, which do not change from call to call.
    ``observer_cls``: makes the observer that chooses the range.

    Raises ``SchemeError`` for a combination that makes no sense, and says what to change.
    """

    dtype: Dtype
    symmetric: bool = True
    scale_type: ScaleType = ScaleType.float16
    round_method: RoundType = RoundType.half_even
    qscheme: QSchemeType = QSchemeType.per_channel
    ch_axis: int | None = None
    group_size: int | None = None
    is_dynamic: bool = False
    observer_cls: Callable[[], Observer] = MinMax

    def __post_init__(self) -> None:
        for name, kind in _ENUMS.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                choices = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
                raise SchemeError(f"{name}={value!r} is no {kind.__name__}; choose one of {choices}")
        if not callable(self.observer_cls) or not hasattr(self.observer_cls(), "range"):
            raise SchemeError(
                f"observer_cls={self.observer_cls!r} makes no observer; pass a class, such as "
                "PerChannelMinMaxObserver, or functools.partial of a class and its settings"
            )
        if self.qscheme == QSchemeType.per_group:
            if not isinstance(self.group_size, int) or self.group_size < 1:
                raise SchemeError(f"per_group with group_size={self.group_size!r}; say how many weights share a scale")
        elif self.group_size is not None:
            raise SchemeError(
                f"{self.qscheme.name} with group_size={self.group_size}: only per_group has groups; "
                "use QSchemeType.per_group, or leave the group size out"
            )
        if self.ch_axis is not None and self.qscheme == QSchemeType.per_tensor:
            raise SchemeError(f"per_tensor with ch_axis={self.ch_axis}: one scale for all has no axis; leave it out")
        if self.ch_axis not in (None, 0):
            raise SchemeError(
                f"ch_axis={self.ch_axis}: a scale for each input column cannot be taken out of the sum over the "
                "columns; use ch_axis=0, the output channels"
            )

    @property
    def name(self) -> str:
        """A short name.

        >>> QuantizationSpec(Dtype.uint4, False, qscheme=QSchemeType.per_group, group_size=32).name
        'uint4 asymmetric per_group 32, float16 scales'
        """
        shared = self.qscheme.name + (f" {self.group_size}" if self.group_size else "")
        how = "symmetric" if self.symmetric else "asymmetric"
        return f"{self.dtype.name} {how} {shared}, {self.scale_type.name} scales"

    def fit(self, w: np.ndarray) -> Grid:
        """The grid that a file would hold.   w: (out, in) float32, finite."""
        return self.grid(self.affine(w), len(w))

    def affine(self, w: np.ndarray) -> Affine:
        """Scales and zero points from the range that the observer sees.   w: (out, in) float32, finite."""
        check_finite(w)
        groups = split_into_groups(w, self.group_size)  # (out, groups, group_size)
        rows = groups.reshape(1, -1) if self.qscheme == QSchemeType.per_tensor else groups.reshape(-1, groups.shape[2])
        found = self._affine(self.observer_cls().range(rows, self._fake_quantize))  # one a row of rows
        shape = (1, 1) if self.qscheme == QSchemeType.per_tensor else groups.shape[:2]
        return Affine(found.scale.reshape(shape), found.zero_point.reshape(shape))

    def grid(self, affine: Affine, n_rows: int) -> Grid:
        """Scale and zero point as scale and minimum, ``-scale * zero_point``, for each of ``n_rows`` rows.

        The minimum is rounded as the scale is. With float16 that costs 0 its exact place on the grid.
        """
        minimum = np.float32(0) - affine.scale * affine.zero_point.astype(np.float32)
        minimum = self._stored(minimum, "minimum")
        shape = (n_rows, affine.scale.shape[1])
        scale, minimum = (np.broadcast_to(x, shape) for x in (affine.scale, minimum))
        return Grid(scale, minimum, self.dtype.low, self.dtype.high)

    def quantize(self, w: np.ndarray, grid: Grid) -> np.ndarray:
        """The integers, rounded as the specification says.   w: (out, in) float32   ->   (out, in) int16."""
        return quantize(w, grid, np.rint if self.round_method == RoundType.half_even else round_half_away)

    def _affine(self, covered: Range) -> Affine:
        """covered: (rows,)   ->   scale: (rows,), zero point: (rows,)."""
        low, high = self.dtype.low, self.dtype.high
        span = 2 * np.maximum(-covered.low, covered.high) if self.symmetric else covered.high - covered.low
        scale = self._stored(span / np.float32(high - low), "scale")
        middle = np.full(len(scale), (low + high + 1) // 2)
        if self.symmetric:
            return Affine(scale, middle.astype(np.int32))
        steps = covered.low / divisor_of(scale)
        zero_point = np.clip(low - np.rint(steps), low, high)
        return Affine(scale, zero_point.astype(np.int32))

    def _fake_quantize(self, x: np.ndarray, covered: Range) -> np.ndarray:
        """x: (rows, n) float32   ->   what comes back of it, if ``covered`` is the range."""
        scale, zero_point = self._affine(covered)
        grid = self.grid(Affine(scale[:, None], zero_point[:, None]), len(x))
        return dequantize(self.quantize(x, grid), grid)

    def _stored(self, x: np.ndarray, what: str) -> np.ndarray:
        return round_to_float16(x, what) if self.scale_type == ScaleType.float16 else x.astype(np.float32)


_ENUMS = {"dtype": Dtype, "scale_type": ScaleType, "round_method": RoundType, "qscheme": QSchemeType}


def round_half_away(x: np.ndarray, /, *, out: np.ndarray | None = None) -> np.ndarray:
    """Rounded half away from 0.   float32   ->   float32, written into ``out`` if it is given.

    >>> round_half_away(np.float32([0.5, 1.5, -2.5, 0.49999997])).tolist()
    [1.0, 2.0, -3.0, 0.0]
    """
    almost = np.nextafter(np.float32(0.5), np.float32(0))  # half itself would lift the float below one half to 1
    rounded: np.ndarray = np.trunc(x + np.copysign(almost, x), out=out)
    return rounded


def differences(spec: QuantizationSpec, other: QuantizationSpec) -> dict[str, tuple[Any, Any]]:
    """The fields in which two specifications differ: name -> (of the first, of the second)."""
    pairs = {f.name: (getattr(spec, f.name), getattr(other, f.name)) for f in fields(spec)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
