"""The 128 bytes at the start."""

import struct

from ...lab import Exercise, Mistake, edit
from ...lab.compare import one_after_another
from ..shared.by_hand import by_digits


def bump_header(layers, vocab, embed, context, heads, checksum):
    """The header of a bump file with a MiniGPT in it.

    layers, vocab, embed, context, heads: integers up to 2**32 - 1, embed a
        multiple of heads; checksum: 32 bytes
    ->   128 bytes, model_type 2; every number little-endian
    """
    width = embed // heads
    aligned = [-(-dim // 16) * 16 for dim in (embed, width, context)]
    sizes = (layers, vocab, embed, context, heads, width)
    return struct.pack("<8s8I3Q32s32s", b"BUMPWGT3", 3, 2, *sizes, *aligned, checksum, bytes(32))


def oracle(layers, vocab, embed, context, heads, checksum):
    """The letters typed in, the numbers taken apart digit by digit, the floats of a line counted."""
    out = bytes.fromhex("42 55 4d 50 57 47 54 33")
    for number in (3, 2, layers, vocab, embed, context, heads, embed // heads):
        out += by_digits(number, 4)
    for number in (embed, embed // heads, context):
        while number % 16:
            number += 1
        out += by_digits(number, 8)
    return out + checksum + bytes(32)


def fields(*_):
    """The table on the page."""
    numbers = ["version", "model_type", "num_layers", "vocab_size", "embed_dim", "context_len", "num_heads", "head_dim"]
    sizes = [("magic", 8), *((name, 4) for name in numbers)]
    sizes += [(f"aligned_{name}", 8) for name in ("embed_dim", "head_dim", "context")]
    sizes += [("checksum", 32), ("reserved", 32)]
    return one_after_another((f"header.{name}", size) for name, size in sizes)


def cases(random):
    """The trained model, two whose dims are no multiples of 16, numbers of 32 bits, then random sizes."""
    made = [(4, 1024, 256, 256, 4, bytes(range(32))), (1, 3, 20, 5, 2, b"\xaa" * 32), (2, 7, 96, 100, 6, bytes(32))]
    made += [(2**31 + 5, 2**32 - 1, 2**32 - 2, 2**31 + 1, 2**32 - 2, bytes(32)), (3, 2**31, 2**31 + 96, 2**32 - 1, 1, bytes(range(9, 41)))]
    made.append((1, 3, 32, 16, 2, bytes(range(31, -1, -1))))  # a checksum that ends with a 0
    for _ in range(4):
        heads, width = (int(n) for n in random.integers(1, 20, 2))
        layers, vocab, context = (int(n) for n in random.integers(1, 2**17, 3))
        made.append((layers, vocab, heads * width, context, heads, random.bytes(32)))
    return made


EXERCISE = Exercise(
    goal="Write the 128 bytes at the start of a bump file of model_type 2, as the table on this page lays them out.",
    reference=bump_header, oracle=oracle, cases=cases, minutes=7, difficulty="core", fields=fields,
    hints=(
        "Go down the table: each row is one value, in that order, and nothing is between them. Two values are not among the arguments: the width of a head, and the aligned dims.",
        "`struct.pack` takes a count before a letter: `8s` is eight bytes of text, `3Q` three u64. An aligned dim is a number of floats whose bytes are a multiple of 64, so a multiple of 16 floats. `//` rounds down; of a negative number it rounds away from zero.",
    ),
    why="a runtime knows from these bytes how much to allocate before it has read anything else.",
    mistakes=(
        Mistake("letters and version confused", edit('b"BUMPWGT3"', 'b"BUMPWGT"'),
            cause="The 3 of the magic went into the version.",
            cure="The magic has eight letters, the last one is 3, and the version is a number of its own.",
            see="`00` in byte 7"),
        Mistake("version 1", edit("3, 2, ", "1, 2, "),
            cause="The version is that of GGUF-lite; here it is 3, like the letter in the magic.",
            cure="Write 3.", see="`01` in byte 8"),
        Mistake("the model_type of a llama", edit("3, 2, ", "3, 1, "),
            cause="model_type 1 is the document's llama; a gpt2, with its biases and positions, is 2.",
            cure="Write 2.", see="`01` in byte 12"),
        Mistake("dims not rounded", edit("-(-dim // 16) * 16", "dim"),
            cause="The aligned dims are the dims themselves; that is right only where they are multiples of 16 already.",
            cure="Round each up to a multiple of 16.", see="right for the trained model, wrong for a width of 20"),
        Mistake("rounded to 64 floats", edit("-(-dim // 16) * 16", "-(-dim // 64) * 64"),
            cause="64 is the number of bytes, and the dims count floats of four bytes.",
            cure="Round up to a multiple of 16.", see="64 where 32 is expected"),
        Mistake("bytes instead of floats", edit("-(-dim // 16) * 16", "-(-dim // 16) * 64"),
            cause="The aligned dims are in bytes, and the field counts elements.",
            cure="Do not multiply by 4.", see="every aligned dim four times too large"),
        Mistake("32-bit aligned dims", edit("3Q", "3I"),
            cause="The aligned dims take four bytes each, and the table gives them eight.",
            cure="Pack them as `Q`.", see="the checksum begins at byte 52"),
        Mistake("heads and their width swapped", edit("heads, width)", "width, heads)"),
            cause="The width of a head is in the place of the number of heads.",
            cure="num_heads comes first, at byte 32.", see="bytes 32 to 35 and 36 to 39 exchanged"),
        Mistake("embed before vocab", edit("layers, vocab, embed", "layers, embed, vocab"),
            cause="embed_dim and vocab_size changed places.",
            cure="vocab_size is at byte 20, embed_dim at byte 24.", see="bytes 20 to 23 and 24 to 27 exchanged"),
        Mistake("nothing reserved", edit("32s32s", "32s").edit(", bytes(32)", ""),
            cause="The header ends after the checksum, at 96 bytes; the last 32 are reserved.",
            cure="Append 32 zeros.", see="96 bytes where 128 are expected"),
        Mistake("big-endian", edit("<8s", ">8s"),
            cause="The most significant byte came first.",
            cure="Begin the format with `<`.", see="`00 00 00 03` in bytes 8 to 11"),
        Mistake("hexadecimal digits", edit("checksum, ", "checksum.hex().encode(), "),
            cause="The checksum was written as digits, two for a byte, and only half of them fit.",
            cure="Store the 32 bytes themselves: `digest()`, not `hexdigest()`.", see="letters in bytes 64 to 95"),
    ),
)
