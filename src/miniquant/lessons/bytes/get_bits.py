"""Some bits of a number: a shift and a mask."""

from ...lab import Exercise, Mistake, body, edit


def get_bits(number, start, count):
    """Some neighbouring bits of a number, as a number of their own.

    number: an integer (int), 0 or more, also above 2**64; start: the place
        of the lowest of these bits, 0 for the bit that counts 1;
    count: how many bits, 1 or more; above its highest 1, a number has only
        bits that are 0
    ->   an integer, from 0 to 2**count - 1
    """
    return (number >> start) & (2**count - 1)


def oracle(number, start, count):
    """From the number's binary digits as text, the lowest one first."""
    digits = f"{number:b}"[::-1][start : start + count]
    return sum(2**place for place, digit in enumerate(digits) if digit == "1")


def cases(random):
    """A byte, its nibbles, the fields of a float16, single bits, bits past the top, 64 bits, random ones."""
    made = [
        (0b101100, 2, 3),
        (0x8F, 0, 4),
        (0x8F, 4, 4),
        (0x3C00, 10, 5),
        (0xBC01, 15, 1),
        (0xBC01, 0, 10),
        (22, 0, 1),
        (22, 1, 1),
        (37, 7, 3),
        (0xFF, 6, 8),
        (0, 0, 12),
        (4096, 0, 8),
        (0x1234, 8, 8),
        (0x3412, 0, 10),  # the places of another case, and another number
        (0x3C00, 10, 3),  # the number and the start of another case, and another count
        (2**64 - 2, 60, 4),
        (2**63 + 2**53 + 1, 0, 64),
        (0b11011011, 1, 6),
        (0b10010, 1, 4),
        (0x8421, 3, 9),
        (0xFF, 10, 3),
        (0xFFFF, 18, 2),
        (2**69 + 2**66, 66, 4),
        (5, 40, 3),  # far above the number
        (9, 200, 4),
        (2**200 + 2**195 + 7, 193, 8),
    ]
    drawn = random.integers(0, 2**16, 5).tolist()
    return [*made, *((n, int(random.integers(0, 12)), int(random.integers(1, 7))) for n in drawn)]


def quantities(number, start, count):
    """Numbers that a wrong formula may take, and what is special about the bits."""
    right = number >> start & 2**count - 1
    return {
        "the number of these bits that are 1": right.bit_count(),
        "these bits in the opposite order": int(f"{right:0{count}b}"[::-1], 2),
        "`number` without its `start` lowest bits": number >> start,
        "2**count": 2**count,
        "all these bits are 1": right == 2**count - 1,
        "the highest of these bits is 1": right >> (count - 1) == 1,
        "the lowest of these bits is 1": right & 1 == 1,
        "a bit above the wanted ones is 1": number >> (start + count) > 0,
        "a bit below the wanted ones is 1": number % 2**start > 0,
        "`start` is not 0 and `count` is not 1": start > 0 and count > 1,
        "`start` is more than 18": start > 18,
        "`count` is more than 1": count > 1,
        "`count` is more than 8": count > 8,
        "`start` + `count` is more than 8": start + count > 8,
        "`start` + `count` is more than 16": start + count > 16,
        "the number needs fewer bits than `start` + `count`": number.bit_length() < start + count,
    }


EXERCISE = Exercise(
    goal="Take some neighbouring bits out of a number.",
    reference=get_bits, oracle=oracle, cases=cases, minutes=4, difficulty="core", quantities=quantities,
    hints=(
        "Two steps: move the bits that you want to the right end, then set all other bits to zero.",
        "`>>` does the first step and `&` the second. The mask has `count` ones, which is one less than a power of two.",
    ),
    why="in a float16, a nibble or a K-quant, a number does not begin at a byte.",
    mistakes=(
        Mistake("not masked", edit(" & (2**count - 1)", ""),
            cause="The bits above the wanted ones are still there.",
            cure="Keep only the lowest `count` bits: `& (2**count - 1)`.", see="11 where 3 is expected"),
        Mistake("not moved", edit("(number >> start) & (2**count - 1)", "number & (2**count - 1) << start"),
            cause="The right bits were kept, but they are still at their old place.",
            cure="Shift to the right by `start`, then mask.", see="12 where 3 is expected"),
        Mistake("the lowest bits", edit("(number >> start)", "number"),
            cause="These are the lowest bits of the number, whatever `start` is.",
            cure="Shift to the right by `start` before you mask.", see="4 where 3 is expected"),
        Mistake("the number of bits as a mask", edit("(2**count - 1)", "count"),
            cause="Only bits that are set in the number `count` are kept; a mask for 3 bits is 7, not 3.",
            cure="The mask for `count` bits is 2**count - 1.", see="0 or 4 where four bits are expected"),
        Mistake("a mask with one bit", edit("(2**count - 1)", "2**count"),
            cause="Only one bit is kept, the one just above the bits that you want.",
            cure="Subtract 1: then all bits below it are set.", see="8 where 3 is expected"),
        Mistake("shifted to the left", edit(">>", "<<"),
            cause="These are the bits after a move to the left, away from the right end.",
            cure="Use `>>`.", see="0 where 3 is expected"),
        Mistake("counted from the left", body("""
                return (number >> max(0, 8 - start - count)) & (2**count - 1)
            """),
            cause="Within a byte, these are the bits counted from its left; beyond it, the lowest ones. Bit 0 is the lowest bit.",
            cure="Shift by `start`.", see="5 where 3 is expected"),
        Mistake("start and count exchanged", edit("(number >> start) & (2**count - 1)", "(number >> count) & (2**start - 1)"),
            cause="These are the results with `start` and `count` exchanged.",
            cure="Shift by `start`, and let the mask have `count` ones.", see="1 where 3 is expected, and 0 for every start of 0"),
        Mistake("count as the end", edit("(2**count - 1)", "(2 ** max(0, count - start) - 1)"),
            cause="These are the bits from `start` to below `count`; `count` says how many they are.",
            cure="The mask has `count` ones, whatever `start` is.", see="1 where 3 is expected, and 0 if `start` is as large as `count`"),
        Mistake("left as text", edit("return (number >> start) & (2**count - 1)",
                'return f"{(number >> start) & (2**count - 1):b}"'),
            cause="These are the right bits, but as text.",
            cure="Return the number itself.", see="'11' where 3 is expected"),
        Mistake("always four bits", edit("(2**count - 1)", "0x0F"),
            cause="The result has four bits, whatever `count` is.",
            cure='The mask has `count` ones: 2**count - 1.', see='11 where 3 is expected, and four bits right'),
        Mistake("the mask moved, too", edit("(2**count - 1)", "((2**count - 1) << start)"),
            cause="From the number, moved down by `start`, bits are kept from `start` on; they must be kept from 0 on.",
            cure='Mask at the right end, after the shift.', see='8 where 3 is expected, and right for a start of 0'),
        Mistake("^ for a power", edit("2**count", "(2 ^ count)"),
            cause="These are the results with `^` for a power; in Python `^` is an operation on bits, and a power is `**`.",
            cure='Write `2**count`.', see='0 where 3 is expected'),
        Mistake("joined, not masked", edit(") & (", ") | ("),
            cause="The lowest `count` bits are all 1, and nothing above them is kept out.",
            cure='Use `&`.', see='15 where 3 is expected'),
        Mistake("one byte only", edit("(number >> start)", "((number & 255) >> start)"),
            cause="Bits above the first eight come out as 0; the number may have more.",
            cure='Shift the whole number.', see='0 for bits above the first byte'),
        Mistake("divided", edit("(number >> start) & (2**count - 1)", "number / 2**start % 2**count"),
            cause="The result is a float, as with `/`: what is below `start` becomes its fraction, and a large number is rounded or does not fit.",
            cure='Use `>>` or `//`, which give whole numbers.', see='3.0 where 3 is expected'),
        Mistake("a list of bits", edit("(number >> start) & (2**count - 1)", "[(number >> (start + i)) & 1 for i in range(count)]"),
            cause='These are the bits one by one.',
            cure='Return one number.', see='a list where a number is expected'),
        Mistake("one place too few", edit("(number >> start)", "(number >> max(0, start - 1))"),
            cause="Where `start` is not 0, the bits begin one place too low; bit 0 is the lowest bit.",
            cure='Shift by `start`.', see='6 where 3 is expected'),
        Mistake("one bit too many", edit("2**count", "2 ** (count + 1)"),
            cause="The result has one bit too many at its upper end.",
            cure='The mask is 2**count - 1.', see='11 where 3 is expected'),
        Mistake("from the left of the text", body("""
                return int(f"{number:016b}"[start : start + count] or "0", 2)
            """),
            cause="These are bits counted from the left of 16 digits, or of more if the number needs them; bit 0 is the lowest.",
            cure='Count from the right, or use a shift.', see='0 where 3 is expected'),
        Mistake("a text of 32 digits", body("""
                digits = f"{number:032b}"[::-1][start : start + count]
                return int(digits[::-1], 2)
            """),
            cause="A start of 32 or more beyond the number's highest 1 leaves an empty text, of which `int` makes no number; all bits there are 0.",
            cure="Use a shift and a mask; or pad the text to `start + count` digits.", see="a ValueError for bits far above the number"),
        Mistake("the bits reversed", body("""
                return int(f"{number:b}"[::-1][start : start + count] or "0", 2)
            """),
            cause="The right bits, up to the number's highest 1, are there in the opposite order.",
            cure='Reverse the piece again before you make a number of it, or use a shift.', see='6 where 3 is expected'),
    ),
)
