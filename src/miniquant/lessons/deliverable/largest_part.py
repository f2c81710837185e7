"""The largest part of a file."""

from fractions import Fraction

from ...lab import Exercise, Mistake, edit
from ..shared.gguf_lite_by_hand import Q4, Q8
from ..shared.names import ODD_NAMES


def largest_part(parts):
    """The largest part and its share.

    parts: dict, name -> bytes, at least one of them above 0
    -> (name, percent): the first name in the dict with the most bytes, and
       its percent of the sum of all parts, not rounded
    """
    name = max(parts, key=parts.get)
    return name, 100 * parts[name] / sum(parts.values())


def oracle(parts):
    """One part at a time; the first of equals stays."""
    best, size, total = "", -1, 0
    for name, n in parts.items():
        total += n
        if n > size:
            best, size = name, n
    return best, float(Fraction(size, total) * 100)


def cases(random):
    """Two parts, three, two equal ones, one alone, then random bytes by dtype."""
    sizes = [int(n) for n in random.integers(1, 10**10, 5)]
    return [
        ({"weights": 75, "scales": 25},),
        ({"norms": 1, "embeddings": 5, "weights": 2},),
        ({"b": 1, "a": 1, "c": 0},),
        ({"weights": 100},),
        ({"a": 0, "c": 3, "b": 3, "d": 3},),
        ({"x": 8, "b": 1, "a": 15, "c": 15},),
        (dict(zip(["f32", "f16", Q8, Q4, "scales"], sizes)),),
        ({"embeddings": 7, "w": 1, "scales": 4, "norms": 2},),
        ({"b": 2**24, "norm": 2**24 + 1, "a": 3},),
        ({"": 10, "weights": 3, "b": 10},),  # an empty name is a name
        ({"header": 0, "scales": 0, "values": 3},),
        (dict.fromkeys(ODD_NAMES, 2) | {" W.bias": 5},),
        (dict(zip(["scales", Q4, "f32", "header"], sizes[::-1])),),
    ]


def quantities(parts):
    """What the name and the percent may be taken from."""
    names, sizes = list(parts), sorted(parts.values())
    largest = [name for name in names if parts[name] == sizes[-1]]
    found = {
        "the bytes of the largest part": sizes[-1],
        "the bytes of the smallest part": sizes[0],
        "the bytes of the first part": parts[names[0]],
        "the bytes of the last part": parts[names[-1]],
        "the sum of all parts": sum(sizes),
        "the sum of the other parts": sum(sizes) - sizes[-1],
        "the sum of the two largest parts": sum(sizes[-2:]),
        "the number of parts": len(parts),
        "the first name": names[0],
        "the last name": names[-1],
        "the name of the smallest part": min(parts, key=parts.get),
        "the last name of the alphabet among the largest parts": max(largest),
        "the last of the largest parts": largest[-1],
        "the first name of the alphabet": min(names),
        "the last name of the alphabet": max(names),
        "the longest name": max(names, key=len),
        "the shortest name": min(names, key=len),
        "there is one part": len(parts) == 1,
        "two parts or more have the most bytes": len(largest) > 1,
    }
    if len(sizes) > 1:
        found["the bytes of the second largest part"] = sizes[-2]
        found["the name of the second largest part"] = sorted(names, key=parts.get)[-2]
    return found


EXERCISE = Exercise(
    goal="Return the name of the largest part, the first of equals, and how many percent of the sum it is.",
    reference=largest_part, oracle=oracle, cases=cases, minutes=6, difficulty="core", tolerance=1e-9, quantities=quantities,
    hints=(
        "Find the name first; its bytes and the percent follow from it.",
        "`max` over a dict compares its keys, which are names here; its argument `key=` takes a function, such as the dict's `get`.",
    ),
    why="this answers the second question for any preset, and for a file of your own.",
    mistakes=(
        Mistake("the name only", edit("return name, 100 * parts[name] / sum(parts.values())", "return name"),
            cause="The share is missing.",
            cure="Return two things: `return name, percent`.", see="`the type differs`, with `str` on your side"),
        Mistake("the largest name", edit("max(parts, key=parts.get)", "max(parts)"),
            cause="The name is the largest as a text, as `max` of a dict gives it: it compares the keys.",
            cure="Give it `key=parts.get`.", see="a small part whose name comes late in the alphabet"),
        Mistake("the right percent under another name", edit("return name, 100", "return max(parts), 100"),
            cause="The percent is right, and the name is the largest as a text, as `max(parts)` gives it.",
            cure="Find the name first, with `max(parts, key=parts.get)`, and look its size up.",
            see="the expected percent with an unexpected name"),
        Mistake("a fraction instead of a percent", edit("100 * ", ""),
            cause="The share is between 0 and 1.",
            cure="Multiply by 100.", see="`0.75` where `75.0` is expected"),
        Mistake("percent of the others",
            edit("sum(parts.values())", "(sum(parts.values()) - parts[name])"),
            cause="The percent is that of the sum of the other parts.",
            cure="Divide by the sum of all parts, itself included.", see="more than 100 percent"),
        Mistake("the first in sorted order among equals", edit("max(parts, key=parts.get)", "sorted(parts, key=lambda name: (-parts[name], name))[0]"),
            cause="Of equal parts, the result names the first in the order of `sorted`, and the first in the dict is asked for.",
            cure="`max` with `key=parts.get` keeps the first of equals.", see="another name where two parts are equally large"),
        Mistake("percent first", edit("return name, 100 * parts[name] / sum(parts.values())", "return 100 * parts[name] / sum(parts.values()), name"),
            cause="The two parts of the result are in the other order.",
            cure="Return the name first, then the percent.", see="a number where a name is expected"),
        Mistake("the last of equals", edit("max(parts, key=parts.get)", "sorted(parts, key=parts.get)[-1]"),
            cause="Of equal parts, the result names the last, and the first is asked for.",
            cure="Use `max`, which keeps the first of equals.", see="another name where two parts are equally large"),
        Mistake("rounded",
            edit("100 * parts[name] / sum(parts.values())", "round(100 * parts[name] / sum(parts.values()), 1)"),
            cause="The percent is rounded to one decimal, and rounded percents need not add up to 100.",
            cure="Return it as it is, and round only where you print.", see="`47.8` where more digits are expected"),
        Mistake("bytes instead of percent", edit("100 * parts[name] / sum(parts.values())", "parts[name]"),
            cause="The second item is the part's bytes.",
            cure="Divide by the sum and multiply by 100.", see="a number far beyond 100"),
    ),
)
