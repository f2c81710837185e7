"""How wrong numbers are related to the right ones: negated, rounded, too large by a factor, wrapped around, turned."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...core.arrays import is_torch
from ..compare import numpy_of
from .orders import in_another_order, in_some_places, passes, same, told_apart
from .seen import Seen, exactly, number

NICE = (2, 3, 4, 8, 10, 16, 32, 64, 100, 127, 128, 255, 256, 1000, 1024, 2**20, 10**6)
WIDTHS = (4, 8, 16, 32, 64)
EXACT = 2.0**53  # floats hold no odd integer beyond it


def array_of(value: Any) -> np.ndarray | None:
    """Numbers as an array: of an array, a tensor, a number, a list or a dict of numbers; ``None`` for anything else."""
    if is_torch(value):
        value = numpy_of(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, bool | str | bytes | bytearray) or value is None:
        return None
    if isinstance(value, list | tuple) and any(getattr(part, "ndim", 0) for part in value):
        return None  # several arrays are no array: each is looked at by itself
    try:
        array = np.asarray(value)
    except Exception:
        return None
    if array.dtype == object and array.size and all(type(x) is int for x in array.flat):
        return array if all(x.bit_length() < 1000 for x in array.flat) else None  # else no float holds it
    return array if array.dtype.kind in "iuf" and array.size else None


def of_numbers(expected: Any, got: Any, sizes: dict[str, int], tolerance: float = 0.0) -> Iterator[Seen]:
    """Everything that is true of the wrong numbers ``got``; ``sizes`` are lengths of the arguments, by name.

    Values within the tolerance are right: they are not counted among the wrong ones.
    """
    e, g = array_of(expected), array_of(got)
    if e is None or g is None or e.shape != g.shape:
        return
    if isinstance(expected, dict) and isinstance(got, dict) and list(expected) != list(got):
        return  # values of different keys are not compared
    yield from _wrapped(e, g)
    if not told_apart(e, g):
        return
    whole = e.dtype.kind in "iuO"
    with np.errstate(all="ignore"):
        e, g = e.astype(float), g.astype(float)
        if np.array_equal(e, g, equal_nan=True):
            return
        yield from _not_numbers(e, g)
        if not (np.isfinite(e).all() and np.isfinite(g).all()):
            return
        if same(e, g):  # the last digits differ, and nothing else
            yield from _rounded(e, g)
            yield from _sizes(e, g)
            return
        yield from _signs(e, g, tolerance)
        yield from _functions(e, g, sizes)
        yield from _factors(e, g, sizes, whole)
        yield from _rounded(e, g)
        yield from in_another_order(e, g)
        yield from in_some_places(e, settled(e, g, tolerance))
        yield from _sizes(e, g)


def _not_numbers(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    bad = np.isnan(g) & ~np.isnan(e)
    if bad.all():
        yield Seen("not a number", "every value is NaN", "Look for a division 0 / 0 or inf - inf.", 10)
    elif bad.any() and (e == g)[~bad].all():
        yield Seen("not a number", "some values are NaN, and the others are right", "Look for a division 0 / 0.", 10)
        if (e[bad] == 0).all():
            yield Seen(
                "not a number where 0 is expected",
                "every NaN stands where 0 is expected, and the other values are right",
                "A division 0 / 0 gives NaN: treat a divisor of 0 apart.",
                9,
            )
    elif np.isinf(g).any() and not np.isinf(e).any():
        text = "every value is infinite" if np.isinf(g).all() else "some values are infinite"
        yield Seen("infinite values", text, "Look for a division by 0, or an overflow.", 11 if e.size < 2 else 28)
    if np.isnan(e).any() and not np.isnan(g).any():
        text = "a number stands where NaN is expected"
        yield Seen("NaN is lost", text, "Let NaN pass; `max` and `<` step over it.", 11)


def settled(e: np.ndarray, g: np.ndarray, tolerance: float) -> np.ndarray:
    """The wrong numbers, with the right ones in the place of those that are right within the tolerance."""
    return np.where(np.abs(e - g) <= tolerance, e, g) if tolerance else g


def _signs(e: np.ndarray, g: np.ndarray, tolerance: float) -> Iterator[Seen]:
    if not g.any() and e.any():
        yield Seen("all zeros", "every value is 0", "", 12 if e.size > 1 else 24, weak=e.size < 2)
    if e.any() and same(-e, g):
        yield Seen(
            "negated",
            "every value has the opposite sign",
            "Exchange the two sides of a subtraction, or drop a minus.",
            14,
        )
    elif e.any() and same(np.abs(e), g):
        yield Seen("absolute values", "every value is the absolute value of the right one", "Keep the sign.", 15)
    elif g.any() and same(np.abs(g), e):
        yield Seen(
            "sign kept", "the absolute value of every result is right", "Take the absolute value, with `abs`.", 15
        )
    elif e.any() and same(np.abs(e), np.abs(g)):
        text = "some values have the wrong sign, and their sizes are right"
        yield Seen("wrong signs", text, "Look at the signs.", 16)
    differs = e != settled(e, g, tolerance)
    if not differs.any() or differs.all() or (differs != (e < 0)).any():
        return
    if (g[differs] >= 0).all():
        yield Seen(
            "negative values are wrong",
            "exactly the values that are negative are wrong, and come out positive or 0",
            "Look at how a sign is restored.",
            19,
        )
    else:
        text = "exactly the negative values are wrong"
        yield Seen("negative values are wrong", text, "Work one negative value by hand.", 30)


def _functions(e: np.ndarray, g: np.ndarray, sizes: dict[str, int]) -> Iterator[Seen]:
    weak = e.size < 2 and not float(e.flat[0]).is_integer()
    if same(e * e, g):
        yield Seen("squared", "every value is the square of the right one", "Take the square root.", 17, weak=weak)
    if e.size == 1 and e.all():
        for name, size in sizes.items():
            if size > 1 and same(e * e * size, g):
                yield Seen(
                    "squared, and a sum",
                    f"every value is the square of the right one, times {name}",
                    "A mean divides by the number of terms; then take the root.",
                    18,
                    weak=True,
                )
    if (g >= 0).all() and (e >= 0).all() and same(np.sqrt(e), g):
        yield Seen(
            "square root", "every value is the square root of the right one", "Leave the root out.", 17, weak=weak
        )
    if g.all() and same(1 / g, e):
        yield Seen(
            "the reciprocal",
            "every value is 1 divided by the right one",
            "Exchange dividend and divisor.",
            17,
            weak=weak,
        )


def _factors(e: np.ndarray, g: np.ndarray, sizes: dict[str, int], whole: bool) -> Iterator[Seen]:
    nonzero = e != 0
    if nonzero.any() and g[nonzero].all() and not g[~nonzero].any():
        ratios = g[nonzero] / e[nonzero]
        factor = float(ratios.flat[0])
        alike = bool(np.allclose(ratios, factor, rtol=2e-4)) and abs(factor - 1) > 2e-3
        if alike and len(np.unique(e[nonzero])) > 1:
            exact = np.allclose(ratios, factor, rtol=1e-6) and passes(g / factor, e)
            words = "times the same number" if exact else "times nearly the same number"
            text = f"the values of a result are the right ones, all {words}"
            yield Seen("all times one number", text, "Look for a wrong factor or divisor.", 27)
        if alike and factor > 0:
            large = factor > 1
            times = factor if large else 1 / factor
            nice = any(abs(times - n) < 1e-6 * n for n in NICE)
            weak = len(np.unique(e[nonzero])) < 2 and not nice
            word = "large" if large else "small"

            fits = partial(_fits, e, g, large=large)
            said = exactly(times) if np.allclose(ratios, factor, rtol=1e-6) else f"about {number(times)}"
            said = said if "about" in said or fits(float(said)) else f"about {said}"
            yield Seen(
                f"too {word} by a factor",
                f"every value is {said} times too {word}",
                "Look for a factor that is missing or used twice.",
                18,
                weak=weak,
            )
            for name, size in sizes.items():
                if size > 1 and abs(times - size) < 1e-4 * size and fits(size):
                    remedy = "Divide a sum by the number of its terms for a mean." if large else "Divide only once."
                    yield Seen(
                        f"too {word} by a count",
                        f"every value is too {word} by a factor that is {name}",
                        remedy,
                        17,
                        weak=True,
                    )
                if abs(times * times - size) < 1e-4 * size and size not in (1, 4) and fits(size**0.5):
                    yield Seen(
                        f"too {word} by a root",
                        f"every value is too {word} by a factor that is the square root of {name}",
                        "A sum and a mean differ by the number of terms, also under a root.",
                        19,
                        weak=True,
                    )
                if size > 2 and abs(times**2 - size / (size - 1)) < 1e-5 and fits((size / (size - 1)) ** 0.5):
                    yield Seen(
                        "one fewer in the divisor",
                        f"every value is too {word} by the root of n / (n - 1), where n is {name}",
                        "Divide by n.",
                        19,
                        weak=True,
                    )
                if size > 2 and abs(times - size / (size - 1)) < 1e-5 and fits(size / (size - 1)):
                    yield Seen(
                        "one fewer in the divisor",
                        f"every value is too {word} by the factor n / (n - 1), where n is {name}",
                        "Divide by n.",
                        16,
                        weak=e.size < 3,
                    )
    offsets = g - e
    offset, largest = float(offsets.flat[0]), float(np.abs(e).max())
    small = largest < EXACT > abs(offset) > 1e-4 * largest
    if small and np.allclose(offsets, offset, rtol=1e-6, atol=1e-6 * largest):
        weak = e.size < 2 and abs(offset) != 1
        said = exactly(abs(offset))
        said = said if "about" in said or passes(g - np.sign(offset) * float(said), e) else f"about {said}"
        by = f"too {'large' if offset > 0 else 'small'} by {said}"
        cure = "Look for something that is counted once too often or left out."
        yield Seen(by, f"every value is {by}", cure, 18, weak=weak)
    integers = (e == np.rint(e)).all() and (g == np.rint(g)).all()
    if integers and np.abs(offsets).max() == 1 and e.size > 1 and not offsets.all():
        k = "too large" if (offsets >= 0).all() else "too small" if (offsets <= 0).all() else "off"
        yield Seen(
            "off by one",
            f"some {'integers' if whole else 'values'} are {k} by exactly 1, and the others are right",
            "Compare how you round with what the docstring asks.",
            22,
        )


def _fits(e: np.ndarray, g: np.ndarray, n: float, *, large: bool) -> bool:
    return passes(g / n if large else g * n, e)


def _rounded(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    needs = 3 if e.size < 3 else 1  # one or two numbers may be rounded ones by chance
    if not (e == np.rint(e)).all() and g.any():  # zeros may come from anywhere
        for digits in range(7):
            if _made_by(np.round(e, digits), e, g):
                places = f"to {digits} decimal{'s' * (digits > 1)}" if digits else "to whole numbers"
                text = f"the result is rounded {places}"
                yield Seen("rounded", text, "Return it as it is, not rounded.", 20, needs=needs)
        for name, function in (("rounded down", np.floor), ("rounded up", np.ceil), ("cut off", np.trunc)):
            if np.array_equal(function(e), g):
                what = "with its decimals cut off" if name == "cut off" else f"{name} to whole numbers"
                yield Seen(name, f"the result is the right one, {what}", "Use `/` and no rounding.", 19, needs=needs)
        for digits in (1, 2, 3, 4):
            if _made_by(np.trunc(e * 10**digits) / 10**digits, e, g):
                text = f"the result is cut off after {digits} decimal{'s' * (digits > 1)}"
                yield Seen("cut off", text, "Return it as it is.", 21, needs=needs)
    for dtype in ("float16", "float32"):
        if (e.astype(dtype).astype(float) == g).all() and (g != np.rint(g)).any():
            yield Seen(
                f"rounded to {dtype}",
                f"every value is the right one rounded to {dtype}",
                f"Convert to {dtype} only where it is asked for.",
                22,
            )
        far = 1e-5 if dtype == "float16" else 1e-9  # whole numbers are right once they are rounded to anything
        if (g.astype(dtype).astype(float) == e).all() and _is_far(e, g, far) and (e != np.rint(e)).any():
            yield Seen(
                f"not rounded to {dtype}",
                f"every value is right once it is rounded to {dtype}",
                f"Round with `.astype(np.{dtype})` before you go on.",
                22,
            )
    if e.any() and (np.rint(g) == e).all() and np.abs(g - e).max() > 0.05:
        yield Seen("not rounded", "every value is right once it is rounded to a whole number", "Round it.", 21)
    inside = (g > e.min()) & (g < e.max())
    if e.size > 2 and e.min() < e.max() and (e == g.clip(e.min(), e.max())).all() and not inside.all():
        yield Seen(
            "not clipped",
            "values lie beyond the smallest or the largest right one; clipped to these, all are right",
            "Clip the result.",
            23,
        )
    if g.size > 2 and g.min() < g.max() and (g == e.clip(g.min(), g.max())).all():
        yield Seen(
            "clipped",
            f"the right values are clipped to {number(g.min())} … {number(g.max())}",
            "Look at the ends of the range.",
            24,
        )


def _is_far(e: np.ndarray, g: np.ndarray, relative: float) -> bool:
    """Whether some value is off by more than this share of itself."""
    return bool((np.abs(g - e) > relative * np.abs(e)).any())


def _made_by(made: np.ndarray, e: np.ndarray, g: np.ndarray) -> bool:
    """Whether a step makes the wrong numbers of the right ones: what it leaves is far less than what was wrong."""
    left = np.abs(made - g)
    return bool((left <= 6e-8 * np.abs(g)).all() and left.max() <= 0.01 * np.abs(e - g).max())


def _wrapped(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    integers = e.dtype.kind in "iuO" and g.dtype.kind in "iuO"
    if not integers:
        return
    pairs = [(int(a), int(b)) for a, b in zip(e.flat, g.flat)]
    wrong = [(a, b) for a, b in pairs if a != b]
    if not wrong:
        return
    for bits in WIDTHS:
        half, whole = 2 ** (bits - 1), 2**bits
        every = not any(a == b and (a < 0 or half <= a < whole) for a, b in pairs)
        if all(-half <= a < 0 and b == a + whole for a, b in wrong):
            what = f"each wrong number is negative and comes out {whole} too large, as {bits} bits without a sign do"
            yield Seen(
                f"{whole} too large" if every else "a sign is lost",
                what if every else f"some negative numbers come out {whole} too large, and the others are right",
                "Use a signed type, or subtract.",
                12 if every else 24,
            )
        elif every and all(half <= a < whole and b == a - whole for a, b in wrong):
            yield Seen(
                f"{whole} too small",
                f"each wrong number is {half} or more and comes out {whole} too small, as {bits} bits with a sign do",
                "Use an unsigned type.",
                12,
            )
        elif bits >= 8 and all(b == a % whole if a != b else 0 <= a < whole for a, b in pairs):
            yield Seen(
                "wrapped around",
                f"each wrong number is off by a multiple of {whole}, as if it were kept in {bits} unsigned bits",
                "Use a wider integer type.",
                13,
                weak=len(wrong) == 1,
            )
        elif bits >= 8 and all(b == (a + half) % whole - half if a != b else -half <= a < half for a, b in pairs):
            yield Seen(
                "wrapped around",
                f"each wrong number is off by a multiple of {whole}, as if it were kept in {bits} signed bits",
                "Use a wider integer type.",
                13,
                weak=len(wrong) == 1,
            )
        if bits >= 8 and all(min(a, b) >= 0 and max(a, b) < 2**bits for a, b in pairs):
            n = bits // 8
            if bits > 8 and all(a.to_bytes(n, "little") == b.to_bytes(n, "big") for a, b in pairs):
                all_of_them = e.dtype.kind in "iu" and e.dtype.itemsize == n and e.ndim > 0
                yield Seen(
                    "bytes in the other order",
                    f"every number has its {'' if all_of_them else 'lowest '}{n} bytes in the other order",
                    'Little-endian: `"<"` or `"little"`.',
                    11,
                )
                break
    if e.dtype == np.uint8 and g.dtype == np.uint8 and any(a > 15 and a & 15 for a, _ in pairs):
        if all(b == (a >> 4 | (a & 15) << 4) for a, b in pairs):
            yield Seen(
                "nibbles swapped",
                "every byte has its two nibbles exchanged",
                "The low nibble is `& 15`, the high one `>> 4`.",
                11,
            )
        if all(b == a & 15 for a, b in pairs) and any(b for _, b in pairs):
            low = "every byte has only its low nibble"
            yield Seen("high nibbles missing", low, "Put the other value in with `<< 4`.", 12)
        if all(b == a & 240 for a, b in pairs) and any(b for _, b in pairs):
            text = "every byte has only its high nibble"
            yield Seen("low nibbles missing", text, "Put the other value in with `|`.", 12)
    ones = 2 ** (8 * (e.dtype.itemsize if e.dtype == g.dtype else 8)) - 1
    if all((a ^ b) == (pairs[0][0] ^ pairs[0][1]) for a, b in pairs) and len(pairs) > 3:
        yield Seen(
            "bits flipped",
            f"the same bits are flipped in every number: 0x{(pairs[0][0] ^ pairs[0][1]) & ones:x}",
            "Look at the masks and the offset.",
            40,
        )


def _sizes(e: np.ndarray, g: np.ndarray) -> Iterator[Seen]:
    """The last resort: how far off the numbers are."""
    worst = float(np.max(np.abs(g - e) / np.maximum(np.abs(e), 1e-300)))
    for limit, words in ((1e-12, "1e-12"), (1e-6, "a millionth"), (1e-3, "a thousandth")):
        if worst <= limit:
            cure = "Look at the dtype of each step, and at the order of the steps."
            text = f"every wrong value is off by at most {words} of the right one; the last digits differ"
            yield Seen("nearly right", text, cure, 25)
            return
    if e.size > 1 and (g >= e).all():
        yield Seen("too large", "no value is too small, and some are too large", "", 44)
    elif e.size > 1 and (g <= e).all():
        yield Seen("too small", "no value is too large, and some are too small", "", 44)
