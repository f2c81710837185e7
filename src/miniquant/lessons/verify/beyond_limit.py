"""Which errors are beyond a limit."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from ..shared.names import ODD_NAMES
from .toys import NAN


def beyond_limit(errors, limit):
    """The names whose error is not within the limit.

    errors: dict, name -> float; limit: float, 0 and inf too
    ->   list of names, in the order of `errors`; [] if there is none

    An error that equals the limit is within it. NaN is within no limit.
    """
    return [name for name, error in errors.items() if not error <= limit]


def oracle(errors, limit):
    """Two questions for each error: is it NaN, is it greater."""
    failing = []
    for name, error in errors.items():
        if error != error or error > limit:
            failing.append(name)
    return failing


def cases(random):
    """Errors on both sides of the limit and on it, NaN, infinity, a limit of 0, then random ones."""
    drawn = {f"layer {i}": float(error) for i, error in enumerate(10 ** random.uniform(-6, 0, 12))}
    return [
        ({"a": 0.0, "b": 2e-3, "c": 5e-4}, 1e-3),
        ({"a": 1e-3, "b": 1.0}, 1e-3),
        ({"a": NAN, "b": 0.0}, 1e-3),
        ({"z": 3.0, "a": 2.0, "m": float("inf")}, 1.0),
        ({"a": 0.0, "b": 0.0}, 0.0),
        ({"tok_emb": 0.0, "layers.0.ln1": 1e-9, "layers.0": 3e-8, "ln_f": NAN}, 0.0),
        ({"logits": NAN, "ln_f": float(np.nextafter(1e-3, 1)), "a": float(np.nextafter(1e-3, 0))}, 1e-3),
        ({"b": np.float64(2.0), "a": np.float64("nan")}, 3),
        ({}, 1e-3),
        ({"v": 1.0, **dict.fromkeys(ODD_NAMES, 2.0), "t": NAN}, 1.0),
        ({"q": 0.5, "k": 4.0, "v": NAN, "o": 0.25}, 0.25),
        ({"b": 1e-9, "a": 2e-9}, 0.0),
        ({"x": 0.0, "y": 3.0, "z": 0.0, "w": 2.0}, 1.0),
        ({"one": np.nan}, 10.0),
        ({"p": -0.5, "r": 0.5}, 0.25),
        ({"a": float("inf"), "b": NAN, "c": 1.0}, float("inf")),
        ({"zero": 0.0, "tiny": 1e-300}, 0.0),
        (drawn, sorted(drawn.values())[3]),
    ]


def quantities(errors, limit):
    """Names that are easily taken for others."""
    found = {
        "the names whose error is NaN": {name: error != error for name, error in errors.items()},
        "the names whose error equals the limit": {name: error == limit for name, error in errors.items()},
        "the names whose error is greater than the limit": {name: error > limit for name, error in errors.items()},
        "the names whose error is less than the limit": {name: error < limit for name, error in errors.items()},
    }
    values = list(errors.values())
    near = "the names whose error is greater than the limit, by no more than 0.00001 of it and 0.00000001"
    found[near] = {name: limit < error <= limit * 1.00001 + 1e-8 for name, error in errors.items()}
    return found | {
        "an error is NaN": any(error != error for error in values),
        "an error equals the limit": limit in values,
        "`limit` is 0": limit == 0,
        "`limit` is 0, and an error is not": limit == 0 and any(error != 0 for error in values),
        "`limit` is infinite": limit == float("inf"),
        "`errors` is empty": not errors,
        "every error is within the limit": all(error <= limit for error in values),
        "the first error is within the limit": bool(values and values[0] <= limit),
        "the last error is within the limit": bool(values and values[-1] <= limit),
        "more than one error is not within the limit": sum(not error <= limit for error in values) > 1,
    }


EXERCISE = Exercise(
    goal="List the names whose error is not within the limit; an error equal to the limit is within it, NaN is not.",
    reference=beyond_limit, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up",
    quantities=quantities,
    hints=(
        "Every comparison with NaN is false. Ask a question whose answer \"false\" means \"keep this name\".",
        "`errors.items()` gives the pairs in their order; `not` turns a comparison around, and that is not the same as turning its sign.",
    ),
    why="a limit that NaN passes is no limit. With limit 0 the same line finds the first layer that differs at all.",
    mistakes=(
        Mistake("NaN passes", edit("not error <= limit", "error > limit"),
            cause="A name whose error is NaN is missing, so a layer full of NaN is reported as fine.",
            cure="Turn the question around: keep the name when `not error <= limit`.",
            see="a missing name where the error is `nan`"),
        Mistake("the limit itself is refused", edit("error <= limit", "error < limit"),
            cause="An error that equals the limit counts as beyond it here, and the limit says *at most*.",
            cure="Use `<=` for what is within.", see="a name too many where the error equals the limit"),
        Mistake("the names that are within", edit("if not error", "if error"),
            cause="These are the tensors that pass.",
            cure="Put `not` before the comparison.", see="exactly the names that should not be there"),
        Mistake("sorted by name", edit(
                "[name for name, error in errors.items() if not error <= limit]",
                "sorted(name for name, error in errors.items() if not error <= limit)",
            ),
            cause="The names are in the order that `sorted` gives them, and the order of computation is lost.",
            cure="Go over `errors.items()` and keep its order.", see="the right names in alphabetical order"),
        Mistake("the first name only", edit(
                "[name for name, error in errors.items() if not error <= limit]",
                "[name for name, error in errors.items() if not error <= limit][:1]",
            ),
            cause="Only the first name that is beyond the limit is there.",
            cure="Go over all of them before you return the list.", see="one name where several are expected"),
        Mistake("a dict instead of a list", edit(
                "[name for name, error in errors.items() if not error <= limit]",
                "{name: error for name, error in errors.items() if not error <= limit}",
            ),
            cause="The result holds the names together with their errors.",
            cure="Return a list of the names alone.", see="`the type differs`, with a dict on your side"),
        Mistake("errors instead of names", edit("[name for", "[error for"),
            cause="The result holds the errors, and nobody can see whose they are.",
            cure="Return the names.", see="numbers where names are expected"),
        Mistake("sorted by error", edit(
                "[name for name, error in errors.items() if not error <= limit]",
                "sorted((name for name, error in errors.items() if not error <= limit), key=lambda name: -errors[name])",
            ),
            cause="The names are sorted by their errors, the largest first (NaN upsets such an order), and the order of computation is lost.",
            cure="Go over `errors.items()` and keep its order.", see="the right names, the largest error first"),
        Mistake("NaN passes, and the limit itself does not", edit("not error <= limit", "error >= limit"),
            cause="An error that equals the limit counts as beyond it, and NaN does not; `>=` with NaN is always false.",
            cure="Keep a name if the error is *not* within the limit: `not`, then `<=`.",
            see="a name too many where the error equals the limit, and a missing name where it is `nan`"),
        Mistake("a verdict instead of names", edit(
                "[name for name, error in errors.items() if not error <= limit]",
                "all(error <= limit for error in errors.values())",
            ),
            cause="True or False says whether something failed, but not what.",
            cure="Return the list of names; an empty list means that all is well.",
            see="`the type differs`, with `bool` on your side"),
    ),
)
