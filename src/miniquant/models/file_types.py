"""What a whole file is stored in: one type for all its matrices, or a mix of types as llama.cpp's quantizer makes it.

A mix favours some matrices: the values, whose errors reach every later token, the second matrix of a layer's MLP, and
the output head. ``PRESETS`` holds every rule of that, once: quantizing, converting and exporting read it.

Source: ``enum llama_ftype`` in ``llama.h``; ``tensor_allows_quantization``, ``llama_tensor_get_type_impl`` and
``tensor_type_fallback`` in ``llama.cpp/src/llama-quant.cpp``; the types were compared with that quantizer's files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..core.errors import QuantizationError, SchemeError
from ..formats.gguf.codecs import CODECS, codec_of
from ..formats.gguf.metadata import Typed
from ..formats.gguf.types import GGMLType

QUANTIZATION_VERSION = 2  # ggml.h, GGML_QNT_VERSION
HEADS = ("token_embd.weight", "output.weight")  # they meet every token, and few bits cost them too much
_EMBEDDINGS = ("token_embd.weight", "per_layer_token_embd.weight")
_PARTS = {  # a part of a layer, and how names of its matrices are told; the first that fits
    "attn_v": ("attn_qkv.weight", "attn_kv_b.weight", "attn_v.weight"),  # whatever holds values
    "attn_k": ("attn_k.weight",),
    "attn_output": ("attn_output.weight",),
    "ffn_down": ("ffn_down",),
}
_KEPT = (  # matrices that are small, or that a few bits would spoil
    *("_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj"),
    *("ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "attn_rel_b.weight"),
    *(f"time_mix_{part}.weight" for part in ("first", "decay_w1", "decay_w2", "lerp_fused")),
    *(f"time_mix_{part}.weight" for part in ("w0", "w1", "w2", "v0", "v1", "v2", "a0", "a1", "a2", "g1", "g2")),
    *(".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos"),
    *(".patch_embd", ".patch_merger", "a.rvq.codebook", "mm.a.code_embd"),
)
_FALLBACK = {  # where a row is no whole number of super-blocks
    GGMLType.Q2_K: GGMLType.Q4_0,
    GGMLType.Q3_K: GGMLType.Q4_0,
    GGMLType.Q4_K: GGMLType.Q5_0,
    GGMLType.Q5_K: GGMLType.Q5_1,
    GGMLType.Q6_K: GGMLType.Q8_0,
    GGMLType.IQ4_XS: GGMLType.IQ4_NL,
    GGMLType.TQ1_0: GGMLType.Q4_0,
    GGMLType.TQ2_0: GGMLType.Q4_0,
}
_LARGE = ("deci", "olmo", "qwen2")  # llama.cpp calls their models of 80 layers 70B,
_LARGE_IF_SHARED = ("llama", "llama-embed")  # and those of these where query heads share values


class Model(NamedTuple):
    """What the rules ask about a model."""

    architecture: str
    n_layers: int
    n_gqa: int  # query heads that share a head of values, in the first layer; 0 without attention
    n_experts: int

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Model:
        """From the keys of a GGUF file. Raises ``SchemeError`` if they do not say how many layers there are."""

        def number(key: str, missing: int = 0) -> int:
            value = metadata.get(f"{architecture}.{key}", missing)
            value = value.value if isinstance(value, Typed) else value
            return int(value[0] if hasattr(value, "__len__") else value)

        named = metadata.get("general.architecture", "unknown")
        architecture = str(named.value if isinstance(named, Typed) else named)
        if architecture != "clip" and f"{architecture}.block_count" not in metadata:
            raise SchemeError(
                f"the metadata lacks {architecture}.block_count: the types of a mix depend on the number of layers"
            )
        heads = number("attention.head_count")
        sharing = number("attention.head_count_kv", heads)
        return cls(architecture, number("block_count"), heads // sharing if sharing else 0, number("expert_count"))

    @property
    def is_70b(self) -> bool:
        """Whether llama.cpp takes it for a model whose values are so few that more bits for them cost nothing."""
        known = _LARGE + _LARGE_IF_SHARED if self.n_gqa > 1 else _LARGE
        return self.architecture in known and self.n_layers == 80


class Rule(NamedTuple):
    """A type for a part in some of the layers, or in all; of several rules the first that holds is taken."""

    dtype: GGMLType
    where: Callable[[int, int], bool] = lambda layer, n_layers: True
    n_gqa: int = 0  # at least
    weighed: bool | None = None  # whether it asks for an importance matrix, or for none


Rules = Mapping[str, tuple[Rule, ...]]


class FileType(NamedTuple):
    """The types of a file's matrices. Without ``rules`` every matrix takes the one type, except the heads."""

    name: str
    number: int  # in ``general.file_type``
    weights: GGMLType  # of every matrix that nothing else is said of
    rules: Rules | None = None  # of llama.cpp, by the part of a layer
    falcon: Rules = MappingProxyType({})  # those that differ for that architecture
    chosen: Mapping[str, GGMLType] = MappingProxyType({})  # of single tensors, in place of what the rules say

    @property
    def head(self) -> GGMLType:
        """The type of the token embedding and the output head in a file of one type."""
        return codec_of(self.weights).head or self.weights

    def choosing(self, types: Mapping[str, GGMLType | str]) -> FileType:
        """The same file type, but with these types for these tensors, by llama.cpp's names.

        Raises ``SchemeError`` for a type that there is not.
        """
        return self._replace(chosen={**self.chosen, **{name: tensor_type(dtype) for name, dtype in types.items()}})

    def types_of(
        self, shapes: Mapping[str, tuple[int, ...]], metadata: Mapping[str, Any], weighed: bool = False
    ) -> dict[str, GGMLType]:
        """The type of every matrix that is to be quantized, by llama.cpp's names; the rest keeps the type it has.

        shapes: as numpy has them, of all tensors of the file. metadata: the file's keys. A mix takes another type where
        a row is no whole number of blocks, and some take another one where the columns are ``weighed`` by an importance
        matrix. Raises ``SchemeError`` if a mix needs the number of layers and has it not, and for a type that was
        chosen for a tensor which is not there, is not quantized, or whose rows are no whole number of blocks.

        >>> q4_k_m, keys = PRESETS["Q4_K_M"], {"general.architecture": "llama", "llama.block_count": 4}
        >>> shapes = {f"blk.{layer}.ffn_down.weight": (256, 512) for layer in range(4)}
        >>> [dtype.name for dtype in q4_k_m.types_of(shapes, keys).values()]
        ['Q4_K', 'Q4_K', 'Q6_K', 'Q6_K']
        """
        names = sorted(filter(lambda name: is_quantized(name, shapes[name]), shapes), key=place)
        self._check_chosen(names, shapes)
        return {**self._by_rules(names, shapes, metadata, weighed), **self.chosen}

    def _check_chosen(self, names: list[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
        for name, dtype in self.chosen.items():
            if name not in names:
                found = f"a tensor of shape {shapes[name]} that is never quantized" if name in shapes else "no tensor"
                raise SchemeError(f"{dtype.name} was chosen for {name!r}, and there is {found} of that name")
            if shapes[name][-1] % dtype.block:
                raise SchemeError(
                    f"{dtype.name} was chosen for {name!r}, and its rows of {shapes[name][-1]} weights are no whole "
                    f"number of blocks of {dtype.block}"
                )

    def _by_rules(
        self, names: list[str], shapes: Mapping[str, tuple[int, ...]], metadata: Mapping[str, Any], weighed: bool
    ) -> dict[str, GGMLType]:
        if self.rules is None:
            return {name: self.head if name in HEADS else self.weights for name in names}
        if not self.weights.quantized:
            return dict.fromkeys(names, self.weights)
        model, found, counts = Model.of(metadata), {}, dict.fromkeys(_PARTS, 0)
        of_values = sum(_part(name) == "attn_v" for name in shapes)
        for name in names:
            part, width = _part(name), shapes[name][-1]
            if name == "output.weight" or (name in _EMBEDDINGS and "output.weight" not in shapes):
                chosen = self._head(model, width)
            elif name in _EMBEDDINGS or (len(shapes[name]) > 2 and shapes[name][0] > 1 and "experts" in self.rules):
                rules = self.rules.get("embedding" if name in _EMBEDDINGS else "experts", ())
                chosen = next((rule.dtype for rule in rules), self.weights)
            elif part is None:
                chosen = self.weights
            else:
                layer = place(name)[0] if part == "ffn_down" and model.n_experts > 1 else counts[part]
                counts[part] += 1
                layers = of_values if part == "attn_v" else model.n_layers
                chosen = self._in_layer(part, layer, layers, model, weighed)
            found[name] = _fitting(chosen, width)
        return found

    def _head(self, model: Model, width: int) -> GGMLType:
        if model.architecture == "falcon" or width % self.weights.block or self.weights == GGMLType.Q8_0:
            return GGMLType.Q8_0
        return GGMLType.Q6_K

    def _in_layer(self, part: str, layer: int, n_layers: int, model: Model, weighed: bool) -> GGMLType:
        assert self.rules is not None
        rules, eight = self.rules, model.n_experts == 8
        if model.architecture == "falcon":
            rules = {**rules, "attn_output": (), **self.falcon}
        if eight and part == "attn_output":
            return GGMLType.Q5_K if self.name in _FIVE_BITS_BESIDE_EXPERTS else self.weights
        if eight and part in ("attn_v", "attn_k"):
            return GGMLType.Q8_0
        asked = (rule for rule in rules.get(part, ()) if rule.weighed in (None, weighed))
        holding = (rule.dtype for rule in asked if model.n_gqa >= rule.n_gqa and rule.where(layer, n_layers))
        chosen = next(holding, self.weights)
        if part == "attn_v" and model.is_70b and chosen in (GGMLType.Q3_K, GGMLType.Q4_K):
            return GGMLType.Q5_K
        return chosen


def more_bits(layer: int, n_layers: int) -> bool:
    """Whether a layer is favoured by a mix: those of the first and last eighth, and every third between.

    Source: ``use_more_bits`` in ``llama.cpp/src/llama-quant.cpp``.

    >>> [layer for layer in range(32) if more_bits(layer, 32)]
    [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]
    """
    first = n_layers // 8
    return layer < first or layer >= 7 * n_layers // 8 or (layer - first) % 3 == 2


def is_quantized(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor is a matrix that files of few bits quantize: no bias, norm, position, and nothing small.

    >>> is_quantized("blk.0.ffn_up.weight", (512, 256)), is_quantized("blk.0.attn_norm.weight", (256,))
    (True, False)
    """
    while len(shape) > 1 and shape[0] == 1:  # ggml does not count the outer dims of 1
        shape = shape[1:]
    fixed = name in ("position_embd.weight", "token_types.weight") or any(part in name for part in _KEPT)
    return len(shape) > 1 and name.endswith("weight") and not fixed


def place(name: str) -> tuple[int, str]:
    """Where llama.cpp's quantizer puts a tensor: what belongs to no layer first, then by layer and name.

    >>> sorted(["blk.10.attn_v.weight", "output.weight", "blk.9.ffn_up.weight"], key=place)
    ['output.weight', 'blk.9.ffn_up.weight', 'blk.10.attn_v.weight']
    """
    layer = re.match(r"blk\.(\d+)\.", name)
    return int(layer[1]) if layer else -1, name


def _part(name: str) -> str | None:
    return next((part for part, texts in _PARTS.items() if any(text in name for text in texts)), None)


def _fitting(dtype: GGMLType, width: int) -> GGMLType:
    """The type itself, or what llama.cpp falls back to where a row of ``width`` is no whole number of its blocks."""
    for chosen in (dtype, _FALLBACK.get(dtype, dtype)):
        if width % chosen.block == 0:
            return chosen
    return GGMLType.F16


def _first(count: int) -> Callable[[int, int], bool]:
    return lambda layer, n_layers: layer < count


def _share(of: int) -> Callable[[int, int], bool]:
    return lambda layer, n_layers: layer < n_layers // of


def _guarded(kind: GGMLType) -> Rules:
    return {"ffn_down": (Rule(_WITH_A_MIN[kind], _share(8), weighed=True),)} if kind in _WITH_A_MIN else {}


_Q3, _Q4, _Q5, _Q6 = GGMLType.Q3_K, GGMLType.Q4_K, GGMLType.Q5_K, GGMLType.Q6_K
_MORE = {"attn_v": (Rule(_Q6, more_bits),), "ffn_down": (Rule(_Q6, more_bits),)}
_FIVE_BITS_BESIDE_EXPERTS = {"Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M", "IQ4_NL", "IQ4_XS"}
_LEVELS = {"attn_v": (Rule(_Q5, n_gqa=4),), "ffn_down": (Rule(_Q5, _share(8), weighed=False),)}
_WITH_A_MIN = {GGMLType.Q4_0: GGMLType.Q4_1, GGMLType.Q5_0: GGMLType.Q5_1}  # in the first layers, where weighed
_TERNARY = {"embedding": (Rule(_Q4),)}
_PLAIN = (
    GGMLType.F32,
    GGMLType.F16,
    GGMLType.Q4_0,
    GGMLType.Q4_1,
    GGMLType.Q5_0,
    GGMLType.Q5_1,
    GGMLType.Q8_0,
    GGMLType.BF16,
)
PRESETS: dict[str, FileType] = {  # llama.cpp's names for what its quantizer makes
    found.name: found
    for found in (
        *(FileType(kind.name, CODECS[kind].file_type, kind, _guarded(kind)) for kind in _PLAIN),
        FileType(
            *("Q2_K", 10, GGMLType.Q2_K),
            {"attn_v": (Rule(_Q4, n_gqa=4), Rule(_Q3)), "ffn_down": (Rule(_Q3),), "attn_output": (Rule(_Q3),)},
        ),
        FileType("Q3_K_S", 11, _Q3, {}),
        FileType(
            *("Q3_K_M", 12, _Q3),
            {
                "attn_v": (Rule(_Q5, _first(2)), Rule(_Q4)),
                "ffn_down": (Rule(_Q5, _share(16)), Rule(_Q4)),
                "attn_output": (Rule(_Q4),),
            },
            {"ffn_down": (Rule(_Q5, _share(16)), Rule(_Q4, more_bits))},
        ),
        FileType(
            *("Q3_K_L", 13, _Q3),
            {"attn_v": (Rule(_Q5),), "ffn_down": (Rule(_Q5),), "attn_output": (Rule(_Q5),)},
            {"ffn_down": (Rule(_Q4),), "attn_output": (Rule(_Q4),)},
        ),
        FileType(
            *("Q4_K_S", 14, _Q4),
            {"attn_v": (Rule(_Q5, _first(4)),), "ffn_down": (Rule(_Q5, _share(8)),)},
            {"ffn_down": ()},
        ),
        FileType("Q4_K_M", 15, _Q4, _MORE, {"ffn_down": (Rule(_Q6, _share(16)), Rule(_Q5, more_bits))}),
        FileType("Q5_K_S", 16, _Q5, {}),
        FileType("Q5_K_M", 17, _Q5, _MORE),
        FileType("Q6_K", 18, _Q6, {}),
        *(FileType(kind.name, CODECS[kind].file_type, kind, _LEVELS) for kind in (GGMLType.IQ4_NL, GGMLType.IQ4_XS)),
        *(FileType(kind.name, CODECS[kind].file_type, kind, _TERNARY) for kind in (GGMLType.TQ1_0, GGMLType.TQ2_0)),
        FileType("MXFP4_MOE", 38, GGMLType.Q8_0, {"experts": (Rule(GGMLType.MXFP4),)}),
    )
}
_OF_ONE_TYPE = (FileType(dtype.name, codec.file_type, dtype) for dtype, codec in CODECS.items() if codec.encodes)
FILE_TYPES: dict[str, FileType] = {  # what is exported and converted to; a mix follows the type that it is a mix of
    found.name: found
    for found in sorted((*_OF_ONE_TYPE, PRESETS["Q4_K_M"]), key=lambda found: (found.weights, found.number))
}


def file_type(name: GGMLType | str | FileType) -> FileType:
    """The file type of a name, in capitals or not. Raises ``SchemeError`` for one that there is not.

    >>> file_type("q4_0").head.name, file_type("Q2_K").head.name, file_type("F16").head.name
    ('Q8_0', 'Q6_K', 'F16')
    """
    if isinstance(name, FileType):
        return name
    return _named(name, FILE_TYPES)


def preset(name: GGMLType | str | FileType) -> FileType:
    """What llama.cpp's quantizer makes under a name. Raises ``SchemeError`` for one that there is not.

    >>> preset("q4_k_m").number
    15
    """
    return name if isinstance(name, FileType) else _named(name, PRESETS)


def _named(name: GGMLType | str, among: Mapping[str, FileType]) -> FileType:
    found = name.name if isinstance(name, GGMLType) else str(name).upper()
    if found not in among:
        raise SchemeError(f"no type {name!r:.40}; there are {', '.join(among)}")
    return among[found]


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
