"""Write real GGUF: what both the specification and llama.cpp's loader accept, streamed, atomic, deterministic.

Source: ``ggml/docs/gguf.md``; ``gguf_init_from_file`` in ``ggml/src/gguf.cpp``.
"""

from __future__ import annotations

import math
import os
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import is_torch
from ...core.errors import QuantizationError, SchemeError
from ...core.files import atomic_write
from ..tensor import TensorInfo
from .codecs import CODECS, codec_of, decode, encode
from .codecs import rows as blocks
from .codecs.rows import CHUNK
from .metadata import Typed, ValueType, encode_metadata, encode_string
from .read import ALIGNMENT, HEADER, INTEGERS, MAGIC, MAX_DIMS, MAX_NAME, VERSION, padded
from .types import GGMLType

SURE = (
    1024.0  # weights up to this size are finite in every type that reaches so far: no scale comes near to float16's end
)
PIECE = 2**19  # weights encoded at once by each thread, at most: 2 MB of float32
_NUMBERS = set(map(int, GGMLType))
_PLAIN = {"float32": "F32", "float16": "F16", "float64": "F64", "bfloat16": "BF16"} | {
    f"int{n}": f"I{n}" for n in (8, 16, 32, 64)
}


class RawTensor(NamedTuple):
    """A tensor that is encoded already: its blocks, its type, and its shape as numpy has it."""

    raw: np.ndarray
    dtype: GGMLType
    shape: tuple[int, ...]


class Weighed(NamedTuple):
    """An array, or a ``LazyTensor``, to be encoded with an importance of each column, as ``encode`` takes it.

    importance: (experts, in) float32; each expert of a (experts, out, in) tensor has its own, any other tensor one
    """

    data: Any
    dtype: GGMLType | str
    importance: np.ndarray


class LazyTensor(NamedTuple):
    """A tensor that is read when its turn to be written comes, a few rows at a time.

    ``rows(start, stop)`` gives rows, (stop - start, shape[-1]), of all rows counted through; several threads call it at
    once. ``dtype`` names what they hold: float32, float16, or bfloat16 (which come as float32).
    """

    shape: tuple[int, ...]
    dtype: str
    rows: Callable[[int, int], np.ndarray]


def weighed(data: Any, dtype: GGMLType, importance: np.ndarray | None) -> Any:
    """A tensor as ``write_gguf`` takes it, with an importance of its columns if there is one."""
    return (data, dtype) if importance is None else Weighed(data, dtype, importance)


def write_gguf(
    path: str | os.PathLike[str], tensors: Mapping[str, Any], metadata: Mapping[str, Any], alignment: int = ALIGNMENT
) -> None:
    """Write a GGUF file, atomically and in the order given; the same input gives the same bytes.

    ``tensors`` maps names to arrays (stored in their own type), to pairs ``(array, "Q4_0")`` (encoded row by row while
    writing), to ``Weighed``, or to ``RawTensor``; a ``LazyTensor`` may stand for an array. ``metadata`` maps keys to
    values; ``general.alignment`` is added if it is not 32.

    Raises ``SchemeError``, ``QuantizationError`` or ``MetadataError`` for what the format cannot hold, ``WriteError``
    if the file cannot be written. In each case an existing file stays as it was.
    """
    pairs = _with_alignment(metadata, alignment)
    block = encode_metadata(pairs)
    weighed = {name: value.importance for name, value in tensors.items() if isinstance(value, Weighed)}
    sources = {name: _source(name, value) for name, value in tensors.items()}
    infos, offset = [], 0
    for name, (_, dtype, shape) in sources.items():
        info = TensorInfo(name, shape, dtype, offset)
        infos.append(info)
        offset += padded(info.n_bytes, alignment)
    head = HEADER.pack(MAGIC, VERSION, len(infos), len(pairs)) + block + b"".join(map(encode_info, infos))
    with atomic_write(path) as file:
        file.write(head)
        file.write(bytes(padded(len(head), alignment) - len(head)))
        for part in _in_order(_parts(infos, sources, weighed, alignment), threads=offset > blocks.PARALLEL_MIN):
            file.write(part)


Part = memoryview | bytes


def _in_order(jobs: Iterable[Callable[[], Part]], threads: bool) -> Iterator[Part]:
    """What the jobs give, in their order, while threads do the next ones: one is read and encoded, another written.

    Without ``threads`` each is done when its turn comes, which suits a small file.
    """
    if not threads:
        yield from (job() for job in jobs)
        return
    waiting: deque[Future[Part]] = deque()
    with ThreadPoolExecutor(blocks.THREADS, "encode") as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > blocks.THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # after an error nobody wants the others
                future.cancel()


def _parts(
    infos: list[TensorInfo[GGMLType]], sources: Mapping[str, Any], weighed: Mapping[str, np.ndarray], alignment: int
) -> Iterator[Callable[[], Part]]:
    """What makes the bytes of all tensors and of the padding after each, in their order."""
    for info in infos:
        yield from _encoded(info, sources[info.name][0], weighed.get(info.name))
        yield partial(bytes, padded(info.n_bytes, alignment) - info.n_bytes)


def _with_alignment(metadata: Mapping[str, Any], alignment: int) -> dict[str, Any]:
    if not isinstance(alignment, int) or not 8 <= alignment < 2**32 or alignment & (alignment - 1):
        raise SchemeError(f"the alignment {alignment!r} is not a power of two of at least 8; the usual one is 32")
    pairs = dict(metadata)
    given = pairs.get("general.alignment", alignment)
    given = given.value if isinstance(given, Typed) else given
    if not isinstance(given, int | np.integer) or given != alignment:
        raise SchemeError(f"metadata says general.alignment={given!r}, and the file is written with {alignment}")
    if alignment != ALIGNMENT or "general.alignment" in pairs:
        pairs["general.alignment"] = Typed(alignment, ValueType.UINT32)
    return pairs


def _source(name: str, value: Any) -> tuple[Any, GGMLType, tuple[int, ...]]:
    """What to write for a tensor: its data, its type and its shape, all checked."""
    length = len(name.encode("utf-8", "surrogatepass")) if isinstance(name, str) else 0
    if not 1 <= length <= MAX_NAME or "\0" in name:
        raise SchemeError(f"the tensor name {name!r} is not text of 1 to {MAX_NAME} bytes, which llama.cpp takes")
    if isinstance(value, RawTensor):
        data, dtype, shape = _raw(name, value)
    else:
        value = value[:2] if isinstance(value, Weighed) else value
        data, asked = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        data = np.asarray(data) if isinstance(data, np.generic) else data
        if not is_torch(data) and not isinstance(data, np.ndarray | LazyTensor):
            raise SchemeError(f"{name!r} is a {type(data).__name__}; pass an array, (array, type) or a RawTensor")
        held = getattr(data.dtype, "name", str(data.dtype)).removeprefix("torch.")
        if isinstance(data, LazyTensor) and held not in ("float32", "float16", "bfloat16"):
            raise SchemeError(f"{name!r}: a LazyTensor is float32, float16 or bfloat16, found {held}")
        dtype, shape = _dtype_of(name, held, asked), tuple(data.shape)
    if len(shape) > MAX_DIMS:
        raise SchemeError(f"{name!r} has shape {shape}; GGUF holds {MAX_DIMS} dims at most")
    if not shape and dtype == GGMLType.BF16:
        raise SchemeError(
            f"{name!r} has no dims, and the gguf package cannot read a BF16 tensor of none; store it as F32"
        )
    try:
        size = dtype.bytes_of(shape)
    except QuantizationError as error:
        raise SchemeError(f"{name!r} of shape {shape}: {error}") from None
    if isinstance(value, RawTensor) and data.nbytes != size:
        raise SchemeError(f"{name!r}: {dtype.name} of shape {shape} takes {size} bytes, found {data.nbytes}")
    return data, dtype, shape


def _raw(name: str, value: RawTensor) -> tuple[np.ndarray, GGMLType, tuple[int, ...]]:
    if value.dtype not in _NUMBERS:
        raise SchemeError(f"{name!r}: {value.dtype!r} is no GGMLType")
    if not isinstance(value.raw, np.ndarray) or value.raw.dtype != np.uint8:
        found = value.raw.dtype if isinstance(value.raw, np.ndarray) else type(value.raw).__name__
        raise SchemeError(f"{name!r}: raw blocks are an array of uint8, found {found}")
    if not all(isinstance(dim, int | np.integer) and dim >= 0 for dim in value.shape):
        raise SchemeError(f"{name!r}: the shape {value.shape!r} is not made of counts")
    return value.raw, GGMLType(value.dtype), tuple(map(int, value.shape))


def _dtype_of(name: str, held: str, asked: Any) -> GGMLType:
    """The type to store a tensor as: the one asked for, or its own; ``held`` is numpy's or torch's name of that."""
    if asked is None:
        if held not in _PLAIN:
            raise SchemeError(f"{name!r} holds {held}, which GGUF has no type for; convert it first")
        return GGMLType[_PLAIN[held]]
    try:
        found = codec_of(asked).dtype
    except QuantizationError as error:
        raise SchemeError(f"{name!r}: {error}") from None
    if "float" not in held:
        raise QuantizationError(f"{name!r} holds {held}; {found.name} encodes floating-point weights")
    return found


def _encoded(
    info: TensorInfo[GGMLType], data: Any, importance: np.ndarray | None = None
) -> Iterator[Callable[[], Part]]:
    """What makes the bytes of one tensor, a piece at a time; no piece holds rows of two experts that have an importance
    each."""
    if not info.n_bytes:
        return
    if is_torch(data):
        data = data.detach().cpu()
        data = (data.float() if str(data.dtype) == "torch.bfloat16" else data).numpy()
    if data.dtype == np.uint8 or info.dtype in INTEGERS:  # raw blocks, or numbers that are stored as they are
        held = data.dtype if data.dtype == np.uint8 else INTEGERS[info.dtype]
        yield partial(_as_bytes, data, held)
        return
    size, width = math.prod(info.shape), info.shape[-1] if info.shape else 1
    rows = data.rows if isinstance(data, LazyTensor) else _rows_of(data.reshape(-1, width))
    step = max(1, min(PIECE, max(CHUNK, size // 4 // blocks.THREADS)) // width)
    share = size // width // (1 if importance is None else len(importance))  # rows
    for start, stop in _pieces(size // width, share, step):
        counts = None if importance is None else importance[start // share]
        yield partial(_encoded_rows, info, rows, start, stop, width, counts)


def _as_bytes(data: np.ndarray, held: Any) -> memoryview:
    return np.ascontiguousarray(data, held).data.cast("B")


def _encoded_rows(
    info: TensorInfo[GGMLType],
    rows: Callable[[int, int], np.ndarray],
    start: int,
    stop: int,
    width: int,
    importance: np.ndarray | None,
) -> memoryview:
    """Read some rows, encode them, and check that nothing is lost."""
    given = rows(start, stop)
    if given.shape != (stop - start, width):
        raise SchemeError(
            f"{info.name!r}: rows {start} to {stop} came in shape {given.shape}, expected {(stop - start, width)}"
        )
    with np.errstate(over="ignore"):
        w = np.ascontiguousarray(given, np.float32)
    raw = encode(w, info.dtype, importance)
    if info.dtype != GGMLType.F32 or given.dtype.itemsize > 4:
        _check_encoded(info, given, raw, start)
    return raw.data.cast("B")


def _pieces(rows: int, share: int, step: int) -> Iterator[tuple[int, int]]:
    """Where pieces of ``step`` rows begin and end; each share of the rows begins a piece.

    >>> list(_pieces(6, 3, 2))
    [(0, 2), (2, 3), (3, 5), (5, 6)]
    """
    for first in range(0, rows, max(1, share)):
        for start in range(first, first + share, step):
            yield start, min(start + step, first + share)


def largest(w: np.ndarray) -> float:
    """The largest size of the weights: infinite or NaN if one of them is, 0 if there are none.

    >>> largest(np.array([1.5, -2.0])), largest(np.array([np.nan, 3.0]))
    (2.0, nan)
    """
    return float(np.maximum(w.max(initial=0), -w.min(initial=0)))


def _rows_of(array: np.ndarray) -> Callable[[int, int], np.ndarray]:
    return lambda start, stop: array[start:stop]


def _check_encoded(info: TensorInfo[GGMLType], w: np.ndarray, raw: np.ndarray, row: int) -> None:
    """A weight that comes back as infinity, or as nothing at all because it was none, is refused."""
    reach = CODECS[info.dtype].reach
    if largest(w) <= min(SURE, reach):
        return
    back = decode(raw, info.dtype)
    lost = ~np.isfinite(back)
    if info.dtype.block == 1:
        lost &= np.isfinite(w)  # these types have an infinity and NaNs of their own
    else:
        lost |= ~np.isfinite(w)  # which a scale without them may hide
    if np.isfinite(reach):
        lost |= np.abs(w) > reach
    if not lost.any():
        return
    first = int(lost.argmax()) // info.dtype.block * info.dtype.block
    block = w.reshape(-1)[first : first + info.dtype.block]
    finite = np.isfinite(block)
    at = first + int(np.abs(block).argmax() if finite.all() else (~finite).argmax())
    if info.dtype.block == 1:
        reason = f"{info.dtype.name} cannot hold it; store the tensor as {'F32' if w.dtype.itemsize <= 4 else 'F64'}"
    elif np.isfinite(reach) and finite.all():
        reason = f"{info.dtype.name} holds magnitudes up to {reach:g}; store the tensor in another type"
    elif finite.all():
        reason = "the scale of its block is beyond float16; store the tensor as F32"
    else:
        reason = "quantization needs finite weights"
    row, column = row + at // w.shape[1], at % w.shape[1]
    raise QuantizationError(f"{info.name!r}: the weight at row {row}, column {column} is {w.flat[at]:g}; {reason}")


def encode_info(info: TensorInfo[GGMLType]) -> bytes:
    """String name, <I n_dims, <{n}Q dims (in first), <I type, <Q offset."""
    dims = info.shape[::-1]  # in first
    tail = struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, info.dtype, info.offset)
    return encode_string(info.name) + tail
