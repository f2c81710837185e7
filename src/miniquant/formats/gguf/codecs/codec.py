"""What a tensor type is: the size of its blocks, how to encode and decode them, what they hold. And the list of all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import numpy as np

from ....core.errors import QuantizationError
from ..types import LAYOUTS, GGMLType


class BlockField(NamedTuple):
    """A part of a block: ggml's name for it, its bytes, its category in a picture, what it is, and how to read it."""

    name: str
    n_bytes: int
    category: str  # "header", "scales" or "values"
    text: str
    code: str = ""  # of ``struct``, for a part that is one number


class Codec:
    """A tensor type. A subclass that sets ``dtype`` registers itself in ``CODECS``.

    ``encode`` and ``decode`` work on blocks at once, never many: ``rows`` cuts tensors up and calls them. Both may
    overwrite ``scratch``, float32, two rows as large as the weights.
    """

    dtype: ClassVar[GGMLType]
    file_type: ClassVar[int]  # of a file in this type, ``enum llama_ftype`` in llama.h; a K-quant's "small" one
    description: ClassVar[str]  # what a block holds, in its order: one sentence
    fields: ClassVar[tuple[BlockField, ...]] = ()  # the parts of a block, in their order
    head: ClassVar[GGMLType | None] = None  # the type of embedding and output head beside matrices of this type
    encodes: ClassVar[bool] = True  # else blocks of the type are decoded only
    identity: ClassVar[bool] = False  # the bytes are the weights: there is nothing to do
    super_block: ClassVar[bool] = False  # a block is cut into sub-blocks, each with a scale of its own
    searches: ClassVar[bool] = False  # encoding tries many scales: a hundred times slower than rounding
    weighs: ClassVar[bool] = False  # encoding can take an importance of each column into account
    levels: ClassVar[tuple[int, int] | None] = None  # the integers of a block whose steps are even, for ``grids``
    has_min: ClassVar[bool] = False  # a weight is d × q + m
    reach: ClassVar[float] = np.inf  # the largest magnitude of a weight that the scale does not cut off

    def __init_subclass__(cls) -> None:
        if "dtype" in cls.__dict__:
            if cls.dtype in CODECS:
                raise TypeError(f"{cls.dtype.name} has a codec already: {type(CODECS[cls.dtype]).__module__}")
            CODECS[cls.dtype] = cls()
            LAYOUTS[cls.dtype] = cls.description

    def encode(self, w: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """w: (blocks, weights) float32   ->   out: (blocks, bytes) uint8."""
        raise NotImplementedError

    def error_weights(self, w: np.ndarray, importance: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
        """How much the error of each weight counts, from that of its column, in a type that ``weighs``.

        w, importance: (blocks, weights), mean_square: (blocks, 1), that of a whole row of weights; all float32
        """
        raise NotImplementedError

    def encode_weighted(self, w: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """As ``encode``, where ``error_weights`` says what counts how much.   w, weights: (blocks, weights) float32."""
        raise NotImplementedError

    def decode(self, raw: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
        """raw: (blocks, bytes) uint8   ->   out: (blocks, weights) float32."""
        raise NotImplementedError

    def put_levels(self, q: np.ndarray, out: np.ndarray) -> None:
        """Write integers that are chosen already.   q: (blocks, weights) within ``levels`` -> out: as in ``encode``."""
        raise NotImplementedError

    def split(self, raw: np.ndarray) -> dict[str, np.ndarray]:
        """The parts of blocks by ggml's names, as views of the same bytes; see ``split_fields``."""
        return split_fields(raw, self.fields)

    def text_of(self, field: BlockField, part: np.ndarray) -> str:
        """What a part of one block is, in words; a type may add what the bytes say.   part: (bytes of the part,)."""
        return field.text


CODECS: dict[GGMLType, Codec] = {}


def codec_of(dtype: GGMLType | str) -> Codec:
    """The codec of a type, which may be given by its name. Raises ``QuantizationError`` if it has none.

    >>> codec_of("q4_0").dtype
    <GGMLType.Q4_0: 2>
    """
    found = GGMLType.__members__.get(dtype.upper()) if isinstance(dtype, str) else dtype
    if not isinstance(found, GGMLType) or found not in CODECS:
        name = dtype.name if isinstance(dtype, GGMLType) else repr(dtype)
        raise QuantizationError(f"no codec for {name} here; there are {', '.join(known.name for known in CODECS)}")
    return CODECS[found]


def split_fields(raw: np.ndarray, fields: Iterable[BlockField]) -> dict[str, np.ndarray]:
    """The parts of blocks by name, as views of the same bytes.

    raw: (..., bytes of a block) uint8   ->   name: (..., bytes of the part)

    >>> split_fields(np.zeros((3, 18), np.uint8), codec_of("Q4_0").fields)["qs"].shape
    (3, 16)
    """
    found, at = {}, 0
    for field in fields:
        found[field.name] = raw[..., at : at + field.n_bytes]
        at += field.n_bytes
    return found
