"""A report leaves out what one input alone would prove: a detail that is true by chance misleads."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import replace

import numpy as np
import pytest
from test_detect import made
from test_lines import written

from miniquant.lab import evaluate, find
from miniquant.lab.attempt import Outcome
from miniquant.lab.detect.axes import of_axes
from miniquant.lab.detect.differences import of_differences
from miniquant.lab.detect.distance import how_far_off
from miniquant.lab.detect.fields import of_fields
from miniquant.lab.detect.formulas import of_formulas
from miniquant.lab.detect.habits import of_habits
from miniquant.lab.detect.keys import of_key_names, of_moved
from miniquant.lab.detect.layout import of_dicts
from miniquant.lab.detect.leaves import of_leaves
from miniquant.lab.detect.lines import of_lines
from miniquant.lab.judging import _calls
from miniquant.lab.more_cases import more_cases
from miniquant.lab.verdict import Facts


def report(spec, function):
    return repr(evaluate(spec, function, search=False))


def pairs(names, numbers):
    """A dict of names and numbers, in the order of the names. -> dict"""
    return dict(zip(names, numbers))


WORDS = [(["b", "a"], [1, 2]), (["x", "y", "z"], [1, 2, 3]), (["k"], [7]), (["m", "n"], [5, 6]), (["u", "v"], [1, 4])]
PAIRS = made(pairs, WORDS, ordered=True)


def test_keys_in_another_order_are_no_wrong_values_even_in_one_result():
    def wrong(names, numbers):
        found = dict(zip(names, numbers))
        return {"a": 2, "b": 1} if names == ["b", "a"] else found

    said = report(PAIRS, wrong)
    assert "All keys and values are right, in another order, on 1 of 5 cases" in said
    assert "not right," not in said and "alphabetical" not in said


def test_a_wrong_value_is_not_called_another_order():
    said = report(PAIRS, lambda names, numbers: {name: n + (n == 7) for name, n in zip(names, numbers)})
    assert "another order" not in said


def record(name, dims):
    """A name, the count of dims, the dims. -> bytes"""
    return name + struct.pack(f"<B{len(dims)}I", len(dims), *dims)


RECORD = made(
    record,
    [(b"one", (4,)), (b"two", (4, 2)), (b"none", ()), (b"big", (7, 9, 2)), (b"odd", (3, 5))],
    fields=lambda name, dims: [
        ("name", 0, len(name)),
        ("n_dims", len(name), len(name) + 1),
        *((f"dim {i}", len(name) + 1 + 4 * i, len(name) + 5 + 4 * i) for i in range(len(dims))),
        ("end", len(name) + 1 + 4 * len(dims), len(name) + 1 + 4 * len(dims)),
    ],
)


def test_a_field_is_not_called_right_where_the_bytes_that_came_in_may_be_its_own():
    said = report(RECORD, lambda name, dims: record(name, dims or (1,)))
    assert "Between the fields" not in said and "the rest is right" not in said


def test_padding_between_two_fields_is_still_said():
    said = report(RECORD, lambda name, dims: name + bytes(2) + record(b"", dims) if dims else record(name, dims))
    assert "between the fields name and n_dims, 2 bytes (00 00) are too many" in said.replace("Between", "between")


def packed(kind, offset):
    """Two numbers as text. -> str"""
    return f"{kind}/{offset}"


def test_what_one_wrong_input_has_in_two_arguments_is_not_said_of_one_of_them():
    calls = [(1, 32), (2, 64), (0, 96), (8, 128), (12, 640), (7, 2**63 + 5), (258, 2**64 - 32)]
    wrong = lambda kind, offset: packed(kind, offset) + "!" * (offset == 2**64 - 32)  # noqa: E731
    assert "exactly those where" not in report(made(packed, calls), wrong)
    calls[-1] = (258, 32)
    wrong = lambda kind, offset: packed(kind, offset) + "!" * (kind == 258)  # noqa: E731
    assert "exactly those where `kind` is 258 are wrong (" in report(made(packed, calls), wrong)


def joined(numbers):
    """The numbers as text. -> str"""
    return "-".join(map(str, numbers))


@pytest.mark.parametrize(("special", "said"), [([5, 6, 6, 8], False), ([], True)])
def test_equal_items_in_one_wrong_input_may_be_chance_and_an_empty_list_is_none(special, said):
    spec = made(joined, [(x,) for x in ([1, 2], [3], [4, 5, 6], [9, 8, 7, 1], special)])
    text = report(spec, lambda numbers: joined(numbers) + "!" * (numbers == special))
    assert ("exactly those where" in text) == said


def refused(size, limit):
    """The size, if it is below the limit. -> int; raises ValueError"""
    if limit > 100:
        raise ValueError("too large")
    return size


@pytest.mark.parametrize("limits", [(200,), (200, 300)])
def test_two_numbers_that_play_no_part_are_no_condition(limits):
    bad = [(size, limit) for limit in limits for size in (1, 2)] + [(s, 400 + i) for i, s in enumerate((4, 18, 34, 66))]
    spec = made(refused, [(5, 1), (6, 2), (7, 3), (9, 4), *bad])

    def wrong(size, limit):
        return size if limit < 400 else refused(size, limit)

    assert "`size` is 1 or 2" not in report(spec, wrong) and "`size` is 2 or 1" not in report(spec, wrong)


@pytest.mark.parametrize(("right", "said"), [(2, False), (3, True)])
def test_a_line_that_no_wrong_call_runs_needs_three_right_calls_that_do(right, said):
    def steps(n):
        """Ten times a number. -> int"""
        return 10 * n

    spec = made(steps, [(n,) for n in range(-9, right)])
    source = (
        "def steps(n):\n    out = 10 * n\n    if n < 0:\n        return out + 1\n    out = out + 0\n    return out\n"
    )
    function = written(source, "steps")
    facts = Facts(spec, function, _calls(spec, function))
    found = of_lines(facts)
    assert found is None or "right one" in found.text
    assert (len([c for c in facts.calls if not c.problem]) >= 3) == said
    assert bool(found) == said


@pytest.mark.parametrize("name", ["second_weight", "best_changes"])
def test_a_matrix_that_is_symmetric_and_positive_in_all_cases_is_so_in_each_further_input(name):
    spec = find(name)
    place = next(i for i, x in enumerate(spec.all_cases()[0]) if getattr(x, "ndim", 0) == 2)
    matrices = [case[place] for case, _ in more_cases(spec)]
    assert len(matrices) > 5
    assert all(np.allclose(m, m.T) and (np.linalg.eigvalsh(m) > 0).all() for m in matrices)


def test_a_rotation_stays_one_in_further_inputs():
    matrices = [q for (_, q), _ in more_cases(find("rotate_weights"))]
    assert matrices and all(np.allclose(q @ q.T, np.eye(len(q))) for q in matrices)


def two(n):
    """A number and its third. -> (float, float)"""
    return n / 3, n


def test_a_sign_is_the_other_one_within_the_tolerance():
    numbers = [1.0, 4.0, 7.0, 9.0, 12.5, 3.25]
    spec = made(two, [(n,) for n in numbers], tolerance=1e-9)
    assert "has the other sign, on all 6 cases" in report(spec, lambda n: (-n / 3 * (1 + 1e-14), n)).replace(
        "opposite sign", "has the other sign"
    )
    assert "other sign" not in report(spec, lambda n: (-n / 3 + 1e-6, n))


def halved(values):
    """Half of each. -> (n,) float64"""
    return values / 2


def test_all_values_of_a_result_are_not_at_most_so_many():
    arrays = [np.array(v, float) for v in ([1, 2], [5, 3, 8, 1], [7, 7, 2], [9, 4, 6, 2, 1])]
    spec = made(halved, [(v,) for v in arrays])

    def wrong(values, last):
        found = np.sqrt(values) * 3 + values**2
        found[: len(found) if len(found) == last else 1] = values[: len(found) if len(found) == last else 1] / 2
        return found

    said = report(spec, lambda values: np.where(values > (5 if len(values) == 3 else -1), wrong(values, 0), values / 2))
    assert "at most 3 of 3" not in said and "at most 4 of 4" not in said and "at most 5 of 5" not in said


def test_of_results_of_several_sizes_the_share_that_is_wrong_is_said_and_of_one_size_the_number():
    def off(values):
        return values * 13 % 1 < 0.3

    def wrong(values):
        return np.where(off(values), 9 * np.sin(1000 * values), values / 2)

    drawn = np.random.default_rng(2).uniform(1, 9, (6, 40))
    cases = [[(v[:n],) for v, n in zip(drawn, sizes)] for sizes in ([40] * 6, [8, 16, 24, 32, 40, 33])]
    most = max(int(off(v).sum()) for (v,) in cases[0])
    assert f"at most {most} of 40 in a result are wrong" in report(made(halved, cases[0]), wrong)
    share = max(float(off(v).mean()) for (v,) in cases[1])
    said = re.search(r"at most ([\d.]+) % of the values of a result are wrong", report(made(halved, cases[1]), wrong))
    assert 0 <= float(said[1]) - 100 * share < 0.1001


@pytest.mark.parametrize(("factor", "title"), [(1, "too large by bits"), (3, "off in proportion")])
def test_an_offset_is_titled_as_what_it_is_and_a_proportion_as_a_proportion(factor, title):
    def same(number, bits):
        """The number. -> int"""
        return number

    spec = made(same, [(n, b) for n, b in ((9, 4), (77, 8), (300, 9), (5, 3), (1000, 10), (70000, 17))])
    facts = Facts(spec, function := (lambda number, bits: number + factor * bits), _calls(spec, function))
    assert next(of_differences(facts, facts.calls)).title.replace("`", "") == title


@pytest.mark.parametrize(
    ("unpack", "said"),
    [
        (lambda data: struct.unpack_from("<2I", data), "`struct` needs 8 bytes, and there are fewer;"),
        (lambda data: struct.unpack("<2I", data), "`struct` needs 8 bytes, and there are fewer or more;"),
    ],
)
def test_too_many_bytes_are_not_named_where_only_too_few_can_fail(unpack, said):
    def numbers(data):
        """Two numbers. -> tuple; raises ValueError if there are not 8 bytes"""
        if len(data) != 8:
            raise ValueError("8 bytes")
        return struct.unpack("<2I", data)

    spec = made(numbers, [(bytes(range(8)),), (bytes(8),), (b"\x01" * 8,), (bytes(3),), (bytes(7),), (b"",)])
    assert said.rstrip(";") + ")" in report(spec, lambda data: unpack(data))


def test_the_parts_of_wrong_bytes_are_named_in_the_order_of_the_fields():
    def three(a, b, c):
        """Three bytes. -> bytes"""
        return bytes([a, b, c])

    numbers = [(1, 2, 3), (40, 50, 60), (7, 90, 11), (100, 20, 30)]
    spec = made(three, numbers, fields=lambda a, b, c: [("x", 0, 1), ("y", 1, 2), ("z", 2, 3)])
    said = report(spec, lambda a, b, c: bytes([a * a % 251 ^ 9, b * c % 241 ^ 77, c]) if a > 1 else three(a, b, c))
    assert "x is wrong on 3, y is wrong on 3" in said or "x and y" in said


def test_where_good_input_is_refused_it_is_not_said_that_nothing_is():
    text = report(find("png_size"), lambda data: 1 / 0 if len(data) > 20 and data[1:4] == b"PNG" else (1, 1))
    assert "Nothing is refused" not in text
    assert "Bad input is accepted: the function returns" in text


def test_a_condition_that_calls_what_raises_is_not_said_to_be_true_or_false():
    source = """
def u32(data, at):
    if at + 4 >= len(data):
        raise ValueError("too short")
    return data[at]

def png_size(data):
    if data[:8] != bytes.fromhex("89504e470d0a1a0a"): raise ValueError("no PNG")
    if u32(data, 20) >= 0: return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
"""
    text = report(find("png_size"), written(source, "png_size"))
    assert "ValueError: too short" in text
    assert "true there" not in text


def test_a_condition_on_a_name_that_has_changed_is_not_said_to_be_true():
    source = """
def png_size(data):
    if len(data) > 24:
        data = b""
        raise ValueError("too long")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
"""
    assert "true there" not in report(find("png_size"), written(source, "png_size"))


@pytest.mark.parametrize(
    ("write", "digits"),
    [
        (lambda k, n, o: f"{k:08b}{n:016b}{o:064b}", "binary digits"),
        (lambda k, n, o: f"{k:03d} {n:05d} {o:020d}", "numbers in decimal digits"),
        (lambda k, n, o: f"{k} {n} {o}", "numbers in decimal digits, on all"),
        (lambda k, n, o: struct.pack("<BHQ", k, n, o).hex(" "), "hexadecimal digits, two characters for each byte"),
    ],
)
def test_digits_are_called_hexadecimal_only_if_they_are(write, digits):
    text = report(find("pack_fields"), lambda kind, length, offset: write(kind, length, offset).encode())
    assert f"is text: {digits}" in text
    assert text.count("digits") == 1


def test_nothing_in_a_set_is_no_missing_key():
    text = report(find("get_bits"), lambda number, start, count: set().pop())
    assert "`pop` finds nothing in an empty set" in text


def test_an_error_is_told_to_its_end():
    text = report(find("get_bits"), lambda number, start, count: {**[number]})
    assert "a value of type list is not a mapping, on all" in text


def test_what_is_refused_with_a_raise_is_not_said_to_be_refused_by_an_assert():
    source = """
def png_size(data):
    if len(data) < 24:
        raise AssertionError("too short")
    if data[:8] != bytes.fromhex("89504e470d0a1a0a"):
        raise ValueError("no PNG")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
"""
    text = report(find("png_size"), written(source, "png_size"))
    assert "refused with AssertionError" in text
    assert "An `assert`" not in text


@pytest.mark.parametrize("off", [(-3, -1, 1, 3), (-12, -8, -4, 0), (12, 8, 4, 0)])
def test_a_difference_that_does_not_grow_is_no_sum(off):
    right = {"a": {"n": 100}, "b": {"n": 200}, "c": {"n": 300}, "d": {"n": 400}}
    wrong = {key: {"n": part["n"] + more} for (key, part), more in zip(right.items(), off)}
    assert not any("adds up" in seen.text for seen in of_leaves(right, wrong))


def test_what_is_missing_of_large_integers_is_compared_exactly():
    right = {"x": 10**12, "y": 10**12, "z": 5}
    assert any("the sum is right" in s.text for s in of_moved(right, {**right, "x": 10**12 - 4, "y": 10**12 + 4}, 0))
    assert not list(of_moved(right, {**right, "x": 10**12 - 4, "y": 10**12 + 8}, 0))


def test_the_rest_is_not_called_right_where_its_order_is_not():
    texts = [seen.text for seen in of_dicts({"a": 1, "b": 2, "c": 3}, {"b": 2, "a": 1})]
    assert "the last key is missing, and the rest is right" not in texts
    assert "every key has the same value" not in [s.text for s in of_dicts({"a": 1, "b": 2}, {"a": 3, "b": 3, "c": 4})]


def test_of_a_field_at_the_beginning_no_bytes_before_it_are_called_right():
    fields = [("magic", 0, 4), ("n", 4, 8)]
    texts = [seen.text for seen in of_fields(b"TFLG\1\0\0\0", b"GFL\1\0\0\0", fields)]
    assert "the bytes after the field magic are right; there, 3 bytes found and 4 expected" in texts


def test_a_number_is_not_too_large_by_a_negative_one():
    texts = [seen.text for seen in of_formulas(7, 10, {"`x`": -3.0, "`n`": 3.0})]
    assert "the result is too large by `n`" in texts
    assert not any("too large by `x`" in text or "and" in text for text in texts)
    assert not any("large by a factor" in seen.text for seen in of_formulas(-2, -6, {"`n`": 3.0}))


def test_an_offset_by_a_number_that_may_be_negative_is_no_way_too_large():
    def same(number, zero):
        """The number. -> int"""
        return number

    spec = made(same, [(n, z) for n, z in ((9, -4), (77, -8), (300, -9), (5, -3), (1000, -10), (70000, -17))])
    facts = Facts(spec, function := (lambda number, zero: number + 2 * zero), _calls(spec, function))
    assert next(of_differences(facts, facts.calls)).text == "every number is the right one plus 2 times `zero`"


def test_values_of_a_dict_in_another_order_are_not_compared_by_their_places():
    right = {"a": 5, "b": 7, "c": 9, "d": 11}
    assert list(of_axes(right, {"b": 7, "c": 9, "d": 11, "a": 6})) == []
    assert list(of_axes(right, {"a": 7, "b": 9, "c": 11, "d": 6}))


def test_an_input_that_gives_no_result_is_not_counted_among_those_of_which_a_sentence_speaks():
    spec = made(lambda n: n, [(n,) for n in range(1, 9)])
    facts = Facts(spec, function := (lambda n: n + 1), _calls(spec, function))
    n = len(facts.calls) + len(facts.further) + len(facts.fresh)
    assert re.fullmatch(r"for each of \d+ inputs tried", facts.tried) and 8 <= int(facts.tried.split()[3]) <= n
    failed = replace(facts.calls[0], outcome=Outcome(error=ValueError("no")))
    other = Facts(spec, function, facts.calls)
    vars(other).update(further=(), fresh=(failed,))
    assert other.tried == "for each of 8 inputs tried"


def test_values_are_right_where_both_are_not_a_number_and_only_the_dtype_differs():
    def halves(values):
        """Half of each. -> float32 array"""
        return (values / 2).astype(np.float32)

    spec = made(halves, [(np.array([1.0, np.nan, n]),) for n in range(4)])
    facts = Facts(spec, function := (lambda values: values / 2), _calls(spec, function))
    assert how_far_off(facts, facts.wrong).text.startswith("the values are right, and on 4 of 4 the dtype differs")


def test_the_type_of_a_part_is_not_called_that_of_the_result():
    def named(n):
        """A number and its text. -> tuple"""
        return (n, str(n))

    spec = made(named, [(n,) for n in range(4)])
    facts = Facts(spec, function := (lambda n: (str(n), n)), _calls(spec, function))
    assert "on 4 of 4 the type of a part differs" in how_far_off(facts, facts.wrong).text


def test_large_integers_that_a_float_does_not_tell_apart_are_counted_as_wrong():
    def twice(values):
        """Twice each. -> int64 array"""
        return 2 * values

    spec = made(twice, [(np.array([2**60 + 5 * n, 3 * n]),) for n in (2, 5, 9, 11)])
    facts = Facts(spec, function := (lambda values: 2 * values + values % 3 * [1, 0]), _calls(spec, function))
    text = how_far_off(facts, facts.wrong).text
    assert "off by up to 2;" in text and "at most 1 of 2 in a result are wrong" in text


def test_a_place_that_is_right_within_the_tolerance_is_not_among_the_wrong_ones():
    def part(n):
        """Some numbers, and a text. -> dict"""
        return {"name": "x", "values": np.arange(4.0) + n}

    spec = made(part, [(n,) for n in (1, 2, 5, 9)], tolerance=1e-3)
    wrong = lambda n: {"name": "x", "values": np.arange(4.0) + n + np.array([1e-5, 0, n * 1.7 % 2 + 1, 0])}  # noqa: E731
    facts = Facts(spec, wrong, _calls(spec, wrong))
    assert "(only place 2 of its 4, counted from 0)" in how_far_off(facts, facts.wrong).text


def test_large_arrays_in_a_list_are_compared_whole():
    def two(n):
        """Two arrays. -> list"""
        return [np.arange(2000) * n, np.arange(2000)]

    spec = made(two, [(n,) for n in (1, 2, 5)])
    wrong = lambda n: [np.where(np.arange(2000) == 1000, -1, x) for x in two(n)]  # noqa: E731
    facts = Facts(spec, wrong, _calls(spec, wrong))
    assert how_far_off(facts, facts.wrong).text.startswith("items have other values")


def test_all_values_are_finite_ones_of_a_kind_only_if_no_further_result_is_infinite():
    spec = made(lambda x: x / 3, [(float(x),) for x in (1, 2, 4, 5, 7, 8)])
    function = lambda x: float(round(x / 3))  # noqa: E731
    facts = Facts(spec, function, _calls(spec, function))
    assert "whole number" in of_habits(facts, facts.wrong).text
    vars(facts)["fresh"] = (replace(facts.calls[0], outcome=Outcome(result=math.inf)),)
    assert "whole number" not in getattr(of_habits(facts, facts.wrong), "text", "")


def test_a_sum_of_multiples_is_one_on_further_inputs_as_well():
    spec = made(lambda a, b: a * b, [(2, 3), (3, 5), (4, 7), (5, 11), (6, 8), (9, 4)])
    function = lambda a, b: 2 * a + b  # noqa: E731
    facts = Facts(spec, function, _calls(spec, function))
    assert "the result is 2 times `a` plus `b`" in of_habits(facts, facts.wrong).text
    vars(facts)["fresh"] = (replace(facts.calls[0], outcome=Outcome(result=-1)),)
    assert "plus" not in getattr(of_habits(facts, facts.wrong), "text", "")


def test_a_sum_with_which_more_is_computed_stands_in_brackets():
    def share(bits, size):
        """The bits of a weight. -> float"""
        return bits + 16 / size

    spec = made(share, [(b, s) for b, s in ((3, 4), (4, 32), (8, 16), (2, 8), (5, 64), (6, 128))])
    spec = replace(spec, quantities=lambda bits, size: {"`size` - 1": size - 1, "16 / `size`": 16 / size})
    facts = Facts(spec, function := (lambda bits, size: bits + 16 / (size - 1)), _calls(spec, function))
    assert next(of_differences(facts, facts.calls)).text == "every number is too large by (16 / `size`) / (`size` - 1)"
    texts = [seen.text for seen in of_formulas(1, 22, {"`n` - 1": 7.0})]
    assert "the result is too large by 3 times (`n` - 1)" in texts


def test_empty_tensors_may_stand_in_any_order_even_if_the_call_empties_its_argument():
    def check_layout(entries, n_bytes):
        names = find("check_layout").reference(entries, n_bytes)
        names = sorted(names, key=lambda name: (entries[name]["data_offsets"], name != "z"))
        entries.clear()
        return names

    text = repr(evaluate(find("check_layout"), check_layout, search=False))
    assert "changes its argument `entries`" in text and "another order" not in text


def test_an_int_in_place_of_a_float_is_no_cause_as_a_check_takes_it():
    pair = lambda n: ("n", n / 7)  # noqa: E731
    said = report(made(pair, [(n,) for n in (1, 2, 3, 5, 9, 20)]), lambda n: ("n", n // 7))
    assert "a float is asked for" not in said


def test_a_part_that_keys_lack_is_not_called_missing_where_another_key_has_it():
    texts = [seen.text for seen in of_key_names({"a.x": 1, "a": 2}, {"x": 1, "a": 2}, 0.0)]
    assert "the keys that are not expected are those that are missing, without 'a'" in texts
    assert not any("missing in keys" in text for text in texts)


def test_inputs_are_not_called_right_where_a_count_is_odd_or_large():
    def predict_file_size(shapes, schemes, metadata):
        size = find("predict_file_size").reference(shapes, schemes, metadata)
        return size - sum(2 * math.prod(d) for name, d in shapes.items() if name not in schemes and len(d) < 2)

    said = report(find("predict_file_size"), predict_file_size)
    assert "is odd are right" not in said and "or more are right" not in said


def test_items_that_stand_at_the_end_in_few_results_are_not_said_to_where_they_do_not_elsewhere():
    def off_the_list(found, allowed):
        left, bad = set(allowed), []
        for offset, module, name in found:
            if (module, name) in left:
                left.remove((module, name))
            else:
                bad.append((offset, module, name))
        return bad

    text = report(find("off_the_list"), off_the_list)
    assert "then come" not in text
    assert "the right items are there, and others that do not belong there" in text.lower()


def test_a_property_that_most_right_values_have_as_well_is_not_said_of_the_results():
    spec = made(lambda n: np.array([1.0, 2.0, 0.5, n / 3]), [(n,) for n in range(1, 8)])
    function = lambda n: np.array([1.0, 2.0, 0.5, 0.25])  # noqa: E731
    facts = Facts(spec, function, _calls(spec, function))
    assert of_habits(facts, facts.wrong) is None
    spec = made(lambda n: np.array([2 / 3, n / 3 + 0.1, 0.5, n / 7]), [(n,) for n in range(1, 8)])
    facts = Facts(spec, function, _calls(spec, function))
    assert "decimals" in of_habits(facts, facts.wrong).text
