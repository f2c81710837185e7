"""The values of E2M1, the float of four bits."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def e2m1_values(codes):
    """The values of floats of four bits, E2M1.

    codes: uint8 from 0 to 15, of any shape; bit 3 is the sign, bits 2 and 1
        are the exponent, bit 0 is the mantissa
    ->   float32, the same shape; code 8 is 0
    """
    exponent = (codes >> 1 & 3).astype(np.int32)
    mantissa = codes & 1
    size = np.where(exponent == 0, mantissa / 2, 2.0 ** (exponent - 1) * (1 + mantissa / 2))
    return np.where(codes >= 8, -size, size).astype(np.float32)


def oracle(codes):
    """Counted in halves, code by code: how many there are to each magnitude."""
    halves = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 12}
    found = [(-1 if code > 7 else 1) * halves[code % 8] / 2 for code in codes.ravel().tolist()]
    return np.array(found, np.float32).reshape(codes.shape)


def cases(random):
    """Codes with another exponent each, all sixteen, other shapes, random ones."""
    made = [[2], [5, 7], [1, 0], [10, 9, 15], list(range(16)), [[3, 12], [6, 8]], [[], []]]
    drawn = random.integers(0, 16, (3, 2, 5), np.uint8)
    return [*((np.array(codes, np.uint8),) for codes in made), (drawn,)]


EXERCISE = Exercise(
    goal="Turn the sixteen codes of four bits into the numbers that they stand for.",
    reference=e2m1_values, oracle=oracle, cases=cases, minutes=6, difficulty="warm-up",
    hints=(
        "Take the three parts out of the code first. There are two formulas for the size, one for an exponent of 0 and one for the rest; the sign comes last.",
        "`>>` moves bits down, and `&` keeps some of them. What comes out is uint8, where 0 - 1 is 255, so convert it before you subtract. `np.where` chooses between the two formulas.",
    ),
    why="a sign, an exponent and a mantissa: the same three parts as in float16, in a quarter of the bits.",
    mistakes=(
        Mistake("the exponent 0 not special", edit("np.where(exponent == 0, mantissa / 2, 2.0 ** (exponent - 1) * (1 + mantissa / 2))", "2.0 ** (exponent - 1) * (1 + mantissa / 2)"),
            cause="The formula with 1 + mantissa / 2 was used for an exponent of 0, too, so that 0 cannot be written.",
            cure="Where the exponent is 0, the size is mantissa / 2.", see="0.5 for code 0 and 0.75 for code 1"),
        Mistake("the bias forgotten", edit("2.0 ** (exponent - 1)", "2.0 ** exponent"),
            cause="The exponent is stored plus 1, and the 1 was not subtracted.",
            cure="Use 2 to the power of exponent - 1.", see="twice the right value, except for codes 0, 1, 8 and 9"),
        Mistake("a bias of 2", edit("2.0 ** (exponent - 1)", "2.0 ** (exponent - 2)"),
            cause="2 was subtracted from the exponent, and the bias is 1.",
            cure="Use 2 to the power of exponent - 1.", see="half of the right value, except for codes 0, 1, 8 and 9"),
        Mistake("zero for the exponent 0", edit("mantissa / 2, 2.0", "0 * mantissa, 2.0"),
            cause="Every code with an exponent of 0 became 0, and its mantissa is lost.",
            cure="Where the exponent is 0, the size is mantissa / 2.", see="0 for codes 1 and 9"),
        Mistake("the 1 before the mantissa forgotten", edit("(1 + mantissa / 2)", "(mantissa / 2)"),
            cause="The size was made from mantissa / 2 alone. The 1 before it is not stored, and counts.",
            cure="Write 1 + mantissa / 2.", see="0 for codes 2, 4 and 6"),
        Mistake("a whole for the mantissa", edit("(1 + mantissa / 2)", "(1 + mantissa)"),
            cause="The mantissa was added as 1. It is the first bit after the point, so it counts for a half.",
            cure="Write 1 + mantissa / 2.", see="2 for code 3 and 8 for code 7"),
        Mistake("a whole for the smallest", edit("np.where(exponent == 0, mantissa / 2,", "np.where(exponent == 0, mantissa,"),
            cause="Where the exponent is 0, the mantissa counts for a half, too.",
            cure="Write mantissa / 2 there.", see="1 for code 1, and the rest right"),
        Mistake("the sign forgotten", edit("np.where(codes >= 8, -size, size)", "size"),
            cause="Bit 3 was not used.",
            cure="Codes from 8 on are negative.", see="positive numbers only"),
        Mistake("two's complement", edit("exponent = (codes >> 1 & 3)", "size = np.where(codes >= 8, 16 - codes, codes)\n    exponent = (size >> 1 & 3)").edit("mantissa = codes & 1", "mantissa = size & 1"),
            cause="Codes from 8 on were taken as code - 16. A float has its sign in a bit of its own; the other three bits stay as they are.",
            cure="Take exponent and mantissa from bits 0 to 2, and then the sign from bit 3.", see="codes from 9 on in the reverse order"),
        Mistake("the mantissa first", edit("(codes >> 1 & 3)", "(codes & 3)").edit("codes & 1", "codes >> 2 & 1"),
            cause="The exponent was taken from bits 0 and 1, and the mantissa from bit 2.",
            cure="The exponent is bits 2 and 1, the mantissa bit 0.", see="code 2 as 2, code 4 as 0.5"),
        Mistake("the sign bit in the exponent", edit("codes >> 1 & 3", "codes >> 1"),
            cause="The bits above the exponent were not masked off, so that the sign became a part of it.",
            cure="Mask with 3 after the shift.", see="positive codes right, sizes far too large for the rest"),
        Mistake("the values of ggml's table", edit(".astype(np.float32)", ".astype(np.float32) * np.float32(2)"),
            cause="Every value is twice what it should be. ggml keeps them like this, because then they are integers, and halves the scale.",
            cure="Code 2 is the number 1.", see="12 for code 7"),
        Mistake("integers", edit("-size, size).astype(np.float32)", "-size, size).astype(np.int8)"),
            cause="The values were converted to integers, and three of the sizes are no integers.",
            cure="Convert to float32.", see="0 where 0.5 is expected"),
        Mistake("float64", edit("-size, size).astype(np.float32)", "-size, size)"),
            cause="The result is float64.",
            cure="Convert it with `.astype(np.float32)`.", see="the dtype float64"),
    ),
)
