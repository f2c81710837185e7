"""Before a file is written: the dtype of every tensor."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit, omit

DTYPES = {"f32": 0, "f16": 1, "q8_per_channel": 2, "q4_per_group_64": 3}


def choose_dtypes(state, schemes):
    """The dtype code of every tensor.

    state: name -> array; schemes: name -> "f32", "f16", "q8_per_channel" or "q4_per_group_64", for some of the names
    ->   name -> code (see DTYPES), in the order of state; 0 where schemes says nothing

    Raises ValueError for a name that state lacks, an unknown scheme, a quantized scheme for a tensor that is not 2-D,
    and q4_per_group_64 for a matrix (out, in) whose in is not a multiple of 64.
    """
    for name in schemes:
        if name not in state:
            raise ValueError(f"schemes names {name!r}, and the model has no such parameter")
    codes = {}
    for name, w in state.items():
        scheme = schemes.get(name, "f32")
        if scheme not in DTYPES:
            raise ValueError(f"unknown scheme {scheme!r} for {name!r}; there are {list(DTYPES)}")
        if DTYPES[scheme] >= 2 and w.ndim != 2:
            raise ValueError(f"{name!r} has shape {w.shape}; only matrices are quantized, store it as f32")
        if scheme == "q4_per_group_64" and w.shape[1] % 64:
            raise ValueError(f"rows of {name!r} {w.shape} do not divide into groups of 64; store it as q8_per_channel")
        codes[name] = DTYPES[scheme]
    return codes


def oracle(state, schemes):
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


def toy(**shapes):
    """Arrays of zeros by name; two underscores are a dot."""
    return {name.replace("__", "."): np.zeros(shape, np.float32) for name, shape in shapes.items()}


def cases(random):
    """Every scheme, what must be refused, and six layers in a random order."""
    layer = toy(fc__weight=(2, 64), fc__bias=(2,))
    model = toy(emb__weight=(4, 64), ln__weight=(64,), fc__weight=(64, 128), fc__bias=(64,))
    wide = toy(fc__weight=(64, 8))
    every = {"fc.weight": "q4_per_group_64", "emb.weight": "q8_per_channel", "ln.weight": "f16", "fc.bias": "f32"}
    good = [
        (layer, {"fc.weight": "q4_per_group_64"}),
        (layer, {}),
        (layer, {"fc.bias": "f16", "fc.weight": "q8_per_channel"}),
        (model, every),
        (wide, {"fc.weight": "q8_per_channel"}),
        ({}, {}),
    ]
    bad = [
        (layer, {"fc.wieght": "q8_per_channel"}),
        (layer, {"fc.wieght": "f32"}),
        (layer, {"fc.weight": "q4"}),
        (layer, {"fc.bias": "q8_per_channel"}),
        (toy(ln__weight=(64,)), {"ln.weight": "q4_per_group_64"}),
        (toy(conv__weight=(2, 3, 64)), {"conv.weight": "q8_per_channel"}),
        (wide, {"fc.weight": "q4_per_group_64"}),
        (toy(fc__weight=(2, 96)), {"fc.weight": "q4_per_group_64"}),
    ]
    names = random.permutation([f"layers.{i}.weight" for i in range(6)]).tolist()
    state = {name: np.zeros((2, 64), np.float32) for name in names}
    return [*good, *bad, (state, {name: list(DTYPES)[i % 4] for i, name in enumerate(names[:5])})]


EXERCISE = Exercise(
    goal="Walk the state dict and give each tensor its dtype code: what schemes says, F32 if it says nothing, and a ValueError for what cannot be stored.",
    reference=choose_dtypes, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        'Loop over `state.items()`, so that the result has the model\'s order, and look each name up with `schemes.get(name, "f32")`.',
        "Four things are refused with ValueError: a name in `schemes` that `state` lacks, a scheme that `DTYPES` lacks, a quantized scheme for a tensor that is not 2-D, and `q4_per_group_64` where `shape[1] % 64` is not 0.",
    ),
    why="a misspelled name that is ignored gives a file that is too large, and nobody notices for a month.",
    mistakes=(
        Mistake("unknown names ignored", omit("for name in schemes"),
            cause="`schemes` names a parameter that the model lacks, probably a misspelling, and nothing is said.",
            cure="Compare the names first: every name in `schemes` must be in `state`.", see="`fc.wieght` accepted"),
        Mistake("unknown schemes become F32", edit(
                'raise ValueError(f"unknown scheme {scheme!r} for {name!r}; there are {list(DTYPES)}")',
                'scheme = "f32"',
            ),
            cause="A scheme that does not exist, such as `q4`, silently became F32.",
            cure="Look the scheme up with `DTYPES[scheme]` only after you have checked that it is there.",
            see="`q4` accepted"),
        Mistake("1-D tensors become F32 in silence", edit(
                'raise ValueError(f"{name!r} has shape {w.shape}; only matrices are quantized, store it as f32")',
                'scheme = "f32"',
            ),
            cause="A bias or a norm was asked to be quantized and was stored as F32 instead, without a word.",
            cure="Raise ValueError that names the tensor; its owner decides what happens then.",
            see="a quantized scheme for a 1-D tensor accepted"),
        Mistake("width not checked", omit('if scheme == "q4_per_group_64"'),
            cause="If a row is not a multiple of 64 long, its last group is too short, and the format has no room for it.",
            cure="Refuse `q4_per_group_64` unless `shape[1] % 64 == 0`.", see="a matrix (64, 8) accepted for Q4"),
        Mistake("the wrong axis checked", edit("w.shape[1] % 64", "w.shape[0] % 64"),
            cause="Groups run along a row, so it is `in`, the second dim, that must be a multiple of 64.",
            cure="Test `shape[1] % 64`, not `shape[0] % 64`.", see="a matrix (2, 64) refused, or (64, 8) accepted"),
        Mistake("nothing refused", body('return {name: DTYPES[schemes.get(name, "f32")] for name in state}'),
            cause="Every request is granted, and what cannot be stored fails later, far from its cause.",
            cure="Check names, schemes and shapes here, where the tensor's name is at hand.",
            see="this input must be refused"),
        Mistake("F16 by default", edit('name, "f32"', 'name, "f16"'),
            cause="A tensor that `schemes` does not name was stored as F16, and lost precision.",
            cure='The default is F32: `schemes.get(name, "f32")`.', see="1 where 0 is expected"),
        Mistake("only the named tensors",
            edit("for name, w in state.items():", "for name in schemes:\n        w = state[name]"),
            cause="The loop runs over `schemes`, and the tensors that it does not name are lost.",
            cure="Loop over `state`.", see="keys missing, or in another order"),
        Mistake("the codes of ggml",
            edit("= DTYPES[scheme]", '= {"f32": 0, "f16": 1, "q8_per_channel": 8, "q4_per_group_64": 2}[scheme]'),
            cause="8 and 2 are ggml's numbers for Q8_0 and Q4_0, other types with another layout.",
            cure="Use this format's own codes: 0 F32, 1 F16, 2 Q8, 3 Q4.",
            see="2 where 3 is expected, and 8 where 2 is"),
    ),
)
