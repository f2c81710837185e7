"""Legacy GGML: numbers without names."""

import struct

from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import by_digits, number
from ..shared.observed import in_any_order


def ggml_hparams(data):
    """The numbers of a GGML file.

    data: bytes, the magic (u32), then n_vocab, n_ctx, n_embd, n_head,
        n_layer, ftype (i32 each), then other data
    ->   a dict of int, its keys "n_vocab", "n_ctx", "n_embd", "n_head",
         "n_layer", "ftype", "quantization_version"

    The stored ftype is never negative; you need not check that. In the
    dict, "ftype" is its remainder by 1000, and "quantization_version" is
    its quotient by 1000, both whole numbers. The five numbers before it are
    kept as they are, 0 and negative ones, too. All numbers are
    little-endian; the magic is 0x67676d6c. Raises ValueError for another
    magic and for fewer than 28 bytes.
    """
    if len(data) < 28:
        raise ValueError("too short for a GGML file")
    magic, *numbers, ftype = struct.unpack("<I6i", data[:28])
    if magic != 0x67676D6C:
        raise ValueError("the magic is not GGML's")
    version, ftype = divmod(ftype, 1000)
    names = ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer")
    return {**dict(zip(names, numbers)), "ftype": ftype, "quantization_version": version}


FIVE = ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer")


def signed(data):
    """Two's complement by hand: from half of the range on, a number is negative."""
    found = number(data)
    return found - 2**32 if found >= 2**31 else found


def oracle(data):
    """Digit by digit, name by name."""
    if len(data) < 28 or data[:4] != b"lmgg":
        raise ValueError("no GGML")
    return {
        **{name: signed(data[4 + 4 * i : 8 + 4 * i]) for i, name in enumerate(FIVE)},
        "ftype": number(data[24:28]) % 1000,
        "quantization_version": number(data[24:28]) // 1000,
    }


def cases(random):
    """Good files, some with more bytes, with large and negative numbers, random; then other magics, and short files."""

    def file(*numbers):
        return b"lmgg" + b"".join(by_digits(n % 2**32, 4) for n in numbers)

    drawn = [file(*random.integers(1, 70000, 5).tolist(), int(random.integers(0, 3000))) for _ in range(3)]
    first = file(1, 2, 3, 4, 5, 0)
    good = [first, file(1024, 256, 256, 4, 4, 1), file(50257, 1024, 768, 12, 12, 2007) + b"tokens", *drawn]
    good += [file(128256, 2**31 - 1, 65536, 1, 2, 1000), file(3, -1, -256, 2, 1, 999) + bytes(8)]
    good += [file(0x67676D6C, 2, 3, 4, 5, 12007), file(1, 2, 3, 4, 5, 123456), file(-1, -2, -3, -4, -5, 1), file(0, 0, 0, 0, 0, 0)]
    good += [file(-(2**31), 2**31 - 1, 2**30, -(2**30), 1, 1)]
    good += [file(10, 13, 0x0A0A0A0A, 0x20200A0D, 10, 10), file(1, 2, 3, 4, 5, 0x20090D0A), file(1, 2, 3, 4, 5, 2**31 - 1), file(1, 2, 3, 4, 0, 300_007)]
    bad = [magic + first[4:] for magic in (b"ggml", b"GGUF", b"tjgg", b"fmgg", b"lmgf", b"lxgg", b"lmxg", b"LMGG", b"algg", bytes(4) + b"lmgg")]
    return [(data,) for data in [*good, *bad, first[:27], first[:24], first[:9], b"lmgg", b"lmg", b""]]


def traits(data):
    """What is special about the numbers, or wrong with the file."""
    numbers = [signed(data[at : at + 4]) for at in range(4, 28, 4)] if len(data) >= 28 else []
    return {
        "the file has fewer than 28 bytes": len(data) < 28,
        "the file has fewer than 4 bytes": len(data) < 4,
        "the file has 4 to 27 bytes": 4 <= len(data) < 28,
        "the file has 28 bytes or more and another magic": len(data) >= 28 and data[:4] != b"lmgg",
        "the first three letters of the magic are right, and the fourth is another one": data[:3] == b"lmg" and data[3:4] not in (b"g", b""),
        "the first letter of the magic is wrong, and the three others are right": data[:1] != b"l" and data[1:4] == b"mgg",
        "the magic is wrong, and its last two letters are right": data[:4] != b"lmgg" and data[2:4] == b"gg",
        "the file has more than 28 bytes": len(data) > 28,
        "the file has 28 bytes or more, and a number is negative": any(n < 0 for n in numbers),
        "the file has 28 bytes or more, and a number is 65536 or more": any(n >= 65536 for n in numbers),
        "the file has 28 bytes or more, and a number is below 0 or 65536 or more": any(not 0 <= n < 65536 for n in numbers),
        "the file has 28 bytes or more, and a byte of a number is 0a, a newline in a text": len(data) >= 28 and b"\n" in data[4:28],
        "the stored ftype is 256,000 or more": bool(numbers) and numbers[-1] >= 256_000,
        "the file has 28 bytes or more, and a number is 256 or more": any(n >= 256 for n in numbers),
        "the stored ftype is 1000 or more": bool(numbers) and numbers[-1] >= 1000,
        "the stored ftype is not 0": bool(numbers) and numbers[-1] != 0,
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Read the first 28 bytes of a legacy GGML file: the magic, and six numbers that have no names in the file.",
    reference=ggml_hparams, oracle=oracle, cases=cases, minutes=8, difficulty="core", observe=in_any_order,
    hints=(
        "Seven numbers of four bytes follow each other, and only the reader knows which is which. Check the length first, then the magic.",
        "One format of `struct.unpack` reads all seven: `I` is a u32, `6i` are six i32. `divmod` gives quotient and remainder at once.",
    ),
    why="no file says that the fourth number counts heads; only the source of the reader says so.",
    mistakes=(
        Mistake("heads and layers exchanged", edit('"n_head", "n_layer"', '"n_layer", "n_head"'),
            cause="n_head comes before n_layer. The file cannot tell you so; with as many heads as layers nobody would notice.",
            cure="Keep to the order of the table.", see="5 heads and 4 layers where 4 heads and 5 layers are expected"),
        Mistake("big-endian", edit(
                'magic, *numbers, ftype = struct.unpack("<I6i", data[:28])',
                '(magic,), (*numbers, ftype) = struct.unpack("<I", data[:4]), struct.unpack(">6i", data[4:28])',
            ),
            cause="In the six numbers, the first byte was taken for the most significant one. It is the least significant.",
            cure="Begin the format with `<`.", see="16777216 where 1 is expected"),
        Mistake("the magic read as a number of the model", edit(
                'magic, *numbers, ftype = struct.unpack("<I6i", data[:28])',
                '(magic,), (*numbers, ftype) = struct.unpack("<I", data[:4]), struct.unpack("<6i", data[:24])',
            ),
            cause="The first four bytes are the magic; the numbers begin at byte 4.",
            cure="Skip four bytes.", see="a vocabulary of more than a billion tokens"),
        Mistake("unsigned numbers", edit("<I6i", "<7I"),
            cause="The six numbers are i32, with a sign. You read them as u32.",
            cure="An i32 is the letter `i`.", see="4294967295 where -1 is expected"),
        Mistake("the magic not checked", omit("if magic"),
            cause="Every file of 28 bytes is read as a model, also a GGUF file.",
            cure="Compare the first four bytes, and raise a ValueError.",
            see="a result for a file that begins with GGUF"),
        Mistake("the magic as letters", edit("0x67676D6C", "0x6C6D6767"),
            cause="The magic is a little-endian number, so its letters g, g, m, l lie on disk in reverse order.",
            cure="Compare with the number 0x67676d6c, read as a u32.",
            see="every good file refused"),
        Mistake("ftype not split", edit("divmod(ftype, 1000)", "0, ftype"),
            cause="The thousands of ftype are the version of the quantization. It was put there because the list could not grow.",
            cure="Use `divmod(ftype, 1000)`.", see="2007 where 7 is expected"),
        Mistake("struct's own error", omit("if len(data) < 28"),
            cause="For a short file `struct.unpack` raises `struct.error`, which is no ValueError.",
            cure="Check `len(data)` first.", see="a struct.error where a ValueError is expected"),
        Mistake("a few bytes too lax", edit("len(data) < 28", "len(data) < 24"),
            cause="The magic and six numbers take 28 bytes. For a file with a few bytes less, `struct` raises its own error.",
            cure="Refuse a file of fewer than 28 bytes.", see="a struct.error where a ValueError is expected"),
        Mistake("exactly 28 bytes", edit("len(data) < 28", "len(data) != 28"),
            cause="A real file goes on after the 28 bytes, and you refuse it.",
            cure="Refuse only a file that is too short.", see="a good file refused because it has more bytes"),
        Mistake("remainder and quotient exchanged", edit("version, ftype = divmod", "ftype, version = divmod"),
            cause="The remainder is ftype, and the quotient is the version.",
            cure="`divmod` gives the quotient first.", see="ftype 0 where 1 is expected"),
        Mistake("the version always 0", edit("version, ftype = divmod(ftype, 1000)", "version, ftype = 0, ftype % 1000"),
            cause="The version is 0 for every file. It is the quotient of the stored ftype and 1000.",
            cure="Use `divmod`.", see="version 0 where 2 is expected"),
        Mistake("hundreds in place of thousands", edit("1000", "100"),
            cause="The stored ftype was divided by 100.",
            cure="Divide by 1000.", see="another ftype for a file with a version"),
        Mistake("a version that is no integer", edit("version, ftype = divmod(ftype, 1000)", "version, ftype = ftype / 1000, ftype % 1000"),
            cause="The version is a float, as `/` gives it. A whole number is asked for.",
            cure="Use `//` or `divmod`.", see="0.0 where 0 is expected"),
        Mistake("heads and width exchanged", edit('"n_embd", "n_head"', '"n_head", "n_embd"'),
            cause="n_embd comes before n_head.",
            cure="Keep to the order of the table.", see="3 heads where 4 are expected"),
        Mistake("half of the magic", edit("if magic != 0x67676D6C", "if magic >> 16 != 0x6767"),
            cause="Only two letters of the magic were compared, and other formats of that time have them as well.",
            cure="Compare all four bytes.", see="a result for a file that begins with tjgg"),
        Mistake("None for a wrong magic", edit('raise ValueError("the magic is not GGML\'s")', "return None"),
            cause="A file with another magic gives None. A ValueError is asked for.",
            cure="Raise a ValueError.", see="None where a ValueError is expected"),
    ),
)
