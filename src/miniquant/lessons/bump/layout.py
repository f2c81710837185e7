"""The exercises of lab 16 on what lies where: offsets that only move forward, and the order of the tensors."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from ...formats.gguf.read import padded
from ...lab.spec import Case, Exercise, Mistake

# ---- bump_offsets ----------------------------------------------------------------------------------------------------


def bump_offsets(sizes: list[int]) -> list[int]:
    """The reference: sizes in bytes -> where each begins, and the whole size."""
    at, found = 0, []
    for size in sizes:
        found.append(at)
        at = padded(at + size, 64)
    return [*found, at]


def offsets_oracle(sizes: list[int]) -> list[int]:
    """Cache lines counted one by one."""
    lines, found = 0, []
    for size in sizes:
        found.append(64 * lines)
        while size > 0:
            lines, size = lines + 1, size - 64
    return [*found, 64 * lines]


def _offset_cases(random: np.random.Generator) -> list[Case]:
    made = [[100, 20, 64, 4], [64], [], [1, 1, 1], [128, 64, 192], [65, 63, 0, 7], [1024, 3072, 40]]
    return [(sizes,) for sizes in [*made, *(random.integers(1, 5000, n).tolist() for n in (3, 8, 20))]]


def _bumped(sizes: list[int], line: int = 64, always: bool = False, round_total: bool = True) -> list[int]:
    at, end, found = 0, 0, []
    for size in sizes:
        found.append(at)
        end = at + size
        at = (end // line + 1) * line if always else padded(end, line)
    return [*found, at if round_total else end]


BUMP_OFFSETS = Exercise(
    name="bump_offsets",
    lab="16",
    goal="Place buffers one after another, each at the next multiple of 64 bytes; the last number is the whole size.",
    minutes=4,
    difficulty="warm-up",
    reference=bump_offsets,
    oracle=offsets_oracle,
    cases=_offset_cases,
    hints=(
        "Keep one number, where the next buffer begins. For each size: note it, add the size, round up to 64.",
        "`-(-n // 64) * 64` rounds up and leaves a multiple of 64 alone.",
    ),
    why="this is a whole allocator: one number that moves forward, and nothing to give back.",
    mistakes=(
        Mistake(
            "not aligned",
            lambda sizes: [0, *itertools.accumulate(sizes)] if sizes else [0],
            "The buffers lie back to back, so most of them begin in the middle of a cache line.",
            "Round up to a multiple of 64 before the next one begins.",
            "100 where 128 is expected",
        ),
        Mistake(
            "rounded down",
            lambda sizes: [sum(sizes[:i]) // 64 * 64 for i in range(len(sizes) + 1)],
            "`n // 64 * 64` rounds down, and the next buffer then lies over the end of this one.",
            "Round up: `-(-n // 64) * 64`.",
            "64 where 128 is expected",
        ),
        Mistake(
            "a line too many",
            partial(_bumped, always=True),
            "`(n // 64 + 1) * 64` moves on even if n is a multiple of 64 already.",
            "Use `-(-n // 64) * 64`, or add 63 before you divide.",
            "right for 100, and 128 where 64 is expected",
        ),
        Mistake(
            "aligned as GGUF is",
            partial(_bumped, line=32),
            "The multiple is 32, GGUF's; a cache line has 64 bytes.",
            "Round up to 64.",
            "160 where 192 is expected",
        ),
        Mistake(
            "counted in floats",
            partial(_bumped, line=16),
            "The multiple is 16: that many floats fill a cache line, and these sizes are in bytes.",
            "Round up to 64.",
            "112 where 128 is expected",
        ),
        Mistake(
            "the end not rounded",
            partial(_bumped, round_total=False),
            "The last number is where the last buffer ends, and the block has to end with a whole line.",
            "Round the last number up like the others.",
            "everything right but the last number",
        ),
        Mistake(
            "no total",
            lambda sizes: _bumped(sizes)[:-1],
            "The list says where each buffer begins, and not how much to allocate.",
            "Append where the next buffer would begin.",
            "one number too few",
        ),
        Mistake(
            "the ends instead of the beginnings",
            lambda sizes: [*_bumped(sizes)[1:], _bumped(sizes)[-1]],
            "Each number was noted after the size was added.",
            "Note where a buffer begins first, then move on.",
            "the first number is not 0",
        ),
        Mistake(
            "each size rounded alone",
            lambda sizes: [padded(size, 64) for size in [0, *sizes]],
            "These are the rounded sizes; an offset is the sum of all rounded sizes before it.",
            "Add each rounded size to a running total.",
            "right for the first two, too small from the third on",
        ),
    ),
)

# ---- bump_order ------------------------------------------------------------------------------------------------------

_FRONT, _BACK = ("token_embd.weight", "position_embd.weight"), ("output_norm.weight", "output_norm.bias")
_HEAD = "output.weight"


def bump_order(layer: list[str], n_layers: int, tensors: list[str]) -> list[str | None]:
    """The reference: one layer's parts, the number of layers, the tensors of a GGUF file -> a bump file's order."""
    wanted = [name for name in _FRONT if name in tensors]
    wanted += [f"blk.{i}.{part}" for i in range(n_layers) for part in layer]
    wanted += [name for name in (*_BACK, _HEAD) if name in tensors]
    if left := [name for name in tensors if name not in wanted]:
        raise ValueError(f"no place for {left}")
    if missing := [name for name in wanted if name not in tensors and not name.endswith(".bias")]:
        raise ValueError(f"{missing} are missing")
    return [name if name in tensors else None for name in wanted]


def order_oracle(layer: list[str], n_layers: int, tensors: list[str]) -> list[str | None]:
    """Tensors are crossed out on a list, one after another."""
    rest, found = list(tensors), []

    def take(name: str, needed: bool) -> None:
        if name in rest:
            rest.remove(name)
            found.append(name)
        elif needed:
            raise ValueError(f"{name} is missing")

    take("token_embd.weight", True)
    take("position_embd.weight", False)
    for number in range(n_layers):
        for part in layer:
            before = len(found)
            take("blk." + str(number) + "." + part, not part.endswith("bias"))
            if len(found) == before:
                found.append(None)
    take("output_norm.weight", True)
    take("output_norm.bias", False)
    take("output.weight", False)
    if rest:
        raise ValueError(f"left over: {rest}")
    return found


TOY = ["attn_norm.weight", "attn_q.weight", "attn_q.bias", "ffn_up.weight", "ffn_up.bias"]
ENDS = ["token_embd.weight", "output_norm.weight"]


def toy_tensors(n_layers: int, drop: tuple[str, ...] = ("bias",)) -> list[str]:
    """Tensors of a toy as a GGUF file may have them: the ends first, then layer by layer, other parts first."""
    names = [f"blk.{i}.{part}" for i in range(n_layers) for part in sorted(TOY)]
    return [*ENDS, *(name for name in names if not name.endswith(drop))]


def _order_cases(random: np.random.Generator) -> list[Case]:
    one, three = toy_tensors(1), toy_tensors(3, ("q.bias",))
    cases: list[Case] = [(TOY, 1, one), (TOY, 3, three), (TOY, 0, ENDS), (TOY, 12, toy_tensors(12, ()))]
    cases.append((TOY, 1, [*one, "output.weight"]))
    cases.append((TOY, 2, ["output_norm.bias", "position_embd.weight", *toy_tensors(2)]))
    shuffled = toy_tensors(11, ("up.bias",))
    random.shuffle(shuffled)
    cases.append((TOY, 11, shuffled))
    for extra in ("rope_freqs.weight", "blk.0.attn_q_norm.weight", "blk.1.attn_q.weight"):
        cases.append((TOY, 1, [*one, extra]))
    cases.append((TOY, 1, [name for name in one if "ffn_up" not in name]))
    return cases


def _loose(
    layer: list[str],
    n_layers: int,
    tensors: list[str],
    *,
    left: bool = False,
    missing: bool = False,
    placeholders: bool = True,
    back_first: bool = False,
    by_part: bool = False,
    text_order: bool = False,
    head: bool = True,
    ends_last: bool = False,
) -> list[str | None]:
    """The reference with one thing or another left undone."""
    numbers = sorted(range(n_layers), key=str) if text_order else range(n_layers)
    pairs = [(i, part) for i in numbers for part in layer]
    if by_part:
        pairs = [(i, part) for part in layer for i in range(n_layers)]
    if back_first:
        pairs = [(i, part) for i in numbers for part in sorted(layer, key=lambda p: p.endswith("bias"))]
    front = [name for name in _FRONT if name in tensors]
    back = [name for name in (*_BACK, *[_HEAD] * head) if name in tensors]
    middle = [f"blk.{i}.{part}" for i, part in pairs]
    wanted = [*front, *back, *middle] if ends_last else [*front, *middle, *back]
    if not left and any(name not in [*wanted, *([] if head else [_HEAD])] for name in tensors):
        raise ValueError("no place")
    if not missing and any(name not in tensors and not name.endswith(".bias") for name in wanted):
        raise ValueError("missing")
    found = [name if name in tensors else None for name in wanted]
    return found if placeholders else [name for name in found if name is not None]


def _two_ends(layer: list[str], n_layers: int, tensors: list[str]) -> list[str | None]:
    """Embedding, layers, norm, and a look at nothing else."""
    names = [f"blk.{i}.{part}" for i in range(n_layers) for part in layer]
    return [_FRONT[0], *(name if name in tensors else None for name in names), _BACK[0]]


def _empty_ends(layer: list[str], n_layers: int, tensors: list[str]) -> list[str | None]:
    """None for everything that is not there, at the two ends as well."""
    found = bump_order(layer, n_layers, tensors)
    middle = found[sum(name in tensors for name in _FRONT) :][: n_layers * len(layer)]
    front, back = ([name if name in tensors else None for name in ends] for ends in (_FRONT, (*_BACK, _HEAD)))
    return [*front, *middle, *back]


def _as_in_gguf(layer: list[str], n_layers: int, tensors: list[str]) -> list[str | None]:
    bump_order(layer, n_layers, tensors)
    return list(tensors)


BUMP_ORDER = Exercise(
    name="bump_order",
    lab="16",
    goal="Put a GGUF file's tensors into a bump file's order, with None where zeros keep the place of a missing bias.",
    minutes=8,
    difficulty="core",
    reference=bump_order,
    oracle=order_oracle,
    cases=_order_cases,
    hints=(
        "First make the list of all names that the layout asks for, `blk.{i}.{part}` layer by layer between the two "
        "ends; then compare it with the tensors that are there, in both directions.",
        "`left = set(tensors) - set(wanted)` must be empty. What is wanted and not there becomes None if it ends with "
        "`.bias`, and is a ValueError otherwise.",
    ),
    why="the file has no names: a tensor is what stands at its place, and nothing may be missing or left over.",
    mistakes=(
        Mistake(
            "the order of the GGUF file",
            _as_in_gguf,
            "The tensors stayed in the order in which GGUF has them, and a bump file has its own.",
            "Go through the layout, and look each name up among the tensors.",
            "output_norm.weight in second place",
        ),
        Mistake(
            "no placeholders",
            partial(_loose, placeholders=False),
            "A bias that the model does not have was left out, so everything behind it moved up one place.",
            "Put None there: zeros will keep the place.",
            "a list that is too short",
        ),
        Mistake(
            "left over, and left out",
            partial(_loose, left=True),
            "A tensor for which the layout has no place was dropped without a word, and the model is another one now.",
            "Raise ValueError if a tensor is not in the layout.",
            "no error for rope_freqs.weight",
        ),
        Mistake(
            "two ends and no questions",
            _two_ends,
            "Only the two ends that every model has were written; positions, a head, and anything unknown were dropped "
            "without a word.",
            "Take each optional end if it is there, and raise ValueError if anything is left over.",
            "right for the smallest toy, too short where there is an output.weight",
        ),
        Mistake(
            "missing weights taken for zeros",
            partial(_loose, missing=True),
            "A matrix that is not in the file became None; only a bias may be zeros.",
            "Raise ValueError for anything missing that does not end with `.bias`.",
            "no error for a file without ffn_up",
        ),
        Mistake(
            "layers in the order of text",
            partial(_loose, text_order=True),
            "Sorted as text, layer 10 comes before layer 2.",
            "Count with `range(n_layers)`.",
            "right up to ten layers, `blk.10.` after `blk.1.` for more",
        ),
        Mistake(
            "part by part",
            partial(_loose, by_part=True),
            "All layers' norms came first, then all layers' queries; a layer is to lie in one piece.",
            "Make the loop over the layers the outer one.",
            "`blk.1.` in the place of the second part of `blk.0.`",
        ),
        Mistake(
            "biases behind the matrices",
            partial(_loose, back_first=True),
            "The biases stand together at the end of each layer, and each belongs behind its matrix.",
            "Keep the order of `layer`.",
            "right parts of each layer in another order",
        ),
        Mistake(
            "the ends together",
            partial(_loose, ends_last=True),
            "output_norm follows the embedding, as in many GGUF files, and here it comes last.",
            "Put output_norm behind the last layer.",
            "output_norm.weight in second place, the layers behind it",
        ),
        Mistake(
            "None at the ends",
            _empty_ends,
            "None stands for positions, for the norm's bias or for a head that the model does not have.",
            "Leave an end out that is not there; zeros keep a place for the biases of the layers alone.",
            "None in second place, and too many names",
        ),
        Mistake(
            "the head forgotten",
            partial(_loose, head=False),
            "output.weight, the head of a model that does not share it with the embedding, was dropped.",
            "Append it at the very end if it is there.",
            "one name too few where the model has output.weight",
        ),
    ),
)
