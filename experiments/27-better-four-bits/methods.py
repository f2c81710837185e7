"""The rows of the table: a function for each way to make a model smaller, and the types that it is tried on.

A function takes a ``Workshop``, which has the model, and a type; ``@rows`` puts a row into ``METHODS`` for each type.
Nothing else must be changed for a new method: the command, the tests and the page walk the list.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from subjects import SUBJECTS, Made, Workshop, digest

import miniquant
from miniquant.calibrate import awq, gptq, rotate, round_to_nearest, smoothquant, w8a8
from miniquant.calibrate.qat import RECIPE, qat
from miniquant.evaluate.kv_cache import CacheShape
from miniquant.evaluate.mixed import best_types, known_costs
from miniquant.formats.gguf import GGMLType, read_gguf
from miniquant.models.file_types import FILE_TYPES, PRESETS
from miniquant.quantization.grids import GRID_RULES

LIBRARY = Path(miniquant.__file__).parent
ALL = tuple(SUBJECTS)


@dataclass(frozen=True)
class Method:
    """One row. ``plain`` is the row with the same bytes and no algorithm, that this one is compared with."""

    kind: str  # what its layers are stored in
    how: str  # how the integers were chosen; nothing for plain rounding
    given: str  # to the function
    make: Callable[[Workshop, str], Made]
    plain: str
    models: tuple[str, ...]
    sources: tuple[str, ...]  # modules of the library that decide what it makes

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return f"{self.kind} {self.how}".rstrip()

    def fingerprint(self) -> str:
        """Changes when the code of the function, of what it calls here, or of one of its modules does.

        Comments and docstrings do not count.
        """
        called = [globals().get(name) for name in self.make.__code__.co_names]
        ours = [self.make, Workshop, *(part for part in called if getattr(part, "__module__", "") == __name__)]
        texts = [_source(part) for part in ours if inspect.isroutine(part) or part is Workshop]
        texts += [(LIBRARY / source).read_text("utf-8") for source in self.sources]
        return digest("\n".join([self.name, self.given, *map(_code, texts)]).encode())


METHODS: dict[str, Method] = {}


def rows(
    given: Iterable[str],
    how: str = "",
    *,
    stored: str = "{}",
    models: Iterable[str] = ALL,
    sources: Callable[[str], Iterable[str]] = lambda given: (),
) -> Callable[[Callable[[Workshop, str], Made]], Callable[[Workshop, str], Made]]:
    """Put a row into the table for each string that is given to the function below, most often the name of a type.

    ``how`` and ``stored``, the type of the layers, may name the string as {}. A row with ``how`` is compared with the
    one without. ``sources`` names the modules of the library that the function stands on.
    """

    def register(make: Callable[[Workshop, str], Made]) -> Callable[[Workshop, str], Made]:
        for text in given:
            kind = stored.format(text)
            row = Method(kind, how.format(text), text, make, kind if how else "", tuple(models), tuple(sources(text)))
            METHODS[row.name] = row
        return make

    return register


@functools.cache
def _source(part: Any) -> str:
    return textwrap.dedent(inspect.getsource(part))


@functools.cache
def _code(text: str) -> str:
    """Source without comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                body[0] = ast.Pass()
    return ast.unparse(tree)


def _codec(kind: str) -> list[str]:
    """The module of a type, and what it shares with others: the search, and how small blocks are made."""
    name = kind.partition(" ")[0].lower()
    modules = [name, "search", *(["small_blocks"] if name in ("q4_0", "q4_1", "q5_0", "q5_1") else [])]
    return [path for path in (f"formats/gguf/codecs/{module}.py" for module in modules) if (LIBRARY / path).exists()]


def _of(*modules: str) -> Callable[[str], list[str]]:
    return lambda kind: [f"calibrate/{module}.py" for module in modules]


# ---- a type for all matrices of the blocks; the head in the type that goes with it -----------------------------------

FLOATS = ("F32", "F16", "BF16")
ROUNDED = ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0")
SEARCHED = ("Q6_K", "Q5_K", "Q4_K", "IQ4_NL", "IQ4_XS", "Q3_K", "Q2_K")
FOUR_BIT_FLOATS = ("MXFP4", "NVFP4")
EXTREMES = ("Q2_0", "TQ2_0", "TQ1_0", "Q1_0")
WEIGHED = ("Q5_1", "Q5_0", "Q4_1", "Q4_0", *SEARCHED)
MIXES = {"Q5_K_M": "Q5_K_M", "Q4_K_M": "Q4_K_M", "Q4_K_S": "Q4_K_S", "Q3_K_M": "Q3_K_M", "Q2_K (mix)": "Q2_K"}


@rows((*FLOATS, *ROUNDED, *SEARCHED, *FOUR_BIT_FLOATS, *EXTREMES), sources=_codec)
def of_one_type(shop: Workshop, kind: str) -> Made:
    """Every matrix in one type, by ggml's own rule."""
    return shop.quantized(FILE_TYPES[kind])


@rows(WEIGHED, "imatrix", sources=lambda kind: ["calibrate/imatrix.py", *_codec(kind)])
def with_imatrix(shop: Workshop, kind: str) -> Made:
    """The same, but the error of each column counts as much as an importance matrix says."""
    return shop.quantized(FILE_TYPES[kind], weighed=True)


@rows(MIXES, sources=lambda kind: ["models/file_types.py"])
def mix(shop: Workshop, kind: str) -> Made:
    """llama.cpp's mix of that name."""
    return shop.quantized(PRESETS[MIXES[kind]])


@rows(MIXES, "imatrix", sources=lambda kind: ["models/file_types.py", "calibrate/imatrix.py"])
def mix_with_imatrix(shop: Workshop, kind: str) -> Made:
    """The mix, with an importance matrix."""
    return shop.quantized(PRESETS[MIXES[kind]], weighed=True)


# ---- integers chosen by an algorithm that reads text -----------------------------------------------------------------

GROUPS = ("int4_g64", "int3_g64", "int2_g64")  # in PyTorch alone: no type of GGUF has them


def bits_of(rule: str) -> float:
    """Bits of one weight on a grid of groups, its share of the group's scale included.

    >>> bits_of("int3_g64")
    3.25
    """
    grid = GRID_RULES[rule]
    return math.ceil(math.log2(grid.high - grid.low + 1)) + 16 / grid.group_size


def _scaled(shop: Workshop, kind: str) -> object:
    """The model with AWQ's scales folded into it: two rows begin with it, one after the other."""
    if shop.kept.get("scaled for") != kind:
        model = awq(shop.model, shop.tokens, kind, clip=False, progress=False)
        shop.kept.update({"scaled for": kind, "scaled": model})
    return shop.kept["scaled"]


def _frozen(shop: Workshop, model: object, kind: str) -> Made:
    return shop.in_pytorch(model, bits_of(kind)) if kind in GROUPS else shop.exported(model)


@rows(GROUPS, sources=_of("rounding"))
def in_groups(shop: Workshop, kind: str) -> Made:
    """Integers in groups of 64, rounded to nearest."""
    return _frozen(shop, round_to_nearest(shop.model, kind), kind)


ON = ("Q4_1", "int4_g64", "int3_g64")  # what all of them are tried on


@rows(ON, "AWQ", sources=_of("awq", "rounding"))
def with_awq(shop: Workshop, kind: str) -> Made:
    """AWQ's scales, folded into what is before each layer, and its clipping; then rounded to nearest."""
    return _frozen(shop, round_to_nearest(awq(shop.model, shop.tokens, kind, progress=False), kind), kind)


@rows((*ON, "Q4_0", "int2_g64"), "GPTQ", sources=_of("gptq", "rounding"))
def with_gptq(shop: Workshop, kind: str) -> Made:
    """GPTQ."""
    return _frozen(shop, gptq(shop.model, shop.tokens, kind, progress=False), kind)


def with_scales(shop: Workshop, kind: str) -> Made:
    """AWQ's scales without its clipping."""
    return _frozen(shop, round_to_nearest(_scaled(shop, kind), kind), kind)


def with_both(shop: Workshop, kind: str) -> Made:
    """GPTQ, with clipping, on the model that AWQ's scales made."""
    return _frozen(shop, gptq(_scaled(shop, kind), shop.tokens, kind, clip=True, progress=False), kind)


for _kind in (*ON, "int2_g64"):
    if _kind in ON:
        rows([_kind], "AWQ, scales only", sources=_of("awq", "rounding"))(with_scales)
    rows([_kind], "AWQ + GPTQ", sources=_of("awq", "gptq", "rounding"))(with_both)


# ---- training with rounded weights: MiniGPT alone, whose training text is here ---------------------------------------

LEARNING_RATES = {"int3_g64": 1e-4, "int2_g64": 3e-4}  # those of experiment 30: a coarser grid needs longer ways


@rows(LEARNING_RATES, "QAT", models=["MiniGPT"], sources=_of("qat", "rounding"))
def trained_with_rounded_weights(shop: Workshop, kind: str) -> Made:
    """Trained on with rounded weights, by the straight-through estimator; the float model is the teacher."""
    recipe = replace(RECIPE, learning_rate=LEARNING_RATES[kind])
    return _frozen(shop, qat(shop.model, None, kind, recipe, progress=False), kind)


# ---- a type for each matrix, in as many bytes as a mix of llama.cpp --------------------------------------------------


@rows(
    ("Q5_K_M", "Q4_K_M", "Q4_K_S", "Q3_K_M"),
    "mixed types",
    models=["MiniGPT", "MiniLlama"],
    sources=lambda kind: ["models/file_types.py", "assets/mixed_costs.json"],
)
def of_mixed_types(shop: Workshop, kind: str) -> Made:
    """The types whose KL divergences have the smallest sum; what each matrix costs is stored with the library."""
    with read_gguf(shop.float_file) as file:
        shapes = {name: info.shape for name, info in file.tensors.items()}
        theirs = PRESETS[kind].types_of(shapes, file.metadata)
    room = sum(dtype.bytes_of(shapes[name]) for name, dtype in theirs.items())
    costs = known_costs("MiniLlama" if shop.subject.model_type == "llama" else "MiniGPT")
    return shop.quantized(PRESETS[kind].choosing(best_types(costs, room)))


# ---- the residual stream rotated: a LayerNorm lets no rotation through, so a Llama alone -----------------------------


@rows(("Q4_0", "Q4_1", "Q4_K", "Q3_K", "Q2_K"), "rotation", models=["MiniLlama"], sources=_of("rotation"))
def rotated(shop: Workshop, kind: str) -> Made:
    """Rounded to nearest, as the type does it, after a rotation that leaves the float model's function as it is."""
    return shop.quantized(FILE_TYPES[kind], rotate(shop.model))


# ---- activations in eight bits: PyTorch alone ------------------------------------------------------------------------


@rows(["W8A8"], sources=_of("smoothquant"))
def eight_bits_everywhere(shop: Workshop, kind: str) -> Made:
    """Weights a row and activations a token, each with one scale."""
    return Made(w8a8(shop.model), bits=8.0)


@rows(["W8A8"], "SmoothQuant", sources=_of("smoothquant"))
def smoothed(shop: Workshop, kind: str) -> Made:
    """The same, after SmoothQuant."""
    return Made(w8a8(smoothquant(shop.model, shop.tokens, progress=False)), bits=8.0)


# ---- the KV cache: llama.cpp alone, with the float weights and the tokens of a window in the cache -------------------
# Planting outliers in norms changes no key and no value.

CACHES = ("F32", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "IQ4_NL", "Q4_0")
CACHES = (*CACHES, "Q8_0 and Q4_0", "Q4_0 and Q8_0", "Q4_0, not rotated")


@rows(CACHES, "KV cache {}", stored="F32", models=[label for label in ALL if "planted" not in label])
def with_cache(shop: Workshop, given: str) -> Made:
    """Keys and values in other types than F16; llama.cpp rotates them before it rounds them, unless it is told not."""
    names, rotated = given.removesuffix(", not rotated").split(" and "), "not rotated" not in given
    kinds = (GGMLType[names[0]], GGMLType[names[-1]])
    shape, tokens = CacheShape.of(shop.float_file), shop.windows.shape[1] - 1
    about = {"cache_bytes": shape.n_bytes(tokens, *kinds)}
    return Made(path=shop.float_file, about=about, llamacpp={"cache_types": kinds, "rotate_cache": rotated})
