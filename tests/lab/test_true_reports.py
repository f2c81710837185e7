"""What a report says is true of the case that it shows, and of every way in which the results may have come about."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest
from test_detect import made, refuse, seen

from miniquant.core.errors import MiniquantError
from miniquant.lab import Mistake, evaluate, find, guard
from miniquant.lab.compare import Difference, difference, told_apart
from miniquant.lab.detect.fields import alignment
from miniquant.lab.more_cases import part_ways
from miniquant.lab.report import CASE, OF_ITS_KIND
from miniquant.lab.spec import Finding
from miniquant.lessons.shared.observed import Number


def pair(first, second):
    """Two numbers: their sum and their product. -> (sum, product)"""
    return first + second, first * second


PAIR = made(pair, [(1, 2), (3, 5), (30, 41), (32, 47), (36, 43), (38, 49)])


def labels(report):
    return [label for label, _ in report.lines()]


def test_the_case_shown_is_one_of_those_that_the_first_sentence_is_about():
    def wrong(first, second):
        return (first + second, -1 * first * second) if first > 2 else (first + second + first**3 % 29 + 1, 0)

    report = evaluate(made(pair, [(1, 2), *((n, 2 * n - 17) for n in range(30, 55))]), wrong)
    assert "on at least 25 of the 26 wrong cases" in report.cause
    assert report.case == {"first": 30, "second": 43}
    assert labels(report)[0] == OF_ITS_KIND


def test_the_smallest_case_is_called_so():
    assert labels(evaluate(PAIR, lambda first, second: (first + second, -first * second)))[0] == CASE


def test_a_mistake_about_code_that_the_student_did_not_write_is_not_said():
    cause = "The values are those of `np.trunc(x)`."
    mistake = Mistake("cut with a function", lambda first, second: (0, -first), cause=cause, cure="D.", see="E")
    spec = made(pair, list(PAIR.cases(None)), mistakes=(mistake,))

    def wrong(first, second):
        return 0, -first

    report = evaluate(spec, wrong)
    assert report.perhaps == "cut with a function"
    assert "cut with a function" not in repr(report)
    assert "np.trunc" not in repr(report)


def test_the_guard_is_off_in_tests_and_on_for_students(monkeypatch):
    def faulty(facts):
        raise ZeroDivisionError

    monkeypatch.setattr("miniquant.lab.judging.diagnose", faulty)
    assert not guard.ON
    with pytest.raises(ZeroDivisionError):
        evaluate(PAIR, lambda first, second: (0, 0))
    monkeypatch.setattr(guard, "ON", True)
    report = evaluate(PAIR, lambda first, second: (0, 0))
    assert (report.status, report.cause) == ("failed", "")
    assert report.shown.expected


def test_the_guard_of_a_detector_is_the_same(monkeypatch):
    def faulty(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr("miniquant.lab.detect.pairs.of_types", faulty)
    with pytest.raises(ZeroDivisionError):
        evaluate(PAIR, lambda first, second: (0, first))
    monkeypatch.setattr(guard, "ON", True)
    assert evaluate(PAIR, lambda first, second: (0, first)).status == "failed"


@pytest.mark.parametrize(
    ("expected", "got", "places"),
    [
        (b"abc", b"abXc", (2, 2)),
        (b"a\0\0b", b"a\0\0\0b", (1, 3)),
        (b"a\0\0b", b"a\0b", (1, 2)),
        (b"abc", b"aXYc", None),
        (b"abc", b"abd", None),
    ],
)
def test_where_bytes_came_in_is_known_as_far_as_the_bytes_beside_them_differ(expected, got, places):
    assert alignment(expected, got) == places


def of_descriptor(body):
    def descriptor_bytes(name, dims, dtype, offset):
        encoded = name.encode()
        return body(struct.pack("<H", len(encoded)) + encoded, dims, dtype, offset)

    return repr(evaluate(find("descriptor_bytes"), descriptor_bytes, search=False))


def test_bytes_between_two_fields_are_given_to_none_of_them():
    text = of_descriptor(
        lambda head, dims, dtype, offset: (
            head + b"\0" + struct.pack(f"<B{len(dims)}I", len(dims), *dims) + struct.pack("<BQ", dtype, offset)
        )
    )
    said = "Between the fields name and n_dims, 1 byte (00) is too many; the rest is right, on at least 11 of the 13"
    assert said in text
    assert "dtype must stand" not in text


def test_padding_after_a_field_is_not_called_a_wider_field():
    text = of_descriptor(
        lambda head, dims, dtype, offset: (
            head + struct.pack(f"<B{len(dims)}IB", len(dims), *dims, dtype) + bytes(3) + struct.pack("<Q", offset)
        )
    )
    assert "four bytes between the dims and the offset" in text
    assert "takes four bytes" not in text


@pytest.mark.parametrize("given", [32, 32.0, np.float64(0.5), 10**20])
def test_a_number_is_shown_as_it_was_returned_and_compared_by_its_value(given):
    assert repr(Number(given)) == str(given)
    assert Number(given) == given


def test_a_missing_comma_of_a_tuple_is_not_shown_as_a_float():
    right = find("parameter_shapes").reference

    def parameter_shapes(config):
        return {name: dims[0] if len(dims) == 1 else dims for name, dims in right(config).items()}

    report = evaluate(find("parameter_shapes"), parameter_shapes, search=False)
    assert "float" not in repr(report)
    assert "a tuple of one needs a comma" in report.cause


def whole(name, body, search=False):
    """The report of an exercise on the function with this body, as text."""
    spec = find(name)
    scope = {"np": np, "body": body}
    names = ", ".join(__import__("inspect").signature(spec.reference).parameters)
    exec(f"def {name}({names}):\n    return body({names})", scope)
    return repr(evaluate(spec, scope[name], search=search))


def test_digits_that_are_joined_are_described():
    text = whole("join_nibbles", lambda low, high: int(f"{high & 15:b}" + f"{low & 15:b}", 2))
    assert "the binary digits of the high nibble and then of" in text
    assert "joined without leading zeros" in text
    text = whole("get_bits", lambda number, start, count: int(bin(number)[2:][start : start + count] or "0", 2))
    assert "`count` binary digits of `number`, counted from the left, after the first `start`" in text


def test_a_zero_before_a_number_is_no_joining_of_digits():
    def turned(number, start, count):
        right = find("get_bits").reference(number, start, count)
        return right if start else int(f"{right:0{count}b}"[::-1], 2)

    text = whole("get_bits", turned)
    assert "The result is these bits in the opposite order" in text
    assert "digits of" not in text


def test_an_item_that_comes_once_in_place_of_twice_is_missing():
    def off_the_list(found, allowed):
        unlisted = []
        for row in found:
            if row[1:] not in allowed:
                unlisted.append(row)
                allowed.add(row[1:])
        return unlisted

    text = repr(evaluate(find("off_the_list"), off_the_list, search=False))
    assert "What is there belongs there, and items are missing, on 3 of 28 cases" in text


def test_the_keys_of_a_dict_are_no_items():
    def run_small_pickle(operations):
        right = find("run_small_pickle").reference(operations)
        return {**right, 1: 2} if right == {1: 3} else right

    text = repr(evaluate(find("run_small_pickle"), run_small_pickle, search=False))
    assert "key 1 is wrong" in text
    assert "item 1" not in text


def test_storages_that_are_left_out_are_not_called_the_largest_or_those_of_the_first_tensor():
    def kept_bytes(tensors):
        return sum(
            {
                s.data_ptr(): s.nbytes() for t in tensors.values() if not t._is_view() for s in [t.untyped_storage()]
            }.values()
        )

    assert "too small by the bytes" not in repr(evaluate(find("kept_bytes"), kept_bytes, search=False))

    def kept_bytes(tensors):
        return sum({t.untyped_storage().nbytes() for t in tensors.values()})

    text = repr(evaluate(find("kept_bytes"), kept_bytes, search=False))
    assert "too small by the bytes" not in text
    assert "exactly those where two storages have the same size are wrong" in text


def test_bytes_that_a_text_would_change_are_asked_of_a_header():
    def magic_bytes(magic, version):
        return find("magic_bytes").reference(magic, version).replace(b"\n", b"\r\n")

    assert evaluate(find("magic_bytes"), magic_bytes, search=False).status == "failed"


def test_two_sides_that_are_exchanged_are_named():
    text = whole("fits_inside", lambda offset, size, left: bool(size <= left and offset <= size - left), search=True)
    assert "a solution that takes `size - left` where the right one takes `left - size`" in text


def test_every_number_taken_as_negative_is_a_known_mistake():
    text = whole("from_twos_complement", lambda number, n_bits: number - 2**n_bits if number else number, search=True)
    assert "same results as the known mistake: every number but 0 taken as negative" in text


def test_numbers_made_of_decimal_bytes_are_described():
    def png_size(data):
        return tuple(int("".join(map(str, data[at : at + 4]))) for at in (16, 20))

    def added(data):
        return sum(data[16:20]), sum(data[20:24])

    find_good = find("png_size").reference
    text = whole("png_size", lambda data: png_size(data) if find_good(data) else None)
    assert (
        "the decimal digits of the right number's bytes, one byte after the other, in the order of big-endian" in text
    )
    text = whole("png_size", lambda data: added(data) if find_good(data) else None)
    assert "the sum of the right number's bytes" in text


def test_white_space_that_is_missing_is_described_by_where_it_was():
    right = find("metadata_bytes").reference
    text = whole("metadata_bytes", lambda metadata: right(metadata).decode().strip().encode())
    assert "White space at the ends of the result is missing, and nothing else differs, on 3 of 22" in text


def test_axes_that_are_exchanged_after_a_reshape_are_described():
    def body(w, group_size):
        out, n_in = w.shape
        if n_in % group_size:
            raise ValueError("no")
        return w.reshape(n_in // group_size, out, group_size).transpose(1, 0, 2)

    assert "with the lengths of axes 1, 0 and 2 of the right one, and then `transpose(1, 0, 2)`" in whole(
        "group_reshape", body
    )


def test_values_that_are_multiplied_by_a_reciprocal_are_described():
    right = find("quantize_per_tensor").reference

    def body(w):
        _, scale = right(w)
        factor = np.float32(127) / np.abs(w).max() if scale else np.float32(0)
        return np.rint(w * factor).clip(-127, 127).astype(np.int8), scale

    assert "the weights times 127 / absmax or 1 / (the scale before it is rounded)" in whole(
        "quantize_per_tensor", body
    )


def test_a_border_is_not_said_where_no_input_lies_just_beside_it():
    def body(data, magic):
        size = (magic.bit_length() + 7) // 8 or 1
        orders = [order for order in ("little", "big") if data == magic.to_bytes(size, order)]
        return orders[0] if orders else "neither"

    said = whole("byte_order", body)
    assert "The answer is 'neither' where 'little' or 'big' is right, on 4 of 42 cases." in said
    assert "less than 2**24" not in said


def test_a_result_that_depends_on_the_order_of_the_values_is_described():
    def body(weight, bias, hours, jars, learning_rate, steps):
        for _ in range(steps):
            for hour, jar in zip(hours.tolist(), jars.tolist()):
                step = learning_rate * 2 * (weight * hour + bias - jar)
                weight, bias = weight - step * hour, bias - step
        return weight, bias

    assert "With the values in reversed order in `hours` and `jars`, the right result stays the same, and yours" in (
        whole("gradient_descent", body, search=True)
    )


def test_which_bad_inputs_are_accepted_is_said():
    errors = find("max_abs_error").reference

    def tensor_errors(expected, found):
        return {name: errors(expected[name].reshape(-1), found[name].reshape(-1)) for name in expected}

    text = whole("tensor_errors", tensor_errors)
    assert "one right answer refuses them with" in text
    assert "is on one side only" in text
    assert "has two shapes: " in text


def test_the_first_wrong_field_of_a_file_is_named_by_its_number():
    def header(n_tensors, metadata_len):
        return struct.pack("<4I", 0x474C4654, 1, n_tensors + 2, metadata_len) + b"more"

    text = repr(evaluate(find("header_bytes"), header, search=False))
    assert "the first field that is wrong is header.n_tensors: read there, its number is too large by 2" in text.lower()


def test_a_property_of_one_wrong_call_is_said_only_if_it_is_a_simple_one():
    numbers = made(lambda values: sum(values), [([n, n + 1],) for n in (4, 9, 3, 12)] + [([],), ([7, 7, 7],)])
    assert "has duplicates" not in seen(numbers, lambda values: sum(values) + (values == [7, 7, 7]))
    assert "a wrong input is `values` = []" in seen(numbers, lambda values: sum(values) if values else 5)


def test_only_the_calls_with_a_wrong_result_are_merged_into_a_sentence_on_its_parts():
    def largest_part(parts):
        name = max(parts, key=parts.get)
        size = parts.pop(name)
        return name, 100.0 * size / (sum(parts.values()) or size)

    text = repr(evaluate(find("largest_part"), largest_part, search=False))
    assert "In item 1, the result is 100 times the bytes of the largest part, divided by the sum of the other" in text
    assert "parts, on 11 of 13 cases" in text
    assert "The result is right, and the function changes its argument `parts`, on 2 of 13 cases" in text
    assert "In all 11 cases with a wrong result, the function changes its argument `parts`, too." in text


def test_values_within_the_tolerance_are_right_in_every_sentence():
    def near(values):
        result = np.float64(values) * 2
        result[:-1] += 1e-9
        result[-1] += 3
        return result

    cases = [(np.arange(n, n + 4.0),) for n in range(4)]
    spec = made(lambda values: np.float64(values) * 2, cases, tolerance=1e-6)
    assert "the last value is wrong, and all others are right, on all 4 cases" in seen(spec, near)


def test_keys_that_are_not_shown_are_counted():
    spec = made(lambda n: {f"k{i}": i for i in range(n)}, [(n,) for n in (6, 6, 6)])
    assert "missing: 'k0', 'k1', 'k2' and 3 more" in seen(spec, lambda n: {"k": 1})


def test_numbers_of_names_with_zeros_in_front_are_described():
    spec = made(lambda n: {f"w.{i}.b": i for i in range(n)}, [(n,) for n in (3, 11, 12)])
    assert "the numbers in the keys have zeros in front" in seen(spec, lambda n: {f"w.{i:03}.b": i for i in range(n)})


def test_results_that_are_one_sum_of_multiples_of_the_arguments_are_described():
    spec = made(lambda low, high: low | high << 4, [(a, b) for a in (1, 7, 9) for b in (2, 11, 15)])
    assert "the result is `low` plus 256 times `high`, for each of" in seen(spec, lambda low, high: low + 256 * high)


def test_an_accepted_input_is_compared_with_those_that_are_refused():
    def halved(n):
        if n % 2 or n < 0:
            raise ValueError
        return n // 2

    spec = made(halved, [(4,), (8,), (3,), (-2,)])
    assert "it accepts `n` = -2 and refuses 3" in seen(spec, lambda n: n // 2 if n % 2 == 0 else refuse(ValueError()))


def test_a_number_written_as_digits_is_described():
    def safetensors_head(text):
        raw = text.encode("utf-8")
        raw += b" " * (-len(raw) % 8)
        return f"{len(raw):08d}".encode() + raw

    assert "its number is written with decimal digits, as text" in repr(
        evaluate(find("safetensors_head"), safetensors_head, search=False)
    )


def test_lines_that_are_not_joined_are_described():
    spec = made(lambda n: "\n".join(map(str, range(n))), [(3,), (4,), (5,)])
    assert "the parts of the text are right, in a list, and not joined" in seen(
        spec, lambda n: [str(i) for i in range(n)]
    )


def test_a_scalar_is_no_array_whose_order_is_changed():
    def round_scale(scale):
        bits = np.asarray(scale, np.float32).view(np.uint32)
        return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)

    text = repr(evaluate(find("round_scale"), round_scale))
    assert "reversed order" not in text and "every value twice" not in text


def test_the_distance_of_large_integers_is_exact():
    spec = made(lambda n: 2**63 - n, [(n,) for n in range(1, 6)])
    wrong = {1: 2**63, 2: 2**63 - 50005, 3: 2**63 - 3, 4: 2**63 + 2, 5: 2**63 - 5}
    assert "off by up to 50003" in seen(spec, lambda n: wrong[n])


def test_a_float_of_numpy_is_a_float():
    spec = made(lambda n: (np.float64(n), 1), [(n,) for n in range(1, 6)])
    assert "float64 is asked for" not in seen(spec, lambda n: (float(n * n + 3), 1))


def test_a_property_of_the_arguments_is_not_taken_for_the_number_1():
    def squeezed(magic, version):
        data = b"".join(n.to_bytes((n.bit_length() + 7) // 8, "little") for n in (magic, version))
        return data.ljust(8, b"\0")

    assert "stands a number has" not in repr(evaluate(find("magic_bytes"), squeezed))


def test_a_function_that_parts_from_a_mistake_on_other_inputs_does_not_get_its_name():
    def before_or_equal(first, second):
        return first >= second

    pairs = [(n, m) for n in range(1, 9) for m in (n, n + 1, n - 1 if n > 6 else n + 3)]
    cause = "Seven and six pass, and so do eight and seven."
    chance = Mistake("neighbours", lambda a, b: a == b or (a > 6 and a == b + 1), cause=cause, cure="D.", see="E")
    same = Mistake("larger ones pass", lambda first, second: first >= second, cause=cause, cure="D.", see="E")
    for mistake, named in ((chance, False), (same, True)):
        spec = made(lambda first, second: first == second, pairs, mistakes=(mistake,))
        assert part_ways(spec, before_or_equal, mistake.wrong) != named
        assert (evaluate(spec, before_or_equal, search=False).mistake == mistake.name) == named


def test_rounding_is_said_only_if_it_explains_what_is_wrong():
    def thirds(values):
        """Thirds. -> float64"""
        return values / 3

    spec = made(thirds, [(np.arange(n, n + 4.0),) for n in range(5)], tolerance=1e-9)
    assert "rounded to 6 decimals" in seen(spec, lambda values: np.round(values / 3, 6))
    for digits in (5, 7):
        assert "6 decimals" not in seen(spec, lambda values, d=digits: np.round(values / 3, d))
    near = seen(spec, lambda values: values / 3 * (1 + 2e-8))
    assert "decimal" not in near


def test_values_that_are_right_in_a_narrower_type_are_told_as_right():
    spec = made(lambda x: x / 3, [(np.arange(n, n + 4.0),) for n in range(5)], tolerance=1e-9)
    text = seen(spec, lambda x: (x / 3).astype(np.float32))
    assert "dtype is float32 in place of float64, and each value is the right one rounded to it, on all 5" in text
    text = seen(spec, lambda x: x.astype(np.float32) / np.float32(3))
    assert "dtype is float32 in place of float64, and" in text


def test_padding_is_described_by_its_multiple():
    spec = made(lambda n: bytes(range(1, n + 1)), [(n,) for n in (3, 9, 17, 30, 33)])
    text = seen(spec, lambda n: bytes(range(1, n + 1)) + bytes(-n % 16))
    assert "then come zero bytes up to a multiple of 16 bytes" in text


def counted(data, at):
    """A byte, or 0 after the end. -> int"""
    return data[at] if at < len(data) else 0


COUNTED = made(counted, [(b"abc", 1), (b"de", 0), (b"", 5), (b"xyz", 2), (b"xy", 9)])


def test_where_an_error_was_raised_and_what_was_there_are_said():
    def too_far(data, at):
        place = at + 1
        return data[place - 1]

    line = too_far.__code__.co_firstlineno + 2
    text = repr(evaluate(COUNTED, too_far, search=False))
    assert f"Python raises IndexError in line {line}, `return data[place - 1]`: an index is outside the range" in text
    assert f"With `data` = b'' (0 bytes), `at` = 5, `place` is 6 in line {line}." in text or "`place` is 10" in text


def test_the_condition_under_which_good_input_is_refused_is_said():
    def picky(data, at):
        if at >= len(data):
            raise ValueError("too far")
        return data[at]

    line = picky.__code__.co_firstlineno + 1
    text = repr(evaluate(COUNTED, picky, search=False))
    assert f"with ValueError: too far: `at >= len(data)` in line {line} is true there, on 2 of 5 cases" in text


def test_an_error_that_follows_another_one_is_said_with_it():
    def careful(data, at):
        try:
            return data[at]
        except IndexError:
            raise ValueError("too far") from None

    assert "IndexError: index out of range was raised in line" in repr(evaluate(COUNTED, careful, search=False))


def test_two_values_that_read_the_same_are_told_apart():
    class Reads(float):
        def __repr__(self):
            return "1.0"

    found = difference((1.0, 2.0), (Reads(3.0), 2.0))
    shown = told_apart(found, (1.0, 2.0), (Reads(3.0), 2.0))
    assert shown.expected != shown.got
    cut = told_apart(Difference("the value differs", "x…", "x…"), "a" * 400 + "b", "a" * 400 + "c")
    assert (cut.expected[-2:], cut.got[-2:]) == ("b'", "c'")


def test_none_inside_a_result_is_no_missing_return():
    assert difference([1, None], [None, None]).what == "at item 0: None found"
    assert difference({"a": "your function returned nothing"}, {"a": None}).what == "at key 'a': None found"


def test_the_sign_of_a_zero_shows_where_it_counts():
    spec = find("zero_point_to_q4_1")
    q, scale = np.zeros((1, 32), np.uint8), np.float32([[1]])

    def minus_zero(q, scale, zero_point):
        return b"\0\x3c\0\x80" + bytes(16)

    assert spec.observe(minus_zero, (q, scale, np.int16([[3]])))[2:4] == b"\0\x80"
    assert spec.observe(minus_zero, (q, scale, np.int16([[0]])))[2:4] == bytes(2)


def test_a_check_that_cannot_run_says_so_and_blames_no_student():
    def broken(function, case):
        raise Finding("no process could be started", "nothing")

    with pytest.raises(MiniquantError, match="cannot be checked now: no process could be started"):
        evaluate(made(counted, list(COUNTED.cases(None)), observe=broken), lambda data, at: 0)


def test_a_result_that_comes_twice_is_told():
    spec = made(lambda n: bytes(range(n)), [(n,) for n in (2, 3, 7, 9)])
    assert "the right bytes are there twice, one after the other, on all 4 cases" in seen(
        spec, lambda n: 2 * bytes(range(n))
    )


def test_results_of_wrong_shapes_without_a_pattern_are_told_with_their_shapes():
    spec = made(lambda n: np.arange(float(n)), [(n,) for n in (2, 3, 7, 9)])
    wrong = {2: (3, 1), 3: (8, 2), 7: (2,), 9: (1, 1, 1)}
    assert "the shape differs" in seen(spec, lambda n: np.full(wrong[n], 0.3))


def test_what_is_said_of_every_input_leaves_out_inputs_that_raise():
    def from_twos_complement(bits, n_bits):
        if bits == 1 << (n_bits - 1):
            raise ValueError(bits)
        return bits

    report = repr(evaluate(find("from_twos_complement"), from_twos_complement, search=False))
    assert "for each of" not in report


def test_a_factor_of_two_is_no_missing_divisor():
    def second_weight(h, first):
        second = -2 * h[0, 1] * first / h[1, 1]
        return float(second), float(h[0, 0] * first**2 + h[0, 1] * first * second + h[1, 1] * second**2)

    assert "n - 1" not in repr(evaluate(find("second_weight"), second_weight, search=False))


def test_the_type_is_called_right_only_where_it_is():
    def rmse(predicted, actual):
        return int(np.median((predicted - actual) ** 2) ** 0.5)

    assert "type is right" not in repr(evaluate(find("rmse"), rmse, search=False)).lower()


def test_values_that_are_all_zero_are_not_taken_for_a_count_of_what_is_not_there():
    def tensor_offsets(shapes, dtypes):
        return dict.fromkeys(shapes, 0)

    assert "single numbers" not in repr(evaluate(find("tensor_offsets"), tensor_offsets, search=False))


def test_right_values_of_several_dtypes_are_called_right():
    def group_reshape(w, group_size):
        if w.shape[1] % group_size:
            raise ValueError(w.shape)
        return w.astype(np.float64).reshape(len(w), -1, group_size)

    assert "not the right ones" not in repr(evaluate(find("group_reshape"), group_reshape, search=False))


def test_too_many_indices_are_not_called_an_index_outside_the_range():
    spec = made(lambda w: w.sum(), [(np.arange(n),) for n in (3, 4, 5)])
    text = seen(spec, lambda w: w[:, 0].sum())
    assert "an index does not fit: too many indices for array" in text and "outside the range" not in text


def test_of_one_empty_item_it_is_not_said_that_the_result_is_empty():
    spec = made(lambda n: ([n], [n + 1]), [(n,) for n in range(1, 8)])
    text = seen(spec, lambda n: ([n], [] if n == 3 else [n + 1]))
    assert "only item 1 is wrong: it is empty" in text and "the result is empty" not in text


def test_a_scale_of_zero_is_not_said_to_be_the_one_that_was_used():
    def quantize_per_group(w, group_size):
        q, scale = find("quantize_per_group").reference(w, group_size)
        q[(scale == 0).any(axis=1)] = 0
        return q, scale

    assert "another scale" not in repr(evaluate(find("quantize_per_group"), quantize_per_group, search=False))


def test_of_few_wrong_numbers_it_is_said_on_which_side_they_are():
    spec = made(lambda a, b: float(a * b), [(1, 1), (2, 7), (3, 5), (1, 9), (1, 4), (1, 8)])
    text = seen(spec, lambda a, b: {(2, 7): 3.3, (3, 5): 8.1}.get((a, b), float(a * b)))
    assert "off by up to 10.7; each of the 2 wrong ones is too small" in text


def test_a_part_whose_keys_have_another_order_is_not_said_to_be_wrong_where_their_order_does_not_matter(monkeypatch):
    def one_at_a_time(weights, kinds, store, measure):
        right = find("one_at_a_time").reference(weights, kinds, store, measure)
        last = dict(reversed(list(right[list(weights)[-1]].items())))
        return dict.fromkeys(weights, last)

    monkeypatch.setattr("miniquant.lab.detect.layout.all_the_same", lambda expected, got: ())  # it says more

    said = re.search(r"of \d+ results, (.*?), on", repr(evaluate(find("one_at_a_time"), one_at_a_time, search=False)))
    assert said and "'a' is wrong on 3" in said[1] and "'b'" not in said[1] and "'w3'" not in said[1]


def test_a_right_dict_in_another_order_is_a_right_result_of_a_call_that_changes_its_argument():
    def imatrix_tensors(seen):
        tensors = {}
        while seen:
            name, (sums, count) = seen.popitem()
            tensors[f"{name}.in_sum2"] = sums.astype(np.float32)
            tensors[f"{name}.counts"] = np.array([count], np.float32)
        return tensors

    report = evaluate(find("imatrix_tensors"), imatrix_tensors, search=False)
    assert report.cause == "The result is right, and the function changes its argument `seen`, on all 5 cases."
    assert report.also == ""


def test_the_smallest_case_is_the_one_with_the_fewest_values_also_where_numpy_abbreviates_a_larger_one():
    spec = made(lambda w: w * 2, [(np.linspace(0.01, 1, n) ** 3,) for n in (1440, 128, 1300, 160)])

    def toy(w):
        return np.sin(w)

    assert evaluate(spec, toy).case["w"].shape == (128,)


def test_the_values_of_a_call_inside_another_are_not_said_to_be_those_of_the_outer_one():
    def fast_hadamard(x):
        half = x.shape[1] // 2
        a, b = x[:, :half], x[:, half:]
        if half != 1:
            a, b = fast_hadamard(a), fast_hadamard(b)
        return np.concatenate([a + b, a - b], axis=1) / np.sqrt(2)

    text = repr(evaluate(find("fast_hadamard"), fast_hadamard))
    assert "RecursionError" in text and "`b` is" not in text


def test_what_looks_at_a_result_does_not_fail_where_the_function_has_changed_its_argument():
    def check_layout(entries, n_bytes):
        names = find("check_layout").reference(entries, n_bytes)
        for name in names:
            entries[name]["data_offsets"].append(name)
        return names

    report = evaluate(find("check_layout"), check_layout)
    assert "your function changes its argument in place: entries[" in report.what
    assert "Python raises" not in repr(report)
    assert "The result is right, and the function changes its argument" in f"{report.cause} {report.also}"


def test_nothing_is_said_of_all_wrong_integers_where_some_are_equal_as_floats():
    def from_twos_complement(number, n_bits):
        return int(number - 2.0**n_bits) if number >= 2.0 ** (n_bits - 1) else number

    text = repr(evaluate(find("from_twos_complement"), from_twos_complement, search=False))
    assert "-9223372036854775808 in place of -9223372036854775807, 0 in place of -1" in text
    assert "wrong ones" not in text


def test_results_that_are_all_times_one_number_each_are_described():
    spec = made(lambda w, n: w * n, [(np.array([1.0, 2.0, 5.0]), n) for n in (3, 4, 7, 9)])
    text = seen(spec, lambda w, n: w * n * {3: 1.31, 4: 2.7, 7: 0.63}.get(n, 1.9))
    assert "the values of a result are the right ones, all times the same number" in text


def test_of_a_part_that_is_as_wide_in_every_result_it_is_said_where_it_is_wrong():
    text = seen(find("unpack_k_scales"), _bits_exchanged)
    assert "item 0 is wrong on 7 (only places 4 to 7 of its 8, counted from 0), item 1 is wrong on 7 (only" in text


def _bits_exchanged(packed):
    """The late numbers: their low four bits two places too high, and the upper two below them."""
    early = [packed[..., :4] & 63, packed[..., 4:8] & 63]
    late = [(packed[..., 8:] & 15) << 2 | packed[..., :4] >> 6, packed[..., 8:] >> 4 << 2 | packed[..., 4:8] >> 6]
    return tuple(np.concatenate(pair, axis=-1) for pair in zip(early, late))


def test_of_a_kind_of_field_that_is_wrong_in_some_records_it_is_not_said_of_each():
    def encode_q4_0(w):
        """A small number is added to d, which spoils blocks of small weights."""
        d = np.take_along_axis(w, np.abs(w).argmax(axis=1, keepdims=True), axis=1) / np.float32(-8)
        levels = np.clip(w / (d + np.float32(1e-6)) + np.float32(8.5), 0, 15).astype(np.uint8)
        values = levels[:, :16] | levels[:, 16:] << 4
        return np.concatenate([d.astype("<f2").view(np.uint8), values], axis=1).tobytes()

    text = repr(evaluate(find("encode_q4_0"), encode_q4_0, search=False))
    assert "Only the values of a block are wrong; d of each block is right" in text


def test_where_some_results_have_another_shape_and_others_another_type_the_shapes_are_counted_as_at_least_so_many():
    spec = find("round_scale")
    text = repr(evaluate(spec, lambda scale: np.ravel(spec.reference(scale)), search=False))
    assert "on at least 3 of 6 the shape differs" in text


def _ties_up(w):
    """Q4 with scales rounded to float16 by hand: the nearest, but of two as near the larger one."""
    groups = w.reshape(-1, 64)
    bits = (np.abs(groups).max(axis=1) / np.float32(7)).view(np.uint32)
    scale = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32).astype("<f2")
    divisor = np.where(scale == 0, np.inf, scale).astype(np.float32)[:, None]
    q = np.clip(np.rint(groups / divisor), -7, 7).astype(np.int8).view(np.uint8) & 15
    return scale.tobytes() + (q[:, ::2] | q[:, 1::2] << 4).tobytes()


def test_scales_are_said_to_be_rounded_up_only_if_more_than_ties_are():
    text = seen(find("encode_q4"), lambda w: _ties_up(w) if w.shape[1] % 64 == 0 else find("encode_q4").reference(w))
    assert "scales halfway between two float16 are rounded up, not to the even one" in text


def test_a_condition_on_three_dims_says_so():
    def tensor_bytes(scheme, dims):
        return find("tensor_bytes").reference(scheme, dims[:2])

    text = repr(evaluate(find("tensor_bytes"), tensor_bytes, search=False))
    assert "of the first two dims" not in text and "of the first two of three dims or more is not 0 are wrong" in text


def test_of_a_solution_that_differs_in_one_place_it_is_not_said_that_it_differs_everywhere():
    def fold_into_norm(gain, bias, weight, scale):
        kept = np.append(scale[:-1], np.float32(1))
        return gain / scale, bias / scale, weight * kept

    text = repr(evaluate(find("fold_into_norm"), fold_into_norm))
    assert "takes 1 for the last value of `scale`, in one place at least" in text


def test_of_wrong_numbers_it_is_said_which_inputs_are_right():
    def q8_dot(blocks, x):
        """Each block meets every n-th number of x."""
        d = blocks[:, :2].copy().view("<f2")[:, 0].astype(np.float64)
        q = blocks[:, 2:].copy().view(np.int8).astype(np.float64)
        return float(d @ np.einsum("bi,ib->b", q, x.reshape(32, -1).astype(np.float64)))

    text = repr(evaluate(find("q8_dot"), q8_dot, search=False))
    assert re.search(
        r"tried that give a result, all \d+ where `blocks` has one row are right, and \d+ of the \d+ others", text
    )
