"""Legacy GGML: numbers without names."""

import struct

from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import by_digits, number
from ..shared.observed import in_any_order


def ggml_hparams(data):
    """The numbers of a GGML file.

    data: bytes   ->   {"n_vocab", "n_ctx", "n_embd", "n_head", "n_layer", "ftype", "quantization_version"}

    The last two are the remainder and the quotient of the stored ftype and 1000. Raises ValueError for another magic
    and for fewer than 28 bytes.
    """
    if len(data) < 28:
        raise ValueError("too short for a GGML file")
    magic, *numbers, ftype = struct.unpack("<I6i", data[:28])
    if magic != 0x67676D6C:
        raise ValueError("the magic is not GGML's")
    version, ftype = divmod(ftype, 1000)
    names = ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer")
    return {**dict(zip(names, numbers)), "ftype": ftype, "quantization_version": version}


def oracle(data):
    """Digit by digit, name by name."""
    if len(data) < 28 or data[:4] != b"lmgg":
        raise ValueError("no GGML")
    return {
        "n_vocab": number(data[4:8]),
        "n_ctx": number(data[8:12]),
        "n_embd": number(data[12:16]),
        "n_head": number(data[16:20]),
        "n_layer": number(data[20:24]),
        "ftype": number(data[24:28]) % 1000,
        "quantization_version": number(data[24:28]) // 1000,
    }


def cases(random):
    """Good files, one with more bytes, random ones; then other magics, and files that are too short."""

    def file(*numbers):
        return b"lmgg" + b"".join(by_digits(n, 4) for n in numbers)

    drawn = [file(*random.integers(1, 70000, 5).tolist(), int(random.integers(0, 3000))) for _ in range(3)]
    first = file(1, 2, 3, 4, 5, 0)
    good = [first, file(1024, 256, 256, 4, 4, 1), file(50257, 1024, 768, 12, 12, 2007) + b"tokens", *drawn]
    return [(data,) for data in [*good, b"ggml" + first[4:], b"GGUF" + first[4:], first[:27], b""]]


EXERCISE = Exercise(
    goal="Read the first 28 bytes of a legacy GGML file: the magic, and six numbers that have no names in the file.",
    reference=ggml_hparams, oracle=oracle, cases=cases, minutes=6, difficulty="core", observe=in_any_order,
    hints=(
        "The magic is the number 0x67676d6c, stored little-endian. Six signed integers of four bytes follow; `zip` gives them their names.",
        '`struct.unpack("<I6i", data[:28])`; then `divmod(ftype, 1000)` is (version of the quantization, ftype).',
    ),
    why="that the fourth number counts heads stands in no file: it stood in the source of the reader.",
    mistakes=(
        Mistake("heads and layers exchanged", edit('"n_head", "n_layer"', '"n_layer", "n_head"'),
            cause="n_head comes before n_layer. Nothing in the file could have told you; for a model with as many heads as layers nobody would notice.",
            cure="Keep to the order of the table.", see="5 heads and 4 layers where 4 heads and 5 layers are expected"),
        Mistake("big-endian", edit(
                'magic, *numbers, ftype = struct.unpack("<I6i", data[:28])',
                '(magic,), (*numbers, ftype) = struct.unpack("<I", data[:4]), struct.unpack(">6i", data[4:28])',
            ),
            cause="The most significant byte was taken first.",
            cure="Begin the format with `<`.", see="16777216 where 1 is expected"),
        Mistake("the magic read as a number of the model", edit(
                'magic, *numbers, ftype = struct.unpack("<I6i", data[:28])',
                '(magic,), (*numbers, ftype) = struct.unpack("<I", data[:4]), struct.unpack("<6i", data[:24])',
            ),
            cause="The first four bytes are the magic; the numbers begin at byte 4.",
            cure="Skip four bytes.", see="a vocabulary of more than a thousand million tokens"),
        Mistake("the magic not checked", omit("if magic"),
            cause="Any file of 28 bytes is read as a model, a GGUF file, too.",
            cure="Compare the first four bytes, and raise a ValueError.",
            see="a result for a file that begins with GGUF"),
        Mistake("the magic as letters", edit("0x67676D6C", "0x6C6D6767"),
            cause="The magic is a number, and its letters g g m l lie on disk in reverse.",
            cure='Compare with 0x67676d6c, unpacked as `"<I"`, or with the bytes `b"lmgg"`.',
            see="every good file refused"),
        Mistake("ftype not split", edit("divmod(ftype, 1000)", "0, ftype"),
            cause="The thousands of ftype are the version of the quantization, hidden there because the list could not grow.",
            cure="Use `divmod(ftype, 1000)`.", see="2007 where 7 is expected"),
        Mistake("struct's own error", omit("if len(data) < 28"),
            cause="For a short file `struct.unpack` raises `struct.error`, which is no ValueError.",
            cure="Look at `len(data)` first.", see="a struct.error where a ValueError is expected"),
    ),
)
