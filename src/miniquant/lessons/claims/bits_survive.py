"""Whether an array came back bit for bit."""

import pickle
import struct

import numpy as np

from ...lab import Exercise, Mistake, body, edit


def bits_survive(before, after):
    """Whether an array came back as it was, bit for bit.

    before: float32 array of any shape; after: any array
    ->   True or False
    True if dtype (byte order included), shape and the bits of every number
    are the same: 0.0 is not -0.0, and a NaN is only itself with the same
    bits. In which order the numbers lie in memory does not count.
    """
    if before.dtype != after.dtype or before.shape != after.shape:
        return False
    return before.tobytes() == after.tobytes()


def oracle(before, after):
    """One number after another, as 32 bits."""
    if (before.dtype, before.shape) != (after.dtype, after.shape):
        return False
    for a, b in zip(before.flat, after.flat):
        if struct.pack("<I", int(a.view(np.uint32))) != struct.pack("<I", int(b.view(np.uint32))):
            return False
    return True


def cases(random):
    """Equal and unequal numbers, zeros, NaN and infinities, other shapes, types and byte orders, then a flipped bit."""

    def bits(*words):
        return np.array(words, np.uint32).view(np.float32)

    def floats(*values):
        return np.array(values, np.float32)

    one, ramp = floats(1, 2, 3), np.arange(6, dtype=np.float32)
    drawn = random.normal(size=(3, 4)).astype(np.float32)
    flipped = drawn.view(np.uint32).copy()
    flipped[1, 2] ^= 1
    return [
        (one, pickle.loads(pickle.dumps(one))),  # the dtype is the same, and is another object
        (one, floats(1, 2, 4)),
        (floats(-0.0), floats(0.0)),
        (bits(0x7FC00000), bits(0x7FC00000)),
        (bits(0x7FC00001), bits(0x7FC00000)),
        (bits(0x7F800001), bits(0x7FC00001)),
        (floats(-1, np.inf), floats(-1, -np.inf)),
        (floats(np.inf, -np.inf), floats(np.inf, -np.inf)),
        (floats(1), bits(0x3F800001)),
        (ramp.reshape(2, 3), ramp.reshape(3, 2)),
        (bits(0x7FC00000, 0xFFC00000), bits(0x7FC00000, 0x7FC00000)),
        (ramp.reshape(2, 3), ramp.reshape(1, 2, 3)),
        (ramp.reshape(2, 3), ramp.reshape(2, 3, 1)),
        (ramp.reshape(2, 3)[:, :2], ramp.reshape(2, 3)[:, :2].T),
        (floats(1, 1, 1), floats(1)),
        (one, one[::-1].copy()),
        (one, one.astype(np.float64)),
        (one, one.view(np.uint32)),
        (floats(), np.zeros(0, np.int8)),
        (one, one.astype(np.float16)),
        (one, one.view(">f4")),
        (one, one.astype(">f4")),
        (np.array(1, np.float32), np.array(1, np.float32)),
        (floats(1), np.array(1, np.float32)),
        (ramp.reshape(2, 3).T, ramp.reshape(2, 3).T.copy()),
        (floats(), floats()),
        (floats().reshape(0, 3), floats().reshape(3, 0)),
        (drawn, drawn.copy()),
        (drawn, flipped.view(np.float32)),
    ]


def traits(before, after):
    """What is special about two arrays."""
    same = before.dtype == after.dtype and before.shape == after.shape
    return {
        "the dtypes differ": before.dtype != after.dtype,
        "only the byte order differs": before.dtype != after.dtype and before.dtype.name == after.dtype.name,
        "the shapes differ": before.shape != after.shape,
        "the two have NaN": bool(np.isnan(before).any()) and bool(np.isnan(after).any()),
        "a shape is `()`": () in (before.shape, after.shape),
        "an array does not lie row by row in memory": not (before.flags.c_contiguous and after.flags.c_contiguous),
        "dtypes and shapes are the same": same,
        "dtypes and shapes are the same, and `==` finds all numbers equal": same and bool((before == after).all()),
    }


EXERCISE = Exercise(
    goal="Say whether an array came back with the same type, the same shape and the same bits, NaN and -0.0 included.",
    reference=bits_survive, oracle=oracle, cases=cases, minutes=6, difficulty="core", traits=traits,
    hints=(
        "`==` compares values: NaN equals nothing, itself included, and -0.0 equals 0.0.",
        "Compare the two `dtype`s, the two `shape`s, and what `tobytes()` gives for each array.",
    ),
    why="bits have no exceptions, so your claim covers NaN, which the document leaves out.",
    mistakes=(
        Mistake("values instead of bits", body("return np.array_equal(before, after)"),
            cause="A NaN is taken for unequal to itself, and 0.0 for equal to -0.0, as `==` has it.",
            cure="Compare `before.tobytes()` with `after.tobytes()`.", see="`False` for a NaN that came back unharmed"),
        Mistake("values, with NaN allowed", body("return np.array_equal(before, after, equal_nan=True)"),
            cause="Now NaN equals NaN, whatever its bits are, and -0.0 still equals 0.0.",
            cure="Compare the bytes instead of the values.", see="`True` for 0.0 that came back as -0.0"),
        Mistake("values, element by element", body("return bool((before == after).all())"),
            cause="`==` compares values, and it spreads an array of one element over all of the other.",
            cure="Compare types and shapes first, then the bytes.",
            see="`True` for three numbers that came back as one"),
        Mistake("close is not the same", edit("before.dtype != after.dtype or ", "").edit(
                "before.tobytes() == after.tobytes()", "np.allclose(before, after, equal_nan=True)"
            ),
            cause="Small differences pass, and a claim about bits forgives none.",
            cure="Compare the bytes.", see="`True` for a number whose last bit was changed"),
        Mistake("the shape is forgotten", edit(" or before.shape != after.shape", ""),
            cause="Two rows of three hold the same bytes as three rows of two, and rows must stay rows.",
            cure="Compare the two shapes as well.", see="`True` for an array that came back with another shape"),
        Mistake("the type is forgotten",
            edit("before.dtype != after.dtype or ", "").edit("after.tobytes()", "after.astype(np.float32).tobytes()"),
            cause="The same numbers in another type pass.",
            cure="Compare the two `dtype`s first, and convert nothing.", see="`True` for float64"),
        Mistake("NaN left out", edit(
                "before.tobytes() == after.tobytes()",
                "before[~np.isnan(before)].tobytes() == after[~np.isnan(before)].tobytes()",
            ),
            cause="A NaN that came back with other bits passes, as if NaNs were left out.",
            cure="Leave nothing out: a NaN has bits like any other number.", see="`True` for a NaN with other bits"),
        Mistake("the order is forgotten", edit(
                "before.tobytes() == after.tobytes()",
                "sorted(before.view(np.uint32).flat) == sorted(after.view(np.uint32).flat)",
            ),
            cause="The same numbers in another order pass.",
            cure="Compare the bytes in their order.", see="`True` for numbers that changed places"),
    ),
)
