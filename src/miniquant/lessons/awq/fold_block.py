"""Every scale of a block that can be folded."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from .fold_into_norm import fold_into_norm
from .fold_into_value import fold_into_value


def fold_block(state, scales):
    """Fold scales into a whole block, without changing what the block
    computes.

    state: {"ln1.weight", "ln1.bias", "attn.qkv.weight", "attn.qkv.bias",
        "attn.proj.weight", "attn.proj.bias", "ln2.weight", "ln2.bias",
        "mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"}
        -> float32 arrays
    scales: {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"} -> (in,)
        float32, by what each layer's input is to be divided
    ->   a new dict of the same names, with new float32 arrays where
         something changed (the others may be those of state), each number
         right to 0.0001; state and its arrays stay as they are; a scale
         that cannot be folded without changing what the block computes is
         ignored
    """
    out = dict(state)
    for norm, name in (("ln1", "attn.qkv"), ("ln2", "mlp.fc1")):
        parts = (f"{norm}.weight", f"{norm}.bias", f"{name}.weight")
        for part, w in zip(parts, fold_into_norm(*(out[p] for p in parts), scales[name])):
            out[part] = w
    parts = ("attn.qkv.weight", "attn.qkv.bias", "attn.proj.weight")
    for part, w in zip(parts, fold_into_value(*(out[p] for p in parts), scales["attn.proj"])):
        out[part] = w
    return out


def oracle(state, scales):
    """Number by number: what each one is multiplied and divided by follows from its place alone."""
    d = len(scales["attn.proj"])
    by = {name: s.tolist() for name, s in scales.items()}
    found = {}
    for name, w in state.items():
        out = w.astype(float)
        for at in np.ndindex(*w.shape):
            row, column = at[0], at[-1]
            if name.startswith(("ln1", "ln2")):
                out[at] /= by["attn.qkv" if name.startswith("ln1") else "mlp.fc1"][column]
            if name in ("attn.qkv.weight", "attn.proj.weight", "mlp.fc1.weight"):
                out[at] *= by[name.removesuffix(".weight")][column]
            if name.startswith("attn.qkv") and row >= 2 * d:
                out[at] /= by["attn.proj"][row - 2 * d]
        found[name] = out.astype(np.float32)
    return found


def cases(random):
    """Blocks of three sizes, with whole numbers as weights and powers of two as scales; one with other scales, signs and zeros, and its names in another order."""
    made = []
    for width, inner in ((2, 2), (4, 6), (4, 16)):
        rows = {
            "ln1": width,
            "attn.qkv": 3 * width,
            "attn.proj": width,
            "ln2": width,
            "mlp.fc1": inner,
            "mlp.fc2": width,
        }
        inputs = {"attn.qkv": width, "attn.proj": width, "mlp.fc1": width, "mlp.fc2": inner}
        state = {}
        for name, out in rows.items():
            shape = (out, inputs[name]) if name in inputs else (out,)
            state[f"{name}.weight"] = random.integers(1, 10, shape).astype(np.float32)
            state[f"{name}.bias"] = random.integers(1, 10, (out,)).astype(np.float32)
        scales = {name: random.choice([0.25, 0.5, 2, 4], n).astype(np.float32) for name, n in inputs.items()}
        made.append((state, scales))
    made[1][1].update({name: np.ones_like(s) for name, s in made[1][1].items() if name != "mlp.fc2"})  # nothing is to fold
    state, scales = made[0]
    signs = {name: w * random.choice(np.float32([-1, 0, 1]), w.shape) for name, w in state.items()}
    made.append((dict(reversed(signs.items())), {name: s * np.float32(0.7) for name, s in reversed(scales.items())}))
    return made


EXERCISE = Exercise(
    goal="Fold every scale of a block that can be folded without changing what the block computes, and ignore the rest.",
    reference=fold_block, oracle=oracle, cases=cases, minutes=10, difficulty="stretch", tolerance=1e-4,
    hints=(
        "Look at what comes before each layer: ln1 before qkv, ln2 before fc1, an average of v's rows before proj, and before fc2 a GELU. Not all of them let a factor through.",
        "Make a copy of the dict. `fold_into_norm` twice and `fold_into_value` once, each on what the fold before it left; then store the results under their names. fc2 gets nothing.",
    ),
    why="three of a block's four matrices can be helped for nothing; the fourth comes after a GELU.",
    mistakes=(
        Mistake("fc1 and fc2 changed, too", edit(
                "    return out",
                '    inner = scales["mlp.fc2"]\n    out["mlp.fc1.weight"] = out["mlp.fc1.weight"] / inner[:, None]\n    out["mlp.fc1.bias"] = out["mlp.fc1.bias"] / inner\n    out["mlp.fc2.weight"] = out["mlp.fc2.weight"] * inner\n    return out',
            ),
            cause="fc1's rows were divided and fc2's columns multiplied, but gelu(x / s) is not gelu(x) / s: the block computes another thing.",
            cure="Leave fc1's rows and fc2 alone, whatever scale is given for fc2.",
            see="everything right but mlp.fc1.weight, mlp.fc1.bias and mlp.fc2.weight"),
        Mistake("fc2's columns multiplied, too", edit("    return out", '    out["mlp.fc2.weight"] = out["mlp.fc2.weight"] * scales["mlp.fc2"]\n    return out'),
            cause="fc2's columns were multiplied, and nothing before them was divided.",
            cure="Leave fc2 alone: a GELU is before it.", see="everything right but mlp.fc2.weight"),
        Mistake("the scale of proj left out", edit("for part, w in zip(parts, fold_into_value(*(out[p] for p in parts), scales[\"attn.proj\"])):\n        out[part] = w", "pass"),
            cause="Both norms are right. v and proj are what they would be with a scale of 1 for proj.",
            cure="Fold the scale of proj into the rows of v.", see="attn.proj.weight unchanged"),
        Mistake("the scale of qkv lost", edit("fold_into_value(*(out[p] for p in parts)", "fold_into_value(*(state[p] for p in parts)"),
            cause="qkv's weight has only the second of its two folds: its columns were not multiplied by the scale of qkv.",
            cure="Begin each fold with what the fold before it left.", see="everything right but attn.qkv.weight"),
        Mistake("ln1 before fc1", edit('("ln2", "mlp.fc1")', '("ln1", "mlp.fc1")'),
            cause="ln1 was divided by two scales and ln2 by none. fc1 reads from ln2.",
            cure="Fold the scale of fc1 into ln2.", see="ln1 divided twice, ln2 unchanged"),
        Mistake("only the first norm", edit('for norm, name in (("ln1", "attn.qkv"), ("ln2", "mlp.fc1")):', 'for norm, name in (("ln1", "attn.qkv"),):'),
            cause="ln2 and fc1 did not change.",
            cure="Fold the scale of fc1 into ln2, too.", see="ln2 and mlp.fc1.weight unchanged"),
        Mistake("only the second norm", edit('for norm, name in (("ln1", "attn.qkv"), ("ln2", "mlp.fc1")):', 'for norm, name in (("ln2", "mlp.fc1"),):'),
            cause="ln1 did not change, and qkv's columns were not multiplied.",
            cure="Fold the scale of qkv into ln1, too.", see="ln1 unchanged, the columns of attn.qkv.weight not multiplied"),
    ),
)
