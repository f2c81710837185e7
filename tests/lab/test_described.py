"""Wrong texts, dicts and arrays are described by what differs; what is said holds on every case."""

from __future__ import annotations

import numpy as np
from test_detect import made, seen


def page(name, size, reasons):
    """Two lines. -> str"""
    return f"1. The file {name} has {size / 1000:.1f} kB.\n2. The reasons are: {'; '.join(reasons)}."


PAGE = made(
    page,
    [
        ("a", 12345, ["header", "scales"]),
        ("b4", 99, ["one", "two", "three"]),
        ("c", 7_000_000, ["x", "y"]),
        ("d_16", 4321, ["padding", "data", "names"]),
    ],
)


def test_another_number_of_decimals_is_told():
    wrong = "1. The file {} has {:.3f} kB.\n2. The reasons are: {}.".format
    text = seen(PAGE, lambda n, s, r: wrong(n, s / 1000, "; ".join(r)))
    assert "in line 1, number 2 has 3 decimals, and 1 is asked for" in text


def test_parts_of_a_line_in_another_order_are_told():
    text = seen(PAGE, lambda n, s, r: page(n, s, r[::-1]))
    assert "in line 2, the parts that '; ' joins are right, in" in text
    assert "parts that '; ' joins are missing" in seen(PAGE, lambda n, s, r: page(n, s, r[1:]))


def test_words_that_are_missing_or_too_much_are_told():
    text = seen(PAGE, lambda n, s, r: page(n, s, r).replace("The file", "This big file"))
    assert "in line 1, 'this big' stands in place of 'the'" in text
    text = seen(PAGE, lambda n, s, r: page(n, s, r).replace("reasons", "causes"))
    assert "in line 2, 'causes' stands in place of 'reasons'" in text


def test_a_number_that_is_too_large_by_a_power_of_ten_is_told():
    assert "number 2 is 1,000 times too large" in seen(PAGE, lambda n, s, r: page(n, s * 1000, r))


def names(n):
    """Names and numbers of n layers. -> dict"""
    found = {"emb.weight": 1}
    for i in range(n):
        found |= {f"layers.{i}.fc.weight": 2 + i, f"layers.{i}.fc.bias": 3 * i + 1, f"layers.{i}.norm.bias": 5}
    return found


NAMES = made(names, [(1,), (2,), (3,), (4,)], ordered=True)


def test_keys_that_are_wrong_are_told_by_a_part_of_their_names():
    text = seen(NAMES, lambda n: {k: v + (k.endswith("fc.bias")) * len(k) ** n for k, v in names(n).items()})
    assert "the values are wrong at exactly the keys that end with 'fc.bias'" in text
    text = seen(NAMES, lambda n: {k: v for k, v in names(n).items() if "norm" not in k})
    assert "exactly the keys with the part 'norm' are missing" in text


def test_keys_that_are_written_in_another_way_are_told():
    assert "the keys that differ have 'block' where 'layers' is expected" in seen(
        NAMES, lambda n: {k.replace("layers", "block"): v for k, v in names(n).items()}
    )


def test_one_key_in_the_wrong_place_is_told():
    def last_first(n):
        table = names(n)
        return {key: table[key] for key in [*list(table)[1:], "emb.weight"]}

    assert "'emb.weight' comes last" in seen(NAMES, last_first)


def gaps(one, two):
    """The largest gap at every key. -> dict"""
    return {key: float(np.abs(one[key] - two[key]).max()) for key in one}


def table(*rows):
    return {key: np.array(row, float) for key, row in zip("ab", rows)}


GAPS = made(
    gaps,
    [
        (table([[1, 2], [3, 5]], [[4, 0], [7, 7]]), table([[2, 2], [9, 1]], [[0, 1], [7, 5]])),
        (table([[1, 8], [3, 5]], [[4, 9], [2, 7]]), table([[3, 2], [7, 1]], [[0, 6], [5, 2]])),
        (table([[0, 8], [3, 2]], [[3, 9], [2, 1]]), table([[5, 2], [2, 1]], [[0, 4], [3, 2]])),
    ],
)


def test_the_same_wrong_statistic_at_every_key_is_told():
    text = seen(GAPS, lambda a, b: {k: float(np.sqrt(np.mean((a[k] - b[k]) ** 2))) for k in a})
    assert "the root of the mean of the squares of `one` - `two`" in text
    text = seen(GAPS, lambda a, b: {k: float(a[k].max() - b[k].max()) for k in a})
    assert "the difference of two numbers: the maximum of `one`, and the same of `two`" in text


def rows(x):
    """Twice a matrix. -> array"""
    return 2.0 * np.asarray(x)


def test_an_axis_that_is_gone_is_told():
    spec = made(rows, [(np.array([[1.0, 2, 9], [3, 4, 2]]),), (np.array([[7.0, 5], [3, 8], [1, 0]]),)])
    assert "the result is the last part of the right one along axis 0" in seen(spec, lambda x: 2 * x[-1])
    assert "the result is the mean of the right one along axis 1" in seen(spec, lambda x: 2 * x.mean(axis=1))


def test_running_sums_are_told():
    spec = made(
        rows,
        [(np.array([1.0, 2, 9]),), (np.array([7.0, 5, 3, 8]),), (np.array([6.0, 1, 4]),), (np.array([2.0, 3, 5]),)],
    )
    assert "every value is the sum of the right values up to there" in seen(spec, lambda x: 2 * np.cumsum(x))


def above(scores, limit):
    """The names above a limit. -> list"""
    return [name for name, score in scores.items() if score > limit]


def test_items_with_a_property_that_the_lesson_names_are_told():
    cases = [({"a": 1, "b": 5, "c": 3}, 3), ({"d": 4, "e": 4, "f": 9}, 4), ({"g": 2, "h": 7}, 7), ({"i": 1}, 0)]
    equal = {"quantities": lambda scores, limit: {"the names at the limit": {n: s == limit for n, s in scores.items()}}}
    text = seen(made(above, cases, **equal), lambda scores, limit: [n for n, s in scores.items() if s >= limit])
    assert "exactly the names at the limit do not belong there" in text
