"""What a check sees in wrong results, whatever the exercise: what it says is true, and is not said elsewhere."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from miniquant.core.errors import FormatError
from miniquant.lab import Exercise, Mistake, evaluate
from miniquant.lab.report import LIKELY, SAME, SEEN


def made(reference, cases, **more):
    """An exercise with these cases; its oracle is its reference, which is what no lesson may do."""
    return Exercise(
        **{
            "name": "toy",
            "goal": "A toy.",
            "minutes": 5,
            "difficulty": "core",
            "reference": reference,
            "oracle": lambda *arguments: reference(*arguments),
            "cases": lambda random: cases,
            "hints": ("One.", "Two."),
            "why": "it is a toy.",
            **more,
        }
    )


def halves(values):
    """The halves of some numbers. -> float32"""
    return np.asarray(values, np.float32) / np.float32(2)


HALVES = made(
    halves,
    [
        (np.float32([1, -3, 5, 7]),),
        (np.float32([[2, 4.5, -6], [8, 1, 0.25]]),),
        (np.float32([0.3, 100, -7, 11, 13]),),
    ],
)


def seen(spec, body):
    """The report on a wrong function: title and sentences."""
    names = ", ".join(__import__("inspect").signature(spec.reference).parameters)
    scope = {"body": body}
    exec(f"def toy({names}):\n    return body({names})", scope)
    report = evaluate(spec, scope["toy"])
    assert report.status == "failed", report
    assert report.certainty in (SEEN, SAME), report
    return f"{report.mistake} | {report.cause} {report.also}".lower()


def refuse(error):
    raise error


RIGHT = HALVES.reference


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (lambda v: -RIGHT(v), "every value has the opposite sign"),
        (lambda v: np.abs(RIGHT(v)), "the absolute value of the right one"),
        (lambda v: RIGHT(v) * np.float32(2), "the result is the argument `values`, unchanged"),
        (lambda v: RIGHT(v) * np.float32(8), "8 times too large"),
        (lambda v: RIGHT(v) / np.float32(3), "3 times too small"),
        (lambda v: RIGHT(v) + np.float32(1), "too large by 1"),
        (lambda v: np.round(RIGHT(v), 1), "rounded to 1 decimal"),
        (lambda v: np.floor(RIGHT(v)), "rounded down to whole numbers"),
        (lambda v: np.trunc(RIGHT(v)), "with its decimals cut off"),
        (lambda v: RIGHT(v).astype(np.float64), "float64 in place of float32"),
        (lambda v: RIGHT(v).tolist(), "a list; a numpy array is asked for"),
        (lambda v: RIGHT(v).reshape(-1, 1), "the shape is different"),
        (lambda v: RIGHT(v).reshape(-1)[::-1].reshape(v.shape), "reversed order"),
        (lambda v: np.zeros_like(v), "every value is 0"),
        (lambda v: np.full_like(v, np.nan), "every value is NaN"),
        (lambda v: None, "the function returns None"),
        (lambda v: print(v), "prints and returns None"),
        (lambda v: (x / 2 for x in v), "computed nothing yet"),
        (lambda v: map(float, v), "computed nothing yet"),
        (lambda v: RIGHT, "was not called"),
        (lambda v: ValueError("no"), "only `raise` raises it"),
        (lambda v: RIGHT(v) * RIGHT(v), "the square of the right one"),
        (lambda v: (RIGHT(v).astype(np.float16)).astype(np.float32), "rounded to float16"),
        (lambda v: np.where(v < 0, np.float32(0), RIGHT(v)), "negative"),
        (
            lambda v: np.append(RIGHT(v).reshape(-1)[:-1], np.float32(9)).reshape(v.shape),
            "only the last value is wrong",
        ),
        (lambda v: v.missing, "has no `missing`"),
        (lambda v: undefined + v, "the name `undefined` is not defined"),  # noqa: F821
        (lambda v: v @ np.ones((9, 9)), "ValueError"),
        (lambda v: refuse(ValueError("I refuse")), "refuses good input"),
        (lambda v: bytes(0x474C4654), "asks for more memory"),
    ],
)
def test_wrong_numbers_are_described_by_what_is_true_of_all_of_them(body, says):
    assert says.lower() in seen(HALVES, body)


@pytest.mark.parametrize(
    ("body", "must_not_say"),
    [
        (lambda v: np.abs(RIGHT(v)) * np.float32(3), "absolute value of the right one"),
        (lambda v: RIGHT(v) * np.float32(v.size), "times too large"),  # another factor in each case
        (lambda v: -RIGHT(v) if v.ndim == 2 else RIGHT(v) + np.float32(5), "opposite sign, on all"),
        (lambda v: RIGHT(v) + np.arange(v.size, dtype=np.float32).reshape(v.shape), "too large by"),
        (lambda v: np.sort(RIGHT(v).reshape(-1)).reshape(v.shape) + np.float32(1), "sorted"),
    ],
)
def test_what_is_not_true_of_all_wrong_results_is_not_said(body, must_not_say):
    assert must_not_say not in seen(HALVES, body)


def test_a_sum_in_place_of_a_mean_is_seen_by_its_factor():
    def mean(x):
        """A mean. -> float"""
        return float(np.mean(x))

    spec = made(mean, [(np.float64([1, 2, 4]),), (np.float64([3, 5, 7, 9, 11]),), (np.float64([2, 9]),)])
    assert "a factor that is the number of values in `x`" in seen(spec, lambda x: float(np.sum(x)))
    assert "is the maximum of `x`" in seen(spec, lambda x: float(np.max(x)))
    assert "maximum" not in seen(spec, lambda x: float(np.max(x)) + len(x))


def squares(q):
    """The mean of the squares. -> float"""
    return float(np.mean(q.astype(float) ** 2))


def test_an_overflow_is_proven_by_the_same_numbers_in_a_wider_type():
    spec = made(squares, [(np.int8([12, 3]),), (np.int8([100, -100]),)])
    assert "than int8 (-128 to 127) the result is right: perhaps a step overflows" in seen(
        spec, lambda q: float(np.mean(q * q))
    )
    assert "overflow" not in seen(spec, lambda q: float(np.mean(q * q)) + 1)


def reads(data):
    """Two numbers. -> (one, two)   Raises FormatError for fewer than 4 bytes."""
    if len(data) < 4:
        raise FormatError("short")
    return struct.unpack_from("<HH", data)


READS = made(reads, [(b"\x01\x02\x03\x04",), (b"\xff\xfe\x00\x01\x09",), (b"abcd",), (b"",), (b"abc",)])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (lambda d: struct.unpack_from("<HH", d), "struct.error in place of FormatError"),
        (lambda d: (d[0] + 256 * d[1], d[2] + 256 * d[3]), "IndexError in place of FormatError"),
        (lambda d: (0, 0) if len(d) < 4 else reads(d), "nothing is refused"),
        (lambda d: (0, 0) if not d else reads(d), "bad input is accepted"),
        (lambda d: FormatError("no") if len(d) < 4 else reads(d), "only `raise` raises it"),
        (lambda d: reads(d)[::-1], "the two parts are exchanged"),
        (lambda d: list(reads(d)), "a list; a tuple is asked for"),
        (lambda d: struct.unpack_from(">HH", d) if len(d) > 3 else reads(d), "2 bytes in the other order"),
        (
            lambda d: struct.unpack_from("<hh", d) if len(d) > 3 else reads(d),
            "comes out 65536 too small, as 16 bits with a sign do",
        ),
        (lambda d: reads(d)[:1], "the last item is missing"),
        (lambda d: (*reads(d), 7), "and then comes [7]"),
        (lambda d: reads(d) if len(d) != 5 else refuse(FormatError("long")), "the function refuses good input"),
    ],
)
def test_readers_are_described_by_what_they_do_with_good_and_bad_input(body, says):
    assert says.lower() in seen(READS, body)


def test_a_refusal_with_another_error_names_both():
    def refuses(error):
        def body(data):
            if len(data) < 4:
                raise error
            return reads(data)

        return body

    assert "refused with typeerror, and formaterror is asked for" in seen(READS, refuses(TypeError("short")))
    assert "an `assert`" in seen(READS, refuses(AssertionError()))
    assert "notimplementederror" in seen(READS, refuses(NotImplementedError()))


def test_a_branch_that_is_not_written_is_not_the_same_as_not_attempted():
    def toy(data):
        if not data:
            raise NotImplementedError
        return reads(data)

    report = evaluate(READS, toy)
    assert report.status == "failed"
    assert "NotImplementedError" in report.cause


def is_even(number):
    """-> True or False"""
    return number % 2 == 0


def test_a_function_that_answers_must_not_raise():
    spec = made(is_even, [(2,), (3,), (4,), (5,)])

    def raises(number):
        if number % 2:
            raise ValueError("odd")
        return True

    report = evaluate(spec, lambda number: raises(number))
    assert "the answer here is False" in report.what
    assert "True or False" in report.cause
    assert "opposite" in seen(spec, lambda number: number % 2 == 1)
    assert "for each of" in seen(spec, lambda number: True)


def test_state_that_is_kept_from_call_to_call_is_seen_and_a_pure_function_is_not_blamed():
    spec = made(lambda x: [x], [(1,), (2,), (3,)])
    kept = []

    def toy(x):
        kept.append(x)
        return list(kept)

    assert "two calls with the same arguments" in seen(spec, toy)
    assert "two calls" not in seen(spec, lambda x: [x, x])


def test_bytes_are_described_by_their_fields():
    def header(a, b):
        """-> 6 bytes"""
        return struct.pack("<HI", a, b)

    fields = [("count", 0, 2), ("size", 2, 6)]
    spec = made(header, [(1, 2), (258, 70000), (3, 4)], fields=lambda a, b: fields)
    assert "bytes in reversed order" in seen(spec, lambda a, b: struct.pack(">HI", a, b))
    assert "the field count is missing" in seen(spec, lambda a, b: struct.pack("<I", b))
    assert "only the field size is wrong" in seen(spec, lambda a, b: struct.pack("<HI", a, b + 7))
    assert "zero bytes" in seen(spec, lambda a, b: struct.pack("<HIQ", a, b, 0)) or "and then comes" in seen(
        spec, lambda a, b: struct.pack("<HIQ", a, b, 0)
    )
    assert "the sign of a zero" not in seen(spec, lambda a, b: struct.pack("<HI", a ^ 1, b))


def test_the_sign_of_a_zero_is_named_and_another_bit_is_not_taken_for_it():
    spec = made(lambda x: np.float16(-x).tobytes(), [(0.0,), (1.0,), (2.0,)])
    assert "bytes that must be 80 are wrong, and each wrong one is 00" in seen(
        spec, lambda x: (np.float16(0) - np.float16(x)).tobytes()
    )
    assert "sign of a zero" not in seen(spec, lambda x: np.float16(x).tobytes() if x else np.float16(-x).tobytes())


def test_only_the_first_item_is_there_when_a_return_is_inside_the_loop():
    spec = made(lambda items: [2 * i for i in items], [([1, 2, 3],), ([4, 5],), ([6, 7, 8, 9],)])

    def first(items):
        for i in items:
            return [2 * i]

    assert "only the " in seen(spec, first).lower()
    assert "`return` stand" not in seen(spec, lambda items: [2 * i for i in items[:-1]])
    assert "the last item is missing" in seen(spec, lambda items: [2 * i for i in items[:-1]])
    assert "first item" in seen(spec, lambda items: [2 * i for i in items[1:]])


def test_dicts_are_described_by_their_keys():
    spec = made(lambda x: {"a": x, "b": 2 * x + 1, "c": 0}, [(1,), (2,), (5,)])
    assert "missing: 'b'" in seen(spec, lambda x: {"a": x, "c": 0})
    assert "not expected: 'd'" in seen(spec, lambda x: {"a": x, "b": 2 * x + 1, "c": 0, "d": 1})
    assert "values of 'a' and 'b' are exchanged" in seen(spec, lambda x: {"b": x, "a": 2 * x + 1, "c": 0})
    assert "only the value of 'c'" in seen(spec, lambda x: {"a": x, "b": 2 * x + 1, "c": x}).lower()
    assert evaluate(spec, lambda x: {"c": 0, "b": 2 * x + 1, "a": x}).passed


def test_the_class_of_the_wrong_cases_is_said_when_it_is_true_of_all_cases():
    some = [("a",), ("é",), ("bc",), ("naïve",), ("",)]
    spec = made(lambda text: text.encode(), [*some, ("d",), ("efg",), ("hi",), ("jklm",), ("München",)])
    assert "`text` has characters outside ascii" in seen(spec, lambda text: text.encode("ascii", "replace"))
    prices = made(
        lambda text: text.encode(), [("a €",), ("b",), ("€",), ("cd",), ("",), ("e",), ("fg",), ("h €",), ("i",)]
    )
    assert "letters outside ascii" not in seen(prices, lambda text: text.encode("ascii", "replace"))  # € is none
    assert "where `text`" not in seen(spec, lambda text: text.encode() + b"!")
    few = made(lambda text: text.encode(), some)  # of so few inputs, many properties fit by chance
    assert "has characters outside ascii" not in seen(few, lambda text: text.encode("ascii", "replace"))


def test_a_mistake_that_only_raises_gives_its_name_to_nobody():
    def strict(data):
        raise FormatError("always")

    spec = made(reads, list(READS.cases(None)), mistakes=(Mistake("magic", strict, cause="C.", cure="D.", see="E"),))

    def toy(data):
        raise FormatError("mine")

    report = evaluate(spec, toy)
    assert report.mistake == "good input refused"
    assert "magic" not in repr(report)


def test_an_error_of_python_is_the_same_mistake_only_if_it_says_the_same():
    def index(data):
        return data[9], data[10]

    spec = made(reads, list(READS.cases(None)), mistakes=(Mistake("index", index, cause="C.", cure="D.", see="E"),))
    report = evaluate(spec, lambda data: (int("x"), 1))
    assert "index" not in (report.mistake, report.perhaps)


def test_a_mistake_that_explains_everything_is_likely_and_one_that_explains_some_is_not_said():
    swapped = Mistake("swapped", lambda d: reads(d)[::-1], cause="C.", cure="D.", see="E")
    spec = made(reads, list(READS.cases(None)), mistakes=(swapped,))
    assert evaluate(spec, lambda data: reads(data)[::-1]).certainty == LIKELY

    def also_accepts(data):
        return struct.unpack_from("<HH", data)[::-1] if len(data) > 3 else (0, 0)

    report = evaluate(spec, also_accepts)
    assert report.certainty == SEEN
    assert report.perhaps == "swapped"
    assert "swapped" not in repr(report)


def test_of_two_mistakes_that_look_the_same_none_is_said():
    same = [Mistake(name, lambda d: reads(d)[::-1], cause="C.", cure="D.", see="E") for name in ("this", "that")]
    report = evaluate(made(reads, list(READS.cases(None)), mistakes=tuple(same)), lambda data: reads(data)[::-1])
    assert report.certainty != LIKELY
    assert report.perhaps == "this or that"
    assert "this" not in repr(report)


def test_one_answer_of_two_that_agrees_by_chance_is_no_likely_cause():
    wrong = Mistake("two is odd", lambda number: number % 2 == 0 and number != 2, cause="C.", cure="D.", see="E")
    spec = made(is_even, [(2,), (3,), (4,), (5,)], mistakes=(wrong,))
    report = evaluate(spec, lambda number: number in (4, 6))
    assert report.certainty == SEEN
    assert report.perhaps == "two is odd"


def test_numbers_are_not_said_to_be_kept_in_8_bits_where_larger_ones_are_right():
    whole = made(lambda x: list(x), [([65536, 2**31 - 1, 5],), ([70000, 2**31 - 1, 4],), ([3, 2**31 - 1, 66000],)])
    assert "8 signed bits" not in seen(whole, lambda x: [-1 if n == 2**31 - 1 else n for n in x])
    assert "8 signed bits" in seen(whole, lambda x: [(n + 128) % 256 - 128 for n in x])


def test_values_that_are_all_moved_by_one_place_are_not_called_moved_if_there_are_two():
    spec = made(lambda x: 10 * x, [(np.array(x),) for x in ((1, 2, 3), (4, 6, 7), (5, 2, 9), (8, 3, 1))])
    assert "the right values are moved by one place" in seen(spec, lambda x: np.roll(10 * x, 1))
    spec = made(lambda x: 10 * x, [(np.array(x),) for x in ((1, 2), (4, 6), (5, 2), (8, 3))])
    text = seen(spec, lambda x: np.roll(10 * x, 1))
    assert "moved" not in text and "the right values are in reversed order" in text
