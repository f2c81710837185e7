"""Which end came first?"""

from ...lab import Exercise, Mistake, body, edit, omit


def byte_order(data, magic):
    """In which byte order a number was written.

    data: 4 bytes; magic: an integer from 0 to 2**32 - 1 whose bytes are not
        the same in both orders
    ->   "little", "big" or "neither"

    "little": data is magic in little-endian order; "big": in big-endian
    order; "neither": in none of the two.
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
        ("46 54 47 4c", 0x474C4654),  # both halves in the wrong place
        ("4c 47 54 46", 0x474C4654),  # the two halves exchanged
        ("46 4c 47 54", 0x474C4654),  # every byte one place further on
        ("47 54 46 4c", 0x474C4654),
        ("54 46 47 4c", 0x474C4654),  # the second half the other way round
        ("47 4c 54 46", 0x474C4654),
        ("55 46 4c 47", 0x474C4654),  # one more than the number
        ("54 46 4c 48", 0x474C4654),
        ("47 4c 46 54", 0x484C4654),  # bytes that are another number's
        ("2c 01 00 00", 300),
        ("00 00 01 2c", 300),
        ("fe ed fa 00", 0xFEEDFA00),  # a number above 2**31 whose last byte is 0
        ("54 4c 46 54", 0x544C4654),  # the first byte is the last one, too
        ("54 46 4c 54", 0x544C4654),
        ("00 fa ed fe", 0xFEEDFA00),
        ("4c 46 54 00", 0x474C4654),  # three of the four bytes, in five ways
        ("4c 47 47 4c", 0x474C4654),  # the last bytes of one order, the first of the other
        ("00 46 4c 47", 0x474C4654),
        ("47 4c 46 00", 0x474C4654),
        ("00 4c 46 54", 0x474C4654),
        ("54 00 4c 47", 0x474C4654),  # one byte in the middle is wrong
        ("54 46 00 47", 0x474C4654),
        ("47 00 46 54", 0x474C4654),
        ("47 4c 00 54", 0x474C4654),
        ("54 46 4c c7", 0x474C4654),  # one bit is wrong
        ("c7 4c 46 54", 0x474C4654),
        ("05 00 00 07", 5),  # a small number needs its bytes of 0
        ("07 00 00 05", 5),
        ("00 05 00 00", 5),  # its bytes of 0 in the wrong place
        ("00 2c 01 00", 300),
        ("fe ed fb 00", 0xFEEDFA00),  # a byte above 127, which is no ASCII, and another one
    ]
    number = int(random.integers(2**24, 2**32))
    return [*((bytes.fromhex(text), magic) for text, magic in made), (number.to_bytes(4, "big"), number)]


def quantities(data, magic):
    """Which of the four bytes are right in one order or the other."""
    little = magic.to_bytes(4, "little")
    first, _, _, last = data  # four bytes: of others nothing is said
    return {
        "`magic` is less than 2**24": magic < 2**24,
        "`magic` has fewer than eight hexadecimal digits": magic < 2**28,
        "`data` has the bytes of `magic` in a third order": sorted(data) == sorted(little)
        and data not in (little, little[::-1]),
        "the first byte is the right one of little-endian": first == little[0],
        "the first byte is the right one of big-endian": first == little[3],
        "the last byte is the right one of little-endian": last == little[3],
        "the last byte is the right one of big-endian": last == little[0],
        "the first two bytes are those of little-endian": data[:2] == little[:2],
        "the first two bytes are those of big-endian": data[:2] == little[:1:-1],
        "the last two bytes are those of little-endian": data[2:] == little[2:],
        "the last two bytes are those of big-endian": data[2:] == little[1::-1],
    }


EXERCISE = Exercise(
    goal="Tell from the first four bytes of a file in which order the program that wrote it stores numbers.",
    reference=byte_order, oracle=oracle, cases=cases, minutes=4, difficulty="core", quantities=quantities,
    hints=(
        "You know the number that should come out. Read the bytes both ways, and see which way gives it.",
        "`int.from_bytes` takes the byte order as its second argument. It may be that neither order gives the number.",
    ),
    why="a magic number is also a test of the byte order: a program that reads it in the wrong order gets another number.",
    mistakes=(
        Mistake("names swapped", edit("return order", 'return "big" if order == "little" else "little"'),
            cause="The two names are exchanged: little-endian means that the byte with the smallest place value comes first.",
            cure='Return "little" when reading with `"little"` gives the magic.',
            see="'big' for the bytes `01 02 03 04` of the number 0x04030201"),
        Mistake("never neither", edit("neither", "big"),
            cause="Everything that is not little-endian is called big-endian, even a file of another kind.",
            cure='Test for `"big"` as well, and return "neither" if that does not fit either.',
            see="'big' for the first bytes of a zip file"),
        Mistake("nothing for neither", omit('return "neither"'),
            cause="Where neither order is right, the result is None.",
            cure='Add `return "neither"` as the last line.', see="None for the first bytes of a zip file"),
        Mistake("always little", body("""
                import sys
                return sys.byteorder
            """),
            cause="The answer is 'little' for every file; the order of your own computer says nothing about the file.",
            cure="Look at `data`: read it both ways and compare with `magic`.", see="'little' for every file"),
        Mistake("compared without order",
            edit('return "neither"', 'return "big" if set(data) == set(magic.to_bytes(4, "big")) else "neither"'),
            cause="The same four bytes in some other order are not the magic, in either byte order, and here they count as one.",
            cure="Compare whole numbers instead of sorted bytes or sets.",
            see="'big' for the bytes of the magic in a mixed order"),
        Mistake("only the lowest byte", body("""
                if data[0] == magic & 255:
                    return "little"
                if data[3] == magic & 255:
                    return "big"
                return "neither"
            """),
            cause="Only the lowest byte of the magic is looked for, first or last in the data; the other three bytes of the magic may be anything.",
            cure='Compare all four bytes.', see="'little' for bytes of which only the first is right"),
        Mistake("only both ends", body("""
                if data[0] == magic & 255 and data[3] == magic >> 24:
                    return "little"
                if data[3] == magic & 255 and data[0] == magic >> 24:
                    return "big"
                return "neither"
            """),
            cause="The first and the last byte decide; the two between may be anything.",
            cure='Compare all four bytes.', see="'little' for bytes with the middle ones exchanged"),
        Mistake("only two bytes", body("""
                if data[:2] == magic.to_bytes(4, "little")[:2]:
                    return "little"
                if data[:2] == magic.to_bytes(4, "big")[:2]:
                    return "big"
                return "neither"
            """),
            cause="The first two bytes decide; the other two may be anything.",
            cure='Compare all four bytes.', see="'little' for three right bytes and a wrong one"),
        Mistake("signed", body("""
                if int.from_bytes(data, "little", signed=True) == magic:
                    return "little"
                if int.from_bytes(data, "big", signed=True) == magic:
                    return "big"
                return "neither"
            """),
            cause="Numbers from 2**31 on are never found.",
            cure='Read them without a sign.', see="'neither' for a magic above 2**31"),
        Mistake("one magic built in", body("""
                if int.from_bytes(data, "little") == 0x474C4654:
                    return "little"
                if int.from_bytes(data, "big") == 0x474C4654:
                    return "big"
                return "neither"
            """),
            cause="Only one magic is ever found, the one of GGUF-lite.",
            cure='Compare with the argument `magic`.', see="'neither' for the number 5"),
        Mistake("bytes of 0 taken away", body("""
                left, wanted = data.strip(b"\\0"), magic.to_bytes(4, "little").strip(b"\\0")
                return "little" if left == wanted else "big" if left == wanted[::-1] else "neither"
            """),
            cause="The bytes of 0 at both ends are not compared, so it does not count how many there are, and where.",
            cure='Compare all four bytes.', see="'little' for the bytes `00 00 00 05` of the number 5"),
        Mistake("capital letters", body("""
                if False:
                    return "little"
                if False:
                    return "big"
                if int.from_bytes(data, "little") == magic:
                    return "Little"
                return "Big" if int.from_bytes(data, "big") == magic else "Neither"
            """),
            cause='The words are right, but they begin with capital letters.',
            cure='Return "little", "big" or "neither", exactly as written.', see="'Little' where 'little' is expected"),
    ),
)
