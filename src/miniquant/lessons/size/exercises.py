"""The exercises of lab 09: where every byte goes (the assignment's Block D). Their mistakes have their own modules."""

from __future__ import annotations

import struct

import numpy as np

from ...formats.gguf_lite.file import HEADER, DType, encode_descriptor, encode_metadata
from ...formats.tensor import TensorInfo
from ...lab.spec import Case, Exercise
from ...quantization.schemes import SCHEMES
from ..shared import observed
from . import mistakes as lab09_mistakes
from . import model_mistakes as lab09_model_mistakes

Shapes = dict[str, tuple[int, ...]]
Q8, Q4 = "q8_per_channel", "q4_per_group_64"


def _dtype(scheme: str) -> DType:
    return DType(SCHEMES.index(scheme))


# ---- tensor_bytes ----------------------------------------------------------------------------------------------------


def tensor_bytes(scheme: str, dims: tuple[int, ...]) -> int:
    """The reference: how many bytes a tensor takes in the data section, its scales included."""
    return _dtype(scheme).bytes_of(dims)


def _tensor_bytes_oracle(scheme: str, dims: tuple[int, ...]) -> int:
    """Builds the data, and measures its length."""
    if scheme in ("f32", "f16"):
        letter, count = {"f32": "f", "f16": "e"}[scheme], 1
        for dim in dims:
            count *= dim
        return struct.calcsize(f"<{count}{letter}")
    data = b""
    for _ in range(dims[0]):
        if scheme == Q8:
            data += b"ss" + b"v" * dims[1]
        else:
            data += (b"ss" + b"v" * 32) * len(range(0, dims[1], 64))
    return len(data)


def _tensor_bytes_cases(random: np.random.Generator) -> list[Case]:
    out, groups = (int(n) for n in random.integers(3, 9, 2))
    return [
        ("f32", (3,)),
        ("f16", (2, 3)),
        ("f32", ()),
        (Q8, (2, 3)),
        (Q8, (5, 2)),
        (Q4, (1, 64)),
        (Q4, (3, 128)),
        ("f32", (out, groups)),
        (Q4, (out, 64 * groups)),
        (Q8, (out, 64 * groups)),
    ]


TENSOR_BYTES = Exercise(
    name="tensor_bytes",
    lab="09",
    goal="Return how many bytes a tensor takes in the data section, from its scheme and its dims alone.",
    minutes=8,
    difficulty="core",
    reference=tensor_bytes,
    oracle=_tensor_bytes_oracle,
    cases=_tensor_bytes_cases,
    hints=(
        "`math.prod(dims)` counts the values; it is 1 for a scalar, whose dims are `()`.",
        "A quantized tensor is `2 * (number of scales)` plus its values: `out` scales and a byte a value for "
        "`q8_per_channel`, `out * (in // 64)` scales and half a byte a value for `q4_per_group_64`.",
    ),
    why="the reader needs this number to find the end of a tensor, and you need it to know a file's size in advance.",
    mistakes=lab09_mistakes.TENSOR_BYTES,
)


# ---- overhead_bytes --------------------------------------------------------------------------------------------------


def overhead_bytes(shapes: Shapes, metadata: dict[str, str]) -> int:
    """The reference: the bytes of header, metadata and descriptors."""
    infos = [TensorInfo(name, dims, DType.F32, 0) for name, dims in shapes.items()]
    return HEADER.size + len(encode_metadata(metadata)) + sum(len(encode_descriptor(info)) for info in infos)


def _overhead_oracle(shapes: Shapes, metadata: dict[str, str]) -> int:
    """Builds the bytes, and measures their length."""
    text = b""
    for key, value in metadata.items():
        text += b"\n" if text else b""
        text += key.encode() + b"=" + value.encode()
    data = struct.pack("<IIII", 0x474C4654, 1, len(shapes), len(text)) + text
    for name, dims in shapes.items():
        data += struct.pack("<H", len(name.encode())) + name.encode() + bytes([len(dims)])
        for dim in dims:
            data += struct.pack("<I", dim)
        data += struct.pack("<BQ", 0, 0)
    return len(data)


def _overhead_cases(random: np.random.Generator) -> list[Case]:
    names = [f"layers.{i}.mlp.fc{int(n)}.weight" for i, n in enumerate(random.integers(1, 200, 12))]
    return [
        ({}, {}),
        ({"w": (2, 3)}, {}),
        ({"bias": (5,)}, {}),
        ({"scalar": ()}, {}),
        ({}, {"k": "v"}),
        ({}, {"dims_order": "out,in", "group_size": "64"}),
        ({"größe": (2, 2)}, {}),
        ({}, {"author": "Zoë and Noël"}),
        ({name: (int(random.integers(1, 9)), 64) for name in names}, {"a": "1", "b": "2", "c": "3"}),
    ]


OVERHEAD_BYTES = Exercise(
    name="overhead_bytes",
    lab="09",
    goal="Return the bytes of header, metadata and descriptors together, from the names, the dims and the metadata.",
    minutes=12,
    difficulty="core",
    reference=overhead_bytes,
    oracle=_overhead_oracle,
    cases=_overhead_cases,
    hints=(
        "The header is four u32; the metadata is `key=value` lines *joined* by newlines; count bytes of UTF-8, not "
        "characters.",
        'A descriptor is `2 + len(name.encode("utf-8")) + 1 + 4 * len(dims) + 1 + 8` bytes: name_len, name, n_dims, '
        "dims, dtype, offset.",
    ),
    why="everything before the data is bookkeeping, and you can now say what it costs: next to nothing.",
    mistakes=lab09_mistakes.OVERHEAD_BYTES,
)


# ---- parameter_shapes ------------------------------------------------------------------------------------------------


def parameter_shapes(config: dict[str, int]) -> Shapes:
    """The reference: name -> dims of every tensor of a MiniGPT, from its config."""
    vocabulary, context, d, d_mlp = (config[key] for key in ("vocab_size", "context", "d_model", "d_mlp"))
    shapes: Shapes = {"tok_emb.weight": (vocabulary, d), "pos_emb.weight": (context, d)}
    for i in range(config["n_layers"]):
        for norm in ("ln1", "ln2"):
            shapes[f"layers.{i}.{norm}.weight"] = shapes[f"layers.{i}.{norm}.bias"] = (d,)
        linears = {"attn.qkv": (3 * d, d), "attn.proj": (d, d), "mlp.fc1": (d_mlp, d), "mlp.fc2": (d, d_mlp)}
        for linear, (out, width) in linears.items():
            shapes[f"layers.{i}.{linear}.weight"] = (out, width)
            shapes[f"layers.{i}.{linear}.bias"] = (out,)
    return {**shapes, "ln_f.weight": (d,), "ln_f.bias": (d,)}


def _shapes_oracle(config: dict[str, int]) -> Shapes:
    """Asks a real model that has no memory behind its weights."""
    import torch

    from ...models.minigpt import MiniGPT, MiniGPTConfig

    with torch.device("meta"):
        model = MiniGPT(MiniGPTConfig(**config, n_heads=1))
    return {name: tuple(w.shape) for name, w in model.state_dict().items()}


def _config(vocab_size: int, context: int, d_model: int, n_layers: int, d_mlp: int) -> dict[str, int]:
    return dict(vocab_size=vocab_size, context=context, d_model=d_model, n_layers=n_layers, d_mlp=d_mlp)


def _shapes_cases(random: np.random.Generator) -> list[Case]:
    drawn = [int(n) for n in random.integers(2, 50, 5)]
    drawn[3] = 3  # layers
    return [(_config(10, 7, 2, 0, 3),), (_config(10, 7, 2, 1, 3),), (_config(11, 5, 4, 2, 9),), (_config(*drawn),)]


PARAMETER_SHAPES = Exercise(
    name="parameter_shapes",
    lab="09",
    goal="Return the dims of every tensor of a MiniGPT by name, from the five numbers of its config.",
    minutes=10,
    difficulty="core",
    reference=parameter_shapes,
    oracle=_shapes_oracle,
    cases=_shapes_cases,
    hints=(
        "Write down one layer first: two norms with weight and bias, four linears of weight (out, in) and bias (out,).",
        "`attn.qkv` gives out three vectors at once, so its weight is (3 * d_model, d_model); the head is `tok_emb` "
        "itself and is not stored again.",
    ),
    why="a few numbers decide a model's size, and you can now weigh one that nobody has trained yet.",
    mistakes=lab09_model_mistakes.PARAMETER_SHAPES,
    observe=observed.values,
)


# ---- predict_file_size -----------------------------------------------------------------------------------------------


def predict_file_size(shapes: Shapes, schemes: dict[str, str], metadata: dict[str, str]) -> int:
    """The reference: the bytes of the whole file; a tensor that ``schemes`` does not name is f32."""
    data = sum(_dtype(schemes.get(name, "f32")).bytes_of(dims) for name, dims in shapes.items())
    return overhead_bytes(shapes, metadata) + data


def _predict_oracle(shapes: Shapes, schemes: dict[str, str], metadata: dict[str, str]) -> int:
    total = _overhead_oracle(shapes, metadata)
    for name, dims in shapes.items():
        total += _tensor_bytes_oracle(schemes.get(name, "f32"), dims)
    return total


def _predict_cases(random: np.random.Generator) -> list[Case]:
    rows = [int(n) for n in random.integers(1, 20, 4)]
    model = {"emb": (rows[0], 64), "fc1": (rows[1], 128), "fc2": (rows[2], 64), "fc2.bias": (rows[2],), "ln": (63,)}
    chosen = {"emb": "f16", "fc1": Q4, "fc2": Q8}
    return [
        ({"w": (3,)}, {}, {}),
        ({"w": (3,), "v": (1, 1)}, {"v": "f16"}, {"k": "v"}),
        ({"w": (1, 64)}, {"w": Q4}, {}),
        ({"w": (2, 64), "b": (2,)}, {"w": Q8}, {"group_size": "64"}),
        (model, chosen, {"dims_order": "out,in", "group_size": "64"}),
    ]


PREDICT_FILE_SIZE = Exercise(
    name="predict_file_size",
    lab="09",
    goal="Predict the size of a whole GGUF-lite file in bytes, before anyone writes it.",
    minutes=5,
    difficulty="core",
    reference=predict_file_size,
    oracle=_predict_oracle,
    cases=_predict_cases,
    hints=(
        "Two parts: `overhead_bytes(shapes, metadata)`, and the sum of `tensor_bytes` over all tensors; their "
        "checks come first.",
        '`schemes.get(name, "f32")` is the scheme of a tensor, also of one that `schemes` does not name.',
    ),
    why="a prediction that is right to the byte means that there is nothing in the file that you do not know about.",
    mistakes=lab09_model_mistakes.PREDICT_FILE_SIZE,
)


# ---- bytes_by_dtype --------------------------------------------------------------------------------------------------


def bytes_by_dtype(shapes: Shapes, schemes: dict[str, str]) -> dict[str, int]:
    """The reference: the data's bytes for each of the four schemes, values only, and for all the scales."""
    total = dict.fromkeys([*SCHEMES, "scales"], 0)
    for name, dims in shapes.items():
        scheme = schemes.get(name, "f32")
        scales = _dtype(scheme).scale_bytes(dims)
        total[scheme] += _dtype(scheme).bytes_of(dims) - scales
        total["scales"] += scales
    return total


def _by_dtype_oracle(shapes: Shapes, schemes: dict[str, str]) -> dict[str, int]:
    total = {"f32": 0, "f16": 0, Q8: 0, Q4: 0, "scales": 0}
    for name, dims in shapes.items():
        scheme = schemes.get(name, "f32")
        if scheme == Q8:
            scales = 2 * dims[0]
        elif scheme == Q4:
            scales = dims[0] * dims[1] // 32
        else:
            scales = 0
        total[scheme] += _tensor_bytes_oracle(scheme, dims) - scales
        total["scales"] += scales
    return total


def _by_dtype_cases(random: np.random.Generator) -> list[Case]:
    return [(shapes, schemes) for shapes, schemes, _ in _predict_cases(random)] + [
        ({"a": (1, 128), "b": (3, 64)}, {"a": Q4, "b": Q4}),
        ({"tok_emb": (4, 8), "pos_emb": (2, 8)}, {"tok_emb": Q8, "pos_emb": "f16"}),
    ]


BYTES_BY_DTYPE = Exercise(
    name="bytes_by_dtype",
    lab="09",
    goal="Sum the bytes of the data section by dtype, and count all the scales under a key of their own.",
    minutes=8,
    difficulty="core",
    reference=bytes_by_dtype,
    oracle=_by_dtype_oracle,
    cases=_by_dtype_cases,
    hints=(
        'Begin with a dict of five zeros, one for each scheme and one for `"scales"`, and go over `shapes.items()`.',
        "A tensor's scales take `2 * out` bytes in `q8_per_channel` and `2 * out * (in // 64)` in `q4_per_group_64`; "
        "what is left of `tensor_bytes` are its values.",
    ),
    why="these five numbers are the second question of the assignment's README: where does most of the file go?",
    mistakes=lab09_model_mistakes.BYTES_BY_DTYPE,
    observe=observed.values_but_zeros,
)

EXERCISES = [TENSOR_BYTES, OVERHEAD_BYTES, PARAMETER_SHAPES, PREDICT_FILE_SIZE, BYTES_BY_DTYPE]
