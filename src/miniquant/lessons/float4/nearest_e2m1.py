"""Weights as floats of four bits."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from .e2m1_values import e2m1_values


def nearest_e2m1(x, scale):
    """The code whose value times the scale is nearest to each weight.

    x: (n, k) float32, of a size of at most 1e7 times the scale if that is
        not 0; scale: (n, 1) float32, 0 or more, one for each row
    ->   (n, k) uint8, codes of E2M1; of two products that are equally near,
         the one of smaller size; a product of 0 is always code 0, never 8
    """
    values = e2m1_values(np.arange(16, dtype=np.uint8))  # (16,)
    products = scale[:, :, None] * values  # (n, 1, 16)
    return np.abs(products - x[:, :, None]).argmin(axis=2).astype(np.uint8)


def oracle(x, scale):
    """Weight by weight in Python's own arithmetic: among all codes, the smallest distance, then the smallest size."""
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    found = []
    for row, (s,) in zip(x.tolist(), scale.tolist()):
        codes = []
        for w in row:
            at = min(range(8), key=lambda i: (abs(sizes[i] * s - abs(w)), sizes[i] * s))
            codes.append(at + 8 if w < 0 and sizes[at] * s > 0 else at)
        found.append(codes)
    return np.array(found, np.uint8).reshape(x.shape)


def cases(random):
    """Near a value, negative, halfway, beyond the largest, another scale, a scale of 0, then random weights."""
    made = [
        ([[0.9, 3.2]], [[1]]),
        ([[-1.4, -5.5, -0.1]], [[1]]),
        ([[0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]], [[1]]),
        ([[-0.25, -0.75, -1.25, -1.75, -2.5, -3.5, -5]], [[1]]),
        ([[6.5, -7.9, 100, -1e6]], [[1]]),
        ([[0.9, 3.2, -12, 5]], [[2]]),
        ([[0, 0.5, -0.5, -0.0]], [[0]]),
        ([[5, -1, 2], [1, 2, -3], [1, 2, -3], [0.25, -0.375, 0.0625]], [[0], [1], [0.5], [0.0625]]),
        ([[0.3], [-0.01]], [[0.125], [0.0078125]]),
        ([[1.5e-25, -3.9e-25, 1e-26]], [[1e-25]]),  # whose squares float32 cannot hold
    ]
    w = random.normal(0, 0.05, (6, 32)).astype(np.float32)
    e = np.exp2(np.floor(np.log2(np.abs(w).max(axis=1, keepdims=True))) - 2).astype(np.float32)
    d = np.float32([[0.013671875], [0.01953125], [0.0234375]])
    return [
        *((np.array(x, np.float32), np.array(s, np.float32)) for x, s in made),
        (w, e),
        (random.normal(0, 0.05, (3, 16)).astype(np.float32), d),
    ]


def traits(x, scale):
    """What is special about the quotients x / scale."""
    size = np.abs(x) / np.where(scale == 0, np.float32(np.inf), scale)
    halfway = np.isin(size, [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5])
    return {
        "a weight is halfway between two values": bool(halfway.any()),
        "a weight lies beyond 6 times the scale": bool((size > 6).any()),
        "a scale is 0": bool((scale == 0).any()),
        "a scale is not 1": bool((scale != 1).any()),
        "a weight is negative": bool((x < 0).any()),
        "there is more than one row": len(x) > 1,
    }


_RETURN = "np.abs(products - x[:, :, None]).argmin(axis=2)"

EXERCISE = Exercise(
    goal="Round weights to the nearest of sixteen values, each times the scale of its row.",
    reference=nearest_e2m1, oracle=oracle, cases=cases, minutes=8, difficulty="core", traits=traits,
    hints=(
        "Sixteen products for each row, and the distance of each weight to all sixteen: that is an array of three axes, (n, k, 16). The code is the place of the smallest distance on the last axis.",
        "`[:, :, None]` adds the third axis to `x` and to `scale`. `argmin(axis=2)` takes the first of equal distances, and in the order of the codes the smaller size comes first.",
    ),
    why="rounding to any sixteen levels is a search for the nearest; even levels only make it faster.",
    mistakes=(
        Mistake("halves away from zero", body("""
                values = e2m1_values(np.arange(7, -1, -1, dtype=np.uint8))
                at = 7 - np.abs(scale[:, :, None] * values - np.abs(x)[:, :, None]).argmin(axis=2)
                at = np.where(scale == 0, 0, at)
                return (at + 8 * ((x < 0) & (at > 0))).astype(np.uint8)
            """),
            cause="Of two values that are equally near, you took the one of larger size.",
            cure="Take the smaller one: in the order of the codes it comes first.", see="code 1 for 0.25, and code 2 for 0.75"),
        Mistake("halves to the even code", body("""
                sizes = e2m1_values(np.arange(8, dtype=np.uint8)) * scale[:, :, None]
                distance = np.abs(sizes - np.abs(x)[:, :, None])
                first = distance.argmin(axis=2)
                last = 7 - distance[:, :, ::-1].argmin(axis=2)
                at = np.where((last > first) & (first % 2 == 1) & (scale > 0), last, first)
                return (at + 8 * ((x < 0) & (at > 0))).astype(np.uint8)
            """),
            cause="Of two values that are equally near, you took the one whose mantissa is 0. That is the usual rule for floats, and ggml has another.",
            cure="Take the smaller one.", see="code 2 for 0.75, and code 0 for 0.25, as expected"),
        Mistake("the scale forgotten", edit("scale[:, :, None] * values", "(1 + 0 * scale[:, :, None]) * values"),
            cause="The weights were compared with the values themselves.",
            cure="Multiply the values by the scale of the row.", see="right where the scale is 1"),
        Mistake("divided by the scale", edit("scale[:, :, None] * values", "values / np.where(scale > 0, scale, 1)[:, :, None]"),
            cause="The values were divided by the scale, and a weight is a value times the scale.",
            cure="Multiply the values by the scale.", see="right where the scale is 1"),
        Mistake("the sign forgotten", edit("x[:, :, None]", "np.abs(x)[:, :, None]"),
            cause="The sizes of the weights were rounded, and their signs are lost.",
            cure="Compare each weight itself with all sixteen products.", see="no code above 7"),
        Mistake("always down", body("""
                sizes = e2m1_values(np.arange(8, dtype=np.uint8)) * scale[:, :, None]
                at = (sizes <= np.abs(x)[:, :, None]).sum(axis=2) - 1
                at = np.where(scale > 0, at, 0)
                return (at + 8 * ((x < 0) & (at > 0))).astype(np.uint8)
            """),
            cause="You took the largest value that is not larger than the weight.",
            cure="Take the nearest one.", see="about half of the codes one too small"),
        Mistake("minus zero", body("""
                values = e2m1_values(np.arange(8, dtype=np.uint8))
                at = np.abs(scale[:, :, None] * values - np.abs(x)[:, :, None]).argmin(axis=2)
                return (at + 8 * (x < 0)).astype(np.uint8)
            """),
            cause="A negative weight that is rounded to 0 became code 8, and 0 is code 0 here.",
            cure="Search among all sixteen codes, or add 8 only to codes above 0.", see="code 8 for -0.1"),
        Mistake("the farthest", edit("argmin", "argmax"),
            cause="You took the code with the largest distance.",
            cure="Use `argmin`.", see="codes 7 and 15 only"),
        Mistake("distances with a sign", edit("np.abs(products - x[:, :, None])", "(products - x[:, :, None])"),
            cause="A distance below zero counts as the smallest, so every weight gets the smallest product.",
            cure="Take `np.abs` of the difference.", see="code 15 everywhere, for a scale above 0"),
        Mistake("the values instead of the codes", edit(_RETURN, "values[np.abs(products - x[:, :, None]).argmin(axis=2)]"),
            cause="The values were returned, as uint8, and the codes are asked for.",
            cure="Return what `argmin` gives.", see="6 where code 7 is expected"),
        Mistake("the first row's scale", edit("scale[:, :, None]", "scale[:1, :, None]"),
            cause="All rows were rounded with the scale of the first.",
            cure="Each row has its own scale: `scale[:, :, None]`.", see="right for one row"),
        Mistake("int64", edit(".astype(np.uint8)", ""),
            cause="`argmin` gives int64.",
            cure="Convert with `.astype(np.uint8)`.", see="the dtype int64"),
    ),
)
