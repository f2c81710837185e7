"""What stands where in a bump file: the header, the types, the tensors in their order. Little-endian throughout.

1. header    128 bytes, ``HEADER``; its checksum is the SHA-256 of everything after it
2. types     <I how many tensors, then a byte for each: its ``BumpType``
3. tensors   in the order of ``parts``; each begins at a multiple of 64 bytes, and zeros fill the gaps

A file has no names and no shapes: both follow from the header and from ``config.json``, which must lie beside it.

The aligned dims are the lengths, in elements, that a row of float32 activations gets in memory: rounded up until its
bytes are a multiple of 64. The tensors in the file are as long as they are.

There are two layouts of 3. ``"aligned"`` is this course's. ``"ckernel"`` is the one of C-Kernel-Engine's converter: 14
tensors a layer and four more, back to back. ``config.json`` says which one it is.

Source: *GGUF to Bump Allocator*, C-Kernel-Engine, and what its ``convert_gguf_to_bump.py`` writes; the errata page says
what the document leaves open, and how that is decided.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from ...core.errors import QuantizationError
from ..gguf.read import padded
from ..gguf.types import GGMLType
from ..tensor import TensorInfo

MAGIC = b"BUMPWGT3"
VERSION = 3
ALIGNMENT = 64  # bytes: a cache line, and an AVX-512 register
HEADER = struct.Struct("<8s8I3Q32s32s")
COUNT = struct.Struct("<I")
ARCHITECTURES = {1: "llama", 2: "gpt2", 3: "qwen2"}  # 1 is the document's decoder; the others are this course's
LAYOUTS = ("aligned", "ckernel")
FACTORS = "rope_freqs.weight"  # in a GGUF file: by what the angle of each pair of a head is divided


class BumpType(IntEnum):
    """The types of bump's tensors, with bump's own numbers; ggml's (``GGMLType``) are others.

    >>> BumpType.Q4_K, BumpType.Q4_K.ggml
    (<BumpType.Q4_K: 6>, <GGMLType.Q4_K: 12>)
    """

    FP32 = 0
    BF16 = 1
    FP16 = 2
    INT8 = 3
    INT4 = 4
    Q4_0 = 5
    Q4_K = 6
    Q6_K = 7
    Q8_0 = 8
    Q8_K = 9
    Q4_1 = 10  # the document's end at 9
    Q5_0 = 11
    Q5_1 = 12
    Q5_K = 13

    @property
    def ggml(self) -> GGMLType | None:
        """ggml's type of the same blocks; INT8 and INT4 have none, and no description either."""
        return _GGML.get(self)

    @property
    def blocks(self) -> GGMLType:
        """``ggml``, for a type that has one. Raises ``QuantizationError`` for INT8 and INT4."""
        if (found := self.ggml) is None:
            raise QuantizationError(f"no block is described for bump's type {self.name}")
        return found

    @property
    def block(self) -> int:
        """Weights in a block."""
        return self.blocks.block

    @property
    def description(self) -> str:
        """What the bytes of a tensor hold, in their order."""
        return self.blocks.description

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor of this shape, padding not included.

        >>> BumpType.Q8_0.bytes_of((2, 64))
        136
        """
        return self.blocks.bytes_of(shape)


_GGML = {
    BumpType.FP32: GGMLType.F32,
    BumpType.BF16: GGMLType.BF16,
    BumpType.FP16: GGMLType.F16,
    BumpType.Q4_0: GGMLType.Q4_0,
    BumpType.Q4_K: GGMLType.Q4_K,
    BumpType.Q6_K: GGMLType.Q6_K,
    BumpType.Q8_0: GGMLType.Q8_0,
    BumpType.Q8_K: GGMLType.Q8_K,
    BumpType.Q4_1: GGMLType.Q4_1,
    BumpType.Q5_0: GGMLType.Q5_0,
    BumpType.Q5_1: GGMLType.Q5_1,
    BumpType.Q5_K: GGMLType.Q5_K,
}
BUMP_TYPES = {ggml: bump for bump, ggml in _GGML.items()}  # what a GGUF file's types become
CKERNEL_TYPES = {kind: BUMP_TYPES[kind] for kind in (GGMLType.F32, GGMLType.Q4_K, GGMLType.Q6_K)}


class Header(NamedTuple):
    """The 128 bytes, field by field, with the document's names."""

    magic: bytes
    version: int
    model_type: int
    num_layers: int
    vocab_size: int
    embed_dim: int
    context_len: int
    num_heads: int
    head_dim: int
    aligned_embed_dim: int
    aligned_head_dim: int
    aligned_context: int
    checksum: bytes
    reserved: bytes


SIZES = dict(zip(Header._fields, (8, *[4] * 8, *[8] * 3, 32, 32)))  # field -> bytes
OFFSETS = {name: sum(list(SIZES.values())[:index]) for index, name in enumerate(SIZES)}  # field -> first byte


class BumpConfig(NamedTuple):
    """Everything about a model but its weights; ``kv_heads`` and what follows has no place in the header."""

    architecture: str  # one of ARCHITECTURES
    layers: int
    vocab: int
    embed: int
    context: int
    heads: int
    head_dim: int
    kv_heads: int
    intermediate: int
    epsilon: float
    rope_theta: float
    tied: bool  # the token embedding is the head, too
    attention_bias: bool = False
    mlp_bias: bool = False
    bos: int | None = None
    eos: int | None = None
    rope_factors: bool = False  # a tensor says by what each pair's angle is divided
    layout: str = "aligned"  # one of LAYOUTS

    @property
    def alignment(self) -> int:
        """What the places of the tensors are multiples of, in bytes."""
        return ALIGNMENT if self.layout == "aligned" else 1

    @property
    def heads_width(self) -> int:
        """How many outputs Wq has: those of all heads; often, but not always, as many as the model is wide."""
        return self.heads * self.head_dim

    @property
    def aligned_dims(self) -> tuple[int, int, int]:
        """The header's aligned dims; C-Kernel-Engine's converter pads the context alone."""
        if self.layout == "ckernel":
            return self.embed, self.head_dim, aligned(self.context)
        return aligned(self.embed), aligned(self.head_dim), aligned(self.context)

    @property
    def n_parts(self) -> int:
        """How many tensors the file has, without making a list of them."""
        if self.layout == "ckernel":
            return 4 + 14 * self.layers
        own = 4 + 12 * self.layers if self.architecture == "gpt2" else 2 + 15 * self.layers + self.rope_factors
        return own + (not self.tied)

    @property
    def model_type(self) -> int:
        """The header's code of the architecture."""
        return {name: code for code, name in ARCHITECTURES.items()}[self.architecture]

    def header(self, checksum: bytes) -> bytes:
        """The 128 bytes; ``checksum`` is the SHA-256 of everything after them."""
        shape = (self.layers, self.vocab, self.embed, self.context, self.heads, self.head_dim)
        return HEADER.pack(MAGIC, VERSION, self.model_type, *shape, *self.aligned_dims, checksum, bytes(32))


def fits_ckernel(config: BumpConfig) -> bool:
    """Whether the layout of C-Kernel-Engine has a place for everything that this model has."""
    plain = config.tied and not config.rope_factors and config.heads_width == config.embed
    return plain and config.architecture == "llama"


def aligned(dim: int) -> int:
    """The length of a row of ``dim`` float32 whose bytes are a multiple of 64: rounded up to a multiple of 16.

    >>> aligned(64), aligned(65), aligned(1)
    (64, 80, 16)
    """
    return padded(dim, ALIGNMENT // 4)


class Part(NamedTuple):
    """A tensor's place in the layout: bump's name, the shape (out first), and the GGUF tensors that it is made of.

    Several sources are laid end to end. A source of an ``optional`` part may be missing: then there are zeros.
    """

    name: str
    shape: tuple[int, ...]
    sources: tuple[str, ...]
    optional: bool = False


def parts(config: BumpConfig) -> Iterator[Part]:
    """Every tensor of a model, in the order of the file; the head comes last, and only if it is not the embedding."""
    embed, ckernel = config.embed, config.layout == "ckernel"
    yield Part("token_embd", (config.vocab, embed), ("token_embd.weight",))
    if config.architecture == "gpt2" or ckernel:
        yield Part("position_embd", (config.context, embed), ("position_embd.weight",), ckernel)
    if config.rope_factors:
        yield Part("rope_factors", (config.head_dim // 2,), (FACTORS,))
    for layer in range(config.layers):
        block = _gpt2_layer(config) if config.architecture == "gpt2" else _llama_layer(config)
        for name, shape, sources, optional in block:
            yield Part(
                f"layers.{layer}.{name}", shape, tuple(f"blk.{layer}.{s}" for s in sources.split()), bool(optional)
            )
    yield Part("output_norm", (embed,), ("output_norm.weight",))
    if config.architecture == "gpt2" or ckernel:
        yield Part("output_norm_beta", (embed,), ("output_norm.bias",), ckernel)
    if not config.tied:
        yield Part("output", (config.vocab, embed), ("output.weight",))


def _llama_layer(config: BumpConfig) -> list[tuple[str, tuple[int, ...], str, int]]:
    """The document's order; b1 belongs to W_gate and W_up, end to end. C-Kernel-Engine makes one tensor of those."""
    embed, inner = config.embed, config.intermediate
    q, kv = config.heads_width, config.kv_heads * config.head_dim
    matrices = [("W_gate", (inner, embed), "ffn_gate.weight", 0), ("W_up", (inner, embed), "ffn_up.weight", 0)]
    if config.layout == "ckernel":
        matrices = [("W_gate_up", (2 * inner, embed), "ffn_gate.weight ffn_up.weight", 0)]
    return [
        ("ln1_gamma", (embed,), "attn_norm.weight", 0),
        ("ln2_gamma", (embed,), "ffn_norm.weight", 0),
        ("Wq", (q, embed), "attn_q.weight", 0),
        ("bq", (q,), "attn_q.bias", 1),
        ("Wk", (kv, embed), "attn_k.weight", 0),
        ("bk", (kv,), "attn_k.bias", 1),
        ("Wv", (kv, embed), "attn_v.weight", 0),
        ("bv", (kv,), "attn_v.bias", 1),
        ("Wo", (embed, q), "attn_output.weight", 0),
        ("bo", (embed,), "attn_output.bias", 1),
        *matrices,
        ("b1", (2 * inner,), "ffn_gate.bias ffn_up.bias", 1),
        ("W_down", (embed, inner), "ffn_down.weight", 0),
        ("b2", (embed,), "ffn_down.bias", 1),
    ]


def _gpt2_layer(config: BumpConfig) -> list[tuple[str, tuple[int, ...], str, int]]:
    """The same order with what GPT-2 has more, LayerNorm's beta, and with one matrix for q, k and v."""
    embed, inner = config.embed, config.intermediate
    return [
        ("ln1_gamma", (embed,), "attn_norm.weight", 0),
        ("ln1_beta", (embed,), "attn_norm.bias", 0),
        ("ln2_gamma", (embed,), "ffn_norm.weight", 0),
        ("ln2_beta", (embed,), "ffn_norm.bias", 0),
        ("Wqkv", (3 * embed, embed), "attn_qkv.weight", 0),
        ("bqkv", (3 * embed,), "attn_qkv.bias", 0),
        ("Wo", (embed, embed), "attn_output.weight", 0),
        ("bo", (embed,), "attn_output.bias", 0),
        ("W_up", (inner, embed), "ffn_up.weight", 0),
        ("b1", (inner,), "ffn_up.bias", 0),
        ("W_down", (embed, inner), "ffn_down.weight", 0),
        ("b2", (embed,), "ffn_down.bias", 0),
    ]


def places(config: BumpConfig, types: Iterable[BumpType]) -> Iterator[TensorInfo[BumpType]]:
    """Where a model's tensors lie: one after another after the table of types, each at the next aligned byte.

    Raises ``QuantizationError`` if a row is no whole number of its type's blocks.
    """
    dtypes = list(types)
    at = HEADER.size + COUNT.size + len(dtypes)
    for part, dtype in zip(parts(config), dtypes):
        tensor = TensorInfo(part.name, part.shape, dtype, padded(at, config.alignment))
        at = tensor.offset + tensor.n_bytes
        yield tensor
