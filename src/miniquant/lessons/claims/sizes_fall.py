"""Whether fewer bits make a smaller file."""

from ...lab import Exercise, Mistake, edit


def sizes_fall(sizes):
    """Whether Q4_0 is smaller than Q8_0, and Q8_0 smaller than F32.

    sizes: dict with the keys "F32", "Q8_0" and "Q4_0", in any order; bytes   ->   True or False
    """
    return sizes["Q4_0"] < sizes["Q8_0"] and sizes["Q8_0"] < sizes["F32"]


def oracle(sizes):
    """By differences."""
    return sizes["Q8_0"] - sizes["Q4_0"] > 0 and sizes["F32"] - sizes["Q8_0"] > 0


def cases(random):
    """Every order, equal sizes, then random ones, and a dict in another order."""
    made = [(18, 34, 128), (64, 64, 128), (32, 64, 64), (96, 96, 96), (128, 34, 18), (34, 18, 128), (18, 128, 34)]
    made += [(20, 60, 10), (1, 2, 3), (40, 30, 35), (30, 35, 33)]
    drawn = [sorted(map(int, row)) for row in random.integers(1, 10**6, (3, 3))]
    named = [dict(zip(("Q4_0", "Q8_0", "F32"), row)) for row in (*made, *drawn)]
    return [(sizes,) for sizes in named] + [({name: named[0][name] for name in ("F32", "Q4_0", "Q8_0")},)]


EXERCISE = Exercise(
    goal="Say whether the file with Q4_0 is smaller than that with Q8_0, and that one smaller than the one with F32.",
    reference=sizes_fall, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up",
    hints=(
        "Smaller means smaller: two files of one size falsify the claim.",
        'Python chains comparisons: `a < b < c`; look each size up by its name, such as `sizes["Q4_0"]`.',
    ),
    why="equal sizes count as a counter-example, and they are the ones that falsify the claim in a moment.",
    mistakes=(
        Mistake("equal sizes pass",
            edit('< sizes["Q8_0"]', '<= sizes["Q8_0"]').edit('< sizes["F32"]', '<= sizes["F32"]'),
            cause="`<=` lets two files of one size pass, and the claim says smaller.",
            cure="Use `<` in both places.", see="`True` for sizes that are equal"),
        Mistake("the ends only", edit('sizes["Q8_0"] and sizes["Q8_0"] < ', ""),
            cause="Q8_0, which is in the middle, was not looked at.",
            cure="Compare Q4_0 with Q8_0, and Q8_0 with F32.", see="`True` where Q8_0 is the largest"),
        Mistake("upside down", edit('< sizes["Q8_0"]', '> sizes["Q8_0"]').edit('< sizes["F32"]', '> sizes["F32"]'),
            cause="More bits make a larger file, and the comparison says the opposite.",
            cure="Turn both signs round.", see="`False` for good sizes"),
        Mistake("the order of the dict", edit(
                'sizes["Q4_0"] < sizes["Q8_0"] and sizes["Q8_0"] < sizes["F32"]',
                "list(sizes.values()) == sorted(set(sizes.values()))",
            ),
            cause="The sizes were taken in the order in which they happen to come in the dict.",
            cure='Look each size up by its name, such as `sizes["Q4_0"]`.',
            see="`False` for good sizes in another order"),
        Mistake("F32 is the largest, no more", edit('< sizes["Q8_0"]', '< sizes["F32"]'),
            cause="Both are compared with F32, and never with each other.",
            cure="Compare Q4_0 with Q8_0 as well.", see="`True` where Q4_0 is as large as Q8_0"),
        Mistake("or instead of and", edit(" and ", " or "),
            cause="One of the two comparisons is enough for `or`.",
            cure="Both must hold: use `and`, or the chain `a < b < c`.",
            see="`True` where one pair is in the wrong order"),
        Mistake("Q4_0 is the smallest, no more", edit('and sizes["Q8_0"]', 'and sizes["Q4_0"]'),
            cause="Q4_0 is compared with both others, and they are never compared with each other.",
            cure="Compare Q8_0 with F32 as well.", see="`True` where Q8_0 is as large as F32"),
    ),
)
