"""The exercise of lab 11 on eight bits: blocks of Q8_0."""

from __future__ import annotations

import math
import struct
from functools import partial

import numpy as np

from ...formats.gguf import GGMLType, encode
from ...lab.compare import Fields
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import nearest32

F32 = np.float32

# ---- encode_q8_0 -----------------------------------------------------------------------------------------------------


def encode_q8_0(w: np.ndarray) -> bytes:
    """The reference: w (n, 32) float32 -> n blocks of 34 bytes."""
    return encode(w, GGMLType.Q8_0).tobytes()


def q8_0_oracle(w: np.ndarray) -> bytes:
    """One block at a time, one number at a time."""
    out = b""
    for block in w.tolist():
        d = nearest32(max(abs(x) for x in block) / 127)
        inverse = nearest32(1 / d) if d else 0.0
        out += struct.pack("<e", d)
        for x in block:
            size = abs(nearest32(x * inverse))
            q = math.floor(size) + (size - math.floor(size) >= 0.5)  # half away from zero
            out += struct.pack("<b", q if x * inverse > 0 else -q)
    return out


def block_fields(w: np.ndarray, values: int = 32) -> Fields:
    """The scale and the values of each block."""
    fields = []
    for i in range(len(w)):
        at = i * (2 + values)
        fields += [(f"d of block {i}", at, at + 2), (f"the values of block {i}", at + 2, at + 2 + values)]
    return fields


def filled(*first: float) -> list[float]:
    """A block that begins with some weights and ends with zeros."""
    return [*first, *[0.0] * (32 - len(first))]


def _q8_0_cases(random: np.random.Generator) -> list[Case]:
    ramp = np.arange(32) - 16.0
    made = [
        [np.concatenate([[127], np.arange(31)])],  # d is 1
        [filled(127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5)],
        [filled()],
        [np.concatenate([[-127], np.arange(31)]), 2 * np.concatenate([[127], np.arange(31)])],
        [filled(0.1, 0.1 * 175 / 254, -0.1 * 199 / 254)],  # x * (1 / d) and x / d fall on two sides of a half
        [filled(127.05, 2.5004, -3.5004)],  # d is 1.0004, which float16 rounds to 1
        [ramp, ramp / 10],
    ]
    return [*((np.array(w, F32),) for w in made), (random.normal(0, 0.02, (40, 32)).astype(F32),)]


def away(x: np.ndarray) -> np.ndarray:
    """Rounded half away from zero, as C's roundf does."""
    whole = np.trunc(x)
    return whole + np.trunc(2 * (x - whole))


def inverse(d: np.ndarray) -> np.ndarray:
    """1 / d, and 0 where d is 0."""
    return np.where(d == 0, F32(0), F32(1) / np.where(d == 0, F32(1), d)).astype(F32)


def _q8_0_parts(w, over=127, rounding=away, late=True, divide=False, axis=1) -> tuple[np.ndarray, np.ndarray]:
    d = np.abs(w).max(axis=axis, keepdims=True) / F32(over)
    d = np.broadcast_to(d, (len(w), 1))
    step = d if late else d.astype(np.float16).astype(F32)
    x = w / np.where(step == 0, F32(np.inf), step) if divide else w * inverse(step)
    return d.astype("<f2"), rounding(x).clip(-128, 127).astype(np.int8)


def _q8_0(w: np.ndarray, form: str = "<f2", values_first: bool = False, shift: int = 0, **how) -> bytes:
    d, q = _q8_0_parts(w, **how)
    values = (q.astype(np.int16) + shift).astype(np.uint8)
    scales = d.astype(form)
    pairs = ((v.tobytes(), s.tobytes()) if values_first else (s.tobytes(), v.tobytes()) for s, v in zip(scales, values))
    return b"".join(part for pair in pairs for part in pair)


def _scales_first(w: np.ndarray) -> bytes:
    d, q = _q8_0_parts(w)
    return d.tobytes() + q.tobytes()


ENCODE_Q8_0 = Exercise(
    name="encode_q8_0",
    lab="11",
    goal="Encode blocks of 32 weights as Q8_0: a float16 scale, then 32 signed bytes, block after block.",
    minutes=7,
    difficulty="core",
    reference=encode_q8_0,
    oracle=q8_0_oracle,
    cases=_q8_0_cases,
    fields=block_fields,
    hints=(
        "d is absmax / 127 of each block, in float32. ggml multiplies by `1 / d`, that of the unrounded d; only the "
        "stored d is a float16. For a block of zeros use 0 instead of `1 / d`.",
        "Half away from zero: `whole = np.trunc(x)`, then `whole + np.trunc(2 * (x - whole))`. To interleave, make "
        'both parts uint8, `d.astype("<f2").view(np.uint8)` of shape (n, 2) and the values (n, 32), and use '
        "`np.concatenate(…, axis=1)`.",
    ),
    why="these are the bytes that ggml itself writes, to the last bit.",
    mistakes=(
        Mistake(
            "scales first",
            _scales_first,
            "All scales stand in front, as in GGUF-lite, and here each block carries its own.",
            "Join each scale with its 32 values, block by block.",
            "right for one block, wrong from the third byte on for more",
        ),
        Mistake(
            "values before the scale",
            partial(_q8_0, values_first=True),
            "Each block begins with its values, and d belongs in front of them.",
            "Write d first.",
            "values in the first two bytes",
        ),
        Mistake(
            "rounded half to even",
            partial(_q8_0, rounding=np.rint),
            "`np.rint` takes 0.5 to 0 and 2.5 to 2, and C's `roundf`, which ggml uses, takes them to 1 and 3.",
            "Round half away from zero, see hint 2.",
            "a 0 where the weight is exactly half of d",
        ),
        Mistake(
            "halves rounded up",
            partial(_q8_0, rounding=lambda x: np.floor(x + F32(0.5))),
            "`np.floor(x + 0.5)` takes -0.5 to 0, and C's `roundf`, which ggml uses, takes it to -1.",
            "Round half away from zero, see hint 2.",
            "right for positive weights, and a 0 where a weight is exactly minus half of d",
        ),
        Mistake(
            "cut off instead of rounded",
            partial(_q8_0, rounding=np.trunc),
            "`astype(np.int8)` drops what stands behind the point.",
            "Round before you convert.",
            "values one too small in size, about half of them",
        ),
        Mistake(
            "the scale rounded first",
            partial(_q8_0, late=False),
            "You divided by the scale as float16 will hold it; that is GGUF-lite's rule and the better one, but ggml "
            "does not follow it.",
            "Compute the values with the float32 scale, and round it only when you store it.",
            "scales right, and a value here and there off by one",
        ),
        Mistake(
            "divided by d",
            partial(_q8_0, divide=True),
            "`w / d` rounds once, `w * (1 / d)` twice, so a weight near a half may land on the other side.",
            "Compute `1 / d` in float32 and multiply by it.",
            "nearly everything right, and a single value off by one",
        ),
        Mistake(
            "one scale for all blocks",
            partial(_q8_0, axis=None),
            "The maximum was taken over all blocks.",
            "Take it along the last axis, `np.abs(w).max(axis=1, keepdims=True)`.",
            "right for one block, the same scale in all blocks for more",
        ),
        Mistake(
            "float32 scales",
            partial(_q8_0, form="<f4"),
            "Each scale takes four bytes, and a block gives it two.",
            'Convert with `.astype("<f2")`.',
            "36 bytes for a block where 34 are expected",
        ),
        Mistake(
            "unsigned values",
            partial(_q8_0, shift=128),
            "128 was added to every value; Q8_0 keeps two's complement.",
            "Convert to int8 and add nothing.",
            "`80` where zeros are expected",
        ),
        Mistake(
            "divided by 128",
            partial(_q8_0, over=128),
            "The largest weight must land on 127, so that -127 exists too.",
            "Divide absmax by 127.",
            "every scale too small",
        ),
    ),
)
