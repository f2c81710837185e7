"""The exercises of lab 10: the three questions of the README (the assignment's Block E)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ...formats.gguf_lite.file import DType
from ...lab.spec import Case, Exercise
from ...quantization.schemes import SCHEMES
from ..shared import observed
from ..size.tensor_bytes import Q4, Q8
from ..size.tensor_bytes import oracle as _tensor_bytes_oracle
from . import mistakes as lab10_mistakes
from . import text_mistakes as lab10_text_mistakes
from .mistakes import Shapes

OVERHEAD = "header, metadata, descriptors"

# ---- saving_ratio ----------------------------------------------------------------------------------------------------


def saving_ratio(baseline: int, size: int) -> float:
    """The reference: how many times smaller ``size`` is than ``baseline``, both in bytes."""
    return baseline / size


SAVING_RATIO = Exercise(
    name="saving_ratio",
    lab="10",
    goal="Return how many times smaller a file is than its baseline, as one number without a unit.",
    minutes=5,
    difficulty="warm-up",
    reference=saving_ratio,
    oracle=lambda baseline, size: float(Fraction(baseline, size)),
    cases=lambda random: [
        (800, 100),
        (1000, 400),
        (100, 200),
        (14_000_000, 3_000_000),
        tuple(int(n) for n in random.integers(10**6, 10**8, 2)),
    ],
    hints=(
        "A file of 100 bytes is 8 times smaller than one of 800.",
        "Divide the baseline by the size, both in bytes, and round only where you print.",
    ),
    why="this is the first number that anyone asks for, and people have quoted it upside down before you.",
    mistakes=lab10_mistakes.SAVING_RATIO,
    observe=observed.values,
    tolerance=1e-9,
)


# ---- effective_bits -------------------------------------------------------------------------------------------------


def effective_bits(size: int, shapes: Shapes) -> float:
    """The reference: the bits of a whole file, shared out among all the numbers of the model."""
    return 8 * size / sum(math.prod(dims) for dims in shapes.values())


def _bits_oracle(size: int, shapes: Shapes) -> float:
    count = sum(len(range(_tensor_bytes_oracle("f32", dims))) // 4 for dims in shapes.values())
    return float(Fraction(8 * size, count))


def _bits_cases(random: np.random.Generator) -> list[Case]:
    rows = [int(n) for n in random.integers(2, 30, 3)]
    return [
        (2, {"w": (2, 2)}),
        (100, {"w": (4, 8), "b": (4,)}),
        (9, {"scalar": (), "w": (3, 5)}),
        (sum(rows) * 70, {f"fc{i}.weight": (n, 64) for i, n in enumerate(rows)} | {"ln.weight": (64,)}),
    ]


EFFECTIVE_BITS = Exercise(
    name="effective_bits",
    lab="10",
    goal="Return the effective bits per weight of a file: all its bits over all the numbers that the model has.",
    minutes=5,
    difficulty="warm-up",
    reference=effective_bits,
    oracle=_bits_oracle,
    cases=_bits_cases,
    hints=(
        "A tensor holds as many numbers as the product of its dims; a scalar, with dims `()`, holds one.",
        "`8 * size` are the bits; divide them by the sum of `math.prod(dims)` over `shapes.values()`.",
    ),
    why="a 4-bit file has more than 4 bits a weight, and this number says at once how much more.",
    mistakes=lab10_mistakes.EFFECTIVE_BITS,
    observe=observed.values,
    tolerance=1e-9,
)


# ---- ceiling_ratio ---------------------------------------------------------------------------------------------------


def ceiling_ratio(bits: int, group_size: int) -> float:
    """The reference: float32 against ``bits`` bits and a float16 scale for every ``group_size`` weights."""
    return 32 / (bits + 16 / group_size)


CEILING_RATIO = Exercise(
    name="ceiling_ratio",
    lab="10",
    goal="Return the largest saving against float32 that a format of some bits and one float16 scale a group can give.",
    minutes=6,
    difficulty="core",
    reference=ceiling_ratio,
    oracle=lambda bits, group_size: float(Fraction(32 * group_size, bits * group_size + 16)),
    cases=lambda random: [
        (4, 64),
        (4, 16),
        (8, 256),
        (2, 16),
        (3, 32),
        (int(random.integers(2, 9)), int(random.integers(1, 9)) * 32),
    ],
    hints=(
        "One weight takes its own bits, and its share of the group's scale.",
        "A scale of 16 bits is shared by `group_size` weights, so a weight takes `bits + 16 / group_size` bits; "
        "float32 takes 32.",
    ),
    why="you now know which promises no file of this format can keep, however large the model is.",
    mistakes=lab10_mistakes.CEILING_RATIO,
    observe=observed.values,
    tolerance=1e-9,
)


# ---- largest_part ----------------------------------------------------------------------------------------------------


def largest_part(parts: dict[str, int]) -> tuple[str, float]:
    """The reference: the name of the largest part, the first of equals, and its percent of the sum."""
    name = max(parts, key=parts.__getitem__)
    return name, 100 * parts[name] / sum(parts.values())


def _largest_oracle(parts: dict[str, int]) -> tuple[str, float]:
    best, size, total = "", -1, 0
    for name, n in parts.items():
        total += n
        if n > size:
            best, size = name, n
    return best, float(Fraction(size, total) * 100)


def _largest_cases(random: np.random.Generator) -> list[Case]:
    sizes = [int(n) for n in random.integers(1, 10**6, 5)]
    return [
        ({"weights": 75, "scales": 25},),
        ({"norms": 1, "embeddings": 5, "weights": 2},),
        ({"b": 4, "a": 4, "c": 0},),
        ({"weights": 100},),
        (dict(zip(["f32", "f16", Q8, Q4, "scales"], sizes)),),
    ]


LARGEST_PART = Exercise(
    name="largest_part",
    lab="10",
    goal="Return the name of the largest part, the first of equals, and how many percent of the sum it is.",
    minutes=6,
    difficulty="core",
    reference=largest_part,
    oracle=_largest_oracle,
    cases=_largest_cases,
    hints=(
        "`max` over a dict compares its keys; give it a `key=` that looks up the value.",
        "`max(parts, key=parts.get)` is the name; its percent is 100 times its bytes over the sum of all bytes, itself "
        "included.",
    ),
    why="the second question of the README has its answer, and it stays right when the preset changes.",
    mistakes=lab10_mistakes.LARGEST_PART,
    tolerance=1e-9,
)


# ---- what_costs ------------------------------------------------------------------------------------------------------


def what_costs(shapes: Shapes, schemes: dict[str, str], overhead: int) -> dict[str, float]:
    """The reference: the bytes of a file beyond 4 bits a weight, by reason."""
    costs = {"more than 4 bits": 0.0, "scales": 0.0, OVERHEAD: float(overhead)}
    for name, dims in shapes.items():
        dtype = DType(SCHEMES.index(schemes.get(name, "f32")))
        scales = dtype.scale_bytes(dims)
        costs["scales"] += scales
        costs["more than 4 bits"] += dtype.bytes_of(dims) - scales - math.prod(dims) / 2
    return costs


def _costs_oracle(shapes: Shapes, schemes: dict[str, str], overhead: int) -> dict[str, float]:
    more = scales = Fraction(0)
    for name, dims in shapes.items():
        count = Fraction(_tensor_bytes_oracle("f32", dims), 4)
        scheme = schemes.get(name, "f32")
        more += count * {"f32": 28, "f16": 12, Q8: 4, Q4: 0}[scheme] / 8
        scales += {"f32": 0, "f16": 0, Q8: 2 * dims[0], Q4: count / 32}[scheme]
    return {"more than 4 bits": float(more), "scales": float(scales), OVERHEAD: float(overhead)}


def _costs_cases(random: np.random.Generator) -> list[Case]:
    rows = [2 * int(n) for n in random.integers(2, 15, 4)]  # even: half a byte a weight is a whole number
    model = {"tok_emb": (rows[0], 64), "pos_emb": (rows[1], 64), "fc1": (rows[2], 128), "fc2": (rows[3], 64)}
    rest = {"fc1.bias": (rows[2],), "ln_f": (64,)}
    return [
        ({"w": (2, 64)}, {"w": Q4}, 16),
        ({"w": (1, 64)}, {"w": Q8}, 16),
        ({"w": (2, 3)}, {"w": "f16"}, 40),
        ({"w": (2, 64), "b": (2,)}, {"w": Q4}, 50),
        (model | rest, {"tok_emb": Q8, "pos_emb": "f16", "fc1": Q4, "fc2": Q4}, 333),
    ]


WHAT_COSTS = Exercise(
    name="what_costs",
    lab="10",
    goal="Account for every byte beyond 4 bits a weight: scales, tensors kept at more than 4 bits, and the overhead.",
    minutes=12,
    difficulty="stretch",
    reference=what_costs,
    oracle=_costs_oracle,
    cases=_costs_cases,
    hints=(
        "At 4 bits a weight, a tensor would take `math.prod(dims) / 2` bytes; what its values take beyond that is what "
        "it costs to keep it at more bits.",
        "For each tensor, add its scales under `scales`, and `tensor_bytes` less its scales less `math.prod(dims) / 2` "
        "under `more than 4 bits`; `overhead` is given.",
    ),
    why="ideal plus these costs is the file, to the byte: the third question is answered and nothing is left over.",
    mistakes=lab10_text_mistakes.WHAT_COSTS,
    tolerance=1e-6,
    observe=observed.values,
)


# ---- readme_answers --------------------------------------------------------------------------------------------------


def readme_answers(torch_save: int, size: int, parts: dict[str, int], costs: dict[str, float]) -> str:
    """The reference: the three answers as three lines of Markdown."""
    name, percent = largest_part(parts)
    ordered = sorted(costs.items(), key=lambda item: -item[1])
    reasons = "; ".join(f"{reason} {cost:,.0f} bytes" for reason, cost in ordered if cost)
    return (
        f"1. `torch.save` takes {torch_save / 1e6:.1f} MB, this file {size / 1e6:.2f} MB: "
        f"{saving_ratio(torch_save, size):.1f} times smaller.\n"
        f"2. The largest part is {name}: {percent:.1f} % of the file.\n"
        f"3. It is not 8 times, because beyond 4 bits a weight there are: {reasons}."
    )


def _readme_oracle(torch_save: int, size: int, parts: dict[str, int], costs: dict[str, float]) -> str:
    name, percent = _largest_oracle(parts)
    text = "1. `torch.save` takes %.1f MB, this file %.2f MB: %.1f times smaller.\n" % (  # noqa: UP031
        torch_save / 1_000_000,
        size / 1_000_000,
        torch_save / size,
    )
    text += "2. The largest part is %s: %.1f %% of the file.\n" % (name, percent)  # noqa: UP031
    text += "3. It is not 8 times, because beyond 4 bits a weight there are: "
    for cost, reason in reversed(sorted((cost, reason) for reason, cost in costs.items() if cost > 0)):
        text += reason + " " + format(int(cost), ",d") + " bytes; "
    return text.removesuffix("; ") + "."


def _readme_cases(random: np.random.Generator) -> list[Case]:
    parts = {"f32": 55_296, "f16": 131_072, Q8: 262_144, Q4: 1_572_864, "scales": 100_352, OVERHEAD: 2_182}
    costs = {"more than 4 bits": 278_528.0, "scales": 100_352.0, OVERHEAD: 2_182.0}
    drawn = {reason: float(cost) for reason, cost in zip(costs, random.integers(1000, 10**6, 3))}
    size = int(sum(drawn.values())) + 2_000_000
    return [
        (8_000_000, 1_000_000, {"weights": 750_000, "rest": 250_000}, {"scales": 500.0}),
        (3_000_000, 2_000_000, {"a": 500_000, "z": 1_500_000}, {"scales": 1_000.0, "padding": 0.0, "header": 2_000.0}),
        (13_965_831, sum(parts.values()), parts, costs),
        (4 * size, size, {"values": 2_000_000, **{k: int(v) for k, v in drawn.items()}}, drawn),
    ]


README_ANSWERS = Exercise(
    name="readme_answers",
    lab="10",
    goal="Write the three answers of the README as three lines of text, with every number taken from the arguments.",
    minutes=10,
    difficulty="core",
    reference=readme_answers,
    oracle=_readme_oracle,
    cases=_readme_cases,
    hints=(
        "An f-string formats as it fills in: `{x / 1e6:.2f}` for MB of 1,000,000 bytes with two decimals, `{x:,.0f}` "
        "for whole bytes with commas.",
        "Sort the costs by their bytes, largest first, leave out those that are 0, and join them with `'; '`; "
        "`saving_ratio` and `largest_part` give the rest.",
    ),
    why="no number in your README was typed by hand, so none of them can be out of date.",
    mistakes=lab10_text_mistakes.README_ANSWERS,
)

EXERCISES = [SAVING_RATIO, EFFECTIVE_BITS, CEILING_RATIO, LARGEST_PART, WHAT_COSTS, README_ANSWERS]
