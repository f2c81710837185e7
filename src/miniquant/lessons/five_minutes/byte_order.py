"""Which end came first?"""

from ...lab import Exercise, Mistake, body, edit, omit


def byte_order(data, magic):
    """In which order a number was written.

    data: 4 bytes, magic: the number that they should be   ->   "little", "big" or "neither"
    """
    for order in ("little", "big"):
        if int.from_bytes(data, order) == magic:
            return order
    return "neither"


def oracle(data, magic):
    """By the hexadecimal digits: as they read on paper, or in pairs from the back."""
    digits = f"{magic:08x}"
    backwards = digits[6:8] + digits[4:6] + digits[2:4] + digits[0:2]
    return {backwards: "little", digits: "big"}.get(data.hex(), "neither")


def cases(random):
    """A magic number in both orders and in none, another file, a random number."""
    made = [
        ("01 02 03 04", 0x04030201),
        ("04 03 02 01", 0x04030201),
        ("54 46 4c 47", 0x474C4654),
        ("47 4c 46 54", 0x474C4654),
        ("47 47 55 46", 0x474C4654),
        ("05 00 00 00", 5),
        ("00 00 00 05", 5),
        ("50 4b 03 04", 0x474C4654),  # a zip file
        ("54 4c 46 47", 0x474C4654),  # two bytes in the right place
        ("47 46 4c 54", 0x474C4654),  # another order
    ]
    number = int(random.integers(2**24, 2**32))
    return [*((bytes.fromhex(text), magic) for text, magic in made), (number.to_bytes(4, "big"), number)]


EXERCISE = Exercise(
    goal="Tell from the first four bytes of a file in which order the program that wrote it stores numbers.",
    reference=byte_order, oracle=oracle, cases=cases, minutes=4, difficulty="core",
    hints=(
        "You know the number that should come out: read the bytes both ways and see which one gives it.",
        '`int.from_bytes(data, "little") == magic` answers one half of the question; the other half has `"big"` in it.',
    ),
    why="this is what a magic number is good for besides its name: read the wrong way round, it no longer fits.",
    mistakes=(
        Mistake("names swapped", edit("return order", 'return "big" if order == "little" else "little"'),
            cause="Little-endian means that the little end, the byte with the smallest place value, comes first.",
            cure='Return "little" when reading with `"little"` gives the magic.',
            see="'big' for the bytes `01 02 03 04` of the number 0x04030201"),
        Mistake("never neither", edit("neither", "big"),
            cause="Whatever was not little-endian was called big-endian, even a file of another kind.",
            cure='Test for `"big"` as well, and return "neither" if that does not fit either.',
            see="'big' for the first bytes of a zip file"),
        Mistake("nothing for neither", omit('return "neither"'),
            cause="A function that ends without a `return` returns None.",
            cure='Add `return "neither"` as the last line.', see="None for the first bytes of a zip file"),
        Mistake("always little", body("""
                import sys
                return sys.byteorder
            """),
            cause="This is the order of your own computer, `sys.byteorder`; it says nothing about the file.",
            cure="Look at `data`: read it both ways and compare with `magic`.", see="'little' for every file"),
        Mistake("compared without order",
            edit('return "neither"', 'return "big" if set(data) == set(magic.to_bytes(4, "big")) else "neither"'),
            cause="The same four bytes in some other order are not the magic, read from either end.",
            cure="Compare whole numbers instead of sorted bytes or sets.",
            see="'big' for the bytes of the magic in a mixed order"),
    ),
)
