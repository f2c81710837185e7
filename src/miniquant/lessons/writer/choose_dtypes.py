"""Before a file is written: the dtype of every tensor."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit, omit

DTYPES = {"f32": 0, "f16": 1, "q8_per_channel": 2, "q4_per_group_64": 3}


def choose_dtypes(state, schemes):
    """The dtype code of every tensor.

    state: name -> array of any shape; schemes: name -> "f32", "f16",
        "q8_per_channel" or "q4_per_group_64", for some of the names
    ->   name -> code (see DTYPES), every name of state, in its order; 0
         where schemes says nothing

    Raises ValueError for
      a name in schemes that state lacks, whatever its scheme;
      a scheme that DTYPES lacks;
      q8_per_channel or q4_per_group_64 for a tensor that is not 2-D;
      q4_per_group_64 for a matrix (out, in) whose in is not a multiple of
      64; 0 is one.
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
    model = toy(emb__weight=(4, 64), ln__weight=(64,), fc__weight=(64, 192), fc__bias=(64,))
    wide = toy(fc__weight=(64, 8))
    every = {"fc.weight": "q4_per_group_64", "emb.weight": "q8_per_channel", "ln.weight": "f16", "fc.bias": "f32"}
    good = [
        (layer, {"fc.weight": "q4_per_group_64"}),
        (layer, {}),
        (layer, {"fc.bias": "f16", "fc.weight": "q8_per_channel"}),
        (model, every),
        (wide, {"fc.weight": "q8_per_channel"}),
        ({}, {}),
        (toy(a=(1, 64), a2=(1, 64), **{"A ": (3, 5), "é\n": (2, 64)}), {"a": "q4_per_group_64", "A ": "q8_per_channel"}),
        (wide, {"fc.weight": "f16"}),
        (toy(scale=(), conv__weight=(2, 3, 64)), {"conv.weight": "f16", "scale": "f32"}),
        (toy(scale=(), a=(1,)), {"scale": "f16"}),
        (toy(none=(3, 0), zero=(0, 64)), {"none": "q4_per_group_64", "zero": "q8_per_channel"}),
    ]
    bad = [
        (layer, {"fc.wieght": "q8_per_channel"}),
        (layer, {"Fc.weight": "f32", "fc.bias": "f32"}),
        (layer, {"fc": "q8_per_channel"}),
        (layer, {"fc.weight.scale": "f16"}),
        ({}, {"fc.weight": "f16"}),
        *((layer, {"fc.weight": scheme, "fc.bias": "f32"}) for scheme in ("q4", "", "q4_per_group_32", "q8_per_channel ", "f64")),
        (layer, {"fc.bias": "q8_per_channel"}),
        (toy(ln__weight=(64,)), {"ln.weight": "q4_per_group_64"}),
        (toy(conv__weight=(2, 3, 64)), {"conv.weight": "q8_per_channel"}),
        (wide, {"fc.weight": "q4_per_group_64"}),
        (toy(fc__weight=(2, 96)), {"fc.weight": "q4_per_group_64"}),
        (toy(fc__weight=(1, 32), out__weight=(2, 64)), {"fc.weight": "q4_per_group_64", "out.weight": "q4_per_group_64"}),
        (layer, {"fc.weight": "q4_per_group_64", "fc.weight ": "q4_per_group_64"}),
        (layer, {"fc.weight": "Q4_PER_GROUP_64"}),
        (toy(conv__weight=(2, 3, 64)), {"conv.weight": "q4_per_group_64"}),
        (toy(conv__weight=(2, 3, 3, 64)), {"conv.weight": "q8_per_channel"}),
        (toy(scale=()), {"scale": "q8_per_channel"}),
        (model, {**every, "ln.weight": "q8_per_channel"}),
    ]
    names = random.permutation([f"layers.{i}.weight" for i in range(6)]).tolist()
    state = {name: np.zeros((2, 64), np.float32) for name in names}
    return [*good, *bad, (state, {name: list(DTYPES)[i % 4] for i, name in enumerate(names[:5])})]


def traits(state, schemes):
    """What is wrong with a request, or special about it."""
    known = {name: scheme for name, scheme in schemes.items() if name in state}
    unknown = [scheme for name, scheme in schemes.items() if name not in state]
    strange = [scheme for scheme in known.values() if scheme not in DTYPES]
    quantized = {name: scheme for name, scheme in known.items() if DTYPES.get(scheme, 0) >= 2}
    flat = [(scheme, state[name]) for name, scheme in quantized.items() if state[name].ndim != 2]
    narrow = [state[name] for name in known if known[name] == "q4_per_group_64" and state[name].ndim == 2]
    narrow = [w for w in narrow if w.shape[1] % 64]
    return {
        "schemes names a tensor that is not there": bool(unknown),
        "schemes names a tensor that is not there, as f32": "f32" in unknown,
        "schemes names a tensor that is not there, with a quantized scheme": any(DTYPES.get(s, 0) >= 2 for s in unknown),
        "a tensor of `state` has a scheme that does not exist": bool(strange),
        "a tensor of `state` has a scheme that does not exist, with capital letters": any(s != s.lower() for s in strange),
        "a tensor of `state` has a scheme that does not exist, not even in small letters": any(
            s.lower() not in DTYPES for s in strange
        ),
        "a quantized tensor is not 2-D": bool(flat),
        "a Q8 tensor is not 2-D": any(s == "q8_per_channel" for s, _ in flat),
        "a Q4 tensor is not 2-D": any(s == "q4_per_group_64" for s, _ in flat),
        "a quantized tensor has fewer than 2 dims": any(w.ndim < 2 for _, w in flat),
        "a quantized tensor has one dim": any(w.ndim == 1 for _, w in flat),
        "a quantized tensor has no dims": any(w.ndim == 0 for _, w in flat),
        "a quantized tensor has three dims": any(w.ndim == 3 for _, w in flat),
        "a Q4 matrix has a width that is no multiple of 64": bool(narrow),
        "a Q4 matrix has a width of less than 64 that is not 0": any(w.shape[1] < 64 for w in narrow),
        "a Q4 matrix has a width of more than 64 that is no multiple of it": any(w.shape[1] > 64 for w in narrow),
        "a Q4 matrix has a multiple of 64 values in all, and not in a row": any(w.size % 64 == 0 for w in narrow),
        "a Q4 matrix whose width is no multiple of 64 has 64 rows, or a multiple": any(w.shape[0] % 64 == 0 for w in narrow),
        "a tensor is F16": "f16" in known.values(),
        "an F16 tensor has no dims": any(s == "f16" and state[n].ndim == 0 for n, s in known.items()),
        "a quantized tensor has a dim of 0": any(0 in state[name].shape for name in quantized),
        "an F16 tensor is not 2-D": any(s == "f16" and state[n].ndim != 2 for n, s in known.items()),
        "an F16 or F32 tensor in schemes is not 2-D": any(s in ("f16", "f32") and state[n].ndim != 2 for n, s in known.items()),
        "a tensor is Q8, and every quantized tensor is 2-D": "q8_per_channel" in known.values() and not flat,
        "a matrix is Q8, and its width is no multiple of 64": any(
            s == "q8_per_channel" and state[n].ndim == 2 and state[n].shape[1] % 64 for n, s in known.items()
        ),
        "a tensor is Q4": "q4_per_group_64" in known.values(),
        "schemes does not name every tensor": len(known) < len(state),
        "the names in schemes are in another order than in `state`": list(known) != [name for name in state if name in known],
        "there are no tensors": not state,
        "there is more than one tensor": len(state) > 1,
        "schemes is empty": not schemes,
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Walk the state dict and give each tensor its dtype code: what schemes says, F32 if it says nothing, and a ValueError for what cannot be stored.",
    reference=choose_dtypes, oracle=oracle, cases=cases, ordered=True, minutes=7, difficulty="core",
    hints=(
        "Two loops: one over the names of `schemes`, which only refuses; one over `state`, which refuses or gives a code. The second one sets the order of the result.",
        "`get` of a dict takes a default for a name that is missing. An array knows `ndim` and `shape`; `%` gives the remainder of a division.",
    ),
    why="a misspelled name that is ignored gives a file that is too large, and no error says so.",
    mistakes=(
        Mistake("unknown names ignored", omit("for name in schemes"),
            cause="`schemes` names a parameter that the model lacks, probably a misspelling, and your function accepts it.",
            cure="Compare the names first: every name in `schemes` must be in `state`.", see="`fc.wieght` accepted"),
        Mistake("unknown schemes become F32", edit(
                'raise ValueError(f"unknown scheme {scheme!r} for {name!r}; there are {list(DTYPES)}")',
                'scheme = "f32"',
            ),
            cause="A scheme that does not exist, such as `q4`, silently became F32.",
            cure="Look the scheme up with `DTYPES[scheme]` only after you have checked that it is there.",
            see="`q4` accepted"),
        Mistake("not 2-D becomes F32", edit(
                'raise ValueError(f"{name!r} has shape {w.shape}; only matrices are quantized, store it as f32")',
                'scheme = "f32"',
            ),
            cause="`schemes` asks for a quantized tensor that is not 2-D, and your function gives the code of F32, without an error.",
            cure="Raise ValueError that names the tensor; the caller decides what to do.",
            see="a quantized scheme for a 1-D tensor accepted"),
        Mistake("width not checked", omit('if scheme == "q4_per_group_64"'),
            cause="A width that is not a multiple of 64 was accepted: the last group of a row would be too short.",
            cure="Refuse `q4_per_group_64` unless `shape[1] % 64 == 0`.", see="a matrix (64, 8) accepted for Q4"),
        Mistake("the wrong axis checked", edit("w.shape[1] % 64", "w.shape[0] % 64"),
            cause="Groups run along a row, so it is `in`, the second dim, that must be a multiple of 64.",
            cure="Test `shape[1] % 64`, not `shape[0] % 64`.", see="a matrix (2, 64) refused, or (64, 8) accepted"),
        Mistake("no ValueError", body('return {name: DTYPES[schemes.get(name, "f32")] for name in state}'),
            cause="No request ends in a ValueError: an unknown scheme is a KeyError, and all else is accepted.",
            cure="Check names, schemes and shapes here, so that the error can name the tensor.",
            see="this input must be refused"),
        Mistake("three dims accepted", edit("w.ndim != 2", "w.ndim < 2").edit("w.shape[1] %", "w.shape[-1] %"),
            cause='A quantized tensor has exactly two dims, and one with three was accepted.',
            cure='Refuse unless `ndim == 2`.', see='a tensor of three dims accepted'),
        Mistake("64 for Q8, too", edit("scheme == \"q4_per_group_64\"", "DTYPES[scheme] >= 2"),
            cause='Only Q4 has groups of 64; Q8 has a scale for each row, whatever its width.',
            cure='Test the width for `q4_per_group_64` only.', see='a matrix (64, 8) refused for Q8'),
        Mistake("KeyError for an unknown scheme", omit("if scheme not in DTYPES"),
            cause='A scheme that DTYPES lacks ends in a KeyError; the docstring asks for ValueError.',
            cure='Check `scheme in DTYPES` first.', see='KeyError where ValueError is expected'),
        Mistake("another type without asking", edit("raise ValueError(f\"rows of {name!r} {w.shape} do not divide into groups of 64; store it as q8_per_channel\")", "scheme = \"q8_per_channel\""),
            cause='A matrix that cannot be Q4 was stored as Q8, and nobody asked for that.',
            cure='Raise ValueError; the caller decides.', see='2 where a ValueError is expected'),
        Mistake("the scheme instead of its code", edit("= DTYPES[scheme]", "= scheme"),
            cause='The result holds the names of the schemes, and a descriptor holds codes.',
            cure='Store `DTYPES[scheme]`.', see='text where a number is expected'),
        Mistake("named tensors first", edit("for name, w in state.items():", "for name in [*schemes, *(n for n in state if n not in schemes)]:\n        w = state[name]"),
            cause='The names of `schemes` come first in your result, and it must have the order of `state`.',
            cure='Loop over `state`.', see='the right codes in another order'),
        Mistake("upper case accepted", edit("scheme = schemes.get(name, \"f32\")", "scheme = schemes.get(name, \"f32\").lower()"),
            cause='Schemes are written in lower case; another spelling is an unknown scheme.',
            cure='Look the scheme up as it is.', see='`Q4_PER_GROUP_64` accepted'),
        Mistake("F16 by default", edit('name, "f32"', 'name, "f16"'),
            cause="A tensor that `schemes` does not name was given the code of F16, and it must be F32.",
            cure='The default is F32: `schemes.get(name, "f32")`.', see="1 where 0 is expected"),
        Mistake("only the named tensors",
            edit("for name, w in state.items():", "for name in schemes:\n        w = state[name]"),
            cause="The result holds only what `schemes` names, and the other tensors are lost.",
            cure="Loop over `state`.", see="keys missing, or in another order"),
        Mistake("the codes of ggml",
            edit("= DTYPES[scheme]", '= {"f32": 0, "f16": 1, "q8_per_channel": 8, "q4_per_group_64": 2}[scheme]'),
            cause="8 and 2 are ggml's numbers for Q8_0 and Q4_0, other types with another layout.",
            cure="Use this format's own codes: 0 F32, 1 F16, 2 Q8, 3 Q4.",
            see="2 where 3 is expected, and 8 where 2 is"),
    ),
)
