"""The number in two bytes."""

import math
import struct

from ...lab import Exercise, Mistake, body, edit
from .get_bits import get_bits


def float16_value(data):
    """The number that a float16 stands for.

    data: bytes, 2 of them, little-endian   ->   a float

    Bit 15 is the sign (1 is negative), bits 10 to 14 are the exponent, bits
    0 to 9 the fraction.
    exponent 1 to 30: (1 + fraction / 1024) * 2**(exponent - 15)
    exponent 0: fraction / 1024 * 2**-14, which may be 0; 0.0 and -0.0 are
        both right for it
    exponent 31: infinity, with its sign, if the fraction is 0, otherwise
        nan
    """
    number = int.from_bytes(data, "little")
    sign, exponent, fraction = get_bits(number, 15, 1), get_bits(number, 10, 5), get_bits(number, 0, 10)
    if exponent == 31:
        value = math.nan if fraction else math.inf
    elif exponent == 0:
        value = fraction / 1024 * 2**-14
    else:
        value = (1 + fraction / 1024) * 2 ** (exponent - 15)
    return -value if sign else value


def oracle(data):
    """What ``struct`` reads."""
    return struct.unpack("<e", data)[0]


def cases(random):
    """Simple numbers, both ends of every kind, both zeros, infinities, NaNs, then random bytes."""
    made = "00 3c,00 c0,00 38,00 3e,01 3c,00 bc,66 2e,ff 7b,ff fb,00 04,01 00,ff 03,01 80,00 02,00 00,00 80"
    made += ",00 7c,00 fc,00 7e,01 7c,ff ff,00 40,00 44,55 35,00 78,0a 3c,0d 20,20 0a"
    return [(bytes.fromhex(text),) for text in made.split(",")] + [(random.bytes(2),) for _ in range(8)]


def quantities(data):
    """The three fields, and the kinds of numbers."""
    number = int.from_bytes(data, "little")
    exponent, fraction = number >> 10 & 31, number & 1023
    return {
        "the exponent": exponent,
        "the fraction": fraction,
        "1 + fraction / 1024": 1 + fraction / 1024,
        "2**(exponent - 15)": 2.0 ** (exponent - 15),
        "the exponent is 0": exponent == 0,
        "the exponent is 0 and the fraction is not 0": exponent == 0 and fraction > 0,
        "the exponent is 0 and the fraction, too": exponent == 0 and fraction == 0,
        "the exponent is 31": exponent == 31,
        "the exponent is 31 and the fraction is not 0": exponent == 31 and fraction > 0,
        "the exponent is 31 and the fraction is 0": exponent == 31 and fraction == 0,
        "the exponent is 30": exponent == 30,
        "the exponent is 30 or 31": exponent >= 30,
        "the exponent is 1 to 30": 1 <= exponent <= 30,
        "the exponent is 16 or more": exponent >= 16,
        "the exponent is less than 15": exponent < 15,
        "the exponent is 1 to 30 and the fraction is not 0": 1 <= exponent <= 30 and fraction > 0,
        "the fraction is not 0": fraction > 0,
        "the fraction is 512 or more": fraction >= 512,
        "the sign bit is 1": number > 32767,
        "the sign bit is 1 and the exponent is 31": number > 32767 and exponent == 31,
        "the sign bit is 1 and the exponent is 0": number > 32767 and exponent == 0,
        "the sign bit is 1 and the exponent is 1 to 30": number > 32767 and 1 <= exponent <= 30,
    }


EXERCISE = Exercise(
    goal="Compute the number that is stored in the two bytes of a float16.",
    reference=float16_value, oracle=oracle, cases=cases, minutes=8, difficulty="core", quantities=quantities,
    hints=(
        "Make one number of the two bytes, take the three fields out of it, and then treat the three kinds of exponent one by one.",
        "`int.from_bytes` gives the number, and your `get_bits` a field. Python has `math.inf` and `math.nan`, or `float` of their names.",
    ),
    why="every scale of a quantized file is stored in these two bytes.",
    mistakes=(
        Mistake("big-endian", edit('"little"', '"big"'),
            cause="These are the values with the first byte as the larger half; a little-endian number has it second.",
            cure='Read them with `"little"`: the second byte holds the sign and the exponent.', see="a tiny number where 1.0 is expected"),
        Mistake("the 1 before the fraction forgotten", edit("(1 + fraction / 1024)", "(fraction / 1024)"),
            cause="A normal number is 1 plus the fraction; the 1 is not stored.",
            cure="Write 1 + fraction / 1024 where the exponent is 1 to 30.", see="0.0 where 1.0 is expected"),
        Mistake("the exponent without its 15", edit("(exponent - 15)", "exponent"),
            cause="The exponent of a normal number is stored with 15 added, so that it needs no sign.",
            cure="Subtract 15.", see="32768.0 where 1.0 is expected"),
        Mistake("float32's 127", edit("(exponent - 15)", "(exponent - 127)"),
            cause="127 belongs to float32; float16 adds 15 to the exponent of a normal number.",
            cure="Subtract 15.", see="a tiny number where 1.0 is expected, but not a subnormal"),
        Mistake("subnormals as normal numbers", edit("elif exponent == 0:", "elif False:"),
            cause="Where the exponent is 0 there is no 1 before the fraction; without this rule there is no zero either.",
            cure="Treat the exponent 0 by its own line.", see="a larger number where a subnormal is expected"),
        Mistake("subnormals half as large", edit("2**-14", "2**-15"),
            cause="With the exponent 0 the factor is 2**-14, as with the exponent 1; then the numbers go on without a jump.",
            cure="Use 2**-14.", see="half the number for an exponent of 0"),
        Mistake("infinity as a number", edit("exponent == 31", "exponent == 99"),
            cause="The exponent 31 is kept for infinity and nan.",
            cure="Treat the exponent 31 by its own line.", see="65536.0 where inf is expected"),
        Mistake("nan as infinity", edit("math.nan if fraction else math.inf", "math.inf"),
            cause="With the exponent 31 and a fraction that is not 0, the bits mean nan: not a number.",
            cure="Return infinity only if the fraction is 0.", see="inf where nan is expected"),
        Mistake("the sign ignored", edit("-value if sign else value", "value"),
            cause="Nothing is negative: bit 15 does not count.",
            cure="Return the negative number if the sign is 1.", see="2.0 where -2.0 is expected"),
        Mistake("the sign of two's complement",
            edit("-value if sign else value", "value").edit("number = int.from_bytes(data, \"little\")",
                "number = int.from_bytes(data, \"little\", signed=True)\n    minus, number = number < 0, abs(number)")
            .edit("return value", "return -value if minus else value"),
            cause="Negative numbers are those of a signed integer's bits; a float16 stores its sign as one bit of its own.",
            cure="Read the bytes without a sign, and take bit 15 as the sign.", see="positive numbers right, negative ones wrong"),
        Mistake("a fraction of 1023", edit("(1 + fraction / 1024)", "(1 + fraction / 1023)"),
            cause="The normal numbers fit a fraction in steps of 1/1023; ten bits have 1024 values, so one step is 1/1024.",
            cure="Divide by 1024.", see="1.0 right, and most other numbers a little too large"),
        Mistake("no subnormals", edit("fraction / 1024 * 2**-14", "0.0"),
            cause='With the exponent 0, only the fraction 0 is zero; the others are small numbers.',
            cure='Return fraction / 1024 * 2**-14 there.', see='0.0 where a tiny number is expected'),
        Mistake("four bits of exponent", edit("10, 5)", "10, 4)"),
            cause="The values fit an exponent of four bits, and it has five, 10 to 14.",
            cure='Take five bits.', see='numbers below 2 right, and larger ones wrong'),
        Mistake("infinity without a sign", edit("-value if sign else value", "-value if sign and exponent != 31 else value"),
            cause='Minus infinity exists: its sign bit is 1.',
            cure='Use the sign for every kind of number.', see='inf where -inf is expected'),
        Mistake("subnormals without a sign", edit("-value if sign else value", "-value if sign and exponent else value"),
            cause="Subnormals can be negative: then their sign bit is 1.",
            cure='Use the sign for every kind of number.', see='a tiny positive number where a negative one is expected'),
        Mistake("rounded", body("""
                import struct
                return round(struct.unpack('<e', data)[0], 4)
            """),
            cause='The number is rounded to four decimals.',
            cure='Return it as it is.', see='1.001 where 1.0009765625 is expected'),
        Mistake("the bits as a number", body("""
                return float(int.from_bytes(data, "little"))
            """),
            cause='These are the 16 bits as a whole number.',
            cure='Take sign, exponent and fraction out of them, and compute.', see='15360.0 where 1.0 is expected'),
        Mistake("read as half a float32", body("""
                import struct
                return struct.unpack('<f', bytes(2) + data)[0]
            """),
            cause='The upper half of a float32 has other fields; that type is called bfloat16.',
            cure='Take the fields of a float16: 1, 5 and 10 bits.', see='0.0078125 where 1.0 is expected'),
    ),
)
