"""The bytes and the foretold KL of one choice of types."""

from fractions import Fraction

from ...lab import Exercise, Mistake, edit


def choice_cost(costs, types):
    """The bytes of all matrices together, and the sum of their KLs.

    costs: dict, name -> dict, kind -> (bytes, KL); types: dict, name ->
        kind, a type for every name; the two may have their names in
        different orders
    ->   (bytes, KL), a tuple of an int and a float; the KL right to 1e-9
    """
    chosen = [costs[name][kind] for name, kind in types.items()]
    n_bytes = sum(n for n, _ in chosen)
    return n_bytes, sum(kl for _, kl in chosen)


def oracle(costs, types):
    """Matrix by matrix, in exact fractions."""
    total, lost = 0, Fraction(0)
    for name in sorted(costs):
        n_bytes, kl = costs[name][types[name]]
        total, lost = total + n_bytes, lost + Fraction(kl)
    return total, float(lost)


def cases(random):
    """One matrix, two, two of equal cost, another order, a type that some lack, several drawn."""
    a = {"Q4_0": (18, 0.5), "Q8_0": (34, 0.25)}
    b = {"Q4_0": (180, 0.125), "Q8_0": (340, 0.0625)}
    drawn = {f"w{i}": {kind: (18 * 10**8 * int(random.integers(1, 9)), float(random.random())) for kind in "stuv"} for i in range(6)}
    some = {name: "stuv"[int(random.integers(4))] for name in reversed(drawn)}
    return [
        ({"a": a}, {"a": "Q8_0"}),
        ({"a": a, "b": b}, {"a": "Q4_0", "b": "Q4_0"}),
        ({"a": a, "b": dict(a)}, {"a": "Q4_0", "b": "Q4_0"}),
        ({"a": a, "b": b}, {"a": "Q8_0", "b": "Q4_0"}),
        ({"a": a, "b": b}, {"b": "Q8_0", "a": "Q4_0"}),
        ({"a": a, "b": {"F32": (128, 0.0)}}, {"a": "Q4_0", "b": "F32"}),
        (drawn, some),
    ]


EXERCISE = Exercise(
    goal="Add up what a choice of types takes, and what it loses if the losses only add up.",
    reference=choice_cost, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up", tolerance=1e-9,
    hints=(
        "For each name, take the pair that belongs to its type. Then add up the first numbers and the second ones.",
        "`types.items()` gives each name with its type. A dict of dicts is asked with two keys, one after the other, and `a, b = pair` takes a pair apart. `sum` adds up what a loop in its brackets gives.",
    ),
    why="two numbers for a whole file, before the file exists.",
    mistakes=(
        Mistake("the mean KL", edit("sum(kl for _, kl in chosen)", "sum(kl for _, kl in chosen) / len(chosen)"),
            cause="The KLs were averaged.",
            cure="Add them up.", see="right for one matrix, half of the sum for two"),
        Mistake("the largest KL", edit("sum(kl for _, kl in chosen)", "max(kl for _, kl in chosen)"),
            cause="This is the KL of the matrix that loses most.",
            cure="Add up the KLs of all matrices.", see="right for one matrix, and too small for more"),
        Mistake("all types added", edit("[costs[name][kind] for name, kind in types.items()]", "[pair for of in costs.values() for pair in of.values()]"),
            cause="The pairs of all types were added up, also of those that were not chosen.",
            cure="Take one pair for each matrix.", see="too many bytes"),
        Mistake("the first type of each", edit("costs[name][kind] for name, kind in types.items()", "next(iter(of.values())) for of in costs.values()"),
            cause="Every matrix was counted in the first type of its dict.",
            cure="Look up the type that was chosen, `costs[name][kind]`.", see="the same numbers whatever is chosen"),
        Mistake("matched by position", edit("costs[name][kind] for name, kind in types.items()", "of.get(kind, (0, 0.0)) for of, kind in zip(costs.values(), types.values())"),
            cause="The first type was taken for the first matrix. The two dicts may have different orders.",
            cure="Look up by name.", see="wrong where the orders differ"),
        Mistake("KL first", edit("return n_bytes, sum(kl for _, kl in chosen)", "return sum(kl for _, kl in chosen), n_bytes"),
            cause="The KL came first.",
            cure="Return the bytes first.", see="the two numbers exchanged"),
        Mistake("kilobytes", edit("sum(n for n, _ in chosen)", "sum(n for n, _ in chosen) / 1000"),
            cause="The bytes were divided by 1000.",
            cure="Return the bytes themselves.", see="a fraction where a whole number is expected"),
    ),
)
