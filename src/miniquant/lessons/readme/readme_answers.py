"""Three answers as three lines of text."""

from ...lab import Exercise, Mistake, edit
from ..shared.gguf_lite_by_hand import Q4, Q8
from . import largest_part as largest_part_lesson
from .largest_part import largest_part
from .saving_ratio import saving_ratio
from .what_costs import OVERHEAD


def readme_answers(torch_save, size, parts, costs):
    """The three answers, a line each, in the form shown above.

    torch_save, size: bytes; parts: dict, name -> bytes of all parts of the file; costs: dict, reason -> bytes   ->   str
    """
    largest, percent = largest_part(parts)
    reasons = [(cost, reason) for reason, cost in costs.items() if cost > 0]
    listed = "; ".join(f"{reason} {cost:,.0f} bytes" for cost, reason in sorted(reasons, reverse=True))
    return "\n".join(
        [
            f"1. `torch.save` takes {torch_save / 1e6:.1f} MB, this file {size / 1e6:.2f} MB: "
            f"{saving_ratio(torch_save, size):.1f} times smaller.",
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
        text += reason + " " + format(int(cost), ",d") + " bytes; "
    return text.removesuffix("; ") + "."


def cases(random):
    """Round numbers, a cost of 0, the course's own file, then a random one."""
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


EXERCISE = Exercise(
    goal="Write the three answers of the README as three lines of text, with every number taken from the arguments.",
    reference=readme_answers, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "An f-string formats as it fills in: `{x / 1e6:.2f}` for MB of 1,000,000 bytes with two decimals, `{x:,.0f}` for whole bytes with commas.",
        "Sort the costs by their bytes, largest first, leave out those that are 0, and join them with `'; '`; `saving_ratio` and `largest_part` give the rest.",
    ),
    why="no number in your README was typed by hand, so none of them can be out of date.",
    mistakes=(
        Mistake("ratio upside down", edit("saving_ratio(torch_save, size)", "1 / saving_ratio(torch_save, size)"),
            cause="The file's size was divided by that of `torch.save`.",
            cure="Call `saving_ratio(torch_save, size)`, in this order.", see="`0.1 times smaller` in line 1"),
        Mistake("MiB called MB", edit("torch_save / 1e6", "torch_save / 2**20").edit("size / 1e6", "size / 2**20"),
            cause="The bytes were divided by 1,048,576, which is a MiB.",
            cure="Divide by `1e6`: the text says MB.", see="`7.6 MB` where `8.0 MB` is expected"),
        Mistake("a fraction called percent", edit("{percent:.1f}", "{percent / 100:.1f}"),
            cause="The share is between 0 and 1, and the text says %.",
            cure="Multiply by 100, or take the percent that `largest_part` returns.", see="`0.8 %` in line 2"),
        Mistake("percent of the wrong total", edit("{percent:.1f}", "{100 * parts[largest] / torch_save:.1f}"),
            cause="The part was compared with what `torch.save` writes, and the text says: of the file.",
            cure="Take the percent that `largest_part(parts)` returns.", see="`9.4 %` where `75.0 %` is expected"),
        Mistake("smallest part", edit(
                "largest, percent = largest_part(parts)",
                "largest = min(parts, key=parts.get)\n    percent = 100 * parts[largest] / sum(parts.values())",
            ),
            cause="The part with the fewest bytes was named.",
            cure="Use `largest_part(parts)`.", see="a name in line 2 that nobody expects"),
        Mistake("reasons as they come", edit("sorted(reasons, reverse=True)", "reasons"),
            cause="The costs stand in the order of the dict, and the one that matters need not be first.",
            cure="Sort them by their bytes, largest first.", see="the right reasons in line 3, in another order"),
        Mistake("reasons that cost nothing", edit(" if cost > 0]", "]"),
            cause="A cost of 0 bytes is no reason.",
            cure="Leave out the costs that are 0.", see="`padding 0 bytes` in line 3"),
        Mistake("numbers without commas", edit("{cost:,.0f}", "{cost:.0f}"),
            cause="Numbers of six digits are hard to read without separators.",
            cure="Format them with `{cost:,.0f}`.", see="`278528` where `278,528` is expected"),
        Mistake("a newline at the end", edit("{listed}.", "{listed}.\\n"),
            cause="The text ends with a newline, which makes a fourth, empty line.",
            cure="Join the three lines with newlines, and add none behind the last.", see="`line 4 differs`"),
    ),
)
