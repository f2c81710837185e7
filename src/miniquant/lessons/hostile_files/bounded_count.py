"""A count that the file must be able to pay for."""

from ...core.errors import FormatError
from ...lab import Exercise, Mistake, body, edit, omit


def bounded_count(count, smallest, left):
    """Believe a count only if so many entries can be there.

    count: what the header says, 0 to 2**64 - 1; smallest: bytes of the
        smallest entry, at least 1; left: bytes after the header
    ->   count as it is, if count × smallest is at most left; otherwise it
         raises FormatError
    """
    if count * smallest > left:
        raise FormatError(f"found {count} entries of at least {smallest} bytes, and {left} bytes are left")
    return count


def oracle(count, smallest, left):
    """How many fit is compared with the count."""
    room, _ = divmod(left, smallest)
    if room < count:
        raise FormatError(f"{room} entries fit")
    return count


def cases(random):
    """Counts that fit, counts that do not, the largest ones, then random ones."""
    good = [(2, 25, 50), (0, 25, 0), (3, 14, 50), (0, 14, 5), (1, 14, 14)]
    bad = [(1, 25, 24), (1, 25, 0), (2**64 - 1, 14, 0), (3, 25, 74), (60, 14, 100), (60, 14, 10), (178_956_971, 24, 100), (2**63, 14, 100), (2**64 - 1, 14, 100)]
    good += [(5_000_000, 24, 120_000_000), (2**40, 8, 2**43), (2**63 + 1, 1, 2**63 + 1)]
    bad += [(2**53 + 1, 1, 2**53), (2**53 + 4, 1, 2**53 + 3), (2**40 + 1, 8, 2**43 + 7), (2**32 + 1, 25, 100)]
    drawn = [(int(n), int(size), int(n * size + more)) for n, size, more in random.integers(1, 60, (4, 3))]
    return [*good, *bad, *drawn]


EXERCISE = Exercise(
    goal="Believe a count only if so many entries, each as small as can be, fit into the bytes that are left.",
    reference=bounded_count, oracle=oracle, cases=cases, minutes=4, difficulty="warm-up",
    hints=(
        "Before you allocate or loop, ask how many bytes `count` entries take at the very least.",
        "Multiply, and compare with the bytes that are left. Python's integers do not wrap around; in C you would divide instead.",
    ),
    why="memory is asked for only if the file has the bytes for so many entries.",
    mistakes=(
        Mistake("nothing checked", omit("if count * smallest > left"),
            cause="The count is returned as the file says it.",
            cure="Raise `FormatError` if `count * smallest` is more than `left`.",
            see="2**63 entries in 100 bytes accepted"),
        Mistake("entries compared with bytes", edit("count * smallest > left", "count > left"),
            cause="You compared the number of entries with a number of bytes, as if an entry took one byte.",
            cure="Multiply the count by `smallest` first.", see="60 entries of 14 bytes accepted in 100 bytes"),
        Mistake("product in 32 bits", edit("count * smallest > left", "count * smallest & (2**32 - 1) > left"),
            cause="The product was cut to 32 bits, and one that wraps around looks small.",
            cure="Let the product be as large as it is, or divide instead of multiplying.",
            see="178,956,971 entries of 24 bytes accepted in 100 bytes"),
        Mistake("product in 64 bits", edit("count * smallest > left", "count * smallest & (2**64 - 1) > left"),
            cause="The product was cut to 64 bits; 2**63 times 14 is then 0.",
            cure="Let the product be as large as it is, or divide instead of multiplying.",
            see="2**63 entries accepted, 2**64 - 1 refused"),
        Mistake("in floating point", edit("count * smallest > left", "count > left / smallest"),
            cause="`/` makes a float, which has 53 bits: beyond 2**53 it loses the last digits.",
            cure="Multiply integers, or divide with `//`.", see="2**53 + 4 entries of one byte accepted in 2**53 + 3 bytes"),
        Mistake("a million at most", edit("count * smallest > left", "count > 1_000_000 or count * smallest > left"),
            cause="Large counts are refused, also where the file has the bytes for them.",
            cure="Compare with the bytes that are left, and with nothing else.", see="FormatError for 5,000,000 entries that fit"),
        Mistake("a negative count accepted",
            edit("count * smallest > left", "(count - 2**64 if count >= 2**63 else count) * smallest > left"),
            cause="The count was read as a signed number: the largest ones are then negative, and less than anything.",
            cure="A count is unsigned; compare it as it is.", see="2**64 - 1 entries accepted"),
        Mistake("off by one at the end", edit("count * smallest > left", "count * smallest >= left > 0"),
            cause="You compared with `>=`, and entries that fill the file to its last byte fit.",
            cure="Compare with `>`.", see="FormatError for two entries of 25 bytes in 50"),
        Mistake("cut instead of refused", body("return min(count, left // smallest)"),
            cause="The count was lowered to what fits, so a broken file is read as if it were a good one with less in it.",
            cure="Raise `FormatError`; do not repair what you cannot know.",
            see="a smaller count where an error is expected"),
        Mistake("rounded up", edit("count * smallest > left", "count > -(-left // smallest)"),
            cause="The number of entries that fit was rounded up, and the last of them has no room.",
            cure="Round down: `left // smallest`.", see="one entry of 25 bytes accepted in 24"),
    ),
)
