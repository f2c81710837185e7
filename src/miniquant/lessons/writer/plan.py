"""The exercises of lab 06 that plan a file before any of it is written: the dtypes and the offsets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...formats.gguf_lite import file as gguf_io
from ...lab.spec import Case, Exercise, Mistake
from ...quantization.schemes import resolve

CODES = {"f32": 0, "f16": 1, "q8_per_channel": 2, "q4_per_group_64": 3}

# ---- choose_dtypes ---------------------------------------------------------------------------------------------------


def choose_dtypes(state: dict, schemes: dict) -> dict:
    """The reference: a state dict and a scheme for some of its names -> a dtype code for each."""
    return {name: int(gguf_io.SCHEMES.index(scheme)) for name, scheme in resolve(state, schemes).items()}


def dtypes_oracle(state: dict, schemes: dict) -> dict:
    """One name at a time, a branch for each scheme."""
    codes = {}
    for name in state:
        scheme, shape = schemes.get(name, "f32"), list(state[name].shape)
        if scheme == "f32":
            codes[name] = 0
        elif scheme == "f16":
            codes[name] = 1
        elif scheme not in ("q8_per_channel", "q4_per_group_64"):
            raise ValueError(f"{scheme!r} is no scheme")
        elif len(shape) != 2:
            raise ValueError(f"{name!r} is not a matrix, and {scheme} has no scales for it")
        elif scheme == "q8_per_channel":
            codes[name] = 2
        elif shape[1] - shape[1] // 64 * 64:
            raise ValueError(f"the rows of {name!r} do not divide into groups of 64")
        else:
            codes[name] = 3
    for name in schemes:
        if name not in codes:
            raise ValueError(f"the model has no parameter {name!r}")
    return codes


def _toy_state(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name.replace("__", "."): np.zeros(shape, np.float32) for name, shape in shapes.items()}


def _dtypes_cases(random: np.random.Generator) -> list[Case]:
    layer = _toy_state(fc__weight=(2, 64), fc__bias=(2,))
    toy = _toy_state(emb__weight=(4, 64), ln__weight=(64,), fc__weight=(64, 128), fc__bias=(64,))
    wide = _toy_state(fc__weight=(64, 8))
    good = [
        (layer, {"fc.weight": "q4_per_group_64"}),
        (layer, {}),
        (layer, {"fc.bias": "f16", "fc.weight": "q8_per_channel"}),
        (toy, {"fc.weight": "q4_per_group_64", "emb.weight": "q8_per_channel", "ln.weight": "f16", "fc.bias": "f32"}),
        (wide, {"fc.weight": "q8_per_channel"}),
        ({}, {}),
    ]
    bad = [
        (layer, {"fc.wieght": "q8_per_channel"}),
        (layer, {"fc.weight": "q4"}),
        (layer, {"fc.bias": "q8_per_channel"}),
        (_toy_state(ln__weight=(64,)), {"ln.weight": "q4_per_group_64"}),
        (wide, {"fc.weight": "q4_per_group_64"}),
    ]
    names = random.permutation([f"layers.{i}.weight" for i in range(6)]).tolist()
    state = {name: np.zeros((2, 64), np.float32) for name in names}
    return [*good, *bad, (state, {name: list(CODES)[i % 4] for i, name in enumerate(names[:5])})]


def _choose(
    state: dict,
    schemes: dict,
    *,
    codes: dict = CODES,
    default: str = "f32",
    unknown=True,
    known=True,
    matrix=True,
    width=True,
) -> dict:
    """Right unless told otherwise; each switch is a mistake."""
    if unknown and set(schemes) - set(state):
        raise ValueError("refused")
    out = {}
    for name, w in state.items():
        scheme = schemes.get(name, default)
        if scheme not in CODES and known:
            raise ValueError("refused")
        quantized = scheme.startswith("q")
        if quantized and w.ndim != 2:
            if matrix:
                raise ValueError("refused")
            scheme = "f32"
        elif scheme == "q4_per_group_64" and width and w.shape[1] % 64:
            raise ValueError("refused")
        out[name] = codes.get(scheme, 0)
    return out


def _only_named(state: dict, schemes: dict) -> dict:
    chosen = _choose(state, schemes)
    return {name: chosen[name] for name in schemes}


def _the_wrong_axis(state: dict, schemes: dict) -> dict:
    for name, w in state.items():
        if schemes.get(name) == "q4_per_group_64" and w.ndim == 2 and w.shape[0] % 64:
            raise ValueError("refused")
    return _choose(state, schemes, width=False)


def _anything_goes(state: dict, schemes: dict) -> dict:
    return {name: CODES[schemes.get(name, "f32")] for name in state}


CHOOSE_DTYPES = Exercise(
    name="choose_dtypes",
    lab="06",
    goal="Walk the state dict and give each tensor its dtype code: what schemes says, F32 if it says nothing, and a "
    "ValueError for what cannot be stored.",
    minutes=6,
    difficulty="core",
    reference=choose_dtypes,
    oracle=dtypes_oracle,
    cases=_dtypes_cases,
    hints=(
        "Loop over `state.items()`, so that the result has the model's order, and look each name up with "
        '`schemes.get(name, "f32")`.',
        "Four things are refused with ValueError: a name in `schemes` that `state` lacks, a scheme that `DTYPES` "
        "lacks, a quantized scheme for a tensor that is not 2-D, and `q4_per_group_64` where `shape[1] % 64` is not 0.",
    ),
    why="a misspelled name that is ignored gives a file that is too large, and nobody notices for a month.",
    mistakes=(
        Mistake(
            "unknown names ignored",
            partial(_choose, unknown=False),
            "`schemes` names a parameter that the model lacks, probably a misspelling, and nothing is said.",
            "Compare the names first: every name in `schemes` must be in `state`.",
            "`fc.wieght` accepted",
        ),
        Mistake(
            "unknown schemes become F32",
            partial(_choose, known=False),
            "A scheme that does not exist, such as `q4`, silently became F32.",
            "Look the scheme up with `DTYPES[scheme]` only after you have checked that it is there.",
            "`q4` accepted",
        ),
        Mistake(
            "1-D tensors become F32 in silence",
            partial(_choose, matrix=False),
            "A bias or a norm was asked to be quantized and was stored as F32 instead, without a word.",
            "Raise ValueError that names the tensor; its owner decides what happens then.",
            "a quantized scheme for a 1-D tensor accepted",
        ),
        Mistake(
            "width not checked",
            partial(_choose, width=False),
            "A row whose length is not a multiple of 64 has a last group that is too short, and the format has no "
            "room for it.",
            "Refuse `q4_per_group_64` unless `shape[1] % 64 == 0`.",
            "a matrix (64, 8) accepted for Q4",
        ),
        Mistake(
            "the wrong axis checked",
            _the_wrong_axis,
            "Groups run along a row, so it is `in`, the second dim, that must be a multiple of 64.",
            "Test `shape[1] % 64`, not `shape[0] % 64`.",
            "a matrix (2, 64) refused, or (64, 8) accepted",
        ),
        Mistake(
            "nothing refused",
            _anything_goes,
            "Every request is granted, and what cannot be stored fails later, far from its cause.",
            "Check names, schemes and shapes here, where the tensor's name is at hand.",
            "this input must be refused",
        ),
        Mistake(
            "F16 by default",
            partial(_choose, default="f16"),
            "A tensor that `schemes` does not name was stored as F16, and so lost precision that nobody gave away.",
            'The default is F32: `schemes.get(name, "f32")`.',
            "1 where 0 is expected",
        ),
        Mistake(
            "only the named tensors",
            _only_named,
            "The loop runs over `schemes`, and the tensors that it does not name are lost.",
            "Loop over `state`.",
            "keys missing, or in another order",
        ),
        Mistake(
            "the codes of ggml",
            partial(_choose, codes={"f32": 0, "f16": 1, "q8_per_channel": 8, "q4_per_group_64": 2}),
            "8 and 2 are ggml's numbers for Q8_0 and Q4_0, other types with another layout.",
            "Use this format's own codes: 0 F32, 1 F16, 2 Q8, 3 Q4.",
            "2 where 3 is expected, and 8 where 2 is",
        ),
    ),
)

# ---- tensor_offsets --------------------------------------------------------------------------------------------------


def tensor_offsets(shapes: dict, dtypes: dict) -> dict:
    """The reference: the dims and dtype code of each tensor -> where its data begins."""
    schemes = {name: gguf_io.SCHEMES[code] for name, code in dtypes.items()}
    return {info.name: info.offset for info in gguf_io.layout(shapes, schemes)}


def offsets_oracle(shapes: dict, dtypes: dict) -> dict:
    """A row or a group at a time: the next tensor begins where the last one ended."""
    offsets, at = {}, 0
    for name, dims in shapes.items():
        offsets[name] = at
        elements = 1
        for dim in dims:
            elements *= dim
        if dtypes[name] == 0:
            at += elements + elements + elements + elements
        elif dtypes[name] == 1:
            at += elements + elements
        elif dtypes[name] == 2:
            for _ in range(dims[0]):  # a scale and a row
                at += 2 + dims[1]
        else:
            for _ in range(elements // 64):  # a scale and 64 nibbles
                at += 2 + 32
    return offsets


def _offsets_cases(random: np.random.Generator) -> list[Case]:
    made = [
        ({"a": (2, 3), "b": (3,)}, {"a": 0, "b": 0}),
        ({"a": (5,), "b": (2, 2), "c": ()}, {"a": 1, "b": 0, "c": 0}),
        ({"a": (4, 64), "b": (4, 64), "c": (4, 64), "d": (1,)}, {"a": 2, "b": 3, "c": 2, "d": 0}),
        ({"scalar": (), "next": (3,), "none": (0,), "last": (1,)}, {"scalar": 0, "next": 1, "none": 0, "last": 0}),
        ({"only": (7,)}, {"only": 0}),
    ]
    shapes = {f"t{i}": (int(a), 64 * int(b)) for i, (a, b) in enumerate(random.integers(1, 9, (8, 2)))}
    return [*made, (shapes, {name: int(random.integers(0, 4)) for name in shapes})]


def _size(dims: tuple, dtype: int, *, scale: int = 2, per_column: bool = False, int4: int = 2) -> int:
    count = int(np.prod(dims))
    if dtype < 2:
        return count * (4 if dtype == 0 else 2)
    if dtype == 2:
        return scale * dims[1 if per_column else 0] + count
    return scale * (count // 64) + count // int4


def _laid_out(
    shapes: dict, dtypes: dict, *, size: Callable[..., int] = _size, start: int = 0, descriptors=False, after=False
) -> dict:
    offsets, at = {}, start
    for name, dims in shapes.items():
        n_bytes = size(dims, dtypes[name])
        at += (2 + len(name) + 1 + 4 * len(dims) + 1 + 8) if descriptors else 0
        offsets[name] = at + n_bytes if after else at
        at += n_bytes
    return offsets


def _prod_of_nothing(shapes: dict, dtypes: dict) -> dict:
    return _laid_out(shapes, dtypes, size=lambda dims, dtype: _size(dims, dtype) * (1 if dims else np.prod(dims)))


def _aligned(shapes: dict, dtypes: dict) -> dict:
    return _laid_out(shapes, dtypes, size=lambda dims, dtype: -(-_size(dims, dtype) // 32) * 32)


TENSOR_OFFSETS = Exercise(
    name="tensor_offsets",
    lab="06",
    goal="Find where each tensor's bytes begin, counted from the start of the data section, before a byte is written.",
    minutes=5,
    difficulty="core",
    reference=tensor_offsets,
    oracle=offsets_oracle,
    cases=_offsets_cases,
    hints=(
        "Keep one running number `at`, which begins at 0: note it down for a tensor, then add that tensor's size.",
        "The sizes in bytes: F32 4 × count, F16 2 × count, Q8 2 × out + count, Q4 2 × (count / 64) + count / 2. "
        "`math.prod(dims)` is the count, and 1 for a scalar.",
    ),
    why="an offset that counts from the data section stays true when a name or a line of metadata grows.",
    mistakes=(
        Mistake(
            "offset after the tensor",
            partial(_laid_out, after=True),
            "The size was added before the offset was noted down, so each offset is the end of its tensor.",
            "Note `at` first, then add the size.",
            "the first offset is not 0, and each is the one that belongs to the next tensor",
        ),
        Mistake(
            "counted from the start of the file",
            partial(_laid_out, start=16),
            "The count begins behind the 16 bytes of the header, and offsets count from the start of the data section.",
            "Begin at 0, whatever stands in front of the data.",
            "every offset 16 too large",
        ),
        Mistake(
            "descriptors counted",
            partial(_laid_out, descriptors=True),
            "The bytes of the descriptors were added as you went along, so the offset was fixed before the place where "
            "the data begins was known.",
            "Add the sizes of the data only; the data section begins after all descriptors.",
            "offsets that grow with the length of the names",
        ),
        Mistake(
            "scales forgotten",
            partial(_laid_out, size=partial(_size, scale=0)),
            "The float16 scales of a quantized tensor take room too, in front of its values.",
            "Add two bytes for each scale: out of them for Q8, count / 64 for Q4.",
            "right until the tensor after the first quantized one",
        ),
        Mistake(
            "scales of four bytes",
            partial(_laid_out, size=partial(_size, scale=4)),
            "A scale is stored as float16, which takes two bytes, and you counted four.",
            "Count two bytes a scale.",
            "too much by two bytes a row or a group",
        ),
        Mistake(
            "one scale a column",
            partial(_laid_out, size=partial(_size, per_column=True)),
            "Q8 has a scale for each row, dims[0] of them, and you counted dims[1].",
            "Count 2 × dims[0] bytes of scales.",
            "Q8 too large or too small, the rest right",
        ),
        Mistake(
            "a byte for each 4-bit value",
            partial(_laid_out, size=partial(_size, int4=1)),
            "Two 4-bit values share a byte, and you counted a byte for each.",
            "Count count / 2 bytes of values for Q4.",
            "Q4 almost twice too large",
        ),
        Mistake(
            "elements instead of bytes",
            partial(_laid_out, size=lambda dims, dtype: int(np.prod(dims))),
            "The offset counts elements, and a float takes four bytes of the file.",
            "Multiply by the bytes that an element takes.",
            "the second offset is the number of elements of the first tensor",
        ),
        Mistake(
            "a float after a scalar",
            _prod_of_nothing,
            "`np.prod(())` is the float 1.0, and an offset is a whole number.",
            "Use `math.prod(dims)`, or wrap the product in `int(...)`.",
            "`4.0` where `4` is expected, after a tensor of shape ()",
        ),
        Mistake(
            "aligned to 32",
            _aligned,
            "Real GGUF begins each tensor at a multiple of 32 bytes, and this layout has no padding.",
            "Let each tensor begin where the last one ends.",
            "offsets that are all multiples of 32",
        ),
    ),
)
