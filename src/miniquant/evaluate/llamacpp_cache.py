"""The KV cache that llama.cpp holds, read from the copy that it makes of its state.

Source: ``llama_kv_cache::state_write`` in ``llama-kv-cache.cpp``. After eight bytes: the counts of streams and tokens;
12 bytes for each token, its position and sequences; whether values are transposed, the count of layers, and the sizes
of the two rotations. Then the keys of each layer, and then the values of each layer, with the type and the bytes of a
row before them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ..core.errors import MiniquantError


class CacheLayer(NamedTuple):
    """What the KV cache of one layer holds, as llama.cpp has it: a row for each token, all its heads side by side.

    type_k, type_v: members of ggml_type; keys, values: (tokens, bytes) uint8
    """

    type_k: int
    keys: np.ndarray
    type_v: int
    values: np.ndarray


class Cache(NamedTuple):
    """The KV cache, layer by layer. n_rot_k, n_rot_v: so many neighbours were rotated together; 0 for none."""

    n_rot_k: int
    n_rot_v: int
    layers: list[CacheLayer]


def cache_of(state: np.ndarray) -> Cache:
    """state: (n,) uint8, from ``llama_state_seq_get_data``   ->   the cache of the one sequence.

    Values that llama.cpp keeps transposed, as it does without flash attention, come with a row for each token, too.
    Raises ``MiniquantError`` if the bytes are laid out in another way.
    """
    copied = _Copy(state)
    copied.at = 8  # a magic number, and a flag
    streams, tokens = copied.numbers("<2I")
    copied.at += 12 * tokens
    transposed, layers, n_rot_k, n_rot_v = copied.numbers("<4I")
    keys = [copied.rows(tokens) for _ in range(layers)]
    values = [copied.columns(tokens) if transposed else copied.rows(tokens) for _ in range(layers)]
    if streams != 1 or copied.at != len(state):
        raise MiniquantError(_OTHER)
    return Cache(n_rot_k, n_rot_v, [CacheLayer(*k, *v) for k, v in zip(keys, values, strict=True)])


_OTHER = "this llama.cpp lays its cache out in another way; install the version in constraints.txt"


class _Copy:
    """Bytes, read from ``at`` on."""

    def __init__(self, state: np.ndarray) -> None:
        self.state, self.at = state, 0

    def take(self, count: int) -> np.ndarray:
        if count > len(self.state) - self.at:
            raise MiniquantError(_OTHER)
        self.at += count
        return self.state[self.at - count : self.at]

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)).tobytes())

    def rows(self, tokens: int) -> tuple[int, np.ndarray]:
        """The type, and a row for each token."""
        kind, width = self.numbers("<iQ")
        return kind, self.take(tokens * width).reshape(tokens, width)

    def columns(self, tokens: int) -> tuple[int, np.ndarray]:
        """The same from a row for each channel."""
        kind, size, channels = self.numbers("<iII")
        cells = self.take(channels * tokens * size).reshape(channels, tokens, size)
        return kind, cells.swapaxes(0, 1).reshape(tokens, channels * size)
