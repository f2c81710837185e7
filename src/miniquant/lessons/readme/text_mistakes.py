"""What students write instead in lab 10 when they account for a file in words, and what the checks then say."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...lab.spec import Mistake
from ..size.tensor_bytes import Q4, Q8
from .mistakes import Shapes, _name, _percent

BITS = {"f32": 32, "f16": 16, Q8: 8, Q4: 4}


def _n_scales(scheme: str, dims: tuple[int, ...]) -> int:
    if scheme == Q8:
        return dims[0]
    return dims[0] * (dims[1] // 64) if scheme == Q4 else 0


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


def _whole_tensors(shapes: Shapes, schemes: dict[str, str], overhead: int) -> dict[str, float]:
    costs = _costs(shapes, schemes, overhead, extra={**BITS, Q4: 0})
    q8 = {name: dims for name, dims in shapes.items() if schemes.get(name) == Q8}
    return {
        **costs,
        "more than 4 bits": costs["more than 4 bits"] + sum(2 * _n_scales(Q8, dims) for dims in q8.values()),
    }


def _no_default(shapes: Shapes, schemes: dict[str, str], overhead: int) -> dict[str, float]:
    return _costs(shapes, {name: schemes[name] for name in shapes}, overhead)


def _scales_twice(shapes: Shapes, schemes: dict[str, str], overhead: int) -> dict[str, float]:
    costs = _costs(shapes, schemes, overhead)
    return {**costs, "more than 4 bits": costs["more than 4 bits"] + costs["scales"]}


WHAT_COSTS = (
    Mistake(
        "scales counted twice",
        _scales_twice,
        "`tensor_bytes` includes the scales, and they were left in `more than 4 bits` as well.",
        "Subtract the scales from the tensor's bytes first.",
        "a number at `more than 4 bits` for a tensor that is at 4 bits",
    ),
    Mistake(
        "no default scheme",
        _no_default,
        "`schemes[name]` fails for a tensor that `schemes` does not name, and such a tensor is stored as f32.",
        'Use `schemes.get(name, "f32")`.',
        "`KeyError` with the name of a tensor",
    ),
    Mistake(
        "4 bits taken for 4 bytes",
        lambda shapes, schemes, overhead: _costs(shapes, schemes, overhead, extra={s: b - 32 for s, b in BITS.items()}),
        "Four bytes were subtracted for each weight, as float32 would take.",
        "Four bits are half a byte: subtract `math.prod(dims) / 2`.",
        "a negative number",
    ),
    Mistake(
        "whole tensors, scales and all",
        _whole_tensors,
        "All bytes of every tensor that is not at 4 bits were counted, but 4 bits of each value would be there anyway.",
        "Subtract its scales, which are counted already, and `math.prod(dims) / 2`.",
        "a sum that is more than the file",
    ),
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
    share_of_baseline: bool = False,
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
    share = 100 * parts[largest] / torch_save if share_of_baseline else percent(parts, largest)
    return (
        f"1. `torch.save` takes {torch_save / mega:.1f} MB, this file {size / mega:.2f} MB: "
        f"{ratio(torch_save, size):.1f} times smaller.\n"
        f"2. The largest part is {largest}: {share:.1f} % of the file.\n"
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
        "`7.6 MB` where `8.0 MB` is expected",
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
        "percent of the wrong total",
        "The part was compared with what `torch.save` writes, and the text says: of the file.",
        "Take the percent that `largest_part(parts)` returns.",
        "`9.4 %` where `75.0 %` is expected",
        share_of_baseline=True,
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
