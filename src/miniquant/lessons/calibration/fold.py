"""The exercises of lab 14 on folding: a scale moves from one layer into the next, and the model stays the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import torch

from ...calibrate import folding
from ...lab.spec import Case, Exercise, Mistake
from ...models.minigpt import Block, MiniGPTConfig

F32 = np.float32
Arrays = dict[str, np.ndarray]

# ---- fold_into_norm --------------------------------------------------------------------------------------------------


def fold_into_norm(
    gain: np.ndarray, bias: np.ndarray, weight: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The reference: gain and bias (in,), weight (out, in), scale (in,) -> the three, changed."""
    norm, linear = torch.nn.LayerNorm(len(gain)), torch.nn.Linear(*weight.shape[::-1])
    with torch.no_grad():
        for parameter, values in ((norm.weight, gain), (norm.bias, bias), (linear.weight, weight)):
            parameter.copy_(torch.from_numpy(values.copy()))
    folding.fold_into_norm(norm, linear, scale)
    return tuple(p.detach().numpy().copy() for p in (norm.weight, norm.bias, linear.weight))


def _norm_oracle(gain: np.ndarray, bias: np.ndarray, weight: np.ndarray, scale: np.ndarray):
    """One number at a time."""
    s = scale.tolist()
    rows = [[x * s[c] for c, x in enumerate(row)] for row in weight.tolist()]
    return np.array([g / x for g, x in zip(gain, s)], F32), np.array([b / x for b, x in zip(bias, s)], F32), F32(rows)


def _norm_cases(random: np.random.Generator) -> list[Case]:
    def drawn(out: int, width: int) -> Case:
        parts = random.normal(1, 0.2, width), random.normal(0, 1, width), random.normal(0, 1, (out, width))
        return (*(part.astype(F32) for part in parts), np.exp(random.normal(0, 1, width)).astype(F32))

    return [
        (np.array([3, 1], F32), np.array([1, 2], F32), np.array([[5, 7], [1, 0]], F32), np.array([2, 0.25], F32)),
        (np.ones(3, F32), np.array([0, 6, -6], F32), np.eye(3, dtype=F32), np.array([1, 2, 4], F32)),
        drawn(4, 4),
        drawn(6, 3),
    ]


def _norm(gain, bias, weight, scale, g=-1, b=-1, w=1, rows=False):
    """Each part times the scale to a power: -1 divides, 1 multiplies."""
    s = scale[:, None] if rows else scale
    return gain * scale**g, bias * scale**b, weight * s**w


FOLD_INTO_NORM = Exercise(
    name="fold_into_norm",
    lab="14",
    goal="Divide what a LayerNorm gives by a scale for each channel, and let the next layer's weights make up for it.",
    minutes=5,
    difficulty="core",
    reference=fold_into_norm,
    oracle=_norm_oracle,
    cases=_norm_cases,
    tolerance=1e-4,
    hints=(
        "A LayerNorm gives `gain * x + bias`. All of that must become smaller by the scale, channel by channel.",
        "The weights are (out, in) and a channel is a column: `weight * scale` multiplies column by column.",
    ),
    why="the model computes what it computed before, and the columns that matter are larger now when they are rounded.",
    mistakes=(
        Mistake(
            "the bias folded the wrong way",
            partial(_norm, b=1),
            "The bias of the norm was multiplied while its gain was divided.",
            "Divide the bias too: the next layer sees gain × x + bias as one number.",
            "gain and weight right, the bias too large by the scale twice",
        ),
        Mistake(
            "the bias forgotten",
            partial(_norm, b=0),
            "The bias of the norm stayed as it was, and the next layer's columns multiply it by the scale.",
            "Divide the bias as you divide the gain.",
            "gain and weight right, the bias unchanged",
        ),
        Mistake(
            "rows instead of columns",
            partial(_norm, rows=True),
            "`scale[:, None]` multiplies row by row, and a row is an output.",
            "Multiply with `weight * scale`, which goes column by column.",
            "the weight wrong, or an error about shapes that do not fit",
        ),
        Mistake(
            "multiplied on both sides",
            partial(_norm, g=1, b=1),
            "Norm and weights were both multiplied, so every product has the scale in it twice.",
            "Divide in the norm, multiply in the weights.",
            "the weight right, gain and bias too large",
        ),
        Mistake(
            "divided on both sides",
            partial(_norm, w=-1),
            "Norm and weights were both divided, so nothing makes up for the division.",
            "Multiply the columns.",
            "gain and bias right, the weight too small",
        ),
        Mistake(
            "the other way round",
            partial(_norm, g=1, b=1, w=-1),
            "The model stays the same, but the columns that matter became smaller, so they are rounded more coarsely.",
            "Divide in the norm, multiply in the weights.",
            "everything the inverse of what is expected",
        ),
        Mistake(
            "the scale applied twice",
            partial(_norm, w=2),
            "The columns were multiplied by the scale twice, perhaps once for the gain and once for the bias.",
            "Once is enough: gain × x + bias is divided as a whole.",
            "gain and bias right, the weight too large",
        ),
    ),
)

# ---- fold_block ------------------------------------------------------------------------------------------------------

WIDTH, INNER = 4, 6


def fold_block(state: Mapping[str, np.ndarray], scales: Mapping[str, np.ndarray]) -> Arrays:
    """The reference: the arrays of a block, and a scale for the input of each layer -> the arrays, folded."""
    width, inner = state["mlp.fc1.weight"].shape[::-1]
    block = Block(MiniGPTConfig(d_model=width, d_mlp=inner, n_heads=1))
    block.load_state_dict({name: torch.from_numpy(w.copy()) for name, w in state.items()})
    folding.fold_into_norm(block.ln1, block.attn.qkv, scales["attn.qkv"])
    folding.fold_into_value(block.attn, scales["attn.proj"])
    folding.fold_into_norm(block.ln2, block.mlp.fc1, scales["mlp.fc1"])
    return {name: w.detach().numpy().copy() for name, w in block.state_dict().items()}


def _block_oracle(state: Mapping[str, np.ndarray], scales: Mapping[str, np.ndarray]) -> Arrays:
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
        found[name] = out.astype(F32)
    return found


def _block_cases(random: np.random.Generator) -> list[Case]:
    cases = []
    for width, inner in ((2, 2), (WIDTH, INNER), (4, 16)):
        block = Block(MiniGPTConfig(d_model=width, d_mlp=inner, n_heads=1))
        shapes = {name: tuple(w.shape) for name, w in block.state_dict().items()}
        state = {name: random.integers(1, 10, shape).astype(F32) for name, shape in shapes.items()}
        sizes = {"attn.qkv": width, "attn.proj": width, "mlp.fc1": width, "mlp.fc2": inner}
        cases.append((state, {name: random.choice([0.25, 0.5, 2, 4], n).astype(F32) for name, n in sizes.items()}))
    return cases


def _block(state, scales, rows="v", v_bias=True, gelu=False, proj=1, norm_of_fc1="ln2", linear_bias=False) -> Arrays:
    s, d = {name: w.copy() for name, w in state.items()}, len(scales["attn.proj"])
    for norm, layer in (("ln1", "attn.qkv"), (norm_of_fc1, "mlp.fc1")):
        s[f"{norm}.weight"] /= scales[layer]
        s[f"{norm}.bias"] /= scales[layer]
        s[f"{layer}.weight"] *= scales[layer]
    part = {"v": slice(2 * d, None), "q": slice(None, d), "k": slice(d, 2 * d), "none": slice(0, 0)}[rows]
    value = scales["attn.proj"]
    if rows != "none":
        s["attn.qkv.weight"][part] /= value[:, None]
        if v_bias:
            s["attn.qkv.bias"][part] /= value
    s["attn.proj.weight"] *= value**proj
    if linear_bias:
        s["mlp.fc1.bias"] /= scales["mlp.fc2"]
    if gelu:
        s["mlp.fc1.weight"] /= scales["mlp.fc2"][:, None]
        s["mlp.fc1.bias"] /= scales["mlp.fc2"]
        s["mlp.fc2.weight"] *= scales["mlp.fc2"]
    return s


def _columns_of_v(state, scales) -> Arrays:
    s, d = _block(state, scales, rows="none"), len(scales["attn.proj"])
    s["attn.qkv.weight"][2 * d :] /= scales["attn.proj"]
    s["attn.qkv.bias"][2 * d :] /= scales["attn.proj"]
    return s


FOLD_BLOCK = Exercise(
    name="fold_block",
    lab="14",
    goal="Fold every scale of a block that can be folded without changing what the block computes, and leave the rest.",
    minutes=12,
    difficulty="stretch",
    reference=fold_block,
    oracle=_block_oracle,
    cases=_block_cases,
    tolerance=1e-4,
    hints=(
        "Look at what stands in front of each layer: ln1 before qkv, ln2 before fc1, an average of v's rows before "
        "proj, and before fc2 a GELU. Not all of them let a factor through.",
        "Twice `fold_into_norm`. Then the last third of qkv's rows, weight and bias, divided by the scale of proj (row "
        "by row: `[:, None]`), and proj's columns multiplied. fc2 gets nothing. Work on copies of the arrays.",
    ),
    why="three of a block's four matrices can be helped for nothing; the fourth stands behind a GELU.",
    mistakes=(
        Mistake(
            "folded through the GELU",
            partial(_block, gelu=True),
            "fc1 was divided and fc2 multiplied, but gelu(x / s) is not gelu(x) / s: the model computes another thing.",
            "Leave fc1's rows and fc2 alone, whatever scale is given for fc2.",
            "everything right, and fc1 and fc2 changed as well",
        ),
        Mistake(
            "the bias of v forgotten",
            partial(_block, v_bias=False),
            "v is weight × x + bias, and only the first part was divided.",
            "Divide the last third of qkv's bias too.",
            "attn.qkv.bias unchanged",
        ),
        Mistake(
            "q instead of v",
            partial(_block, rows="q"),
            "The first third of qkv's rows are the queries; the values are the last.",
            "Use the rows from 2 × d_model on.",
            "the first third of qkv's rows changed where the last is expected",
        ),
        Mistake(
            "k instead of v",
            partial(_block, rows="k"),
            "The middle third of qkv's rows are the keys; the values are the last.",
            "Use the rows from 2 × d_model on.",
            "the middle third of qkv's rows changed where the last is expected",
        ),
        Mistake(
            "columns of v instead of rows",
            _columns_of_v,
            "v's columns are its inputs; proj's inputs are v's outputs, and those are rows.",
            "Divide row by row: `scale[:, None]`.",
            "the last third of qkv's weight wrong",
        ),
        Mistake(
            "v left as it was",
            partial(_block, rows="none"),
            "proj's columns were multiplied, and nothing in front was divided.",
            "Divide the rows of v by the same scale.",
            "the last third of qkv's rows too large",
        ),
        Mistake(
            "proj left as it was",
            partial(_block, proj=0),
            "v was divided, and nothing makes up for it.",
            "Multiply proj's columns by the same scale.",
            "attn.proj.weight unchanged",
        ),
        Mistake(
            "ln1 in front of fc1",
            partial(_block, norm_of_fc1="ln1"),
            "fc1 reads from ln2; ln1 was divided a second time.",
            "Fold the scale of fc1 into ln2.",
            "ln1 divided twice, ln2 unchanged",
        ),
    ),
)
