"""The fields of four-bit blocks, and what an oracle of them needs: one number at a time, nothing from numpy."""

from __future__ import annotations

SIZES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # E2M1


def code_of(w: float, scale: float) -> int:
    """The code of E2M1 whose value × scale is nearest to a weight; of two, that of smaller size.

    >>> code_of(-0.75, 1.0), code_of(10.0, 0.5), code_of(3.0, 0.0)
    (9, 7, 0)
    """
    at = min(range(8), key=lambda i: (abs(SIZES[i] * scale - abs(w)), SIZES[i] * scale))
    return at + 8 if w < 0 and SIZES[at] * scale > 0 else at


def joined(codes: list[int]) -> bytes:
    """Codes of four bits, the first half in the low nibbles, the second half in the high ones.

    >>> joined([1, 2, 3, 4]).hex(" ")
    '31 42'
    """
    half = len(codes) // 2
    return bytes(codes[j] + 16 * codes[j + half] for j in range(half))


def e4m3(code: int) -> float:
    """The value of an unsigned E4M3.

    >>> e4m3(56), e4m3(1) == 2**-9, e4m3(126)
    (1.0, True, 448.0)
    """
    eighths, exponent = code % 8, code // 8
    return eighths / 512 if exponent == 0 else (8 + eighths) * 2.0 ** (exponent - 10)
