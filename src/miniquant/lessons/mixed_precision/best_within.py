"""The choice of types with the smallest sum of KLs within a number of bytes: the whole knapsack."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit, omit
from .add_matrix import add_matrix
from .toys import every_choice


def best_within(costs, room):
    """A type for each matrix, with the smallest sum of KLs that the room
    allows.

    costs: dict, name -> dict, kind -> (units, KL), the units above 0; room:
        units for all matrices together, enough for each in its smallest
        type
    ->   dict, name -> kind; in the checks one choice alone has the
         smallest sum
    """
    sums, picks = np.zeros(room + 1), {}
    for name, of in costs.items():
        sizes, kls = zip(*of.values())
        sums, picks[name] = add_matrix(sums, sizes, kls)
    types = {}
    for name in reversed(costs):
        types[name] = list(costs[name])[picks[name][room]]
        room -= costs[name][types[name]][0]
    return types


def oracle(costs, room):
    """Every choice that there is; the best of those that fit."""
    fits = [(kl, types) for n_units, kl, types in every_choice(costs) if n_units <= room]
    return min(fits, key=lambda found: found[0])[1]


def cases(random):
    """One matrix, two, a room that one fills, a greedy choice that fails, more room than needed, drawn ones."""

    def of(*pairs):
        return dict(zip(("small", "middle", "large"), pairs))

    one = {"a": of((2, 0.5), (4, 0.125))}
    two = {"a": of((2, 0.5), (4, 0.125)), "b": of((3, 0.25), (6, 0.0))}
    greedy = {"a": of((1, 1.5), (4, 0.3)), **{name: of((1, 1.0), (2, 0.5)) for name in "bcde"}}  # all but a
    made = [
        (one, 4),
        (one, 3),
        (two, 7),
        (two, 8),
        (two, 5),
        (two, 99),
        (greedy, 9),
        ({"a": of((5, 0.5), (9, 0.25), (3, 2.0)), "b": of((2, 1.0), (1, 3.0), (4, 0.125))}, 9),
        ({"b": {"Q4_0": (4, 3e9)}, "a": {"Q2_K": (1, 0.9), "Q8_0": (5, 0.05)}}, 9),
    ]
    for size in (3, 4, 5, 6):
        costs = {}
        for i in range(size):
            units = np.sort(random.permutation(np.arange(1, 12))[:3])
            kls = np.sort(random.random(3))[::-1] * random.choice([1e-8, 1, 5])
            costs[f"w{i}"] = of(*zip(units.tolist(), kls.tolist()))
        least = sum(next(iter(kinds.values()))[0] for kinds in costs.values())
        made += [(costs, least + int(random.integers(1, 5 * size))) for _ in range(2)]
    return made


EXERCISE = Exercise(
    goal="Choose a type for each matrix so that all fit into the room, with the smallest sum of KLs.",
    reference=best_within, oracle=oracle, cases=cases, minutes=11, difficulty="stretch",
    hints=(
        "On the way forward, add one matrix after another and keep the picks of each. Then walk back: the last matrix has the whole room, and its pick is in its array at that place. What it takes is not there for the matrix before it.",
        "`zip` with a star makes two tuples out of pairs, here units and KLs. `reversed(costs)` goes through the names from the last to the first, and a list that is made of a dict has its keys in their order.",
    ),
    why="it is the best of all choices, and it took one pass forward and one back.",
    mistakes=(
        Mistake("the room never gets smaller", omit("room -="),
            cause="Every matrix was given the type for the whole room.",
            cure="Subtract what a matrix takes before you look up the one before it.", see="the last matrix right, and all others in their largest type"),
        Mistake("walked forward", edit("for name in reversed(costs):", "for name in costs:"),
            cause="The picks of the first matrix were made for a room that it had alone. The last one has the whole room.",
            cure="Walk from the last matrix to the first.", see="right for one matrix, and too many units or too large a sum for more"),
        Mistake("sums not carried on", edit("sums, picks[name] = add_matrix(sums, sizes, kls)", "_, picks[name] = add_matrix(sums, sizes, kls)"),
            cause="Every matrix was added to the sums of none.",
            cure="Keep the new sums for the next matrix.", see="the largest type for nearly every matrix"),
        Mistake("the pick before the last unit", edit("picks[name][room]]", "picks[name][room - 1]]"),
            cause="The pick is that of a room with one unit less.",
            cure="Look up the pick at `room`.", see="a smaller type where a matrix fills the room"),
        Mistake("one at a time, each as large as fits", body("""
                types, left = {}, room - sum(min(n for n, _ in of.values()) for of in costs.values())
                for name, of in costs.items():
                    least = min(n for n, _ in of.values())
                    fits = {kind: kl for kind, (n, kl) in of.items() if n - least <= left}
                    types[name] = min(fits, key=fits.get)
                    left -= of[types[name]][0] - least
                return types
            """),
            cause="The first matrices took all the room that there was, whatever the later ones would have gained.",
            cure="Add the matrices with `add_matrix`, and walk back.", see="large types for the first matrices, and the smallest ones for the last"),
        Mistake("the most gained per unit first", body("""
                types = {name: min(of, key=lambda kind: of[kind][0]) for name, of in costs.items()}
                left = room - sum(costs[name][kind][0] for name, kind in types.items())
                while True:
                    best = (0, None, None)
                    for name, of in costs.items():
                        n, kl = of[types[name]]
                        for kind, (more, less) in of.items():
                            if 0 < more - n <= left and (kl - less) / (more - n) > best[0]:
                                best = ((kl - less) / (more - n), name, kind)
                    if best[1] is None:
                        return types
                    left -= costs[best[1]][best[2]][0] - costs[best[1]][types[best[1]]][0]
                    types[best[1]] = best[2]
            """),
            cause="The step that gains most for each unit was always taken first. A choice that is good now may leave a gap that nothing fills.",
            cure="Add the matrices with `add_matrix`, and walk back.", see="right in many cases, and a sum that is a little too large in some"),
        Mistake("the smallest types", body("""
                return {name: min(of, key=lambda kind: of[kind][0]) for name, of in costs.items()}
            """),
            cause="Every matrix got its smallest type, and the rest of the room was not used.",
            cure="Add the matrices with `add_matrix`, and walk back.", see="small types only"),
        Mistake("the smallest KLs", body("""
                return {name: min(of, key=lambda kind: of[kind][1]) for name, of in costs.items()}
            """),
            cause="Every matrix got the type with its smallest KL, whether it fits or not.",
            cure="Add the matrices with `add_matrix`, and walk back.", see="right where there is room for all"),
        Mistake("places in place of names", edit("list(costs[name])[picks[name][room]]", "int(picks[name][room])").edit("costs[name][types[name]][0]", "list(costs[name].values())[types[name]][0]"),
            cause="The result has the places of the types, and their names are asked for.",
            cure="`list(costs[name])` has the names in their order.", see="numbers where names are expected"),
        Mistake("the KL taken from the room", edit("[types[name]][0]", "[types[name]][1]").edit("picks[name][room]]", "picks[name][int(room)]]"),
            cause="The KL was subtracted from the room.",
            cure="Subtract the units, the first number of the pair.", see="the last matrix right, and others too large"),
    ),
)
