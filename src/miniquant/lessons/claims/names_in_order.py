"""Whether names are in ascending order."""

import re
from itertools import pairwise

from ...lab import Exercise, Mistake, body, edit


def names_in_order(names):
    """Whether every name comes before the next.

    names: list of str, in the order of the file   ->   True or False
    """
    return all(first < second for first, second in pairwise(names))


def oracle(names):
    """By the numbers of the letters."""
    codes = [[ord(letter) for letter in name] for name in names]
    return not any(codes[at] <= codes[at - 1] for at in range(1, len(codes)))


def cases(random):
    """Lists that a wrong order takes for right, or a right one for wrong, then random names."""
    made = [
        ["a", "b", "c"],
        ["b", "a"],
        [],
        ["a"],
        ["a", "c", "b"],
        ["a", "c", "b", "d"],
        ["b", "a", "c"],
        ["a", "b", "b", "c"],
        ["blk.1", "blk.10", "blk.2"],
        ["blk.1", "blk.2", "blk.10"],
        ["Z", "a"],
        ["a", "Z"],
        ["aa", "b"],
        ["b", "aa"],
        ["a", "ab", "b"],
        ["z", "é"],
    ]
    drawn = [["".join(chr(c) for c in random.integers(97, 123, 3)) for _ in range(4)] for _ in range(4)]
    return [(names,) for names in (*made, *drawn, *(sorted(names) for names in drawn))]


def _natural(name):
    """A name as people sort it; for a mistake."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


EXERCISE = Exercise(
    goal="Say whether the names of a file's tensors are in ascending order, none of them twice.",
    reference=names_in_order, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "Compare each name with its neighbour: Python's `<` on strings is the order that is meant.",
        "`all(a < b for a, b in pairwise(names))`, with `pairwise` from `itertools`; an empty list is in order.",
    ),
    why="it looks at every pair of neighbours, and one pair in the wrong order is enough to falsify the claim.",
    mistakes=(
        Mistake("duplicate names allowed",
            edit("all(first < second for first, second in pairwise(names))", "names == sorted(names)"),
            cause="Sorting keeps doubles, so a list with a name twice equals its sorted self.",
            cure="Compare neighbours with `<`, which a double fails.", see="`True` for a list with a name twice"),
        Mistake("large and small letters alike", edit("first < second for", "first.lower() < second.lower() for"),
            cause="Upper case was ignored, and the order of the file is that of the characters' numbers: `Z` before `a`.",
            cure="Compare the names as they are.", see='`False` for `["Z", "a"]`'),
        Mistake("numbers as numbers", edit("first < second for", "_natural(first) < _natural(second) for"),
            cause="`blk.2` was taken to come before `blk.10`, as people count; character by character it is the other way.",
            cure="Compare the names as text.", see='`False` for `["blk.1", "blk.10", "blk.2"]`'),
        Mistake("first and last only",
            edit("all(first < second for first, second in pairwise(names))", "len(names) < 2 or names[0] < names[-1]"),
            cause="Only the two ends are compared, and what is wrong in the middle stays unseen.",
            cure="Compare each pair of neighbours.", see='`True` for `["a", "c", "b", "d"]`'),
        Mistake("a return inside the loop", edit(
                "return all(first < second for first, second in pairwise(names))",
                "for first, second in pairwise(names):\n        return first < second\n    return True",
            ),
            cause="The loop returns in its first round, so only the first pair is ever compared.",
            cure="Return False inside the loop for a bad pair, and True after the loop.",
            see='`True` for `["a", "c", "b"]`'),
        Mistake("any instead of all", edit("all(", "any("),
            cause="One good pair is enough for `any`, and one bad pair must be enough to fail.",
            cure="Use `all`.", see="`True` as soon as two neighbours are in order"),
        Mistake("by length", edit("first < second for", "(len(first), first) < (len(second), second) for"),
            cause="Short names were put before long ones.",
            cure="Compare the names themselves, character by character.", see='`False` for `["aa", "b"]`'),
        Mistake("falling", edit("first < second for", "first > second for"),
            cause="The comparison is the wrong way round.",
            cure="Each name is smaller than the next: `a < b`.", see='`False` for `["a", "b", "c"]`'),
        Mistake("the list is sorted in place", body("""
                before = list(names)
                names.sort()
                return before == names and len(set(names)) == len(names)
            """),
            cause="`names.sort()` changes the caller's list, and a test must not repair what it tests.",
            cure="Use `sorted(names)`, which makes a new list, or compare neighbours.",
            see="a note that the argument was changed"),
        Mistake("a list compared with itself", body("""
                ordered = names
                ordered.sort()
                return names == ordered
            """),
            cause="`ordered = names` gives the same list a second name, so sorting one sorts both, and they are always equal.",
            cure="Compare neighbours, and sort nothing.", see="`True` for every list"),
    ),
)
