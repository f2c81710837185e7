"""The largest part of a file."""

from fractions import Fraction

from ...lab import Exercise, Mistake, edit
from ..shared.gguf_lite_by_hand import Q4, Q8


def largest_part(parts):
    """The largest part and its share.

    parts: dict, name -> bytes, not empty   ->   (name, percent of the sum of all parts, a float that is not rounded)
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
    sizes = [int(n) for n in random.integers(1, 10**6, 5)]
    return [
        ({"weights": 75, "scales": 25},),
        ({"norms": 1, "embeddings": 5, "weights": 2},),
        ({"b": 4, "a": 4, "c": 0},),
        ({"weights": 100},),
        (dict(zip(["f32", "f16", Q8, Q4, "scales"], sizes)),),
    ]


EXERCISE = Exercise(
    goal="Return the name of the largest part, the first of equals, and how many percent of the sum it is.",
    reference=largest_part, oracle=oracle, cases=cases, minutes=6, difficulty="core", tolerance=1e-9,
    hints=(
        "`max` over a dict compares its keys; give it a `key=` that looks up the value.",
        "`max(parts, key=parts.get)` is the name; its percent is 100 times its bytes over the sum of all bytes, itself included.",
    ),
    why="the second question of the README has its answer, and it stays right when the preset changes.",
    mistakes=(
        Mistake("the name only", edit("return name, 100 * parts[name] / sum(parts.values())", "return name"),
            cause="The share is missing.",
            cure="Return two things: `return name, percent`.", see="`the type differs`, with `str` on your side"),
        Mistake("the last name of the alphabet", edit("max(parts, key=parts.get)", "max(parts)"),
            cause="`max` of a dict compares its keys, and here the keys are words.",
            cure="Give it `key=parts.get`.", see="a small part whose name comes late in the alphabet"),
        Mistake("the right percent under another name", edit("return name, 100", "return max(parts), 100"),
            cause="`max(parts.values())` found the size, but `max(parts)` compares the names, and the two need not belong together.",
            cure="Find the name first, with `max(parts, key=parts.get)`, and look its size up.",
            see="the expected percent with an unexpected name"),
        Mistake("a fraction instead of a percent", edit("100 * ", ""),
            cause="The share is between 0 and 1.",
            cure="Multiply by 100.", see="`0.75` where `75.0` is expected"),
        Mistake("percent of the others",
            edit("sum(parts.values())", "((sum(parts.values()) - parts[name]) or 1e-300)"),
            cause="The part was compared with the sum of the other parts.",
            cure="Divide by the sum of all parts, itself included.", see="more than 100 percent"),
        Mistake("the last of equals", edit("max(parts, key=parts.get)", "sorted(parts, key=parts.get)[-1]"),
            cause="After sorting, the last of two equal parts stands at the end.",
            cure="Use `max`, which keeps the first of equals.", see="another name where two parts are equally large"),
        Mistake("rounded",
            edit("100 * parts[name] / sum(parts.values())", "round(100 * parts[name] / sum(parts.values()), 1)"),
            cause="The percent was rounded, and what is rounded cannot be added up any more.",
            cure="Return it as it is, and round only where you print.", see="`47.8` where more digits are expected"),
        Mistake("bytes instead of percent", edit("100 * parts[name] / sum(parts.values())", "parts[name]"),
            cause="The second number is the part's bytes.",
            cure="Divide by the sum and multiply by 100.", see="a number far beyond 100"),
    ),
)
