"""Write real GGUF: what both the specification and llama.cpp's loader accept, streamed, atomic, deterministic.

Source: ``ggml/docs/gguf.md``; ``gguf_init_from_file`` in ``ggml/src/gguf.cpp``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import QuantizationError, SchemeError
from ..files import atomic_write
from ..quantize import is_torch
from .blocks import CHUNK, CODECS, GGMLType, decode, encode, tensor_bytes
from .metadata import Typed, ValueType, encode_metadata, encode_string
from .read import ALIGNMENT, HEADER, INTEGERS, MAGIC, MAX_DIMS, MAX_NAME, VERSION, TensorInfo, padded

_PLAIN = {"float32": "F32", "float16": "F16", "float64": "F64", "bfloat16": "BF16"} | {
    f"int{n}": f"I{n}" for n in (8, 16, 32, 64)
}


class RawTensor(NamedTuple):
    """A tensor that is encoded already: its blocks, its type, and its shape as numpy has it."""

    raw: np.ndarray
    kind: GGMLType
    shape: tuple[int, ...]


def write_gguf(
    path: str | os.PathLike[str], tensors: Mapping[str, Any], metadata: Mapping[str, Any], alignment: int = ALIGNMENT
) -> None:
    """Write a GGUF file, atomically and in the order given; the same input gives the same bytes.

    ``tensors`` maps names to arrays (stored in their own type), to pairs ``(array, "Q4_0")`` (encoded row by row while
    writing), or to ``RawTensor``. ``metadata`` maps keys to values; ``general.alignment`` is added if it is not 32.

    Raises ``SchemeError``, ``QuantizationError`` or ``MetadataError`` for what the format cannot hold, ``WriteError``
    if the file cannot be written. In each case an existing file stays as it was.
    """
    pairs = _with_alignment(metadata, alignment)
    block = encode_metadata(pairs)
    sources = {name: _source(name, value) for name, value in tensors.items()}
    infos, offset = [], 0
    for name, (_, kind, shape) in sources.items():
        info = TensorInfo(name, shape, kind, offset)
        infos.append(info)
        offset += padded(info.n_bytes, alignment)
    head = HEADER.pack(MAGIC, VERSION, len(infos), len(pairs)) + block + b"".join(map(_encode_info, infos))
    with atomic_write(path) as file:
        file.write(head)
        file.write(bytes(padded(len(head), alignment) - len(head)))
        for info in infos:
            for part in _encoded(info, sources[info.name][0]):
                file.write(part)
            file.write(bytes(padded(info.n_bytes, alignment) - info.n_bytes))


def _with_alignment(metadata: Mapping[str, Any], alignment: int) -> dict[str, Any]:
    if not isinstance(alignment, int) or alignment < 8 or alignment & (alignment - 1):
        raise SchemeError(f"the alignment {alignment!r} is not a power of two of at least 8; the usual one is 32")
    pairs = dict(metadata)
    given = pairs.get("general.alignment", alignment)
    if (given.value if isinstance(given, Typed) else given) != alignment:
        raise SchemeError(f"metadata says general.alignment={given!r}, and the file is written with {alignment}")
    if alignment != ALIGNMENT or "general.alignment" in pairs:
        pairs["general.alignment"] = Typed(alignment, ValueType.UINT32)
    return pairs


def _source(name: str, value: Any) -> tuple[Any, GGMLType, tuple[int, ...]]:
    """What to write for a tensor: its data, its type and its shape, all checked."""
    data, kind = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if isinstance(value, RawTensor):
        data, kind, shape = np.ascontiguousarray(value.raw, np.uint8), GGMLType(value.kind), tuple(value.shape)
    else:
        data = np.asarray(data) if isinstance(data, np.generic) else data
        if not is_torch(data) and not isinstance(data, np.ndarray):
            raise SchemeError(f"tensor {name!r} is a {type(data).__name__}; pass an array, (array, type) or RawTensor")
        shape = tuple(data.shape)
        kind = _kind(name, str(data.dtype).removeprefix("torch."), kind)
    encoded = name.encode("utf-8", "surrogatepass") if isinstance(name, str) else b""
    if not 1 <= len(encoded) <= MAX_NAME:
        raise SchemeError(f"the tensor name {name!r} takes {len(encoded)} bytes; llama.cpp takes 1 to {MAX_NAME}")
    if len(shape) > MAX_DIMS:
        raise SchemeError(f"{name!r} has shape {shape}; GGUF holds {MAX_DIMS} dims at most")
    try:
        size = tensor_bytes(kind, shape)
    except QuantizationError as error:
        raise SchemeError(f"{name!r} of shape {shape}: {error}") from None
    if isinstance(value, RawTensor) and data.nbytes != size:
        raise SchemeError(f"{name!r}: {kind.name} of shape {shape} takes {size} bytes, found {data.nbytes}")
    return data, kind, shape


def _kind(name: str, dtype: str, asked: Any) -> GGMLType:
    if asked is None:
        if dtype not in _PLAIN:
            raise SchemeError(f"{name!r} holds {dtype}, which GGUF has no type for; convert it first")
        return GGMLType[_PLAIN[dtype]]
    names = [kind.name for kind in CODECS]
    found = asked.name if isinstance(asked, GGMLType) else str(asked).upper()
    if found not in names:
        raise SchemeError(f"{name!r}: no codec for {asked!r}; there are {', '.join(names)}")
    if "float" not in dtype:
        raise QuantizationError(f"{name!r} holds {dtype}; {found} encodes floating-point weights")
    return GGMLType[found]


def _encoded(info: TensorInfo, data: Any) -> Iterator[bytes | memoryview]:
    """The bytes of one tensor, a few rows at a time."""
    if is_torch(data):
        data = data.detach().cpu()
        data = (data.float() if data.dtype.itemsize == 2 and info.kind != GGMLType.F16 else data).numpy()
    if data.dtype == np.uint8 or info.kind in INTEGERS:  # raw blocks, or numbers that are stored as they are
        kind = data.dtype if data.dtype == np.uint8 else INTEGERS[info.kind]
        yield np.ascontiguousarray(data, kind).tobytes()
        return
    rows = data.reshape(-1, info.shape[-1] if info.shape else 1)
    step = max(1, CHUNK * 32 // max(1, rows.shape[1]))
    for start in range(0, len(rows), step):
        w = rows[start : start + step].astype(np.float32)
        raw = encode(w, info.kind)
        if info.kind != GGMLType.F32:
            _check_encoded(info, w, raw, start)
        yield memoryview(raw).cast("B")


def _check_encoded(info: TensorInfo, w: np.ndarray, raw: np.ndarray, start: int) -> None:
    """A weight or a scale that the type cannot hold would come back as infinity or worse: refuse it."""
    bad = ~np.isfinite(w)
    if info.kind in (GGMLType.F16, GGMLType.BF16):
        bad = ~np.isfinite(decode(raw, info.kind)) & ~bad
        remedy = f"{info.kind.name} cannot hold it; store the tensor as F32"
    else:
        remedy = "quantization needs finite weights"
        if not bad.any():
            scale = raw.reshape(-1, info.kind.n_bytes)[:, :2].copy().view("<f2")
            bad = np.broadcast_to(~np.isfinite(scale), (len(scale), info.kind.block)).reshape(w.shape)
            remedy = "the scale of its block is beyond float16; store the tensor as F32"
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise QuantizationError(
            f"{info.name!r}: the weight at row {start + row}, column {column} is {w[row, column]:g}; {remedy}"
        )


def _encode_info(info: TensorInfo) -> bytes:
    dims = info.shape[::-1]  # in first
    tail = struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, info.kind, info.offset)
    return encode_string(info.name) + tail
