"""The search for the scale of a block of Q4_0."""

from fractions import Fraction

import numpy as np

from ...lab import Exercise, Mistake, edit
from .weighted_scale import weighted_scale

TRIES = [8.0, *(x / 10 for x in range(71, 90) if x != 80)]  # what ggml tries, in its order


def search_scale(w, cost, tries):
    """The scale and the levels of blocks of Q4_0 with the smallest weighted
    error of all tries.

    w: (n, 32) float64, in each row a weight that is not 0; cost: (n, 32)
        float64, all above 0, what an error costs; tries: a list of
        floats from 7 to 9
    ->   scale: (n, 1) float64, right to 1e-9; levels: (n, 32) int8

    The extreme of a block is its weight of largest size, with its sign; of
    several the first. A try t rounds w × (-t / extreme) half to even and
    clips to -8 … 7: these are its levels. Its scale is ``weighted_scale``
    of them. Its error is the sum of cost × (w - scale × levels)². Each
    block takes the try with the smallest error; of equal errors the first
    in the list.
    """
    at = np.abs(w).argmax(axis=1, keepdims=True)
    extreme = np.take_along_axis(w, at, axis=1)  # (n, 1)
    scale, levels = np.zeros_like(extreme), np.zeros(w.shape, np.int8)
    best = np.full(extreme.shape, np.inf)
    for t in tries:
        q = np.rint(w * (-t / extreme)).clip(-8, 7).astype(np.int8)
        s = weighted_scale(w, q, cost)
        error = (cost * (w - s * q) ** 2).sum(axis=1, keepdims=True)
        better = error < best  # (n, 1) bool
        scale, levels = np.where(better, s, scale), np.where(better, q, levels)
        best = np.where(better, error, best)
    return scale, levels


def oracle(w, cost, tries):
    """Block by block, in Python's own numbers: levels as the docstring says, scales and errors in whole numbers.

    With up = Σ cost × w × level and down = Σ cost × level², the scale is up / down, and the error is what all tries
    have in common, Σ cost × w², less up² / down.
    """
    scales, chosen = [], []
    for row, weights in zip(w.tolist(), cost.tolist()):
        extreme = max(row, key=abs)  # the first of the largest
        costs, _ = _whole(weights)
        values, unit = _whole(row)
        products = [c * x for x, c in zip(values, costs)]
        best = None
        for t in tries:
            levels = [min(7, max(-8, round(x * (-t / extreme)))) for x in row]
            up = sum(product * q for product, q in zip(products, levels))
            down = sum(c * q * q for c, q in zip(costs, levels))
            gain = Fraction(up * up, down)
            if best is None or gain > best[0]:
                best = (gain, float(Fraction(up, down * unit)), levels)
        scales.append([best[1]])
        chosen.append(best[2])
    return np.array(scales), np.array(chosen, np.int8)


def _whole(values):
    """Numbers as whole numbers of one unit, and how many of these units are 1."""
    pairs = [x.as_integer_ratio() for x in values]
    unit = max(below for _, below in pairs)  # all are powers of two
    return [above * (unit // below) for above, below in pairs], unit


def _block(*first):
    """A block of 32 weights that begins with some and has zeros after them."""
    return [*first, *[0.0] * (32 - len(first))]


def cases(random):
    """One block with one try, two tries, none of them 8, an extreme below 0, two extremes in either order, unequal costs, several blocks, all tries."""

    def counted(*heavy):
        return [heavy[i] if i < len(heavy) else 1.0 for i in range(32)]

    ramp = [(i - 16) / 2 for i in range(32)]
    made = [
        ([_block(8, 3, -5.2)], [counted()], [8.0]),
        ([_block(-8, 3, 5.4, 1.5, 2.5)], [counted()], [8.0, 7.5]),
        ([_block(8, 3, -5, 1)], [counted()], [7.1, 8.9]),  # 8 would have no error, and is not in the list
        ([_block(4, -4, 1.2, 0.7)], [counted(1, 1, 9)], [8.0, 7.2, 8.8]),
        ([_block(-4, 4, 1.2, 0.7)], [counted(1, 1, 9)], [8.0, 7.2, 8.8]),
        ([ramp], [counted()], [8.0, 7.6]),
        ([[-x for x in ramp]], [counted(0.1)], [8.0, 7.6]),
        ([_block(1, 0.45, 0.3, -0.2), _block(-3, 2.8, 1.1)], [counted(0.5, 20), counted(1, 1, 6)], TRIES),
        ([_block(1, 0.45, 0.3, -0.2), _block(-3, 2.8, 1.1)], [counted(0.5, 20), counted(1, 1, 6)], TRIES[::-1]),
        ([_block(56), _block(0, 1, 2, 4)], [counted(), counted()], [7.0, 8.0, 9.0]),
        ([_block(56)], [counted()], [8.0, 7.0]),  # no error with either
    ]
    found = [(np.array(w, float), np.array(c, float), tries) for w, c, tries in made]
    for size, price in ((0.02, 1e-12), (3.0, 1e12)):  # errors near 0, and large ones
        found.append((size * random.normal(0, 1, (6, 32)), price * random.uniform(0.1, 1, (6, 32)) ** 3, TRIES))
    return found


EXERCISE = Exercise(
    goal="Try some scales for each block, fit each to its levels, and keep the try with the smallest weighted error.",
    reference=search_scale, oracle=oracle, cases=cases, minutes=11, difficulty="stretch", tolerance=1e-9,
    hints=(
        "For one try: levels, the scale that suits them, the error of each block. Then compare with the best error so far, block by block, and keep scale, levels and error where the new one is smaller.",
        "`argmax` and `np.take_along_axis` find the extreme, as in lab 15; `np.rint` and `clip` make levels. `np.where(better, new, old)` chooses row by row if `better` has the shape (n, 1).",
    ),
    why="this is the search that ggml makes for Q4_0 where it has an importance matrix.",
    mistakes=(
        Mistake("the last try", edit("error < best", "error < np.inf"),
            cause="Each block has the scale and the levels of the last try.",
            cure="Compare the errors, and keep the better try.", see="right where there is one try"),
        Mistake("the worst try", edit("error < best", "error > best").edit("np.full(extreme.shape, np.inf)", "np.full(extreme.shape, -1.0)"),
            cause="Each block has the try with the largest error.",
            cure="Keep the smallest error.", see="right where there is one try"),
        Mistake("one choice for all blocks", edit("error < best", "(error.sum() < best.sum()) & (error < np.inf)"),
            cause="All blocks changed to a new try together.",
            cure="Compare block by block: the sums have a row for each.", see="right for one block"),
        Mistake("the last of equal tries", edit("error < best", "error <= best"),
            cause="Of several tries with the same error, the last one was kept.",
            cure="Use `<`: a later try must be better.", see="right, except where two tries are equally good"),
        Mistake("equal costs in the choice", edit("(cost * (w - s * q) ** 2)", "((w - s * q) ** 2)"),
            cause="The scale of each try is right, but the tries were compared by the plain squared error.",
            cure="Multiply the squared errors by their costs.", see="right where the costs are equal, or where there is one try"),
        Mistake("equal costs in the fit", edit("weighted_scale(w, q, cost)", "weighted_scale(w, q, np.ones_like(w))"),
            cause="The scale of each try was fitted as if all errors cost the same.",
            cure="Pass the costs to `weighted_scale`.", see="right where the costs are equal"),
        Mistake("not fitted", edit("weighted_scale(w, q, cost)", "extreme / -t"),
            cause="The scale of a try is -extreme / t, the one that made the levels. Another one suits the levels better.",
            cure="Use `weighted_scale`.", see="right levels in places, and scales that are a little off"),
        Mistake("the sign of the extreme lost", edit("np.take_along_axis(w, at, axis=1)", "np.abs(w).max(axis=1, keepdims=True)"),
            cause="The extreme lost its sign, so a block whose extreme is below 0 sends it to 7 and not to -8.",
            cure="Take the weight itself, with its sign.", see="right where the extreme is positive"),
        Mistake("the largest instead of the extreme", edit("np.take_along_axis(w, at, axis=1)", "np.where(w.max(axis=1, keepdims=True) > 0, w.max(axis=1, keepdims=True), 1.0)"),
            cause="`w.max()` is the largest weight, and the extreme may be below 0.",
            cure="Look for the extreme in `np.abs(w)`.", see="right where the extreme is positive"),
        Mistake("the extreme at the other end", edit("(-t / extreme)", "(t / extreme)"),
            cause="The extreme goes to 7 or beyond, where it is clipped. The range has one more level below 0.",
            cure="Multiply by -t / extreme.", see="every level with the other sign, and scales with the other sign"),
        Mistake("clipped at -7", edit("clip(-8, 7)", "clip(-7, 7)"),
            cause="Levels go from -8 to 7; you left out -8.",
            cure="Clip to -8 … 7.", see="-7 where -8 is expected"),
        Mistake("cut off", edit("np.rint(w * (-t / extreme))", "np.trunc(w * (-t / extreme))"),
            cause="The digits after the point were cut off.",
            cure="Round, with `np.rint`.", see="levels that are too close to 0"),
        Mistake("rounded half up", edit("np.rint(w * (-t / extreme))", "np.floor(w * (-t / extreme) + 0.5)"),
            cause="A half went up always; `np.rint` takes it to the even side.",
            cure="Use `np.rint`.", see="right, except where a weight is exactly half a step"),
        Mistake("converted before it was clipped", edit(".clip(-8, 7).astype(np.int8)", ".astype(np.int8).clip(-8, 7) % 16 - 8"),
            cause="The levels were shifted by 8: 0 to 15 wrapped around.",
            cure="Clip to -8 … 7, and leave the levels signed.", see="levels that are off by 8"),
        Mistake("levels of the first try", edit("np.where(better, q, levels)", "np.where(np.isinf(best), q, levels)"),
            cause="The scale is that of the best try, and the levels are those of the first one.",
            cure="Keep the levels together with their scale.", see="scales right, levels right where the first try is best"),
        Mistake("scale and levels exchanged", edit("return scale, levels", "return levels, scale"),
            cause="The levels came first.",
            cure="Return the scale first.", see="two arrays of unexpected shapes"),
    ),
)
