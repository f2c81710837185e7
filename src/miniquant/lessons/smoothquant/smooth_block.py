"""The scales of a block go into its two norms."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..awq.fold_into_norm import fold_into_norm
from .smooth_scales import smooth_scales


def smooth_block(state, inputs, strength):
    """Smooth the two layers of a block that read from a norm, without
    changing what the block computes.

    state: {"ln1.weight", "ln1.bias", "attn.qkv.weight", "ln2.weight",
        "ln2.bias", "mlp.fc1.weight"} and other names -> float32 arrays
    inputs: {"attn.qkv", "mlp.fc1"} -> (tokens, in) float32, what reaches
        these layers
    ->   a new dict of the same names: each layer's smooth_scales for this
         strength are folded into its norm (ln1 before attn.qkv, ln2 before
         mlp.fc1) and its weight, right to 1e-4; all other arrays may be
         those of state; state and its arrays stay as they are
    """
    out = dict(state)
    for norm, name in (("ln1", "attn.qkv"), ("ln2", "mlp.fc1")):
        scale = smooth_scales(inputs[name], state[f"{name}.weight"], strength)
        parts = (f"{norm}.weight", f"{norm}.bias", f"{name}.weight")
        for part, w in zip(parts, fold_into_norm(*(state[p] for p in parts), scale)):
            out[part] = w
    return out


def oracle(state, inputs, strength):
    """Channel by channel."""
    found = {name: w.astype(float) for name, w in state.items()}
    for norm, name in (("ln1", "attn.qkv"), ("ln2", "mlp.fc1")):
        for c in range(inputs[name].shape[1]):
            top = max(abs(v) for v in inputs[name][:, c].tolist())
            column = max(abs(v) for v in state[f"{name}.weight"][:, c].tolist())
            s = top**strength / column ** (1 - strength)
            found[f"{norm}.weight"][c] /= s
            found[f"{norm}.bias"][c] /= s
            found[f"{name}.weight"][:, c] *= s
    return {name: w.astype(np.float32) for name, w in found.items()}


def cases(random):
    """Blocks of three sizes, with squares as numbers, one with other names beside the six; then strengths 0 and 1, and names in another order."""
    made = []
    for width, inner, tokens, strength, qkv_bias in ((2, 3, 2, 0.5, True), (3, 3, 4, 0.25, False), (4, 6, 5, 0.75, True)):
        shapes = {
            "ln1.weight": (width,), "ln1.bias": (width,), "attn.qkv.weight": (3 * width, width),
            "ln2.weight": (width,), "ln2.bias": (width,), "mlp.fc1.weight": (inner, width),
        }
        if qkv_bias:
            shapes |= {"attn.qkv.bias": (3 * width,), "mlp.fc2.weight": (width, inner)}
        else:
            shapes |= {"attn.proj.weight": (width, width), "mlp.fc1.bias": (inner,)}
        state = {name: random.choice([-4, -1, 1, 4, 16], shape).astype(np.float32) for name, shape in shapes.items()}
        inputs = {
            name: random.choice([-64, -16, 1, 4, 16], (tokens, width)).astype(np.float32)
            for name in ("attn.qkv", "mlp.fc1")
        }
        made.append((state, inputs, strength))
    for strength in (0.0, 1.0):
        state, inputs, _ = made[0]
        made.append((dict(reversed(state.items())), dict(reversed(inputs.items())), strength))  # names in another order
    return made


EXERCISE = Exercise(
    goal="Smooth a block: fold the scales of its two layers into the norms before them.",
    reference=smooth_block, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-4,
    hints=(
        "qkv reads what ln1 gives, and fc1 what ln2 gives. The rest of the block stays as it is.",
        "For each of the two layers: `smooth_scales`, then `fold_into_norm`, then store its three results in a copy of the dict.",
    ),
    why="two folds for each block, and the model is ready for eight-bit activations.",
    mistakes=(
        Mistake("only qkv", edit('(("ln1", "attn.qkv"), ("ln2", "mlp.fc1"))', '(("ln1", "attn.qkv"),)'),
            cause="ln2 and fc1 did not change.",
            cure="Fold the scales of fc1 into ln2, too.", see="ln2 and mlp.fc1.weight unchanged"),
        Mistake("only fc1", edit('(("ln1", "attn.qkv"), ("ln2", "mlp.fc1"))', '(("ln2", "mlp.fc1"),)'),
            cause="ln1 and qkv did not change.",
            cure="Fold the scales of qkv into ln1, too.", see="ln1 and attn.qkv.weight unchanged"),
        Mistake("the norms exchanged", edit('(("ln1", "attn.qkv"), ("ln2", "mlp.fc1"))', '(("ln2", "attn.qkv"), ("ln1", "mlp.fc1"))'),
            cause="ln2 was divided by the scales of qkv, and ln1 by those of fc1.",
            cure="ln1 is before qkv, and ln2 before fc1.", see="the weights of both layers right, both norms wrong"),
        Mistake("strength 0.5 always", edit('state[f"{name}.weight"], strength)', 'state[f"{name}.weight"], 0.5)'),
            cause="The scales are those of strength 0.5, whatever strength is asked for.",
            cure="Hand the strength on.", see="right for strength 0.5 alone"),
        Mistake("the scales of qkv for both", edit('smooth_scales(inputs[name], state[f"{name}.weight"]', 'smooth_scales(inputs["attn.qkv"], state["attn.qkv.weight"]'),
            cause="ln2 and fc1 were folded with the scales of qkv.",
            cure="Each layer has its own scales.", see="ln1 and attn.qkv.weight right, ln2 and mlp.fc1.weight wrong"),
        Mistake("folded twice", edit("zip(parts, fold_into_norm(*(state[p] for p in parts), scale))", "zip(parts, fold_into_norm(*fold_into_norm(*(state[p] for p in parts), scale), scale))"),
            cause="Norms and weights contain each scale twice.",
            cure="Fold once.", see="all six arrays off by their scale once more"),
        Mistake("only the weights", edit("out[part] = w", "out[part] = w if part == parts[2] else out[part]"),
            cause="The columns of both layers were multiplied, and the norms were not divided.",
            cure="Store all three results of the fold.", see="both weights right, both norms unchanged"),
    ),
)
