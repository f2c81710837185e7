"""The tensor types that can be encoded and decoded here: a file for each, with all that is known about the type.

A type is a class in a file of this folder. It registers itself when it is imported, and every file of the folder is
imported here: a new type needs no other line. Tables, help texts, tests and benchmarks walk ``CODECS``.
"""

import pkgutil
from importlib import import_module

from .codec import CODECS, BlockField, Codec, codec_of
from .rows import decode, encode


def register_all() -> None:
    """Import every file of this folder, and put ``CODECS`` in the order of ggml's numbers."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    for dtype in sorted(CODECS):
        CODECS[dtype] = CODECS.pop(dtype)


register_all()

__all__ = ["CODECS", "BlockField", "Codec", "codec_of", "decode", "encode"]
