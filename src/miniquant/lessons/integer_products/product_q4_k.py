"""Rows of Q4_K times a row of Q8_K."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def product_q4_k(w, x):
    """A matrix of Q4_K times a vector of Q8_K.

    w: dict of the parts of its super-blocks: "d" and "dmin", (rows, blocks)
        float64; "scales" and "mins", (rows, blocks, 8) uint8; "q", (rows,
        blocks, 8, 32) uint8: weight i of sub-block j is d × scales[j] ×
        q[j, i] - dmin × mins[j]
    x: dict of the parts of its super-blocks: "d", (blocks,) float32; "q",
        (blocks, 256) int8; "sums", (blocks, 16) int16, each of 16
        neighbouring q
    ->   (rows,) float64, right to 1e-6: the sums of products of integers,
         times scales and d; the mins times the sums; the super-blocks of a
         row added
    """
    x_q = x["q"].reshape(-1, 8, 32)  # (blocks, 8, 32)
    dots = (w["q"].astype(np.int32) * x_q).sum(axis=-1)  # (rows, blocks, 8)
    sums = x["sums"].reshape(-1, 8, 2).sum(axis=-1)  # (blocks, 8)
    scaled = w["d"] * (w["scales"] * dots).sum(axis=-1)  # (rows, blocks)
    least = w["dmin"] * (w["mins"] * sums).sum(axis=-1)
    return ((scaled - least) * x["d"]).sum(axis=-1)


def oracle(w, x):
    """Weight by weight, in Python's own arithmetic."""
    found = []
    for row in range(len(w["d"])):
        total = 0.0
        for b in range(len(x["d"])):
            d, dmin, e = float(w["d"][row, b]), float(w["dmin"][row, b]), float(x["d"][b])
            for j in range(8):
                scale, least = int(w["scales"][row, b, j]), int(w["mins"][row, b, j])
                whole = count = 0
                for i in range(32):
                    number = int(x["q"][b, 32 * j + i])
                    whole += int(w["q"][row, b, j, i]) * number
                    count += number
                total += e * (d * scale * whole - dmin * least * count)
        found.append(total)
    return np.array(found)


def _weights(random, rows, blocks, *, d=1.0, dmin=1.0, top=63):
    return {
        "d": np.full((rows, blocks), d) * np.exp2(random.integers(-2, 1, (rows, blocks))),
        "dmin": np.full((rows, blocks), dmin) * np.exp2(random.integers(-2, 1, (rows, blocks))),
        "scales": random.integers(0, top + 1, (rows, blocks, 8)).astype(np.uint8),
        "mins": random.integers(0, top + 1, (rows, blocks, 8)).astype(np.uint8),
        "q": random.integers(0, 16, (rows, blocks, 8, 32)).astype(np.uint8),
    }


def _activations(d, q):
    q = np.array(q, np.int8)
    return {"d": np.array(d, np.float32), "q": q, "sums": q.reshape(-1, 16, 16).sum(axis=2, dtype=np.int16)}


def cases(random):
    """One sub-block without a min, a min alone, two sub-blocks, large sums, two super-blocks, several rows, random."""

    def one(scales, mins, q, d=1.0, dmin=1.0):
        full = np.zeros((8, 32), np.uint8)
        for j, numbers in q.items():
            full[j, : len(numbers)] = numbers
        pad = [0] * 8
        return {
            "d": np.array([[d]]),
            "dmin": np.array([[dmin]]),
            "scales": np.array([[(scales + pad)[:8]]], np.uint8),
            "mins": np.array([[(mins + pad)[:8]]], np.uint8),
            "q": full[None, None],
        }

    def row(numbers):
        full = [0] * 256
        for at, number in numbers.items():
            full[at] = number
        return [full]

    drawn = _weights(random, 3, 3, d=0.7, dmin=0.3)
    drawn["d"][:2, 1] = 0
    numbers = random.integers(-127, 128, (3, 256))
    numbers[0] = 0
    small = {"d": 2.0**-6, "dmin": 2.0**-6}
    return [
        (one([2], [], {0: [3, 1]}), _activations([0.5], row({0: 4, 1: -1}))),
        (one([], [0, 3], {}, dmin=0.25), _activations([2.0], row({32: 5, 48: 7, 5: 100}))),
        (one([1, 10], [2, 1], {0: [5], 1: [0, 7]}, d=0.5, dmin=2.0), _activations([-1.0], row({0: 3, 33: 2, 63: -4}))),
        (one([63] * 8, [63] * 8, {j: [15] * 32 for j in range(8)}, **small), _activations([0.25], [[*[127] * 255, 126]])),
        (_weights(random, 1, 2, **small), _activations([0.5, -0.125], random.integers(-127, 128, (2, 256)))),
        (_weights(random, 4, 1, **small), _activations([0.0625], random.integers(-127, 128, (1, 256)))),
        (drawn, _activations([0.0, 0.03, 0.02], numbers)),
    ]


_DOTS = '(w["q"].astype(np.int32) * x_q).sum(axis=-1)'
_SUMS = 'x["sums"].reshape(-1, 8, 2).sum(axis=-1)'
_RETURN = '((scaled - least) * x["d"]).sum(axis=-1)'

EXERCISE = Exercise(
    goal="Multiply super-blocks of Q4_K with super-blocks of Q8_K: integers in each sub-block, then scales, mins and sums.",
    reference=product_q4_k, oracle=oracle, cases=cases, minutes=10, difficulty="stretch", tolerance=1e-6,
    hints=(
        "Take one sub-block: it adds d × scale × (sum of q times the activations) and takes away dmin × min × (sum of the activations). The sum of 32 activations is there already, in two parts of 16.",
        "`.reshape(-1, 8, 32)` gives the activations the shape of the weights, `.reshape(-1, 8, 2)` puts two sums beside each other. Cast to int32 before you multiply. With axis=-1 the last axis is added up, and numpy repeats arrays of the activations for every row.",
    ),
    why="for each weight one product of integers, for each 32 of them a scale, and for 256 of them two products of floats.",
    mistakes=(
        Mistake("the mins added", edit("scaled - least", "scaled + least"),
            cause="The mins were added, as in Q4_1. In a K-quant dmin × min is taken away.",
            cure="Subtract them.", see="right where there is no min"),
        Mistake("the mins forgotten", edit("(scaled - least)", "scaled"),
            cause="The mins were left out.",
            cure="Subtract dmin × min × the sum of the activations.", see="right where there is no min"),
        Mistake("the scales forgotten", edit('(w["scales"] * dots)', "dots"),
            cause="The scale of each sub-block was left out.",
            cure="Multiply the sum of each sub-block by its own scale.", see="right where the scales are 1"),
        Mistake("d of the activations forgotten", edit('(scaled - least) * x["d"]', "(scaled - least)"),
            cause="The d of the activations was left out.",
            cure="Multiply by it; the mins need it, too.", see="right where that d is 1"),
        Mistake("mins without the scale of the activations", edit('((scaled - least) * x["d"])', '(scaled * x["d"] - least)'),
            cause="The sums of Q8_K are sums of integers, so the mins must be multiplied by the d of the activations as well.",
            cure="Multiply the difference by d.", see="right where that d is 1 or there is no min"),
        Mistake("mins with d", edit('w["dmin"] * (w["mins"]', 'w["d"] * (w["mins"]'),
            cause="The mins were multiplied by d; they have a number of their own, dmin.",
            cure="Use dmin.", see="right where d and dmin are equal"),
        Mistake("scales with dmin", edit('w["d"] * (w["scales"]', 'w["dmin"] * (w["scales"]'),
            cause="The scales were multiplied by dmin.",
            cure="Use d.", see="right where d and dmin are equal"),
        Mistake("half of the sums", edit(_SUMS, 'x["sums"].reshape(-1, 8, 2)[..., 0]'),
            cause="Only the first of the two sums of a sub-block was used.",
            cure="A sub-block has 32 weights: add two sums of 16.", see="right where the second 16 activations are 0"),
        Mistake("sums in two halves", edit("x[\"sums\"].reshape(-1, 8, 2).sum(axis=-1)", "x[\"sums\"].reshape(-1, 2, 8).sum(axis=1)"),
            cause="Sum j was added to sum j + 8. The two sums of a sub-block are neighbours.",
            cure="Reshape to (-1, 8, 2).", see="right where all sums are equal"),
        Mistake("the sum of the whole block", edit(_SUMS, 'np.repeat(x["sums"].sum(axis=-1, keepdims=True), 8, axis=-1)'),
            cause="Each min was multiplied by the sum of all 256 activations.",
            cure="Use the sum of its own sub-block.", see="right where there is no min"),
        Mistake("activations in another order", edit('x["q"].reshape(-1, 8, 32)', 'x["q"].reshape(-1, 32, 8).swapaxes(1, 2)'),
            cause="Every eighth activation was put into a sub-block, not 32 neighbours.",
            cure="Reshape to (-1, 8, 32).", see="right where all activations are equal"),
        Mistake("sums in uint8", edit(_DOTS, '(w["q"] * x_q.view(np.uint8)).sum(axis=-1, dtype=np.int64)'),
            cause="The products were made in uint8, and wrapped around.",
            cure="Cast to int32, and keep the signs of the activations.", see="right for small products of positive numbers"),
        Mistake("8 subtracted", edit('w["q"].astype(np.int32)', '(w["q"].astype(np.int32) - 8)'),
            cause="8 was subtracted from the integers; in Q4_K they go from 0 to 15.",
            cure="Use them as they are.", see="wrong wherever a scale is not 0"),
        Mistake("the min for each weight", edit('(w["mins"] * sums)', '(32 * w["mins"].astype(int) * sums)'),
            cause="Each min was counted 32 times; the sum counts all weights already.",
            cure="Multiply by the sum once.", see="right where there is no min"),
        Mistake("a number for each block", edit(_RETURN, _RETURN.removesuffix(".sum(axis=-1)")),
            cause="The super-blocks were not added up.",
            cure="Add them along the last axis.", see="the shape (rows, blocks)"),
    ),
)
