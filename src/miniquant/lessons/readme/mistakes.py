"""What students write instead in lab 10 when they compute one number, and what the checks then say."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...lab.spec import Mistake

Shapes = dict[str, tuple[int, ...]]

# ---- saving_ratio ----------------------------------------------------------------------------------------------------

SAVING_RATIO = (
    Mistake(
        "upside down",
        lambda baseline, size: size / baseline,
        "The size was divided by the baseline, so a better file gives a smaller number.",
        "Divide the baseline by the size.",
        "a number below 1 where the file is smaller",
    ),
    Mistake(
        "the part that was saved",
        lambda baseline, size: 1 - size / baseline,
        "This is how much of the baseline is gone, which comes close to 1 for every good file.",
        "Return how many times the file fits into the baseline.",
        "`0.875` where `8.0` is expected",
    ),
    Mistake(
        "rounded",
        lambda baseline, size: round(baseline / size, 1),
        "The ratio was rounded, and whoever computes with it further carries the error on.",
        "Return it as it is, and round only where you print.",
        "`4.7` where `4.666…` is expected",
    ),
    Mistake(
        "percent saved",
        lambda baseline, size: 100 * (1 - size / baseline),
        "This is how much of the baseline is gone, in percent, where 8 times and 9 times look almost alike.",
        "Divide the baseline by the size.",
        "`87.5` where `8.0` is expected",
    ),
    Mistake(
        "whole times only",
        lambda baseline, size: baseline // size,
        "`//` throws the fraction away, and 5.9 times becomes 5.",
        "Divide with `/`.",
        "whole numbers only",
    ),
    Mistake(
        "bytes saved",
        lambda baseline, size: baseline - size,
        "A difference has a unit, and depends on how large the model is.",
        "Return a ratio.",
        "`700` where `8.0` is expected",
    ),
    Mistake(
        "MiB against MB",
        lambda baseline, size: (baseline / 2**20) / (size / 10**6),
        "One size was turned into MiB of 1,048,576 bytes and the other into MB of 1,000,000.",
        "Divide bytes by bytes; units belong where you print.",
        "an answer that is about 5 % too small",
    ),
    Mistake(
        "one too few",
        lambda baseline, size: baseline / size - 1,
        "This is how much larger the baseline is, in parts of the file.",
        "Leave out the `- 1`: a file of the same size is 1 time the baseline.",
        "`7.0` where `8.0` is expected",
    ),
)


# ---- effective_bits -------------------------------------------------------------------------------------------------


def _bits(size: int, shapes: Shapes, count: Callable[[tuple[int, ...]], int] = math.prod) -> float:
    return 8 * size / sum(count(dims) for dims in shapes.values())


EFFECTIVE_BITS = (
    Mistake(
        "two dims assumed",
        lambda size, shapes: _bits(size, shapes, lambda dims: dims[0] * dims[1]),
        "`dims[0] * dims[1]` fails for a bias, which has one dim, and for a scalar, which has none.",
        "Use `math.prod(dims)` for any number of dims.",
        "`IndexError: tuple index out of range`",
    ),
    Mistake(
        "whole bits only",
        lambda size, shapes: float(_bits(size, shapes) // 1),
        "`//` throws the fraction away, and in it stands what the scales cost.",
        "Divide with `/`.",
        "whole numbers only",
    ),
    Mistake(
        "bytes per weight",
        lambda size, shapes: _bits(size, shapes) / 8,
        "The size is in bytes, and a byte has eight bits.",
        "Multiply the size by 8.",
        "an answer that is eight times too small",
    ),
    Mistake(
        "matrices only",
        lambda size, shapes: _bits(size, shapes, lambda dims: math.prod(dims) if len(dims) == 2 else 0),
        "Biases and norms are in the file, so their numbers belong into the count.",
        "Count every tensor, whatever its number of dims.",
        "an answer that is too large as soon as there is a bias",
    ),
    Mistake(
        "dims added instead of multiplied",
        lambda size, shapes: _bits(size, shapes, sum),
        "A matrix of 4 by 8 holds 32 numbers, not 12.",
        "Use `math.prod(dims)`.",
        "an answer that is far too large for matrices",
    ),
    Mistake(
        "a scalar counts nothing",
        lambda size, shapes: _bits(size, shapes, lambda dims: math.prod(dims) if dims else 0),
        "Empty dims were read as no numbers, but a scalar is one.",
        "Leave it to `math.prod(())`, which is 1.",
        "an answer that is slightly too large where dims are `()`",
    ),
    Mistake(
        "upside down",
        lambda size, shapes: 1 / _bits(size, shapes),
        "These are weights per bit.",
        "Divide the bits by the number of weights.",
        "`0.25` where `4.0` is expected",
    ),
    Mistake(
        "mean over tensors",
        lambda size, shapes: 8 * size / len(shapes),
        "The bits were shared out among the tensors instead of their numbers.",
        "Divide by the number of weights, not by `len(shapes)`.",
        "thousands of bits",
    ),
)


# ---- ceiling_ratio ---------------------------------------------------------------------------------------------------

CEILING_RATIO = (
    Mistake(
        "scales forgotten",
        lambda bits, group_size: 32 / bits,
        "This is the clean 8 of the assignment's question: every weight must also pay its part of a scale.",
        "Add `16 / group_size` bits to each weight.",
        "`8.0` for 4 bits, whatever the group size",
    ),
    Mistake(
        "a whole scale for each weight",
        lambda bits, group_size: 32 / (bits + 16),
        "The scale was not shared out among the weights of its group.",
        "Divide its 16 bits by `group_size`.",
        "`1.6` for 4 bits",
    ),
    Mistake(
        "scales in float32",
        lambda bits, group_size: 32 / (bits + 32 / group_size),
        "A scale was counted with 32 bits.",
        "This format stores scales as float16: 16 bits.",
        "`7.11` where `7.53` is expected",
    ),
    Mistake(
        "bytes added to bits",
        lambda bits, group_size: 32 / (bits + 2 / group_size),
        "The scale's two bytes were added to a number of bits.",
        "Count the scale in bits as well: 16.",
        "`7.94` where `7.53` is expected",
    ),
    Mistake(
        "against float16",
        lambda bits, group_size: 16 / (bits + 16 / group_size),
        "The saving was measured against float16, where the assignment's 4 times comes from.",
        "Compare with float32: 32 bits.",
        "half the expected answer",
    ),
    Mistake(
        "bits, not a ratio",
        lambda bits, group_size: bits + 16 / group_size,
        "This is what one weight takes.",
        "Divide the 32 bits of float32 by it.",
        "`4.25` where `7.53` is expected",
    ),
)


# ---- largest_part ----------------------------------------------------------------------------------------------------


def _name(parts: dict[str, int]) -> str:
    return max(parts, key=parts.__getitem__)


def _percent(parts: dict[str, int], name: str) -> float:
    return 100 * parts[name] / sum(parts.values())


def _of_the_rest(parts: dict[str, int]) -> tuple[str, float]:
    name = _name(parts)
    rest = sum(parts.values()) - parts[name]
    return name, 100 * parts[name] / rest if rest else math.inf


def _last_of_equals(parts: dict[str, int]) -> tuple[str, float]:
    name = sorted(parts, key=parts.__getitem__)[-1]
    return name, _percent(parts, name)


LARGEST_PART = (
    Mistake(
        "the name only",
        _name,
        "The share is missing.",
        "Return two things: `return name, percent`.",
        "`the type differs`, with `str` on your side",
    ),
    Mistake(
        "the last name of the alphabet",
        lambda parts: (max(parts), _percent(parts, max(parts))),
        "`max` of a dict compares its keys, and here the keys are words.",
        "Give it `key=parts.get`.",
        "a small part whose name comes late in the alphabet",
    ),
    Mistake(
        "the right percent under another name",
        lambda parts: (max(parts), _percent(parts, _name(parts))),
        "`max(parts.values())` found the size, but `max(parts)` compares the names, and the two "
        "need not belong together.",
        "Find the name first, with `max(parts, key=parts.get)`, and look its size up.",
        "the expected percent with an unexpected name",
    ),
    Mistake(
        "a fraction instead of a percent",
        lambda parts: (_name(parts), _percent(parts, _name(parts)) / 100),
        "The share is between 0 and 1.",
        "Multiply by 100.",
        "`0.75` where `75.0` is expected",
    ),
    Mistake(
        "percent of the others",
        _of_the_rest,
        "The part was compared with the sum of the other parts.",
        "Divide by the sum of all parts, itself included.",
        "more than 100 percent",
    ),
    Mistake(
        "the last of equals",
        _last_of_equals,
        "After sorting, the last of two equal parts stands at the end.",
        "Use `max`, which keeps the first of equals.",
        "another name where two parts are equally large",
    ),
    Mistake(
        "rounded",
        lambda parts: (_name(parts), round(_percent(parts, _name(parts)), 1)),
        "The percent was rounded, and what is rounded cannot be added up any more.",
        "Return it as it is, and round only where you print.",
        "`47.8` where more digits are expected",
    ),
    Mistake(
        "bytes instead of percent",
        lambda parts: (_name(parts), parts[_name(parts)]),
        "The second number is the part's bytes.",
        "Divide by the sum and multiply by 100.",
        "a number far beyond 100",
    ),
)
