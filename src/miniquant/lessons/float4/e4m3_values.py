"""The values of E4M3, the float of eight bits that is the scale of NVFP4."""

import numpy as np

from ...lab import Exercise, Mistake, edit
from .toys import e4m3


def e4m3_values(codes):
    """The values of unsigned E4M3.

    codes: uint8 from 0 to 126, of any shape; bits 6 to 3 are the exponent,
        bits 2 to 0 are the mantissa
    ->   float32, the same shape
    """
    exponent = (codes >> 3).astype(np.int32)
    mantissa = codes & 7
    size = np.where(exponent == 0, 2.0**-6 * mantissa / 8, 2.0 ** (exponent - 7) * (1 + mantissa / 8))
    return size.astype(np.float32)


def oracle(codes):
    """Code by code, in eighths of a power of two."""
    return np.array([e4m3(code) for code in codes.ravel().tolist()], np.float32).reshape(codes.shape)


def cases(random):
    """The number 1, other exponents, the smallest numbers, the largest, all of them, other shapes."""
    made = [[56], [57, 64, 48], [1, 0, 7, 8], [126, 127 - 8], list(range(127)), [[60, 3], [100, 20]], [[], []]]
    drawn = random.integers(0, 127, (2, 3, 4), np.uint8)
    return [*((np.array(codes, np.uint8),) for codes in made), (drawn,)]


EXERCISE = Exercise(
    goal="Turn the codes of E4M3, without its sign, into the numbers that they stand for.",
    reference=e4m3_values, oracle=oracle, cases=cases, minutes=6, difficulty="core",
    hints=(
        "The same as for E2M1, with four bits of exponent, three of mantissa, and a bias of 7. There is no sign.",
        "An exponent of 0 means the power -6, as an exponent of 1 does, but without the 1 before the mantissa.",
    ),
    why="127 numbers from 0 to 448: a scale that costs half of a float16, with steps of an eighth.",
    mistakes=(
        Mistake("the exponent 0 not special", edit("np.where(exponent == 0, 2.0**-6 * mantissa / 8, 2.0 ** (exponent - 7) * (1 + mantissa / 8))", "2.0 ** (exponent - 7) * (1 + mantissa / 8)"),
            cause="The formula with 1 + mantissa / 8 was used for an exponent of 0, too, so that 0 cannot be written.",
            cure="Where the exponent is 0, the value is 2**-6 × mantissa / 8.", see="0.0078125 for code 0"),
        Mistake("the power -7", edit("2.0**-6", "2.0**-7"),
            cause="The power for an exponent of 0 is the same as for 1, so that the numbers go on without a gap: -6, not -7.",
            cure="Use 2**-6 where the exponent is 0.", see="half of the right value for codes 1 to 7"),
        Mistake("zero for the exponent 0", edit("2.0**-6 * mantissa / 8", "0 * mantissa"),
            cause="Every code with an exponent of 0 became 0, and its mantissa is lost.",
            cure="Where the exponent is 0, the value is 2**-6 × mantissa / 8.", see="0 for codes 1 to 7"),
        Mistake("a bias of 8", edit("exponent - 7", "exponent - 8"),
            cause="8 was subtracted from the exponent, and the bias is 7.",
            cure="Subtract 7.", see="half of the right value from code 8 on"),
        Mistake("the bias of float16", edit("exponent - 7", "exponent - 15"),
            cause="15 is the bias of float16, which has five bits of exponent.",
            cure="Subtract 7.", see="values 256 times too small from code 8 on"),
        Mistake("the bias forgotten", edit("exponent - 7", "exponent"),
            cause="The bias was not subtracted.",
            cure="Subtract 7 from the exponent.", see="values 128 times too large from code 8 on"),
        Mistake("the 1 before the mantissa forgotten", edit("(1 + mantissa / 8)", "(mantissa / 8)"),
            cause="The value was made from mantissa / 8 alone. The 1 before it is not stored, and counts.",
            cure="Write 1 + mantissa / 8.", see="0 for code 56"),
        Mistake("the mantissa by 7", edit("(1 + mantissa / 8)", "(1 + mantissa / 7)"),
            cause="The mantissa was divided by 7, its largest value. Three bits after the point are eighths.",
            cure="Divide by 8.", see="powers of two right, and the rest too large"),
        Mistake("two bits of mantissa", edit("codes >> 3", "codes >> 2").edit("codes & 7", "codes & 3").edit("exponent - 7", "exponent - 15").edit("(1 + mantissa / 8)", "(1 + mantissa / 4)").edit("2.0**-6 * mantissa / 8", "2.0**-14 * mantissa / 4"),
            cause="That is E5M2: five bits of exponent, two of mantissa.",
            cure="Shift by 3, and mask with 7.", see="0.5 for code 56, and 1 for code 60"),
        Mistake("an integer", edit("size.astype(np.float32)", "codes.astype(np.float32)"),
            cause="The code itself was taken as the number.",
            cure="Take exponent and mantissa out of it.", see="56 where 1 is expected"),
        Mistake("float16", edit("size.astype(np.float32)", "size.astype(np.float16)"),
            cause="The result is float16.",
            cure="Convert it with `.astype(np.float32)`.", see="the dtype float16"),
        Mistake("float64", edit("size.astype(np.float32)", "size"),
            cause="The result is float64.",
            cure="Convert it with `.astype(np.float32)`.", see="the dtype float64"),
    ),
)
