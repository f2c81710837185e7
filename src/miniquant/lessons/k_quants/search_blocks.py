"""A search for the scale and the minimum of a block: any that is good enough."""

from __future__ import annotations

import numpy as np

from ...evaluate.block_search import block_errors, ggml_search, made_worse, plain_rounding, score_search, unseen_blocks
from ...lab import Contest, Exercise, Mistake, body, edit
from ...lab.compare import kind, short
from ...lab.spec import Finding
from .fit_scale_and_minimum import fit_scale_and_minimum

MANY, GAIN = 100, 5  # from so many blocks on, they must lose so many per cent less


def search_blocks(w):
    """A scale and a minimum for each block that lose less than plain
    rounding.

    w: (n, 32) float32, in each row at least two different weights
    ->   scale, minimum: (n, 1) float32

    Any search will do. It is judged by ``block_errors``. No block may have
    more than 1.01 times its error with ``plain_rounding``; up to 1e-9 times
    the sum of the squares of its weights is allowed on top of this. If n is
    100 or more, the sum of all errors must be at least 5 % smaller than
    with ``plain_rounding``, which has a sum above 0 in this check.
    """
    low = w.min(axis=1, keepdims=True)  # (n, 1)
    width = w.max(axis=1, keepdims=True) - low
    scale, minimum = plain_rounding(w)
    best = block_errors(w, scale, minimum)
    for steps in np.arange(12, 18, 0.25):
        q = np.clip(np.rint((w - low) * (steps / width)), 0, 15)
        s, m = fit_scale_and_minimum(w, q)
        errors = block_errors(w, s, m)
        better = errors < best  # (n, 1) bool
        scale, minimum = np.where(better, s, scale), np.where(better, m, minimum)
        best = np.where(better, errors, best)
    return scale, minimum


def judged(function, case):
    """What is wrong with a search, as a ``Finding``; a sentence if nothing is."""
    (given,) = case
    w = given.copy()
    found = function(given)
    if not np.array_equal(given, w):
        raise Finding("your function changes its argument in place: w; work on a copy", "another w after the call")
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise Finding("two arrays are expected, scale and minimum", kind(found))
    for name, part in zip(("scale", "minimum"), found):
        if not isinstance(part, np.ndarray) or part.shape != (len(w), 1):
            raise Finding(f"the {name} must be an array of shape ({len(w)}, 1)", kind(part))
        if part.dtype != np.float32:
            raise Finding(f"the {name} must be float32", kind(part))
        if not np.isfinite(part).all():
            raise Finding(f"the {name} of some block is not a finite number", short(part[~np.isfinite(part)]))
    errors, plain = block_errors(w, *found), block_errors(w, *plain_rounding(w))
    if (worse := made_worse(w, *found)).any():
        at = int(worse.argmax())
        both = f"block {at} has the error {float(errors[at, 0]):.3g}; with plain rounding it has {float(plain[at, 0]):.3g}"
        raise Finding("your search loses more than plain rounding on some block", f"{int(worse.sum())} of {len(w)}: {both}")
    gain = 100 * (1 - float(errors.sum() / plain.sum()))
    if len(w) < MANY:
        return "no block is made worse"
    if gain < GAIN:
        what = f"the sum of all errors is not {GAIN} % smaller than with plain rounding"
        raise Finding(what, f"{gain:.3g} % smaller")
    return f"no block is made worse, and the sum of the errors is at least {GAIN} % smaller"


def oracle(w):
    """Of many pairs of a scale and a minimum, all made beforehand, the best for each block."""
    low, high = w.min(axis=1, keepdims=True), w.max(axis=1, keepdims=True)
    made = [plain_rounding(w)]
    for cut in np.float32([0, 0.02, 0.04, 0.06, 0.08]):
        for other in np.float32([0, 0.02, 0.04, 0.06, 0.08]):
            start, end = low + cut * (high - low), high - other * (high - low)
            made.append(((end - start) / np.float32(15), start))
    best = np.stack([block_errors(w, *pair) for pair in made]).argmin(axis=0)  # (n, 1)
    scales, minimums = (np.stack([pair[i] for pair in made]) for i in (0, 1))  # (pairs, n, 1)
    return tuple(np.take_along_axis(numbers, best[None], axis=0)[0] for numbers in (scales, minimums))


def cases(random):
    """A few blocks, one above zero; blocks with one large weight, below zero, tiny; then many of several distributions."""
    few = np.concatenate([random.normal(0, 1, (3, 32)), random.normal(8, 1, (1, 32))])
    many = [
        random.normal(0, 0.04, (200, 32)),
        random.laplace(0, 0.1, (200, 32)),
        random.uniform(-1, 1, (150, 32)),
        random.normal(0, 1, (200, 32)) * random.uniform(0.01, 2, (200, 1)),
    ]
    odd = np.concatenate([random.normal(0, 0.01, (2, 32)), random.normal(-5, 1e-4, (2, 32)), random.normal(0, 1e-6, (1, 32)), random.normal(-5, 1e-3, (20, 32)), random.normal(0, 1e-6, (20, 32))])
    odd[:2, 7] = 5, -5  # far from all others
    return [(few[:1].astype(np.float32),), *((w.astype(np.float32),) for w in [few, odd, *many])]


_BETTER = "np.where(better, s, scale), np.where(better, m, minimum)"

def error_of(search):
    """The rmse of a search on blocks that the lab does not show, in per cent of the weights' own root mean square."""
    return score_search(search, unseen_blocks()["the model"]).rmse


def rivals():
    """The same of plain rounding and of ggml's search."""
    return {"plain rounding": error_of(plain_rounding), "ggml's search": error_of(ggml_search)}


EXERCISE = Exercise(
    goal="Write a search of your own: for each block a scale and a minimum that lose less than plain rounding.",
    reference=search_blocks, oracle=oracle, cases=cases, minutes=12, difficulty="stretch", observe=judged,
    contest=Contest(what="error of 2000 unseen blocks of the model", unit="%", measure=error_of, rivals=rivals),
    hints=(
        "Plain rounding is the first try. With another scale some weights go to other integers; the best scale and minimum for those follow from your formula. Keep for each block the try that loses least.",
        "`fit_scale_and_minimum` fits a try, and `block_errors` measures it. `np.where(better, new, old)` chooses row by row if `better` has the shape (n, 1).",
    ),
    why="an encoder may choose any scale and any minimum, and every reader reads what it chose.",
    mistakes=(
        Mistake("the last try", edit(_BETTER, "s, m"),
            cause="Each block gets the scale and the minimum of the last try.",
            cure="Compare the errors, and keep what was better.", see="nearly every block made worse"),
        Mistake("one choice for all blocks", edit("errors < best", "errors.sum() < best.sum()"),
            cause="All blocks changed to a new try together. Its sum is smaller, and some blocks lose by it.",
            cure="Compare block by block: `block_errors` has a row for each.", see="some blocks made worse, although the sum of the errors is smaller"),
        Mistake("plain rounding", body("return plain_rounding(w)"),
            cause="The numbers are those of plain rounding.",
            cure="Try other scales, and keep one where it loses less.", see="0 % smaller"),
        Mistake("errors that cancel",
            edit("errors = block_errors(w, s, m)", "errors = np.abs((w - (s * np.clip(np.rint((w - m) / s), 0, 15) + m)).sum(axis=1, keepdims=True))")
            .edit("best = block_errors(w, scale, minimum)", "best = np.full((len(w), 1), np.inf)"),
            cause="Each block gets the try whose errors add up to the smallest sum. Errors of both signs cancel in it.",
            cure="Square the errors before you add them, as `block_errors` does.", see="about half of the blocks made worse"),
        Mistake("scale and minimum exchanged", edit("return scale, minimum", "return minimum, scale"),
            cause="The minimum came first.",
            cure="Return the scale first.", see="errors thousands of times too large"),
        Mistake("a zero point", edit("return scale, minimum", "return scale, np.rint(-minimum / scale).astype(np.float32)"),
            cause="The second result is an integer, the zero point of lab 17, and the minimum is a weight.",
            cure="Return the minimum itself.", see="every block made worse, and whole numbers in the second result"),
        Mistake("the minimum without its sign", edit("return scale, minimum", "return scale, -minimum"),
            cause="The second result is how far the block begins below zero. Q4_K stores it so; here the minimum itself is asked for.",
            cure="Return the minimum with its sign.", see="blocks around zero made worse, with positive numbers in the second result"),
        Mistake("the same scale in every block", body("""
                scale = (w.max() - w.min()) / np.float32(15)
                return np.full((len(w), 1), scale), np.full((len(w), 1), w.min())
            """),
            cause="Every block has the same scale and the same minimum.",
            cure="Take smallest and largest along the last axis, `axis=1, keepdims=True`.",
            see="the one block of the first case not better, and nearly every block worse for more"),
        Mistake("rows instead of columns", edit("return scale, minimum", "return scale[:, 0], minimum[:, 0]"),
            cause="The two results have one axis.",
            cure="Keep the axis of the weights, with `keepdims=True`.", see="the shape (1,)"),
        Mistake("float64 results", edit("return scale, minimum", "return scale.astype(np.float64), minimum.astype(np.float64)"),
            cause="The two results are float64.",
            cure="Convert both with `.astype(np.float32)`.", see="the dtype float64"),
    ),
)
