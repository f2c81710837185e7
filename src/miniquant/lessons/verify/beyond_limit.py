"""Which errors are beyond a limit."""

from ...lab import Exercise, Mistake, edit
from .toys import NAN


def beyond_limit(errors, limit):
    """The names whose error is not within the limit.

    errors: dict, name -> float; limit: float   ->   list of names, in the order of `errors`; empty if all is well
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
        (drawn, 1e-3),
    ]


EXERCISE = Exercise(
    goal="List the names whose error is not within the limit; an error equal to the limit is within it, NaN is not.",
    reference=beyond_limit, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up",
    hints=(
        "NaN compares false with everything, so ask the question to which false is the right answer for NaN.",
        "Keep a name when `not error <= limit`, in a list comprehension over `errors.items()`.",
    ),
    why="a limit that NaN passes is no limit: this one line decides whether a broken model is called verified.",
    mistakes=(
        Mistake("NaN passes", edit("not error <= limit", "error > limit"),
            cause="`nan > limit` is False, so a layer full of NaN is reported as fine.",
            cure="Turn the question around: keep the name when `not error <= limit`.",
            see="a missing name where the error is `nan`"),
        Mistake("the limit itself is refused", edit("error <= limit", "error < limit"),
            cause="An error equal to the limit counts as beyond it here, and the assignment says at most.",
            cure="Use `<=` for what is within.", see="a name too many where the error equals the limit"),
        Mistake("the names that are within", edit("if not error", "if error"),
            cause="These are the tensors that pass.",
            cure="Put `not` in front of the comparison.", see="exactly the names that should not be there"),
        Mistake("sorted by name", edit(
                "[name for name, error in errors.items() if not error <= limit]",
                "sorted(name for name, error in errors.items() if not error <= limit)",
            ),
            cause="The order of computation is lost, and with it the first layer that breaks.",
            cure="Go over `errors.items()` and keep its order.", see="the right names in alphabetical order"),
        Mistake("a verdict instead of names", edit(
                "[name for name, error in errors.items() if not error <= limit]",
                "all(error <= limit for error in errors.values())",
            ),
            cause="True or False says that something failed, but not what.",
            cure="Return the list of names; an empty list means that all is well.",
            see="`the type differs`, with `bool` on your side"),
    ),
)
