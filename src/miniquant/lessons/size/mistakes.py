"""What students write instead in lab 09 when they count bytes, and what the checks then say."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...lab.spec import Mistake

Dims = tuple[int, ...]
Shapes = dict[str, Dims]
Q8, Q4 = "q8_per_channel", "q4_per_group_64"
BITS = {"f32": 32, "f16": 16, Q8: 8, Q4: 4}


def _n_scales(scheme: str, dims: Dims) -> int:
    if scheme == Q8:
        return dims[0]
    return dims[0] * (dims[1] // 64) if scheme == Q4 else 0


def _bytes(scheme: str, dims: Dims, *, bits: dict[str, int] = BITS, scale: int = 2) -> int:
    return math.prod(dims) * bits[scheme] // 8 + scale * _n_scales(scheme, dims)


# ---- tensor_bytes ----------------------------------------------------------------------------------------------------


def _per_column(scheme: str, dims: Dims) -> int:
    return _bytes(scheme, dims, scale=0) + (2 * dims[1] * (dims[0] if scheme == Q4 else 1) if scheme in (Q8, Q4) else 0)


def _per_row(scheme: str, dims: Dims) -> int:
    return _bytes(scheme, dims, scale=0) + (2 * dims[0] if scheme in (Q8, Q4) else 0)


def _per_tensor(scheme: str, dims: Dims) -> int:
    return _bytes(scheme, dims, scale=0) + (2 if scheme in (Q8, Q4) else 0)


def _scalar_is_nothing(scheme: str, dims: Dims) -> int:
    return _bytes(scheme, dims) if dims else 0


def _two_dims(scheme: str, dims: Dims) -> int:
    return _bytes(scheme, (dims[0] * dims[1],) if scheme in ("f32", "f16") else dims)


def _added(scheme: str, dims: Dims) -> int:
    return sum(dims) * BITS[scheme] // 8 + 2 * _n_scales(scheme, dims)


def _groups_of_32(scheme: str, dims: Dims) -> int:
    return _bytes(scheme, dims, scale=0) + 2 * _n_scales(scheme, dims) * (2 if scheme == Q4 else 1)


def _halves_as_floats(scheme: str, dims: Dims) -> float:
    return _bytes(scheme, dims) / 1 if scheme == Q4 else _bytes(scheme, dims)


def _padded(scheme: str, dims: Dims) -> int:
    return math.ceil(_bytes(scheme, dims) / 32) * 32


TENSOR_BYTES = (
    Mistake(
        "bits instead of bytes",
        lambda scheme, dims: math.prod(dims) * BITS[scheme] + 16 * _n_scales(scheme, dims),
        "The number of bits was returned.",
        "Divide by 8: a file's size is counted in bytes.",
        "an answer that is eight times too large",
    ),
    Mistake(
        "scales forgotten",
        lambda scheme, dims: _bytes(scheme, dims, scale=0),
        "A quantized tensor begins with its scales, and they are not in the sum.",
        "Add two bytes for every scale.",
        "an answer that is a few bytes short for the two quantized types",
    ),
    Mistake(
        "scales in float32",
        lambda scheme, dims: _bytes(scheme, dims, scale=4),
        "Each scale was counted with four bytes.",
        "The format stores scales as float16: two bytes each.",
        "an answer that is a few bytes too large for the two quantized types",
    ),
    Mistake(
        "one scale a column",
        _per_column,
        "A channel is an output channel, which is a row: `dims[0]` of them, not `dims[1]`.",
        "Count `out` scales, and `in // 64` groups in each row.",
        "the right answer for square matrices only",
    ),
    Mistake(
        "one scale a row in Q4",
        _per_row,
        "In `q4_per_group_64` a row has one scale for each group of 64, not one for the whole row.",
        "Count `out * (in // 64)` scales.",
        "the right answer for rows of 64, and too few bytes for longer ones",
    ),
    Mistake(
        "one scale for the whole tensor",
        _per_tensor,
        "Only one scale was counted.",
        "Count one a row for `q8_per_channel`, one a group for `q4_per_group_64`.",
        "an answer that is short by two bytes for each further row",
    ),
    Mistake(
        "a byte for every 4-bit value",
        lambda scheme, dims: _bytes(scheme, dims, bits={**BITS, Q4: 8}),
        "The 4-bit values were counted before packing.",
        "Two of them share a byte: halve their number.",
        "almost twice the expected answer for `q4_per_group_64`",
    ),
    Mistake(
        "half a byte for every 8-bit value",
        lambda scheme, dims: _bytes(scheme, dims, bits={**BITS, Q8: 4}),
        "Both quantized types were treated as packed, but an 8-bit value fills its byte.",
        "Divide by two for `q4_per_group_64` only.",
        "about half the expected answer for `q8_per_channel`",
    ),
    Mistake(
        "a scalar takes nothing",
        _scalar_is_nothing,
        "Empty dims were read as no values, but a tensor without dims is a scalar: one value.",
        "Leave it to `math.prod(())`, which is 1.",
        "`0` where the dims are `()`",
    ),
    Mistake(
        "a float for a number of bytes",
        _halves_as_floats,
        "`/ 2` and `* 0.5` make a float, even of a number that divides evenly.",
        "Use `// 2`: a number of bytes is an int, and `seek` and `range` insist on that.",
        "`34.0 (float)` where `34 (int)` is expected",
    ),
    Mistake(
        "two dims assumed",
        _two_dims,
        "`dims[0] * dims[1]` fails for a bias, which has one dim, and for a scalar, which has none.",
        "Use `math.prod(dims)` for any number of dims.",
        "`IndexError: tuple index out of range`",
    ),
    Mistake(
        "dims added",
        _added,
        "A matrix of 2 by 3 holds 6 values, not 5.",
        "Multiply: `math.prod(dims)`.",
        "an answer that is far too small for matrices",
    ),
    Mistake(
        "groups of 32",
        _groups_of_32,
        "Real GGUF's blocks have 32 weights; a group here has 64.",
        "Count `out * (in // 64)` scales.",
        "two bytes too many for each group",
    ),
    Mistake(
        "rounded up to 32",
        _padded,
        "Real GGUF pads every tensor to a multiple of 32 bytes; this layout has no padding.",
        "Return the bytes of the tensor itself.",
        "answers that are all multiples of 32",
    ),
)


# ---- overhead_bytes --------------------------------------------------------------------------------------------------


def _overhead(
    shapes: Shapes,
    metadata: dict[str, str],
    *,
    header: int = 16,
    newlines: Callable[[int], int] = lambda n: max(0, n - 1),
    names: Callable[[str], int] = lambda name: len(name.encode()),
    text: Callable[[str], int] = lambda line: len(line.encode()),
    dims: Callable[[Dims], int] = lambda d: 4 * len(d),
    fixed: int = 12,  # name_len 2, n_dims 1, dtype 1, offset 8
) -> int:
    """The right sum, with one term at a time done wrong."""
    lines = sum(text(f"{key}={value}") for key, value in metadata.items()) + newlines(len(metadata))
    return header + lines + sum(fixed + names(name) + dims(d) for name, d in shapes.items())


def _overhead_mistake(name: str, cause: str, cure: str, see: str, **changes: object) -> Mistake:
    return Mistake(name, lambda shapes, metadata: _overhead(shapes, metadata, **changes), cause, cure, see)


OVERHEAD_BYTES = (
    _overhead_mistake(
        "a header of 12 bytes",
        "One of the four numbers of the header is missing, often metadata_len.",
        "Count magic, version, n_tensors and metadata_len: four times four bytes.",
        "`12` where nothing but a header is expected to take 16",
        header=12,
    ),
    _overhead_mistake(
        "counts of 8 bytes",
        "Real GGUF stores its two counts as u64, and its header has 24 bytes; this format has four u32.",
        "Count four times four bytes.",
        "`24` where nothing but a header is expected to take 16",
        header=24,
    ),
    _overhead_mistake(
        "a newline after every line",
        "The lines of the metadata are joined by newlines, so the last one has none behind it.",
        "Count one newline fewer than lines, and none if there are no lines.",
        "one byte too many as soon as there is metadata",
        newlines=lambda n: n,
    ),
    _overhead_mistake(
        "no newlines",
        "The newlines between the lines of the metadata are bytes of the file too.",
        "Count the bytes of the joined text.",
        "one byte too few for each line after the first",
        newlines=lambda n: 0,
    ),
    _overhead_mistake(
        "characters of a name instead of bytes",
        "A letter such as `ö` is one character and two bytes of UTF-8.",
        'Count `len(name.encode("utf-8"))`.',
        "too few bytes for the tensor called `größe`",
        names=len,
    ),
    _overhead_mistake(
        "characters of the metadata instead of bytes",
        "metadata_len counts bytes, and a letter such as `ë` takes two.",
        "Encode the text before you take its length.",
        "one byte too few for the author called `Noël`",
        text=len,
    ),
    _overhead_mistake(
        "characters instead of bytes",
        "Names and metadata were counted in characters, but one letter may take several bytes of UTF-8.",
        'Take the length after `.encode("utf-8")`, for both.',
        "too few bytes wherever a letter is not ASCII",
        names=len,
        text=len,
    ),
    _overhead_mistake(
        "name_len forgotten",
        "In front of every name stand two bytes that say how long it is.",
        "Add 2 for each tensor.",
        "two bytes too few for each tensor",
        fixed=10,
    ),
    _overhead_mistake(
        "one byte short for each tensor",
        "One of the two fields of one byte is missing, n_dims or dtype, or name_len was counted as one byte.",
        "Count 2 for name_len, 1 for n_dims and 1 for dtype.",
        "one byte too few for each tensor",
        fixed=11,
    ),
    _overhead_mistake(
        "dims forgotten",
        "The dims of a tensor are stored in its descriptor, four bytes each.",
        "Add `4 * len(dims)`.",
        "the right answer for a scalar, and four bytes too few for each dim of the others",
        dims=lambda d: 0,
    ),
    _overhead_mistake(
        "four bytes for each value",
        "The product of the dims counts the tensor's values, and those are stored in the data section.",
        "Count the dims themselves: `4 * len(dims)`.",
        "an answer that grows with the size of the tensor",
        dims=lambda d: 4 * math.prod(d),
    ),
    _overhead_mistake(
        "the = signs forgotten",
        "Between key and value stands a `=`, and it is a byte of the file.",
        'Count the bytes of `f"{key}={value}"`.',
        "one byte too few for each line of metadata",
        text=lambda line: len(line.encode()) - 1,
    ),
    _overhead_mistake(
        "offset forgotten",
        "Every descriptor ends with an offset of eight bytes.",
        "Add 8 for each tensor.",
        "eight bytes too few for each tensor",
        fixed=4,
    ),
    _overhead_mistake(
        "offset of 4 bytes",
        "The offset is a u64: with a u32, no file could be longer than 4 GiB.",
        "Count 8 bytes for it.",
        "four bytes too few for each tensor",
        fixed=8,
    ),
    _overhead_mistake(
        "dtype of 4 bytes",
        "Real GGUF stores the type as u32; here it is one byte.",
        "Count 1 byte for it.",
        "three bytes too many for each tensor",
        fixed=15,
    ),
    _overhead_mistake(
        "dims of 8 bytes",
        "Real GGUF stores dims as u64; here each takes four bytes.",
        "Count `4 * len(dims)`.",
        "four bytes too many for each dim",
        dims=lambda d: 8 * len(d),
    ),
    _overhead_mistake(
        "always two dims",
        "A bias has one dim and a scalar has none.",
        "Count four bytes for each dim that the tensor has.",
        "four bytes too many for a bias",
        dims=lambda d: 8,
    ),
)
