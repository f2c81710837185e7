"""Every scale of a block that can be folded."""

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from .fold_into_norm import fold_into_norm


def fold_block(state, scales):
    """Fold scales into a whole block.

    state: {"ln1.weight", "ln1.bias", "attn.qkv.weight", "attn.qkv.bias", "attn.proj.weight", "attn.proj.bias",
    "ln2.weight", "ln2.bias", "mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"} -> float32 arrays;
    qkv has the rows of q, then k, then v
    scales: {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"} -> (in,) float32, by what the input of each layer is divided
    ->   a new dict of the same names in the same order; a scale that cannot be folded is left out
    """
    out = {name: w.copy() for name, w in state.items()}
    for norm, name in (("ln1", "attn.qkv"), ("ln2", "mlp.fc1")):
        parts = (f"{norm}.weight", f"{norm}.bias", f"{name}.weight")
        for part, w in zip(parts, fold_into_norm(*(out[p] for p in parts), scales[name])):
            out[part] = w
    value = scales["attn.proj"]
    v = slice(2 * len(value), None)  # the last third of the rows
    out["attn.qkv.weight"][v] /= value[:, None]
    out["attn.qkv.bias"][v] /= value
    out["attn.proj.weight"] *= value
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
    """Blocks of three sizes, with whole numbers as weights and powers of two as scales."""
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
            state[f"{name}.weight"] = random.integers(1, 10, (out, inputs[name]) if name in inputs else (out,)).astype(
                np.float32
            )
            state[f"{name}.bias"] = random.integers(1, 10, (out,)).astype(np.float32)
        made.append(
            (state, {name: random.choice([0.25, 0.5, 2, 4], n).astype(np.float32) for name, n in inputs.items()})
        )
    return made


EXERCISE = Exercise(
    goal="Fold every scale of a block that can be folded without changing what the block computes, and leave the rest.",
    reference=fold_block, oracle=oracle, cases=cases, minutes=12, difficulty="stretch", tolerance=1e-4,
    hints=(
        "Look at what comes before each layer: ln1 before qkv, ln2 before fc1, an average of v's rows before proj, and before fc2 a GELU. Not all of them let a factor through.",
        "Twice `fold_into_norm`. Then the last third of qkv's rows, weight and bias, divided by the scale of proj (row by row: `[:, None]`), and proj's columns multiplied. fc2 gets nothing. Work on copies of the arrays.",
    ),
    why="three of a block's four matrices can be helped for nothing; the fourth comes after a GELU.",
    mistakes=(
        Mistake("folded through the GELU", edit(
                "    return out",
                '    inner = scales["mlp.fc2"]\n    out["mlp.fc1.weight"] /= inner[:, None]\n    out["mlp.fc1.bias"] /= inner\n    out["mlp.fc2.weight"] *= inner\n    return out',
            ),
            cause="fc1 was divided and fc2 multiplied, but gelu(x / s) is not gelu(x) / s: the model computes another thing.",
            cure="Leave fc1's rows and fc2 alone, whatever scale is given for fc2.",
            see="everything right, and fc1 and fc2 changed as well"),
        Mistake("the bias of v forgotten", omit('out["attn.qkv.bias"][v]'),
            cause="v is weight × x + bias, and only the first part was divided.",
            cure="Divide the last third of qkv's bias too.", see="attn.qkv.bias unchanged"),
        Mistake("q instead of v", edit("slice(2 * len(value), None)", "slice(None, len(value))"),
            cause="The first third of qkv's rows are the queries; the values are the last.",
            cure="Use the rows from 2 × d_model on.",
            see="the first third of qkv's rows changed where the last is expected"),
        Mistake("k instead of v", edit("slice(2 * len(value), None)", "slice(len(value), 2 * len(value))"),
            cause="The middle third of qkv's rows are the keys; the values are the last.",
            cure="Use the rows from 2 × d_model on.",
            see="the middle third of qkv's rows changed where the last is expected"),
        Mistake("columns of v instead of rows", edit("value[:, None]", "value"),
            cause="v's columns are its inputs; proj's inputs are v's outputs, and those are rows.",
            cure="Divide row by row: `scale[:, None]`.", see="the last third of qkv's weight wrong"),
        Mistake("v left as it was", omit('out["attn.qkv.weight"][v]').omit('out["attn.qkv.bias"][v]'),
            cause="proj's columns were multiplied, and nothing in front was divided.",
            cure="Divide the rows of v by the same scale.", see="the last third of qkv's rows too large"),
        Mistake("proj left as it was", omit('out["attn.proj.weight"]'),
            cause="v was divided, and nothing makes up for it.",
            cure="Multiply proj's columns by the same scale.", see="attn.proj.weight unchanged"),
        Mistake("ln1 before fc1", edit('("ln2", "mlp.fc1")', '("ln1", "mlp.fc1")'),
            cause="fc1 reads from ln2; ln1 was divided a second time.",
            cure="Fold the scale of fc1 into ln2.", see="ln1 divided twice, ln2 unchanged"),
    ),
)
