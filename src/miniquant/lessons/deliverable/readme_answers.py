"""Three answers as three lines of text."""

from ...lab import Exercise, Mistake, edit
from ..shared.gguf_lite_by_hand import Q4, Q8
from ..shared.names import ODD_NAMES
from . import largest_part as largest_part_lesson
from .largest_part import largest_part
from .what_costs import OVERHEAD


def readme_answers(torch_save, size, parts, costs):
    """The three answers, a line each, in the form shown above; no newline
    at the end.

    torch_save, size: bytes; parts: dict, name -> bytes of all parts of the
        file; costs: dict, reason -> bytes, one above 0 at least, no two
        equal
    ->   str. Every number is rounded once, to the nearest; none lies
         halfway.

    Line 1: torch_save in MB with one decimal, size in MB with two, and the
    ratio of the two unrounded sizes with one. An MB is 1,000,000 bytes.
    Line 2: the largest part, the first one of equal ones, and its percent
    of the sum of all parts, with one decimal.
    Line 3: each cost above 0, the largest first, rounded to whole bytes
    (0.25 to "0 bytes", 1.0 to "1 bytes"), with commas between thousands
    (in this line alone), joined by "; ".
    All other words are those of the form: "not 8 times" and "beyond 4 bits"
    are in line 3 whatever the ratio.
    """
    largest, percent = largest_part(parts)
    reasons = [(cost, reason) for reason, cost in costs.items() if cost > 0]
    listed = "; ".join(f"{reason} {cost:,.0f} bytes" for cost, reason in sorted(reasons, reverse=True))
    return "\n".join(
        [
            f"1. `torch.save` takes {torch_save / 1e6:.1f} MB, this file {size / 1e6:.2f} MB: "
            f"{torch_save / size:.1f} times smaller.",
            f"2. The largest part is {largest}: {percent:.1f} % of the file.",
            f"3. It is not 8 times, because beyond 4 bits a weight there are: {listed}.",
        ]
    )


def oracle(torch_save, size, parts, costs):
    """With `%` and `format`, the costs sorted as pairs."""
    name, percent = largest_part_lesson.oracle(parts)
    text = "1. `torch.save` takes %.1f MB, this file %.2f MB: %.1f times smaller.\n" % (  # noqa: UP031
        torch_save / 1_000_000,
        size / 1_000_000,
        torch_save / size,
    )
    text += "2. The largest part is %s: %.1f %% of the file.\n" % (name, percent)  # noqa: UP031
    text += "3. It is not 8 times, because beyond 4 bits a weight there are: "
    for cost, reason in reversed(sorted((cost, reason) for reason, cost in costs.items() if cost > 0)):
        text += reason + " " + format(int(cost + 0.5), ",d") + " bytes; "
    return text.removesuffix("; ") + "."


def cases(random):
    """Round numbers, a cost of 0, the course's own file, then a random one."""
    parts = {"f32": 55_296, "f16": 131_072, Q8: 262_144, Q4: 1_572_864, "scales": 100_352, OVERHEAD: 2_182}
    costs = {"more than 4 bits": 278_528.0, "scales": 100_352.0, OVERHEAD: 2_182.0}
    odd = dict.fromkeys(ODD_NAMES, 2) | {" W.bias": 5}
    drawn = {reason: float(cost) for reason, cost in zip(costs, random.integers(1000, 10**6, 3))}
    size = int(sum(drawn.values())) + 2_000_000
    return [
        (8_000_000, 1_000_000, {"weights": 750_000, "rest": 250_000}, {"scales": 500.0}),
        (3_000_000, 2_000_000, {"a": 500_000, "z": 1_500_000}, {"scales": 1_000.0, "padding": 0.0, "header": 2_000.0}),
        (6_460_000, 1_004_999, {"a": 1_004_999}, {"scales": 1_000.0}),
        (13_965_831, sum(parts.values()), parts, costs),
        (4 * size, size, {"values": 2_000_000, **{k: int(v) for k, v in drawn.items()}}, drawn),
        (5_000_000, 700_000, {"b": 300_000, "a": 400_000}, {"scales": 12_000.0, "header": 900.0, "padding": 11_000.0}),
        (9_512_351_000, 1_767_695_344, {"u": 900_000, "v": 1_100_000, "w": 300_000}, {"scales": 70_000.0, "header": 3_000_000.0}),
        (5_000_000, 700_000, {"b": 350_000, "a": 350_000}, {"header": 40.0, "scales": 12_000.0}),
        (5_000_000, 700_000, {"b": 700_000}, {"header": 40.25, "scales": 1_999.75}),
        (41_895, 7_743, {"a": 0, "b": 1}, {"header": 0.25, "scales": 1.0}),
        (5_000_000, 700_000, {"a": 350_000, "b": 350_000}, {"header": 1.75, "scales": 2.25}),  # both are rounded to 2
        (7_447_000, 1_000_000, {"b": 65_447, "a": 34_553}, {"header": 44.0}),  # 7.447 is 7.4; 7.45 would be 7.5
        (5_000_000, 700_000, odd, {**{name: 20.0 + i for i, name in enumerate(ODD_NAMES)}, "a": 999.25, "c": 0.75, "header": 10.25, "rest": 0.2, "b": 998.75, "scales": 10.0}),
        (999_949, 1_994_999, {"only": 7}, {"b": 999.0, "a": 1_000_000.0, "c": 0, "d": 1_000.0, "e": 7.0}),
    ]


def quantities(torch_save, size, parts, costs):
    """Numbers that are easily taken for others."""
    sizes = sorted(parts.values())
    return {
        "the size of `torch.save` in MB": torch_save / 1e6,
        "the size of the file in MB": size / 1e6,
        "the size of `torch.save` in MiB": torch_save / 2**20,
        "the size of the file in MiB": size / 2**20,
        "the size of the file divided by that of `torch.save`": size / torch_save,
        "the bytes of `torch.save` less those of the file": torch_save - size,
        "the MB that the file is smaller by": (torch_save - size) / 1e6,
        "the largest part in percent of `size`": 100 * sizes[-1] / size,
        "the largest part in percent of `torch_save`": 100 * sizes[-1] / torch_save,
        "the smallest part in percent of all parts": 100 * sizes[0] / sum(sizes),
        "the first part in percent of all parts": 100 * next(iter(parts.values())) / sum(sizes),
        "the last part in percent of all parts": 100 * [*parts.values()][-1] / sum(sizes),
        "the bytes of the largest part": sizes[-1],
        "the largest part in percent of all costs": 100 * sizes[-1] / (sum(costs.values()) or 1),
        "a cost is above 0 and below one byte": any(0 < cost < 1 for cost in costs.values()),
        "two costs are equal when they are rounded": len({round(cost) for cost in costs.values()}) < len(costs),
        "a cost is 0": 0 in costs.values(),
        "there is more than one cost": len(costs) > 1,
        "the costs are not in falling order": list(costs.values()) != sorted(costs.values(), reverse=True),
        "the parts do not add up to `size`": sum(sizes) != size,
    }


EXERCISE = Exercise(
    goal="Write the three answers of the README as three lines of text, with every number taken from the arguments.",
    reference=readme_answers, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    quantities=quantities,
    hints=(
        "Write the three lines once with the numbers of the example, and then put an expression where each number is.",
        "An f-string formats what it fills in: `:.2f` after a value gives two decimals, `:,.0f` gives commas; `sorted` with `reverse=True` puts the largest pair first.",
    ),
    why="no number in your README was typed by hand, so none of them can be out of date.",
    mistakes=(
        Mistake("ratio upside down", edit("torch_save / size:.1f", "size / torch_save:.1f"),
            cause="The ratio is the file's size divided by that of `torch.save`.",
            cure="Divide the size of `torch.save` by the size of the file.", see="`0.1 times smaller` in line 1"),
        Mistake("MiB called MB", edit("torch_save / 1e6", "torch_save / 2**20").edit("size / 1e6", "size / 2**20"),
            cause="The sizes are those in MiB, of 1,048,576 bytes.",
            cure="Divide by `1e6`: the text says MB.", see="`7.6 MB` where `8.0 MB` is expected"),
        Mistake("a fraction called percent", edit("{percent:.1f}", "{percent / 100:.1f}"),
            cause="The share is between 0 and 1, and the text says %.",
            cure="Multiply by 100, or take the percent that `largest_part` returns.", see="`0.8 %` in line 2"),
        Mistake("percent of the wrong total", edit("{percent:.1f}", "{100 * parts[largest] / torch_save:.1f}"),
            cause="The percent is that of what `torch.save` writes, and the text says: of the file.",
            cure="Take the percent that `largest_part(parts)` returns.", see="`9.4 %` where `75.0 %` is expected"),
        Mistake("smallest part", edit(
                "largest, percent = largest_part(parts)",
                "largest = min(parts, key=parts.get)\n    percent = 100 * parts[largest] / sum(parts.values())",
            ),
            cause="Line 2 names the part with the fewest bytes.",
            cure="Use `largest_part(parts)`.", see="a name in line 2 that nobody expects"),
        Mistake("reasons as they come", edit("sorted(reasons, reverse=True)", "reasons"),
            cause="The costs are in the order of the dict, and the largest need not be first.",
            cure="Sort them by their bytes, largest first.", see="the right reasons in line 3, in another order"),
        Mistake("reasons that cost nothing", edit(" if cost > 0]", "]"),
            cause="A cost of 0 bytes is no reason.",
            cure="Leave out the costs that are 0.", see="`padding 0 bytes` in line 3"),
        Mistake("two decimals for torch.save", edit("{torch_save / 1e6:.1f}", "{torch_save / 1e6:.2f}"),
            cause="The size of `torch.save` has one decimal in this form.",
            cure="Format it with `:.1f`.", see="`8.00 MB` where `8.0 MB` is expected"),
        Mistake("joined by commas", edit('"; ".join', '", ".join'),
            cause="The reasons are joined by commas, and a name such as `header, metadata, descriptors` has commas in it.",
            cure='Join them with `"; "`.', see="a comma where `;` is expected in line 3"),
        Mistake("smallest first", edit("sorted(reasons, reverse=True)", "sorted(reasons)"),
            cause="The smallest cost stands first, and the largest is asked for.",
            cure="Give it `reverse=True`.", see="the right reasons in line 3, the largest last"),
        Mistake("decimals of bytes", edit("{cost:,.0f}", "{cost:,}"),
            cause="A cost may be a float, and then it is not written as a whole number, as 500.0.",
            cure="Format it with `:,.0f`.", see="`500.0 bytes` where `500 bytes` is expected"),
        Mistake("numbers without commas", edit("{cost:,.0f}", "{cost:.0f}"),
            cause="Numbers of six digits are hard to read without separators.",
            cure="Format them with `{cost:,.0f}`.", see="`278528` where `278,528` is expected"),
        Mistake("a newline at the end", edit("{listed}.", "{listed}.\\n"),
            cause="The text ends with a newline, which makes a fourth, empty line.",
            cure="Join the three lines with newlines, and add none after the last.", see="`line 4 differs`"),
    ),
)
