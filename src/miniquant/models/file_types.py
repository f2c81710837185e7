"""What a whole file is stored in: one type for all its matrices, or a mix of types.

Source: ``enum llama_ftype`` in ``llama.h``; ``llama_tensor_get_type`` in ``llama.cpp/src/llama-quant.cpp``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..core.errors import QuantizationError, SchemeError
from ..formats.gguf.codecs import CODECS, codec_of
from ..formats.gguf.types import GGMLType

QUANTIZATION_VERSION = 2  # ggml.h, GGML_QNT_VERSION
HEADS = ("token_embd.weight", "output.weight")  # they meet every token, and few bits cost them too much


class FileType(NamedTuple):
    """The types of a file's matrices. ``parts`` and ``favoured`` go by llama.cpp's names, such as ``ffn_down``."""

    name: str
    number: int  # in ``general.file_type``
    weights: GGMLType  # of every matrix that nothing else is said of
    parts: Mapping[str, GGMLType] = {}  # part -> its type in every layer
    favoured: Mapping[str, GGMLType] = {}  # part -> its type in the layers that ``more_bits`` names

    @property
    def head(self) -> GGMLType:
        """The type of the token embedding and the output head."""
        return codec_of(self.weights).head or self.weights

    def type_of(self, name: str, n_layers: int) -> GGMLType:
        """The type of a matrix, by llama.cpp's name of it.

        >>> FILE_TYPES["Q4_K_M"].type_of("blk.2.ffn_down.weight", 4).name
        'Q6_K'
        """
        if name in HEADS:
            return self.head
        _, layer, part, _ = name.split(".")
        if part in self.favoured and more_bits(int(layer), n_layers):
            return self.favoured[part]
        return self.parts.get(part, self.weights)


def more_bits(layer: int, n_layers: int) -> bool:
    """Whether a layer is favoured by a mix: those of the first and last eighth, and every third between.

    Source: ``use_more_bits`` in ``llama.cpp/src/llama-quant.cpp``.

    >>> [layer for layer in range(32) if more_bits(layer, 32)]
    [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]
    """
    first = n_layers // 8
    return layer < first or layer >= 7 * n_layers // 8 or (layer - first) % 3 == 2


_MIXES = (
    FileType(
        name="Q4_K_M",
        number=15,
        weights=GGMLType.Q4_K,
        parts={"attn_qkv": GGMLType.Q5_K},
        favoured={"attn_v": GGMLType.Q6_K, "ffn_down": GGMLType.Q6_K},
    ),
)
_OF_ONE_TYPE = (FileType(dtype.name, codec.file_type, dtype) for dtype, codec in CODECS.items())
FILE_TYPES: dict[str, FileType] = {  # a mix follows the type that it is a mix of
    found.name: found for found in sorted((*_OF_ONE_TYPE, *_MIXES), key=lambda found: (found.weights, found.number))
}


def file_type(name: GGMLType | str) -> FileType:
    """The file type of a name, in capitals or not. Raises ``SchemeError`` for one that there is not.

    >>> file_type("q4_0").head.name, file_type("Q4_K_M").head.name, file_type("F16").head.name
    ('Q8_0', 'Q6_K', 'F16')
    """
    found = name.name if isinstance(name, GGMLType) else str(name).upper()
    if found not in FILE_TYPES:
        raise SchemeError(f"no type {name!r:.40}; there are {', '.join(FILE_TYPES)}")
    return FILE_TYPES[found]


def tensor_type(name: GGMLType | str) -> GGMLType:
    """The type of one tensor, by its name. Raises ``SchemeError`` for a mix, or a type without a codec."""
    try:
        return codec_of(name).dtype
    except QuantizationError as error:
        raise SchemeError(str(error)) from None


def quantization_version(types: Iterable[GGMLType]) -> dict[str, int]:
    """The key that a file needs if any of its tensors is quantized; else nothing.

    >>> quantization_version([GGMLType.F32, GGMLType.Q8_0]), quantization_version([GGMLType.F16])
    ({'general.quantization_version': 2}, {})
    """
    return {"general.quantization_version": QUANTIZATION_VERSION} if any(t.quantized for t in types) else {}
