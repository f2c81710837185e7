"""What a file keeps of a scale."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from ..shared.by_hand import nearest16
from ..shared.scalars import number32_of_number


def round_scale(scale):
    """The scales as a file gives them back: rounded to float16, held in
    float32.

    scale: an np.float32, or a float32 array of any shape, also (), not
        empty; from 0 to 65519
    ->   float32 of the same shape; for one number np.float32, or a float32
         array of shape ()

    Rounded to the nearest float16; a tie goes to the even neighbour.
    """
    return scale.astype(np.float16).astype(np.float32)


def oracle(scale):
    """One number at a time, with ``struct``."""
    rounded = np.array([nearest16(x) for x in scale.ravel().tolist()], np.float32).reshape(scale.shape)
    return rounded if scale.ndim else rounded[()]


def cases(random):
    """Scales that float16 holds and scales that it does not, ties, the smallest and the largest, a matrix, one number."""
    made = [
        [0.5, 0.25],
        [0.1],
        [1 / 127, 2 / 127, 3 / 127],
        [2049.0, 2051.0],  # halfway between two neighbours
        [1e-9, 0.0],
        [0.75 * 2.0**-24, 0.51 * 2.0**-24],  # rounded up to the smallest one
        [2.0**-25, 3 * 2.0**-25, 190 / 127 * 2.0**-24],  # two ties and a number among the smallest float16
        [65504.0, 65519.0],  # the largest float16, and what is rounded to it
        [[0.1, 0.2], [0.3, 0.4]],
        random.uniform(0, 0.02, 8),
        random.uniform(0, 6e-5, (2, 4)),  # numbers that float16 holds with fewer digits
    ]
    columns = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32).T  # in memory column by column
    return [*((np.array(scale, np.float32),) for scale in made), (columns,), (np.float32(0.1),), (np.float32(190 / 127 * 2**-24),), (np.array(0.3, np.float32),)]


def traits(scale):
    """What is special about the scales."""
    values = np.ravel(scale).astype(float)
    nearest = values.astype(np.float16)
    half = nearest.astype(float)
    with np.errstate(over="ignore"):  # beyond the largest one
        neighbours = [np.nextafter(nearest, np.float16(side)).astype(float) for side in (-np.inf, np.inf)]
    return {
        "`scale` has a number between 0 and 2**-14": bool(((values > 0) & (values < 2.0**-14)).any()),
        "a number of `scale` is rounded to 0": bool(((values > 0) & (half == 0)).any()),
        "`scale` has a number of 1 or more": bool((values >= 1).any()),
        "`scale` has no axes": np.ndim(scale) == 0,
        "a number of `scale` is not a float16 yet": bool((values != half).any()),
        "a number of `scale` is rounded up": bool((half > values).any()),
        "a number of `scale` is rounded down": bool((half < values).any()),
        "a number of `scale` lies halfway between two float16": any(bool((2 * values == half + other).any()) for other in neighbours),
    }


EXERCISE = Exercise(
    goal="Turn scales into the numbers that a file with float16 scales will give back.",
    reference=round_scale, oracle=oracle, cases=cases, traits=traits, minutes=5, difficulty="warm-up", observe=number32_of_number,
    hints=(
        "A number loses digits when you convert it to a smaller type. It loses nothing on the way back to the larger type.",
        "`astype` converts an array or a number of numpy to another type, and rounds to the nearest number of that type. You need "
        "it twice.",
    ),
    why="from here on your code computes with the numbers that the file holds, and nothing can change on the way back.",
    mistakes=(
        Mistake("left in float16", edit(".astype(np.float32)", ""),
            cause="The digits are right, but the type is float16. An int8 times such a scale is a float16 again, with fewer digits.",
            cure="Convert back with `.astype(np.float32)`.", see="the dtype float16 where float32 is expected"),
        Mistake("back to float64", edit("np.float32", "float"),
            cause="The result is float64, as Python's `float` and `astype(float)` are.",
            cure="Use `np.float32`.", see="the dtype float64 where float32 is expected"),
        Mistake("not rounded at all", edit(".astype(np.float16)", ""),
            cause="These are the exact scales. A file with float16 scales has no room for all the digits that a float32 can have.",
            cure="Convert to `np.float16` first. That loses what the file loses.",
            see="0.1 where 0.099975586 is expected"),
        Mistake("decimal places", edit("scale.astype(np.float16).astype(np.float32)", "np.round(scale, 3)"),
            cause="The result has three decimal places. A float16 keeps binary digits, eleven of most numbers, large or small.",
            cure="Convert with `astype`, and leave the rounding to the type.",
            see="0.008 where 0.00787 is expected, or zeros for small scales"),
        Mistake("bytes reinterpreted", edit("astype(np.float16)", "view(np.float16)"),
            cause="The bytes of each float32 are read as two float16. Both are meaningless.",
            cure="Use `astype`, which converts the value.",
            see="twice as many numbers as expected, most of them meaningless"),
        Mistake("rounded to whole numbers", edit("scale.astype(np.float16).astype(np.float32)", "np.rint(scale)"),
            cause="The scales are rounded to integers. That is for the weights, later.",
            cure="Convert to `np.float16` and back.", see="zeros where small scales are expected"),
        Mistake("digits cut off", edit(
                "scale.astype(np.float16).astype(np.float32)",
                "(scale.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)",
            ),
            cause="Thirteen binary digits are cut off. Rounding goes to the nearest number, which may be the next larger one.",
            cure="Use `astype`, which rounds.", see="numbers that are a little too small"),
        Mistake("changed in place", edit("return scale", "scale[...] = scale.astype(np.float16)\n    return scale"),
            cause="After the call the caller's array holds the rounded numbers.",
            cure="Return a new array: `astype` makes one.", see="a check that says your argument changed"),
        Mistake("eleven digits for small numbers too",
            body("""
                mantissa, exponent = np.frexp(scale)
                return np.ldexp(np.rint(mantissa * 2048) / np.float32(2048), exponent).astype(np.float32)
            """),
            cause="A float16 keeps eleven binary digits of most numbers, but fewer below 2 ** -14, where its smallest numbers are.",
            cure="Convert with `astype`, which knows the type.",
            see="right for most scales, wrong for very small ones"),
    ),
)
