"""Write GGUF-lite: atomic, deterministic, a piece of a tensor at a time. ``types`` has the layout."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...core.arrays import row_chunks, to_numpy
from ...core.errors import MetadataError, QuantizationError, SchemeError
from ...core.files import atomic_write
from ...quantization.packing import pack_nibbles
from ...quantization.schemes import GROUP_SIZE, SCHEMES, resolve, state_dict_of
from ...quantization.symmetric import Quantized, absmax_scales, cast_checked, quantize_rows
from ..tensor import TensorInfo
from .types import HEADER, MAGIC, MAX_CELLS, MAX_DIMS, MUST_SAY, VERSION, DType, n_cells


def write_gguf_lite(
    path: str | os.PathLike[str],
    model: Any,
    schemes: Mapping[str, str],
    metadata: Mapping[str, Any] | None = None,
    chosen: Mapping[str, Quantized] | None = None,
) -> None:
    """Write a model to ``path`` as GGUF-lite, atomically; the same model gives the same bytes.

    ``model`` is an ``nn.Module`` or a state dict; ``schemes`` maps parameter names to ``f32``, ``f16``,
    ``q8_per_channel`` or ``q4_per_group_64``, and what it does not name is stored as ``f32``. ``metadata`` adds to
    what a reader needs anyway: ``dims_order``, ``group_size`` and the model's config. ``chosen`` holds the integers and
    scales of quantized tensors where somebody has chosen them already: they are stored as they are.

    Raises ``SchemeError``, ``QuantizationError`` or ``MetadataError`` for what the format cannot hold, ``WriteError``
    if the file cannot be written. In each case an existing file stays as it was.
    """
    state = state_dict_of(model)
    infos = layout({n: tuple(w.shape) for n, w in state.items()}, resolve(model, schemes))
    ready = _encode_chosen(infos, chosen or {})
    block = encode_metadata(_with_own_metadata(model, {} if metadata is None else metadata))
    with atomic_write(path) as file:
        file.write(HEADER.pack(MAGIC, VERSION, len(infos), len(block)))  # 1. header
        file.write(block)  # 2. metadata
        for info in infos:  # 3. descriptors
            file.write(encode_descriptor(info))
        for info in infos:  # 4. data
            if info.name in ready:
                file.write(ready[info.name])
                continue
            try:
                for part in encode_tensor(to_numpy(state[info.name]), info.dtype):
                    file.write(part)
            except QuantizationError as error:
                raise QuantizationError(f"{info.name!r}: {error}") from None


def layout(shapes: Mapping[str, tuple[int, ...]], schemes: Mapping[str, str]) -> list[TensorInfo[DType]]:
    """The descriptors of a file: in order, back to back. The sizes follow from the shapes; no weight is touched.

    >>> [info.offset for info in layout({"a": (2, 64), "b": (3,)}, {"a": "q4_per_group_64", "b": "f32"})]
    [0, 68]
    """
    infos, offset = [], 0
    for name, shape in shapes.items():
        info = TensorInfo(name, shape, DType(SCHEMES.index(schemes[name])), offset)
        infos.append(info)
        offset += info.n_bytes
    return infos


def encode_descriptor(info: TensorInfo[DType]) -> bytes:
    """<H name_len, name, <B n_dims, <{n}I dims, <B dtype, <Q offset.

    >>> encode_descriptor(TensorInfo("w", (2, 3), DType.F16, 8)).hex(" ")
    '01 00 77 02 02 00 00 00 03 00 00 00 01 08 00 00 00 00 00 00 00'
    """
    try:
        name = info.name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SchemeError(f"the parameter name {info.name!r} is not valid Unicode text") from error
    if not 1 <= len(name) <= 0xFFFF:
        raise SchemeError(f"the name {info.name[:40]!r} takes {len(name)} bytes of UTF-8; the format holds 1 to 65535")
    if len(info.shape) > MAX_DIMS:
        raise SchemeError(f"{info.name!r} has {len(info.shape)} dims; an array has {MAX_DIMS} at most")
    if any(dim > 0xFFFFFFFF for dim in info.shape) or n_cells(info.shape) >= MAX_CELLS:
        raise SchemeError(f"{info.name!r} has shape {info.shape}; dims stay below 2**32, and their product below 2**60")
    dims = struct.pack(f"<B{len(info.shape)}I", len(info.shape), *info.shape)
    return struct.pack("<H", len(name)) + name + dims + struct.pack("<BQ", info.dtype, info.offset)


def encode_metadata(metadata: Mapping[str, Any]) -> bytes:
    """``key=value`` lines joined by newlines, UTF-8. Values are strings, numbers or truth values.

    Raises ``MetadataError`` for an empty key, an ``=`` in a key, a newline anywhere, or a value of another type.

    >>> encode_metadata({"group_size": 64, "dims_order": "out,in"})
    b'group_size=64\\ndims_order=out,in'
    """
    lines = []
    for key, value in metadata.items():
        if not isinstance(key, str) or not key or "=" in key or "\n" in key:
            raise MetadataError(f"the key {key!r} is not a string without '=' and newline, of at least one character")
        if not isinstance(value, str | int | float | np.number | np.bool_):
            raise MetadataError(f"the value of {key!r} is a {type(value).__name__}; pass text or a number")
        if "\n" in str(value):
            raise MetadataError(f"the value of {key!r} holds a newline, which ends a line of metadata; replace it")
        lines.append(f"{key}={value}")
    try:
        return "\n".join(lines).encode("utf-8")
    except UnicodeEncodeError as error:
        raise MetadataError(f"metadata must be valid Unicode text: {error}") from error


def encode_tensor(w: np.ndarray, dtype: DType) -> Iterator[memoryview | bytes]:
    """The bytes of one tensor, piece by piece: never more than a small chunk of it in memory at a time.

    w: float32, 2-D for the quantized types. Raises ``QuantizationError`` for weights that the type cannot hold.
    """
    if dtype in (DType.F32, DType.F16):
        flat = np.ascontiguousarray(w).reshape(-1)
        for rows in row_chunks((len(flat), 1)):
            stored = cast_checked(flat[rows], np.float32 if dtype == DType.F32 else np.float16, rows.start)
            yield stored.data.cast("B")
        return
    bits, groups = (8, 1) if dtype == DType.Q8_PER_CHANNEL else (4, w.shape[1] // GROUP_SIZE)
    scale = absmax_scales(w, groups, bits)  # (out, groups)
    yield scale.astype("<f2").tobytes()
    for rows in row_chunks(w.shape):
        values = quantize_rows(w[rows], scale[rows], bits)
        yield (values if bits == 8 else pack_nibbles(values)).tobytes()


def _encode_chosen(infos: list[TensorInfo[DType]], chosen: Mapping[str, Quantized]) -> dict[str, bytes]:
    """The bytes of tensors whose integers and scales exist already, after a look at whether the format holds them."""
    known, ready = {info.name: info for info in infos}, {}
    for name, (values, scale) in chosen.items():
        if name not in known or known[name].dtype not in (DType.Q8_PER_CHANNEL, DType.Q4_PER_GROUP_64):
            raise SchemeError(f"integers are given for {name!r}, which is no quantized tensor of this file")
        (out, width), eight = known[name].shape, known[name].dtype == DType.Q8_PER_CHANNEL
        wanted = known[name].dtype.scale_shape(known[name].shape)
        q, scale = to_numpy(values, np.int8), to_numpy(scale, np.float16)
        if q.shape != (out, width) or scale.shape != wanted:
            raise SchemeError(
                f"{name!r} takes integers of shape {(out, width)} and scales of shape {wanted}; "
                f"found {q.shape} and {scale.shape}"
            )
        if not np.isfinite(scale).all() or (not eight and q.size and (q.min() < -8 or q.max() > 7)):
            raise QuantizationError(
                f"{name!r}: a scale is not finite, or an integer beyond -8 to 7 is to be stored in 4 bits"
            )
        ready[name] = scale.astype("<f2").tobytes() + (q if eight else pack_nibbles(q)).tobytes()
    return ready


def _with_own_metadata(model: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader needs to rebuild the model from the file alone, then what the caller adds."""
    if not isinstance(metadata, Mapping):
        raise MetadataError(f"metadata must be a dict of keys and values, found {metadata!r}")
    own: dict[str, Any] = dict(MUST_SAY)
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "to_dict"):
        own["architecture"] = type(model).__name__
        for key, value in config.to_dict().items():
            own[f"config.{key}"] = value if isinstance(value, str | int | float) else json.dumps(value, default=str)
    for key in own.keys() & metadata.keys():
        if str(metadata[key]) != str(own[key]):
            raise MetadataError(f"metadata sets {key}={metadata[key]}, and the writer knows it to be {own[key]}")
    return {**own, **metadata}
