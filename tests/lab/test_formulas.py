"""Wrong numbers are told by what they were made of, and by which inputs are wrong; what is said holds on every case."""

from __future__ import annotations

import math
import re

from test_detect import made, seen

from miniquant.lab import evaluate, find


def volume(rows, columns, heads):
    """The number of values. -> int"""
    return 8 + rows * columns + 2 * heads


CASES = [(2, 3, 1), (4, 5, 3), (7, 2, 2), (3, 9, 5), (6, 11, 4), (1, 8, 7)]
VOLUME = made(
    volume,
    CASES,
    quantities=lambda rows, columns, heads: {
        "the square of the columns": columns**2,
        "the heads are odd": heads % 2 == 1,
    },
)


def test_a_term_that_is_left_out_is_named():
    assert "too small by `heads`" in seen(VOLUME, lambda r, c, h: 8 + r * c + h)
    assert "too large by 3 times the square of the columns" in seen(
        VOLUME, lambda r, c, h: 8 + r * c + 2 * h + 3 * c * c
    )


def test_two_wrong_terms_are_named():
    text = seen(VOLUME, lambda r, c, h: 8 + r * c + 5 * h - r)
    assert "too large by 3 times `heads`, and too small by `rows`" in text


def test_another_formula_is_named():
    assert "the product of the square of the columns and `heads`" in seen(VOLUME, lambda r, c, h: c * c * h)
    assert "the square of the columns less `heads`" in seen(VOLUME, lambda r, c, h: c * c - h)
    assert "rounded up or down to a multiple of 16" in seen(VOLUME, lambda r, c, h: -(-(8 + r * c + 2 * h) // 16) * 16)


def test_a_formula_must_hold_on_all_wrong_cases():
    text = seen(VOLUME, lambda r, c, h: 8 + r * c if h < 3 else r + c + 77)
    assert "`heads`" not in text


def test_an_argument_that_is_never_used_is_named():
    assert "with another `heads` the result stays the same, in all 49 calls tried" in seen(
        VOLUME, lambda r, c, h: 7 * c % 5 + r * r * c
    )
    assert "does not depend on" not in seen(VOLUME, lambda r, c, h: 9 + r * c * c + h)


def test_a_property_that_the_lesson_names_tells_which_cases_are_wrong():
    text = seen(VOLUME, lambda r, c, h: 8 + r * c + 2 * h + (r * c * c if h % 2 else 0))
    assert "of the inputs tried, exactly those where the heads are odd are wrong" in text


def shares(sizes):
    """A part and the rest. -> dict"""
    return {"first": sizes[0], "rest": sum(sizes) - sizes[0], "count": len(sizes)}


SHARES = made(shares, [([2, 3, 9],), ([7, 5],), ([1, 6, 4, 8],), ([12],)])


def test_what_stands_under_the_wrong_key_is_told():
    text = seen(SHARES, lambda s: {"first": sum(s[:2]), "rest": sum(s[2:]), "count": len(s)})
    assert "what is missing at 'rest' stands at 'first'" in text


def test_each_wrong_key_has_its_own_pattern():
    text = seen(SHARES, lambda s: {"first": 2 * s[0], "rest": sum(s) - s[0], "count": len(s) + 3})
    assert "at 'count', every value is too large by 3; at 'first', every value is 2 times too large" in text


def longest(names, count):
    """The longest name, and how many there are. -> (str, int)"""
    return max(names, key=len), count


def test_another_text_that_the_lesson_names_is_told():
    cases = [(("a", "ccc", "bb"), 3), (("dd", "e"), 2), (("f", "gg", "hhh"), 3), (("k", "mm"), 2)]
    spec = made(
        longest, cases, quantities=lambda names, count: {"the last name": names[-1], "the first name": names[0]}
    )
    assert "the result is the first name" in seen(spec, lambda n, c: (n[0], c))


def kind(letter):
    """What a letter is. -> int"""
    return ord(letter)


def test_the_values_of_an_argument_that_are_wrong_are_listed():
    spec = made(kind, [(letter,) for letter in "abcde"])
    text = seen(spec, lambda x: {"b": 7, "d": 900}.get(x, ord(x)))
    assert "wrong inputs are, for example, `letter` = 'b', 'd'." in text


def signed(number, bits):
    """The number less 2**bits. -> int"""
    return number - 2**bits


def test_a_right_formula_that_floats_round_is_not_called_the_wrong_one():
    cases = [(2**64 - 1, 64), (2**63 + 1, 64), (2**72 - 3, 72), (5, 3), (9, 3)]
    spec = made(signed, cases, quantities=lambda number, bits: {"`number`": number, "2**bits": 2**bits})
    assert "less" not in seen(spec, lambda number, bits: int(float(number) - 2**bits))


def test_a_quotient_that_is_less_than_1_is_not_added_too_often():
    text = repr(evaluate(find("bits_per_weight"), lambda bits, group_size: bits + 16 / max(group_size, 16)))
    assert "another factor: The result is the right one and (16 / `group_size`) times" in text


def test_of_an_argument_that_seldom_has_an_effect_it_is_said_how_seldom():
    def tensor_offsets(shapes, dtypes):
        every = {name: dtypes[name] == 0 or (1 and math.prod(dims)) for name, dims in shapes.items()}
        return find("tensor_offsets").reference(
            shapes, {name: 0 if has else dtypes[name] for name, has in every.items()}
        )

    text = repr(evaluate(find("tensor_offsets"), tensor_offsets, search=False))
    same, of = map(int, re.search(r"stays the same, in (\d+) of the (\d+) calls tried", text).groups())
    assert 0.8 * of <= same < of
