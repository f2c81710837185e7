"""A type for each matrix, so that all fit into a number of bytes: an open exercise."""

from ...lab import Contest, Exercise, Mistake, body, edit, omit
from ...lab.compare import kind, short
from ...lab.spec import Finding
from ..shared.names import ODD_NAMES
from .trial import presets, score

BLOCK = {"Q8_0": 34, "Q4_0": 18}  # bytes of 32 weights


def choose_types(weights, budget):
    """A type for each matrix, so that all of them together fit into a
    number of bytes.

    weights: dict, name -> number of weights, a multiple of 32; budget:
        bytes
    ->   dict, name -> "Q8_0" or "Q4_0"

    32 weights take 34 bytes as Q8_0, and 18 as Q4_0. As Q4_0 all of them
    always fit. No bytes are wasted: whichever single matrix of those that
    you leave at Q4_0 became Q8_0 as well, all together would take more than
    the budget. Which matrices get Q8_0 is your choice.
    """
    types = dict.fromkeys(weights, "Q4_0")
    left = budget - sum(count // 32 * 18 for count in weights.values())
    for name, count in weights.items():
        more = count // 32 * 16
        if more <= left:
            types[name] = "Q8_0"
            left -= more
    return types


def oracle(weights, budget):
    """Another choice that is allowed: the smallest matrices first, as long as the total fits."""
    chosen = {name: 18 for name in weights}

    def total():
        return sum(weights[name] * size for name, size in chosen.items()) // 32

    for name in sorted(weights, key=weights.get):
        chosen[name] = 34
        if total() > budget:
            chosen[name] = 18
    return {name: "Q8_0" if size == 34 else "Q4_0" for name, size in chosen.items()}


def observed(function, case):
    """Whether a choice keeps to the rules; which choice it is does not matter."""
    weights, budget = case
    types = function(dict(weights), budget)
    if not isinstance(types, dict):
        raise Finding("a dict is expected, name -> type", f"{kind(types)}: {short(types)}"[:300])
    if types.keys() != weights.keys():
        raise Finding("every matrix needs one type, and no other name", f"types for {short(list(types))}"[:300])
    if unknown := [f"{short(kind_)} for {name!r}" for name, kind_ in types.items() if kind_ not in ("Q8_0", "Q4_0")]:
        raise Finding('each type is "Q8_0" or "Q4_0"', unknown[0][:300])
    total = sum(weights[name] // 32 * BLOCK[types[name]] for name in weights)
    if total > budget:
        raise Finding(f"the matrices take more than the {budget:,} bytes of the budget", f"{total:,} bytes: {short(types)}"[:300])
    fits = [name for name in weights if types[name] == "Q4_0" and total + weights[name] // 32 * 16 <= budget]
    if fits:
        raise Finding(f"bytes are wasted: {fits[0]!r} as Q8_0 fits, too", f"{budget - total:,} bytes left: {short(types)}"[:300])
    return "fits, and nothing more would fit"


def cases(random):
    """One matrix with and without room, room for one of two, a large one before small ones, random ones."""
    made = [
        ({"w": 32}, 34),
        ({"w": 32}, 18),
        ({"w": 32}, 33),
        ({"a": 64, "b": 64}, 104),  # one of the two fits
        ({"a": 320, "b": 32, "c": 64}, 234 + 50),  # the first one does not fit, and the others do
        ({"a": 32, "b": 320, "c": 32}, 18 * 12 + 32),
        ({"a": 64, "": 96, "c": 3200}, 34 * 105),
        ({"a": 64, "b": 96, "c": 128}, 34 * 9 - 1),
        ({}, 0),
        ({"token_embd": 32 * 10**8, "a": 64, "b": 96}, 18 * (10**8 + 5) + 50),
        ({"a": 64, "token_embd": 32 * 10**8, "b": 96}, 18 * (10**8 + 5) + 16 * 10**8),
    ]
    for names in (*[[f"w{i}" for i in range(6)]] * 5, ODD_NAMES):
        weights = {name: 32 * int(n) for name, n in zip(names, random.integers(1, 40, len(names)))}
        least = sum(count // 32 * 18 for count in weights.values())
        made.append((weights, least + int(random.integers(0, 16 * 120))))
    return made


EXERCISE = Exercise(
    goal="Choose which matrices get eight bits, so that all fit into the budget and the model changes little.",
    reference=choose_types, oracle=oracle, cases=cases, minutes=10, difficulty="stretch", observe=observed,
    contest=Contest(
        what="KL of a token on held-out text, within the bytes of the budget", unit="nats", measure=score, rivals=presets, digits=2),
    hints=(
        "Begin with Q4_0 for all, and count the bytes that are left. Then decide in which order the matrices may use them.",
        "`dict.fromkeys(weights, \"Q4_0\")` gives every name the same type. Go through the names in an order of your choice; Q8_0 in "
        "place of Q4_0 costs 16 bytes more for each block.",
    ),
    why="every preset of llama.cpp is such a choice: the matrices that matter most get more bits.",
    mistakes=(
        Mistake("every matrix as Q8_0", body('return dict.fromkeys(weights, "Q8_0")'),
            cause="All matrices are Q8_0, whatever the budget is.",
            cure="Begin with Q4_0, and count what is left.", see="more bytes than the budget has"),
        Mistake("every matrix as Q4_0", body('return dict.fromkeys(weights, "Q4_0")'),
            cause="All matrices are Q4_0, also where bytes are left for Q8_0.",
            cure="Use the bytes that are left for one matrix after the other.", see="bytes that are wasted"),
        Mistake("the search ends at the first that does not fit", edit(
                "        if more <= left:\n            types[name] = \"Q8_0\"\n            left -= more",
                "        if more > left:\n            break\n        types[name] = \"Q8_0\"\n        left -= more"),
            cause="After the first matrix that does not fit, no other one gets Q8_0, and a smaller one would fit.",
            cure="Go on with the next matrix.", see="bytes that are wasted, where a large matrix comes before small ones"),
        Mistake("what is used is not subtracted", omit("left -= more"),
            cause="Each matrix is compared with all the bytes that were left at the start.",
            cure="Subtract what a matrix takes from what is left.", see="too many bytes where two matrices get Q8_0"),
        Mistake("the scales are not counted", edit("count // 32 * 18", "count // 32 * 16"),
            cause="A block of Q4_0 is counted as 16 bytes. It has 18: two are its scale.",
            cure="Count 18 bytes for each block.", see="two bytes a block too many"),
        Mistake("exactly full is too full", edit("more <= left", "more < left"),
            cause="A matrix that would fill the budget to the last byte stays Q4_0.",
            cure="Compare with `<=`.", see="bytes that are wasted, as many as one matrix needs"),
        Mistake("weights changed", body("""
                left = budget - sum(count // 32 * 18 for count in weights.values())
                for name, count in weights.items():
                    more = count // 32 * 16
                    weights[name] = "Q8_0" if more <= left else "Q4_0"
                    left -= more if more <= left else 0
                return weights
            """),
            cause="The types were written into `weights`, and the caller's numbers of weights are gone.",
            cure="Write them into a new dict.", see="that the call changes its argument `weights`"),
        Mistake("Q8_0 counted whole", edit("count // 32 * 16", "count // 32 * 34"),
            cause="Q8_0 is counted with all its 34 bytes, and 18 of them are there already.",
            cure="Count the difference, 16 bytes a block.", see="bytes that are wasted"),
    ),
)
