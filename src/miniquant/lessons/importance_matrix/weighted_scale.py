"""The scale that suits given levels best, where some errors cost more."""

from fractions import Fraction

import numpy as np

from ...lab import Exercise, Mistake, edit


def weighted_scale(w, q, cost):
    """The scale that suits given levels best, where an error costs more in
    some weights than in others.

    w: (n, k) float64; q: (n, k) int8 from -8 to 7, the levels; cost:
        (n, k) float64, all above 0, what an error costs
    ->   (n, 1) float64: for each block the scale with the smallest sum of
         cost × (w - scale × q)², right to 1e-9; it may be negative; 0
         where all levels of a block are 0
    """
    up = (cost * w * q).sum(axis=1, keepdims=True)  # (n, 1)
    down = (cost * q * q).sum(axis=1, keepdims=True)
    return np.divide(up, down, out=np.zeros_like(up), where=down > 0)


def oracle(w, q, cost):
    """In exact fractions, block by block."""
    found = []
    for row, levels, weights in zip(w.tolist(), q.tolist(), cost.tolist()):
        triples = [(Fraction(a), b, Fraction(c)) for a, b, c in zip(row, levels, weights)]
        down = sum(c * b * b for _, b, c in triples)
        found.append([float(sum(c * a * b for a, b, c in triples) / down) if down else 0.0])
    return np.array(found)


def cases(random):
    """Two weights, equal costs, one large cost, two blocks, below 0, levels of 0, one weight, then random blocks."""

    def case(w, q, cost):
        return np.array(w, float), np.array(q, np.int8), np.array(cost, float)

    w, cost = random.normal(0, 0.1, (12, 32)), random.uniform(0.1, 4, (12, 32))
    return [
        case([[1, 3]], [[1, 2]], [[1, 2]]),
        case([[1, 2, 4]], [[1, 2, 3]], [[1, 1, 1]]),
        case([[1, 0.5, -2]], [[2, 1, -3]], [[1 / 128, 1 / 8, 1 / 256]]),
        case([[1, 3], [2, -1]], [[1, 2], [3, -1]], [[1, 2], [4, 0.5]]),
        case([[4, -1, 2.5]], [[-8, 2, -5]], [[1, 3, 2]]),
        case([[0.5, 0.25], [1, 2]], [[0, 0], [4, 7]], [[1, 2], [3, 1]]),
        case([[0.75], [-3]], [[3], [-8]], [[2], [1e-60]]),
        (w, np.clip(np.rint(w / 0.03), -8, 7).astype(np.int8), cost),
    ]


EXERCISE = Exercise(
    goal="For levels that are chosen already, find the scale with the smallest weighted error.",
    reference=weighted_scale, oracle=oracle, cases=cases, minutes=6, difficulty="core", tolerance=1e-9,
    hints=(
        "The error is a sum of squares in the scale: a parabola. Its lowest point is where the derivative is 0, and that is an equation with one unknown.",
        "Two sums along `axis=1, keepdims=True`, one divided by the other. `np.divide` with `out` and `where` leaves 0 where there is nothing to divide by.",
    ),
    why="whatever levels a search tries, one division gives the best scale for them.",
    mistakes=(
        Mistake("all weights alike", edit("cost * w * q", "w * q").edit("cost * q * q", "1.0 * q * q"),
            cause="The scale is the best one if all errors cost the same.",
            cure="Multiply by the costs in both sums.", see="right where the costs are equal"),
        Mistake("weighted above only", edit("cost * q * q", "1.0 * q * q"),
            cause="The costs are in the upper sum and not in the lower one.",
            cure="Multiply by the costs in both sums.", see="right where every cost is 1"),
        Mistake("weighted below only", edit("cost * w * q", "w * q"),
            cause="The costs are in the lower sum and not in the upper one.",
            cure="Multiply by the costs in both sums.", see="right where every cost is 1, and too large where the costs are small"),
        Mistake("the weights in the lower sum", edit("cost * q * q", "cost * w * w").edit("where=down > 0", "where=(q != 0).any(axis=1, keepdims=True)"),
            cause="The lower sum has the squares of the weights; that is the scale from weights to levels.",
            cure="Put the squares of the levels into it.", see="about one over the scale"),
        Mistake("a mean of ratios", edit("up = (cost * w * q)", "up = (cost * np.divide(w, q, out=np.zeros_like(w), where=q != 0))").edit("cost * q * q", "cost * (q != 0)"),
            cause="The ratios w / q were averaged. A weight at level 1 then has as much to say as one at level -8.",
            cure="Divide the sum of cost × w × q by that of cost × q × q.", see="right where all weights are on one line"),
        Mistake("sums of w and of q", edit("cost * w * q", "cost * w").edit("cost * q * q", "cost * np.abs(q)").edit("    return", "    up = up * np.sign(down)\n    return"),
            cause="Weights and levels were added up without multiplying them; weights of both signs cancel.",
            cure="The derivative has w × q above and q × q below.", see="wrong wherever the weights are not exactly on a line"),
        Mistake("the costs squared", edit("cost * w * q", "cost**2 * w * q").edit("cost * q * q", "cost**2 * q * q"),
            cause="The costs were squared. They belong to the squared error already.",
            cure="Use them as they are.", see="right where the costs are equal"),
        Mistake("the extreme decides", edit("    return", "    at = np.abs(q).argmax(axis=1)[:, None]\n    up, down = np.take_along_axis(w, at, 1), np.take_along_axis(q, at, 1).astype(float)\n    down, up = np.abs(down), up * np.sign(down)\n    return"),
            cause="The scale makes the weight with the largest level exact, and no other weight has a say.",
            cure="Use all weights: two sums.", see="right for blocks of one weight"),
        Mistake("one scale for all blocks", edit("(cost * w * q).sum(axis=1, keepdims=True)", "np.full((len(w), 1), (cost * w * q).sum())").edit("(cost * q * q).sum(axis=1, keepdims=True)", "np.full((len(w), 1), (cost * q * q).sum())"),
            cause="The sums go over all blocks.",
            cure="Sum along `axis=1`, block by block.", see="right for one block, the same number in every block for more"),
        Mistake("not a number for levels of 0", edit("np.divide(up, down, out=np.zeros_like(up), where=down > 0)", "up / down"),
            cause="Where all levels are 0, you divided 0 by 0.",
            cure="Leave 0 there: `np.divide` with `out` and `where`.", see="`nan` where 0 is expected"),
        Mistake("rows instead of columns", edit("    return np.divide(up, down, out=np.zeros_like(up), where=down > 0)", "    return np.divide(up, down, out=np.zeros_like(up), where=down > 0)[:, 0]"),
            cause="The result has one axis.",
            cure="Keep the axis, with `keepdims=True`.", see="the shape (n,) where (n, 1) is expected"),
        Mistake("float32", edit("    return np.divide(up, down, out=np.zeros_like(up), where=down > 0)", "    return np.divide(up, down, out=np.zeros_like(up), where=down > 0).astype(np.float32)"),
            cause="The result is float32.",
            cure="Leave it float64.", see="the dtype float32"),
    ),
)
