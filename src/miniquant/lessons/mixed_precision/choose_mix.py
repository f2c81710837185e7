"""A mix of types within a number of bytes, with the lowest KL of the whole model: an open exercise."""

import math

from ...lab import Contest, Exercise, Mistake, body, edit
from ...lab.compare import kind as kind_of
from ...lab.compare import short
from ...lab.spec import Finding
from .best_within import best_within
from .toys import SumAndMore, every_choice
from .trial import ASKED, rivals, score

SLACK = 1.25  # a choice may have so many times the smallest sum


def choose_mix(costs, n_bytes, measure):
    """A type for each matrix within a number of bytes, for the lowest KL of
    the whole model.

    costs: dict, name -> dict, kind -> (bytes, KL) of this matrix alone;
        n_bytes: int, enough for the smallest types
    measure: measure(types) gives the KL of the model with a type for each
        matrix, on calibration text; at most 12 calls
    ->   dict, name -> kind, within n_bytes

    Any choice will do whose KLs have a sum of at most 1.25 times the
    smallest sum within the bytes. You need not call ``measure``.
    """
    unit = math.gcd(*(n for of in costs.values() for n, _ in of.values()))
    units = {
        name: {kind: (n // unit, kl) for kind, (n, kl) in of.items()}
        for name, of in costs.items()
    }
    return best_within(units, n_bytes // unit)


def oracle(costs, n_bytes, measure):
    """Of all choices that fit, the one that measures best."""
    fits = [(kl, types) for n, kl, types in every_choice(costs) if n <= n_bytes]
    least = min(kl for kl, _ in fits)
    good = sorted((found for found in fits if found[0] <= SLACK * least), key=lambda found: found[0])[:ASKED]
    return min((types for _, types in good), key=measure)


def judged(function, case):
    """What is wrong with a choice, as a ``Finding``; a sentence if nothing is."""
    costs, n_bytes, answer = case
    calls = []

    def measure(types):
        calls.append(types)
        return answer(types)

    types = function({name: dict(of) for name, of in costs.items()}, n_bytes, measure)
    if not isinstance(types, dict):
        raise Finding("a dict is expected, name -> type", f"{kind_of(types)}: {short(types)}"[:300])
    if types.keys() != costs.keys():
        raise Finding("every matrix needs one type, and no other name", f"types for {short(list(types))}"[:300])
    for name, kind in types.items():
        if not isinstance(kind, str) or kind not in costs[name]:
            raise Finding(f"the type of {name!r} must be one of {', '.join(costs[name])}", short(kind)[:300])
    chosen = [costs[name][kind] for name, kind in types.items()]
    total, kl = sum(n for n, _ in chosen), sum(kl for _, kl in chosen)
    if total > n_bytes:
        raise Finding(f"the matrices take more than {n_bytes:,} bytes", f"{total:,} bytes: {short(types)}"[:300])
    if len(calls) > ASKED:
        raise Finding(f"measure may be called {ASKED} times", f"{len(calls)} calls")
    least = min(sum_ for n, sum_, _ in every_choice(costs) if n <= n_bytes)
    if kl > SLACK * least + 1e-12:
        raise Finding(f"the sum of the KLs is more than {SLACK} times the smallest one, {least:.4g}", f"{kl:.4g}: {short(types)}"[:300])
    return "fits, and the sum of the KLs is near the smallest"


def cases(random):
    """One matrix, two, a greedy choice that fails, sizes with a small common divisor, more bytes than needed, matrices drawn like a model's."""

    def case(costs, n_bytes):
        return costs, n_bytes, SumAndMore(costs)

    def matrix(count, size):
        per_block = {"Q2_K": (84, 1.0), "Q4_K": (144, 0.09), "Q6_K": (210, 0.006), "Q8_0": (272, 0.0005)}
        return {kind: (count * n, size * kl) for kind, (n, kl) in per_block.items()}

    one = {"a": {"Q4_0": (18, 0.5), "Q8_0": (34, 0.125)}}
    greedy = {"a": {"Q2_K": (2, 1.0), "Q6_K": (12, 0.25)}, "b": {"Q2_K": (2, 0.75), "Q6_K": (8, 0.125)}, "c": {"Q2_K": (2, 0.75), "Q6_K": (8, 0.125)}}
    uneven = {"a": {"Q4_0": (180, 0.5), "Q8_0": (340, 0.125)}, "b": {"Q4_0": (198, 2.0), "Q8_0": (374, 0.5)}}  # 20 divides those of a
    pair = {"a": matrix(1, 1.0), "b": matrix(4, 1.0)}
    made = [
        case(one, 34),
        case(one, 33),
        case(greedy, 18),
        case(uneven, 180 + 374 - 1),
        case(pair, 5 * 144),
        case(pair, 5 * 272 + 10),
    ]
    several = {name: {"Q2_K": (1, 0.25), "Q6_K": (2, 0.1)} for name in "bcd"}  # they gain more for a byte, and then a does not fit
    made.append(case({**several, "a": {"Q2_K": (1, 1.05), "Q6_K": (11, 0.05)}}, 14))
    for _ in range(4):
        costs = {f"w{i}": matrix(int(random.choice([1, 3, 4])), float(random.uniform(0.2, 3))) for i in range(5)}
        blocks = sum(of["Q2_K"][0] // 84 for of in costs.values())
        made.append(case(costs, int(blocks * random.uniform(100, 230))))
    return made


EXERCISE = Exercise(
    goal="Choose a type for each matrix, within the bytes of llama.cpp's Q4_K_M, so that the model changes least.",
    reference=choose_mix, oracle=oracle, cases=cases, minutes=12, difficulty="stretch", observe=judged,
    contest=Contest(
        what="KL of a token on held-out text, within the bytes of Q4_K_M", unit="nats", measure=score, rivals=rivals, digits=3),
    hints=(
        "You have a function that finds the smallest sum. It wants units instead of bytes: a number that divides all of them. To go on from there, change the choice a little, and ask `measure` whether the model gains.",
        "`math.gcd` gives the largest number that divides all of its arguments, and `//` divides integers. `best_within` chooses.",
    ),
    why="a table, a sum and a search: no rule that somebody wrote for another model.",
    mistakes=(
        Mistake("the smallest types", body("return {name: min(of, key=lambda kind: of[kind][0]) for name, of in costs.items()}"),
            cause="Every matrix got its smallest type, and the rest of the bytes was not used.",
            cure="Choose with `best_within`.", see="a sum that is far too large"),
        Mistake("the smallest KLs", body("return {name: min(of, key=lambda kind: of[kind][1]) for name, of in costs.items()}"),
            cause="Every matrix got the type with its smallest KL, whether it fits or not.",
            cure="Choose with `best_within`.", see="more bytes than there are"),
        Mistake("bytes as units and a smaller room", edit("n_bytes // unit)", "n_bytes // unit // 2)").edit("return best_within(", "room = sum(min(n for n, _ in of.values()) for of in units.values())\n    return best_within(").edit("(units, n_bytes // unit // 2)", "(units, max(room, n_bytes // unit // 2))"),
            cause="Half of the bytes were left unused.",
            cure="The room is n_bytes // unit.", see="a sum that is too large, except where there are more bytes than needed"),
        Mistake("one type for all", body("""
                kinds = list(next(iter(costs.values())))
                fits = [k for k in kinds if sum(of[k][0] for of in costs.values()) <= n_bytes]
                best = min(fits, key=lambda k: sum(of[k][1] for of in costs.values()))
                return dict.fromkeys(costs, best)
            """),
            cause="All matrices have the same type.",
            cure="Give each matrix its own type, with `best_within`.", see="a sum that is too large where the matrices differ"),
        Mistake("in the order of the names", body("""
                types = {name: min(of, key=lambda kind: of[kind][0]) for name, of in costs.items()}
                left = n_bytes - sum(costs[name][kind][0] for name, kind in types.items())
                for name, of in costs.items():
                    least = of[types[name]][0]
                    fits = [kind for kind in of if of[kind][0] - least <= left]
                    types[name] = min(fits, key=lambda kind: of[kind][1])
                    left -= of[types[name]][0] - least
                return types
            """),
            cause="The first matrices took all the bytes that there were.",
            cure="Choose with `best_within`, which compares all of them.", see="large types for the first matrices, and the smallest ones for the last"),
        Mistake("the room rounded up", edit("n_bytes // unit", "n_bytes // unit + 1"),
            cause="The room has one unit more than there is.",
            cure="Round down.", see="more bytes than there are, where one unit more changes the choice"),
    ),
)
