"""The context at which the cache is as large as the weights."""

from ...lab import Exercise, Mistake, body, edit


def full_context(weights, per_token):
    """The smallest number of tokens whose cache has at least as many bytes
    as the weights.

    weights: int, the bytes of the weights, at least 1 and below 2**53;
        per_token: int, the bytes of the cache for one token, at least 1
    ->   int
    """
    return -(-weights // per_token)


def oracle(weights, per_token):
    """The quotient, and one more if something is left."""
    tokens, left = divmod(weights, per_token)
    return tokens + (1 if left else 0)


def cases(random):
    """Exact multiples, something left, one byte left, a cache larger than the weights, real models."""
    return [
        (12, 4),
        (10, 4),
        (1, 1),
        (3, 10),
        (9, 4),
        (10_000_000_001, 10_000_000_000),
        (2_395_392, 4096),
        (4_517_019_648, 131_072),
        (3_790_000_001, 3),  # more digits than float32 has
        (int(random.integers(10**9, 10**10)), int(random.integers(10**3, 10**6))),
    ]


EXERCISE = Exercise(
    goal="Find the context at which the cache is as large as the weights.",
    reference=full_context, oracle=oracle, cases=cases, minutes=3, difficulty="warm-up",
    hints=(
        "How often do the bytes of one token fit into the bytes of the weights? If something is left, one more token is needed.",
        "`//` rounds down. To round up, divide the negative number: `-7 // 2` is -4.",
    ),
    why="beyond this context more than half of the memory is cache, however small the weights were made.",
    mistakes=(
        Mistake("rounded down", edit("-(-weights // per_token)", "weights // per_token"),
            cause="The quotient was rounded down: so many tokens are still smaller than the weights.",
            cure="Round up.", see="one too few, except where the division leaves nothing"),
        Mistake("one more, always", edit("-(-weights // per_token)", "weights // per_token + 1"),
            cause="One was added in any case, also where the division leaves nothing.",
            cure="Add one only if something is left.", see="one too many for 12 and 4"),
        Mistake("rounded to the nearest", edit("-(-weights // per_token)", "round(weights / per_token)"),
            cause="The quotient was rounded to the nearest integer.",
            cure="Round up.", see="one too few where less than half is left"),
        Mistake("a float", edit("-(-weights // per_token)", "weights / per_token"),
            cause="`/` makes a float, and tokens are counted.",
            cure="Round up to an int.", see="2.5 for 10 and 4"),
        Mistake("upside down", edit("-(-weights // per_token)", "-(-per_token // weights)"),
            cause="The bytes of a token were divided by those of the weights.",
            cure="Divide the weights by the bytes of a token.", see="1 where many tokens are expected"),
        Mistake("the sign left", edit("-(-weights // per_token)", "-weights // per_token"),
            cause="The quotient of the negative number is negative.",
            cure="Turn the sign round again, after the division.", see="a number below 0"),
        Mistake("what is left over", edit("-(-weights // per_token)", "weights % per_token"),
            cause="`%` gives what is left over.",
            cure="Divide with `//`.", see="0 for 12 and 4"),
        Mistake("the cache and the weights together", edit("-(-weights // per_token)", "-(-2 * weights // per_token)"),
            cause="This is the context at which the cache has twice the bytes of the weights.",
            cure="Use the weights once.", see="about twice as many tokens"),
        Mistake("in steps of thousands", body("""
                return -(-weights // per_token // 1000) * 1000
            """),
            cause="The context was rounded to whole thousands.",
            cure="Give the number itself.", see="0, or a number that ends in 000"),
    ),
)
