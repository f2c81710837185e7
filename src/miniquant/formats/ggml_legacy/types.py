"""The file format that GGUF replaced: legacy GGML, as its GPT-2 example wrote it. Kept for the lab that shows why.

1. magic      the number 0x67676d6c, which lies on disk as "lmgg"
2. numbers    n_vocab, n_ctx, n_embd, n_head, n_layer, ftype: an i32 each, without names; the reader knows the order
3. vocabulary an i32 how many tokens; for each an i32 length and its bytes
4. tensors    to the end of the file: i32 n_dims, i32 length of the name, i32 type, an i32 for each dim, innermost
              first, the name, the data; no alignment, no count

ftype is the type of most matrices, plus 1000 times the version of the quantization. Linear weights lie here as PyTorch
keeps them.

Source: ``examples/gpt-2/convert-ckpt-to-ggml.py`` of ggml in 2023, and *Historical State of Affairs* in ``gguf.md``.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

MAGIC = 0x67676D6C
HPARAMS = ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer", "ftype")


class LegacyType(IntEnum):
    """GGML's types of tensors, of which its GPT-2 example wrote two."""

    F32 = 0
    F16 = 1

    @property
    def numpy(self) -> np.dtype:
        """numpy's type."""
        return np.dtype("<f4" if self == LegacyType.F32 else "<f2")

    @property
    def block(self) -> int:
        """Each number is stored by itself."""
        return 1

    @property
    def description(self) -> str:
        """What the bytes of a tensor hold."""
        return f"the weights, {self.numpy.name}"

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor of this shape.

        >>> LegacyType.F16.bytes_of((2, 3))
        12
        """
        return math.prod(shape) * self.numpy.itemsize
