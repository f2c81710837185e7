"""Real GGUF v3, from scratch on numpy: the container, its typed metadata, its block formats."""

from .codecs import decode, encode
from .metadata import Typed, ValueType
from .read import GGUFFile, read_gguf
from .types import GGMLType
from .write import LazyTensor, RawTensor, write_gguf

__all__ = [
    "GGMLType",
    "GGUFFile",
    "LazyTensor",
    "RawTensor",
    "Typed",
    "ValueType",
    "decode",
    "encode",
    "read_gguf",
    "write_gguf",
]
