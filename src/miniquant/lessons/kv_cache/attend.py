"""Attention of one token, from a cache."""

import math

import numpy as np

from ...lab import Exercise, Mistake, edit
from ...models.numpy_gpt import softmax
from .restore_along import restore_along
from .toys import quantized_by_hand


def attend(q, groups, recent, values):
    """What one token gathers from the tokens in the cache, itself included.

    q: (heads, dims) float32, its query; groups, recent: the keys, as
        ``append_key`` keeps them, and one of the two may be empty; values:
        (tokens, heads, dims) float32, one for each key, the oldest first;
        there is at least one token
    ->   (heads, dims) float32, each number right to 1e-4: in each head, the
         sum of the values, weighted by the softmax over all tokens of
         key · q / √dims
    """
    keys = np.concatenate([*(restore_along(*group) for group in groups), recent])
    scores = (keys * q).sum(axis=2) / math.sqrt(q.shape[1])  # (tokens, heads)
    weights = softmax(scores.T).T  # (tokens, heads), 1 in each head together
    return (weights[:, :, None] * values).sum(axis=0)


def oracle(q, groups, recent, values):
    """Head by head, token by token, in Python's own floats."""
    keys = []
    for levels, scale, low in groups:
        wide = [np.broadcast_to(part, levels.shape).tolist() for part in (levels, scale, low)]
        for t in range(len(levels)):
            keys.append([[a * b + c for a, b, c in zip(*(part[t][h] for part in wide))] for h in range(q.shape[0])])
    keys += recent.tolist()
    found = []
    for h, query in enumerate(q.tolist()):
        scores = [sum(a * b for a, b in zip(key[h], query)) / len(query) ** 0.5 for key in keys]
        powers = [math.exp(score - max(scores)) for score in scores]
        parts = [power / sum(powers) for power in powers]
        rows = values[:, h].tolist()
        found.append([math.fsum(p * row[d] for p, row in zip(parts, rows)) for d in range(len(query))])
    return np.array(found, np.float64).astype(np.float32)


def cases(random):
    """One token, two alike, one that counts more, two heads, a group, a group and recent ones, large scores, then drawn tokens."""

    def array(numbers):
        return np.array(numbers, np.float32)

    def keys(groups, recent, heads, dims, size, bits=4):
        made = [quantized_by_hand(random.normal(0, 1.5, (size, heads, dims)).astype(np.float32), 0, bits) for _ in range(groups)]
        return made, random.normal(0, 1.5, (recent, heads, dims)).astype(np.float32)

    def near(far):
        """Keys of three tokens: in the first head one that is far from two others, which are near each other."""
        return array([[[far, 0, 0, 0], [1, 0, 0, 0]], [[9, 0, 0, 0], [0, 0, 0, 0]], [[9 - 2**-9, 0, 0, 0], [0.5, 0, 0, 0]]])

    none = np.zeros((0, 1, 4), np.float32)
    three = array([[[1, 0, 0, 0], [0, 0, 2, 0]], [[0, 1, 0, 0], [0, 0, 0, 3]], [[0, 0, 1, 0], [1, 1, 0, 0]]])
    group = quantized_by_hand(array([[[0, 0, 0, 0]], [[3, 3, 0, 0]]]), 0, 4)
    found = [
        (array([[1, 2, 0, 1]]), [], array([[[3, 1, 0, 2]]]), array([[[5, 6, 7, 8]]])),
        (array([[1, 0, 0, 0]]), [], array([[[0, 2, 0, 0]], [[0, 5, 1, 0]]]), array([[[2, 0, 0, 4]], [[4, 8, 0, 0]]])),
        (array([[2, 0, 0, 0]]), [], array([[[1, 0, 0, 0]], [[0, 0, 0, 0]]]), array([[[1, 0, 0, 0]], [[0, 1, 0, 0]]])),
        (array([[2, 0, 0, 0], [0, 2, 0, 0]]), [], array([[[1, 0, 0, 0], [0, 0, 0, 0]], [[0, 0, 0, 0], [0, 1, 0, 0]]]),
         array([[[1, 0, 0, 0], [2, 0, 0, 0]], [[0, 1, 0, 0], [0, 2, 0, 0]]])),
        (array([[1, 0.5, 0, 0]]), [group], none, array([[[1, 0, 0, 2]], [[0, 1, 3, 0]]])),
        (array([[1, 0.5, 0, 0]]), [group], array([[[2, 0, 1, 0]]]), array([[[1, 0, 0, 2]], [[0, 1, 3, 0]], [[7, 7, 7, 7]]])),
        (array([[800, 0, 0, 0], [2, 0, 0, 0]]), [], near(0), three),
        (array([[-800, 0, 0, 0], [2, 0, 0, 0]]), [], near(18), three),
    ]
    for groups, recent, heads, dims, size in ((2, 3, 2, 16, 4), (1, 0, 4, 8, 5), (0, 6, 3, 4, 8), (3, 1, 4, 4, 4)):
        kept, left = keys(groups, recent, heads, dims, size)
        tokens = groups * size + recent
        values = random.normal(0, 1, (tokens, heads, dims)).astype(np.float32)
        found.append((random.normal(0, 1.5, (heads, dims)).astype(np.float32), kept, left, values))
    found[-1][2][:] = 0  # a recent key of zeros
    return found


def traits(q, groups, recent, values):
    """What the cache holds."""
    keys = np.concatenate([*(restore_along(*group) for group in groups), recent])
    scores = (keys * q).sum(axis=2) / math.sqrt(q.shape[1])
    return {
        "there are quantized groups": bool(groups),
        "there are recent keys after quantized groups": bool(groups) and len(recent) > 0,
        "there is one token": len(values) == 1,
        "there is more than one head": len(q) > 1,
        "a score has a size above 88": bool((np.abs(scores) > 88).any()),  # exp of 89 is infinite in float32
    }


EXERCISE = Exercise(
    goal="Compute the attention of one token from a cache: quantized keys, recent keys, and values.",
    reference=attend, oracle=oracle, cases=cases, minutes=8, difficulty="core", tolerance=1e-4, traits=traits,
    hints=(
        "First bring all keys into one array, the oldest first. Then there is a score for each token and head, a softmax over the tokens, and a weighted sum of the values.",
        "`np.concatenate` takes a list with the restored groups and the recent keys. Keys times q, with `.sum(axis=2)` after it, is the product of each key with the query of its head. `softmax` works along the last axis, so turn the tokens there with `.T`, and back. `[:, :, None]` makes the weights fit to the values.",
    ),
    why="the model never sees the keys as they were: what it attends to is what your cache gives back.",
    mistakes=(
        Mistake("not divided by the root", edit(" / math.sqrt(q.shape[1])", ""),
            cause="The scores were not divided by √dims, so the softmax is too sharp.",
            cure="Divide by `math.sqrt(q.shape[1])`.", see="right for one token and for equal scores"),
        Mistake("divided by dims", edit("math.sqrt(q.shape[1])", "q.shape[1]"),
            cause="The scores were divided by dims, and not by its root.",
            cure="Divide by `math.sqrt(q.shape[1])`.", see="weights that are too even"),
        Mistake("the root of the heads", edit("math.sqrt(q.shape[1])", "math.sqrt(q.shape[0])"),
            cause="The scores were divided by the root of the number of heads.",
            cure="Divide by the root of dims, `q.shape[1]`.", see="right where there are as many heads as dims"),
        Mistake("a softmax over the heads", edit("softmax(scores.T).T", "softmax(scores)"),
            cause="The softmax goes over the heads, and each head needs one over the tokens.",
            cure="Turn the scores with `.T` before the softmax, and back after it.", see="the sum of all values where there is one head"),
        Mistake("one softmax for all heads", edit("softmax(scores.T).T", "softmax(scores.reshape(-1)).reshape(scores.shape)"),
            cause="One softmax goes over all tokens and heads, so the weights of all heads are 1 together.",
            cure="Take a softmax for each head, over its tokens.", see="right for one head, too small for more"),
        Mistake("the recent keys first", edit("[*(restore_along(*group) for group in groups), recent]", "[recent, *(restore_along(*group) for group in groups)]"),
            cause="The recent keys were put before the groups, so keys and values do not belong together.",
            cure="The groups are older: put them first.", see="right where there are only groups or only recent keys"),
        Mistake("the recent keys forgotten", edit("    scores =", "    keys = np.where(np.arange(len(keys))[:, None, None] < len(keys) - len(recent), keys, 0) if groups else keys\n    scores ="),
            cause="The recent keys were treated as zeros.",
            cure="Join the recent keys to the restored groups.", see="right where there are no recent keys after groups"),
        Mistake("levels without a scale", edit("restore_along(*group) for group", "group[0].astype(np.float32) for group"),
            cause="The levels were used as if they were keys.",
            cure="Restore each group.", see="right where there are no groups"),
        Mistake("no softmax", edit("softmax(scores.T).T", "scores"),
            cause="The values were weighted by the scores themselves.",
            cure="Take the softmax of the scores.", see="0 where keys and query have nothing in common"),
        Mistake("exp without the sum", edit("softmax(scores.T).T", "np.exp(scores)"),
            cause="The powers were not divided by their sum, so the weights are not 1 together.",
            cure="Use `softmax`.", see="numbers that are too large"),
        Mistake("the mean of all values", edit("softmax(scores.T).T", "np.full_like(scores, 1 / len(scores))"),
            cause="Every token has the same weight.",
            cure="Weight by the softmax of the scores.", see="right for one token and for equal scores"),
        Mistake("the best token alone", edit("softmax(scores.T).T", "(scores == scores.max(axis=0)).astype(np.float32)"),
            cause="Only the token with the largest score counts.",
            cure="Weight by the softmax of the scores.", see="the value of one token"),
        Mistake("a mean instead of a sum", edit("values).sum(axis=0)", "values).mean(axis=0)"),
            cause="The weighted values were divided by the number of tokens, and the weights are 1 together already.",
            cure="Take the sum.", see="right for one token, too small for more"),
        Mistake("keys as values", edit("weights[:, :, None] * values", "weights[:, :, None] * keys"),
            cause="The keys were added up, and not the values.",
            cure="Multiply the weights by the values.", see="numbers from the keys"),
        Mistake("one query for all heads", edit("keys * q)", "keys * q[:1])"),
            cause="All heads used the query of the first one.",
            cure="Multiply by q itself: head by head.", see="right for one head, and in the first head"),
        Mistake("float64", edit("math.sqrt(q.shape[1])", "np.sqrt(np.float64(q.shape[1]))"),
            cause="A float64 of numpy made the scores float64, and all that follows.",
            cure="Use `math.sqrt`, or convert the result to float32.", see="the dtype float64"),
    ),
)
