"""How many bytes the keys and values of a text take."""

from ...lab import Exercise, Mistake, edit


def cache_bytes(layers, heads, dims, tokens, type_k, type_v):
    """The bytes of the KV cache of a text.

    layers, heads, dims: ints; each layer has so many heads that have keys
        and values of their own, and each of their keys and values has dims
        numbers; tokens: int, 0 or more; type_k, type_v: how the keys and
        the values are stored, each a pair of ints (block, n_bytes): n_bytes
        bytes hold block numbers; dims is a multiple of both blocks; the
        result is below 2**53
    ->   int
    """
    numbers = layers * heads * dims * tokens  # of the keys; the values have as many
    total = 0
    for block, n_bytes in (type_k, type_v):
        total += numbers // block * n_bytes
    return total


def oracle(layers, heads, dims, tokens, type_k, type_v):
    """Head by head: the blocks of one key and of one value, added up."""
    one = 0
    for block, n_bytes in (type_k, type_v):
        left = dims
        while left > 0:
            left, one = left - block, one + n_bytes
    return sum(one * tokens for _ in range(layers) for _ in range(heads))


def cases(random):
    """A tiny cache, an empty one, two types, many tokens, a block of ten, then drawn shapes."""
    f32, f16, q8_0, q4_0 = (1, 4), (1, 2), (32, 34), (32, 18)
    drawn = []
    for _ in range(4):
        layers, heads, tokens = (int(n) for n in random.integers(2, 40, 3))
        drawn.append((layers, heads, 32 * int(random.integers(1, 5)), tokens, q8_0, q4_0))
    return [
        (1, 1, 2, 1, f16, f16),
        (1, 1, 2, 3, f16, f16),
        (2, 1, 4, 1, f32, f16),
        (1, 3, 4, 2, f16, f16),
        (4, 4, 64, 0, f16, f16),
        (1, 1, 32, 1, q4_0, q4_0),
        (1, 2, 64, 1, q4_0, q4_0),
        (4, 4, 64, 256, q8_0, q4_0),
        (32, 8, 128, 131_072, f16, f16),
        (3, 2, 64, 5, f16, q8_0),
        (1, 1, 30, 3, (10, 7), f16),  # 7 / 10 is not exact as a float
        *drawn,
    ]


_BLOCKS = "numbers // block * n_bytes"

EXERCISE = Exercise(
    goal="Count the bytes of the keys and values that a model keeps of a text.",
    reference=cache_bytes, oracle=oracle, cases=cases, minutes=5, difficulty="warm-up",
    hints=(
        "How many numbers do the keys of the whole text have, in all layers and all heads? The values have as many, but may be stored in another type.",
        "Whole blocks are counted by `//`: so many numbers, divided by the numbers of a block. Each block has n_bytes bytes. A loop over the two pairs adds them up.",
    ),
    why="the cache grows with the text, and the weights do not: this number decides which context fits into memory.",
    mistakes=(
        Mistake("the keys alone", edit("(type_k, type_v):", "(type_k,):"),
            cause="Only the keys were counted.",
            cure="Add the bytes of the values.", see="half of the right number where both types are the same"),
        Mistake("one type for both", edit("(type_k, type_v):", "(type_k, type_k):"),
            cause="The values were counted in the type of the keys.",
            cure="Use type_v for the values.", see="right where both types are the same"),
        Mistake("types exchanged with numbers", edit("block, n_bytes in", "n_bytes, block in"),
            cause="The two numbers of a pair were exchanged: the block comes first.",
            cure="Unpack a pair as block, n_bytes.", see="0 or a number that is too small"),
        Mistake("blocks forgotten", edit(_BLOCKS, "numbers * n_bytes"),
            cause="The bytes of a block were counted for each number.",
            cure="Divide by the numbers of a block.", see="right for F32 and F16, 32 times too much for the others"),
        Mistake("blocks counted, not their bytes", edit(_BLOCKS, "numbers // block"),
            cause="The blocks were counted, and not their bytes.",
            cure="Multiply by the bytes of a block.", see="a number that is too small by the bytes of a block"),
        Mistake("bits", edit(_BLOCKS, "numbers // block * n_bytes * 8"),
            cause="The bits were counted, eight for each byte.",
            cure="Leave out the 8: a block has n_bytes bytes.", see="8 times the right number"),
        Mistake("a float", edit("numbers // block", "numbers / block"),
            cause="`/` makes a float.",
            cure="Divide with `//`.", see="a number with a point, such as 8.0"),
        Mistake("one layer", edit("layers * heads * dims", "heads * dims"),
            cause="One layer was counted, and each layer has a cache of its own.",
            cure="Multiply by the layers.", see="right for one layer"),
        Mistake("one head", edit("layers * heads * dims", "layers * dims"),
            cause="One head was counted.",
            cure="Multiply by the heads.", see="right for one head"),
        Mistake("one token", edit("dims * tokens", "dims * min(tokens, 1)"),
            cause="One token was counted, and the cache keeps all of them.",
            cure="Multiply by the tokens.", see="right for one token"),
        Mistake("queries, too", edit("(type_k, type_v):", "(type_k, type_k, type_v):"),
            cause="Three vectors a token were counted. A query is used once and not kept.",
            cure="Count keys and values.", see="half as much again where both types are the same"),
        Mistake("every token with every other", edit("dims * tokens", "dims * tokens * tokens"),
            cause="The tokens were counted twice, as in a table of each token with each other. The cache has one entry for a token.",
            cure="Multiply by the tokens once.", see="right for one token, too large for more"),
    ),
)
