"""What students write instead in lab 09 when they weigh a whole model, and what the checks then say."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...lab.spec import Mistake
from .mistakes import BITS, Shapes, _bytes, _n_scales, _overhead, _padded

# ---- parameter_shapes ------------------------------------------------------------------------------------------------


def _shapes(
    config: dict[str, int],
    *,
    biases: bool = True,
    norm_biases: bool = True,
    final: bool = True,
    layers: range | None = None,
    qkv: int = 3,
    mlp: int | None = None,
    turned: bool = False,
    head: bool = False,
) -> Shapes:
    """The right dict, with one thing at a time done wrong."""
    d, d_mlp = config["d_model"], mlp or config["d_mlp"]
    linears = {"attn.qkv": (qkv * d, d), "attn.proj": (d, d), "mlp.fc1": (d_mlp, d), "mlp.fc2": (d, d_mlp)}
    shapes: Shapes = {"tok_emb.weight": (config["vocab_size"], d), "pos_emb.weight": (config["context"], d)}
    for i in layers or range(config["n_layers"]):
        for name, (out, width) in linears.items():
            shapes[f"layers.{i}.{name}.weight"] = (width, out) if turned else (out, width)
            if biases:
                shapes[f"layers.{i}.{name}.bias"] = (out,)
    owners = [f"layers.{i}.{norm}" for i in layers or range(config["n_layers"]) for norm in ("ln1", "ln2")]
    for owner in [*owners, "ln_f"] if final else owners:
        shapes[f"{owner}.weight"] = (d,)
        if norm_biases:
            shapes[f"{owner}.bias"] = (d,)
    return {**shapes, "head.weight": (config["vocab_size"], d)} if head else shapes


def _numbers(config: dict[str, int]) -> dict[str, object]:
    return {name: dims if len(dims) > 1 else dims[0] for name, dims in _shapes(config).items()}


PARAMETER_SHAPES = (
    Mistake(
        "a number instead of a tuple",
        _numbers,
        "`(d)` is `d` in brackets; it is the comma that makes a tuple.",
        "Write `(d,)` for one dim.",
        "`the type differs`, with `int` on your side",
    ),
    Mistake(
        "always four layers",
        lambda config: _shapes(config, layers=range(4)),
        "The number of layers was typed in, and another config has another number.",
        'Use `range(config["n_layers"])`.',
        "`the keys differ`, whatever the number of layers",
    ),
    Mistake(
        "the head stored as well",
        lambda config: _shapes(config, head=True),
        "The head is the token embedding itself, used a second time, so the state dict holds it once.",
        "Leave out the head.",
        "one name too many, with the shape of `tok_emb.weight`",
    ),
    Mistake(
        "linear biases forgotten",
        lambda config: _shapes(config, biases=False),
        "Every linear layer of this model has a bias of as many numbers as it has outputs.",
        "Add `.bias` with dims (out,) for all four linears of a layer.",
        "`the keys differ`, and no bias among the linears",
    ),
    Mistake(
        "norm biases forgotten",
        lambda config: _shapes(config, norm_biases=False),
        "A LayerNorm has a weight and a bias; it is RMSNorm that has a weight alone.",
        "Add `.bias` with dims (d_model,) for every norm.",
        "`the keys differ`, and no bias among the norms",
    ),
    Mistake(
        "dims turned around",
        lambda config: _shapes(config, turned=True),
        "The weight of an `nn.Linear` is (out, in): a row for each output.",
        "Put the number of outputs first.",
        "(in, out) where (out, in) is expected",
    ),
    Mistake(
        "final norm forgotten",
        lambda config: _shapes(config, final=False),
        "After the last layer there is one more LayerNorm, `ln_f`.",
        "Add `ln_f.weight` and `ln_f.bias`.",
        "two names too few, whatever the number of layers",
    ),
    Mistake(
        "four times d_model assumed",
        lambda config: _shapes(config, mlp=4 * config["d_model"]),
        "The width of the MLP was taken to be four times d_model, but it has a number of its own.",
        'Use `config["d_mlp"]`.',
        "wrong dims for `mlp.fc1` and `mlp.fc2`, and the right ones for everything else",
    ),
    Mistake(
        "layers counted from 1",
        lambda config: _shapes(config, layers=range(1, config["n_layers"] + 1)),
        "PyTorch numbers the layers of a ModuleList from 0.",
        'Use `range(config["n_layers"])`.',
        "`layers.1` where `layers.0` is expected",
    ),
    Mistake(
        "qkv as a square",
        lambda config: _shapes(config, qkv=1),
        "Queries, keys and values come out of one matrix, so it has three times d_model rows.",
        "Give `attn.qkv` the dims (3 * d_model, d_model), and its bias (3 * d_model,).",
        "(d_model, d_model) for `attn.qkv.weight`",
    ),
)


# ---- predict_file_size -----------------------------------------------------------------------------------------------


def _data(shapes: Shapes, schemes: dict[str, str]) -> int:
    return sum(_bytes(schemes.get(n, "f32"), d) for n, d in shapes.items())


def _named_only(shapes: Shapes, schemes: dict[str, str], metadata: dict[str, str]) -> int:
    return _overhead(shapes, metadata) + _data({n: d for n, d in shapes.items() if n in schemes}, schemes)


def _aligned(shapes: Shapes, schemes: dict[str, str], metadata: dict[str, str]) -> int:
    total = math.ceil(_overhead(shapes, metadata) / 32) * 32
    return total + sum(_padded(schemes.get(n, "f32"), d) for n, d in shapes.items())


def _scales_twice(shapes: Shapes, schemes: dict[str, str], metadata: dict[str, str]) -> int:
    scales = sum(2 * _n_scales(schemes.get(n, "f32"), d) for n, d in shapes.items())
    return _overhead(shapes, metadata) + _data(shapes, schemes) + scales


def _no_default(shapes: Shapes, schemes: dict[str, str], metadata: dict[str, str]) -> int:
    return _overhead(shapes, metadata) + sum(_bytes(schemes[n], d) for n, d in shapes.items())


def _header_each(shapes: Shapes, schemes: dict[str, str], metadata: dict[str, str]) -> int:
    return sum(_overhead({n: d}, metadata) for n, d in shapes.items()) + _data(shapes, schemes)


PREDICT_FILE_SIZE = (
    Mistake(
        "no default scheme",
        _no_default,
        "`schemes[name]` fails for a tensor that `schemes` does not name, and such a tensor is stored as f32.",
        'Use `schemes.get(name, "f32")`.',
        "`KeyError` with the name of a tensor",
    ),
    Mistake(
        "header and data only",
        lambda shapes, schemes, metadata: 16 + _data(shapes, schemes),
        "The metadata and the descriptors stand between the header and the data.",
        "Add `overhead_bytes(shapes, metadata)`, which has the header in it.",
        "at least 12 bytes too few for each tensor",
    ),
    Mistake(
        "a header for each tensor",
        _header_each,
        "`overhead_bytes` was called once for each tensor, and each call counts the header and the metadata again.",
        "Call it once, with all the shapes.",
        "at least 16 bytes too many for each further tensor",
    ),
    Mistake(
        "only the tensors in schemes",
        _named_only,
        "A tensor that `schemes` does not name is in the file too, as f32.",
        'Go over `shapes`, and take `schemes.get(name, "f32")`.',
        "an answer without the biases and norms",
    ),
    Mistake(
        "everything as f32",
        lambda shapes, schemes, metadata: _overhead(shapes, metadata) + _data(shapes, {}),
        "The schemes were not used.",
        'Give `tensor_bytes` the scheme of each tensor, `schemes.get(name, "f32")`.',
        "the right answer as long as nothing is quantized",
    ),
    Mistake(
        "data only",
        lambda shapes, schemes, metadata: _data(shapes, schemes),
        "The header, the metadata and the descriptors are in the file too.",
        "Add `overhead_bytes(shapes, metadata)`.",
        "at least 16 bytes too few",
    ),
    Mistake(
        "metadata forgotten",
        lambda shapes, schemes, metadata: _overhead(shapes, {}) + _data(shapes, schemes),
        "The overhead was computed without the metadata.",
        "Hand `metadata` on to `overhead_bytes`.",
        "the right answer as long as there is no metadata",
    ),
    Mistake(
        "padding assumed",
        _aligned,
        "Parts were rounded up to multiples of 32 bytes, as real GGUF does; this layout has no padding.",
        "Add the bytes as they are.",
        "an answer that is a multiple of 32",
    ),
    Mistake(
        "scales counted twice",
        _scales_twice,
        "`tensor_bytes` includes the scales already.",
        "Add nothing to it.",
        "two bytes too many for every scale",
    ),
)


# ---- bytes_by_dtype --------------------------------------------------------------------------------------------------


def _by_dtype(
    shapes: Shapes,
    schemes: dict[str, str],
    *,
    default: str | None = "f32",
    scale: int = 2,
    scales_to: Callable[[str], tuple[str, ...]] = lambda scheme: ("scales",),
    bits: dict[str, int] = BITS,
) -> dict[str, int]:
    """The right sums, with one thing at a time done wrong."""
    total = dict.fromkeys([*BITS, "scales"], 0)
    for name, dims in shapes.items():
        if scheme := schemes.get(name, default):
            total[scheme] += _bytes(scheme, dims, scale=0, bits=bits)
            for key in scales_to(scheme):
                total[key] += scale * _n_scales(scheme, dims)
    return total


def _dtype_no_default(shapes: Shapes, schemes: dict[str, str]) -> dict[str, int]:
    return _by_dtype(shapes, {name: schemes[name] for name in shapes})


BYTES_BY_DTYPE = (
    Mistake(
        "no default scheme",
        _dtype_no_default,
        "`schemes[name]` fails for a tensor that `schemes` does not name, and such a tensor is stored as f32.",
        'Use `schemes.get(name, "f32")`.',
        "`KeyError` with the name of a tensor",
    ),
    Mistake(
        "scales counted, not their bytes",
        lambda shapes, schemes: _by_dtype(shapes, schemes, scale=1),
        "The number of scales was added up.",
        "Each is a float16: multiply by two bytes.",
        "half the expected number at key `'scales'`",
    ),
    Mistake(
        "scales left with their values",
        lambda shapes, schemes: _by_dtype(shapes, schemes, scales_to=lambda scheme: (scheme,)),
        "The scales were counted under the type of the values that they belong to.",
        'Subtract them there, and add them under `"scales"`.',
        "0 at key `'scales'`",
    ),
    Mistake(
        "scales counted twice",
        lambda shapes, schemes: _by_dtype(shapes, schemes, scales_to=lambda scheme: (scheme, "scales")),
        "The scales stand under `scales` and are still in the bytes of the values.",
        "Subtract from `tensor_bytes` what you add under `scales`.",
        "a sum that is larger than the data section",
    ),
    Mistake(
        "scales counted as f16",
        lambda shapes, schemes: _by_dtype(shapes, schemes, scales_to=lambda scheme: ("f16",)),
        "Scales are float16 numbers, but they are not tensors of the type f16.",
        'Give them their own key, `"scales"`.',
        "0 at key `'scales'`, and too much at `'f16'`",
    ),
    Mistake(
        "only the tensors in schemes",
        lambda shapes, schemes: _by_dtype(shapes, schemes, default=None),
        "A tensor that `schemes` does not name is in the file too, as f32.",
        'Take `schemes.get(name, "f32")`.',
        "0 at key `'f32'`",
    ),
    Mistake(
        "scales in float32",
        lambda shapes, schemes: _by_dtype(shapes, schemes, scale=4),
        "Each scale was counted with four bytes.",
        "A scale is a float16: two bytes.",
        "twice the expected number at key `'scales'`",
    ),
    Mistake(
        "values counted instead of bytes",
        lambda shapes, schemes: _by_dtype(shapes, schemes, bits=dict.fromkeys(BITS, 8)),
        "One was added for each value, whatever its width.",
        "Multiply by the width: 4 bytes, 2, 1, and a half.",
        "the right number for `q8_per_channel` only",
    ),
    Mistake(
        "bits instead of bytes",
        lambda shapes, schemes: {key: 8 * size for key, size in _by_dtype(shapes, schemes).items()},
        "The numbers are bits.",
        "Divide by 8.",
        "answers that are eight times too large",
    ),
)
