"""What students write instead in lab 10, and what the checks then say."""

from __future__ import annotations

import math
from collections.abc import Callable

from .engine import Mistake
from .lab09_mistakes import BITS, Q4, Q8, Shapes, _n_scales

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
        "percent saved",
        lambda baseline, size: 100 * (1 - size / baseline),
        "This is the part that was saved, which can never tell 8 times from 9 times at a glance.",
        "Return how many times the file fits into the baseline.",
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
        "the last name of the alphabet",
        lambda parts: (max(parts), _percent(parts, max(parts))),
        "`max` of a dict compares its keys, and here the keys are words.",
        "Give it `key=parts.get`.",
        "a small part whose name comes late in the alphabet",
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
        lambda parts: (_name(parts), float(round(_percent(parts, _name(parts))))),
        "The percent was rounded, and what is rounded cannot be added up any more.",
        "Return it as it is, and round only where you print.",
        "whole percents",
    ),
    Mistake(
        "bytes instead of percent",
        lambda parts: (_name(parts), parts[_name(parts)]),
        "The second number is the part's bytes.",
        "Divide by the sum and multiply by 100.",
        "a number far beyond 100",
    ),
)


# ---- what_costs ------------------------------------------------------------------------------------------------------

OVERHEAD = "header, metadata, descriptors"
EXTRA = {scheme: bits - 4 for scheme, bits in BITS.items()}  # bits a value beyond 4


def _costs(
    shapes: Shapes,
    schemes: dict[str, str],
    overhead: float,
    *,
    extra: dict[str, int] = EXTRA,
    scale: int = 2,
    unit: int = 1,
    default: str | None = "f32",
) -> dict[str, float]:
    """The right account, with one thing at a time done wrong."""
    pairs = [(scheme, dims) for name, dims in shapes.items() if (scheme := schemes.get(name, default))]
    return {
        "more than 4 bits": unit * sum(extra[scheme] * math.prod(dims) / 8 for scheme, dims in pairs),
        "scales": unit * float(sum(scale * _n_scales(scheme, dims) for scheme, dims in pairs)),
        OVERHEAD: float(overhead),
    }


def _padding(shapes: Shapes, schemes: dict[str, str], overhead: int) -> dict[str, float]:
    return _costs(shapes, schemes, math.ceil(overhead / 32) * 32)


WHAT_COSTS = (
    Mistake(
        "whole tensors instead of what is beyond 4 bits",
        lambda shapes, schemes, overhead: _costs(shapes, schemes, overhead, extra={**BITS, Q4: 0}),
        "All bytes of an f32, f16 or Q8 tensor were counted, but 4 bits of each value would be there anyway.",
        "Subtract `math.prod(dims) / 2` for each of them.",
        "a sum that is more than the file",
    ),
    Mistake(
        "eight bits taken for free",
        lambda shapes, schemes, overhead: _costs(shapes, schemes, overhead, extra={**EXTRA, Q8: 0}),
        "A tensor in `q8_per_channel` is quantized, and still takes 4 bits a value more than 4.",
        "Count it with 4 extra bits: half a byte a value.",
        "`0.0` at key `'more than 4 bits'` for a Q8 tensor",
    ),
    Mistake(
        "float16 taken for free",
        lambda shapes, schemes, overhead: _costs(shapes, schemes, overhead, extra={**EXTRA, "f16": 0}),
        "A float16 value takes 12 bits more than 4.",
        "Count every tensor that is not at 4 bits.",
        "`0.0` at key `'more than 4 bits'` for an f16 tensor",
    ),
    Mistake(
        "scales forgotten",
        lambda shapes, schemes, overhead: _costs(shapes, schemes, overhead, scale=0),
        "The quantized tensors carry their scales, two bytes each.",
        "Add them under `scales`.",
        "`0.0` at key `'scales'`",
    ),
    Mistake(
        "scales in float32",
        lambda shapes, schemes, overhead: _costs(shapes, schemes, overhead, scale=4),
        "Each scale was counted with four bytes.",
        "A scale is a float16: two bytes.",
        "twice the expected number at key `'scales'`",
    ),
    Mistake(
        "only the tensors in schemes",
        lambda shapes, schemes, overhead: _costs(shapes, schemes, overhead, default=None),
        "Biases and norms, which no scheme names, are in the file as f32.",
        'Go over `shapes`, and take `schemes.get(name, "f32")`.',
        "too little at key `'more than 4 bits'` as soon as there is a bias",
    ),
    Mistake(
        "padding assumed",
        _padding,
        "The overhead was rounded up to a multiple of 32: the question names padding, but this layout has none.",
        "Hand the overhead on as it is.",
        "a multiple of 32 for the header",
    ),
    Mistake(
        "bits instead of bytes",
        lambda shapes, schemes, overhead: _costs(shapes, schemes, overhead, unit=8),
        "The numbers are bits.",
        "Divide by 8.",
        "answers that are eight times too large",
    ),
)


# ---- readme_answers --------------------------------------------------------------------------------------------------


def _readme(
    torch_save: int,
    size: int,
    parts: dict[str, int],
    costs: dict[str, float],
    *,
    mega: float = 1e6,
    ratio: Callable[[int, int], float] = lambda a, b: a / b,
    percent: Callable[[dict[str, int], str], float] = _percent,
    choose: Callable[[dict[str, int]], str] = _name,
    ordered: bool = True,
    zeros: bool = False,
    number: str = ",.0f",
    end: str = "",
) -> str:
    """The right text, with one thing at a time done wrong."""
    rows = sorted(costs.items(), key=lambda item: -item[1]) if ordered else list(costs.items())
    reasons = "; ".join(f"{reason} {cost:{number}} bytes" for reason, cost in rows if cost or zeros)
    largest = choose(parts)
    return (
        f"1. `torch.save` takes {torch_save / mega:.2f} MB, this file {size / mega:.2f} MB: "
        f"{ratio(torch_save, size):.1f} times smaller.\n"
        f"2. The largest part is {largest}: {percent(parts, largest):.1f} % of the file.\n"
        f"3. It is not 8 times, because beyond 4 bits a weight there are: {reasons}.{end}"
    )


def _readme_mistake(name: str, cause: str, cure: str, see: str, **changes: object) -> Mistake:
    return Mistake(
        name,
        lambda torch_save, size, parts, costs: _readme(torch_save, size, parts, costs, **changes),
        cause,
        cure,
        see,
    )


README_ANSWERS = (
    _readme_mistake(
        "ratio upside down",
        "The file's size was divided by that of `torch.save`.",
        "Call `saving_ratio(torch_save, size)`, in this order.",
        "`0.1 times smaller` in line 1",
        ratio=lambda a, b: b / a,
    ),
    _readme_mistake(
        "MiB called MB",
        "The bytes were divided by 1,048,576, which is a MiB.",
        "Divide by `1e6`: the text says MB.",
        "`7.63 MB` where `8.00 MB` is expected",
        mega=2**20,
    ),
    _readme_mistake(
        "a fraction called percent",
        "The share is between 0 and 1, and the text says %.",
        "Multiply by 100, or take the percent that `largest_part` returns.",
        "`0.8 %` in line 2",
        percent=lambda parts, name: _percent(parts, name) / 100,
    ),
    _readme_mistake(
        "smallest part",
        "The part with the fewest bytes was named.",
        "Use `largest_part(parts)`.",
        "a name in line 2 that nobody expects",
        choose=lambda parts: min(parts, key=parts.__getitem__),
    ),
    _readme_mistake(
        "reasons as they come",
        "The costs stand in the order of the dict, and the one that matters need not be first.",
        "Sort them by their bytes, largest first.",
        "the right reasons in line 3, in another order",
        ordered=False,
    ),
    _readme_mistake(
        "reasons that cost nothing",
        "A cost of 0 bytes is no reason.",
        "Leave out the costs that are 0.",
        "`padding 0 bytes` in line 3",
        zeros=True,
    ),
    _readme_mistake(
        "numbers without commas",
        "Numbers of six digits are hard to read without separators.",
        "Format them with `{cost:,.0f}`.",
        "`278528` where `278,528` is expected",
        number=".0f",
    ),
    _readme_mistake(
        "a newline at the end",
        "The text ends with a newline, which makes a fourth, empty line.",
        "Join the three lines with newlines, and add none behind the last.",
        "`line 4 differs`",
        end="\n",
    ),
)
