"""What a function keeps between calls is named, if the function is right once that is empty before each call."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from miniquant.lab import evaluate, find

SEEN: dict[bytes, tuple[int, int]] = {}
KNOWN: dict[int, str] = {}
OUTPUTS: dict[object, object] = {}
SAFE = {("builtins", "set")}
MAGICS = {b"GGUF": "little"}
LEFT: list[tuple[int, str, str]] = []


def read_magic(data):
    if data[:4] not in SEEN:
        SEEN[data[:4]] = find("read_magic").reference(data)
    return SEEN[data[:4]]


def dequantize_per_channel(q, scale, rows=[]):  # noqa: B006
    for numbers, one in zip(q, scale):
        rows.append(numbers * one)
    return np.array(rows[-len(q) :], np.float32) if len(rows) == len(q) else np.array(rows, np.float32)


class Total:
    parts: dict[str, int] = {}  # noqa: RUF012

    def add(self, name, n):
        self.parts[name] = self.parts.get(name, 0) + n


def bytes_by_dtype(shapes, schemes):
    total = Total()
    for name, n in find("bytes_by_dtype").reference(shapes, schemes).items():
        total.add(name, n)
    return dict(total.parts)


@functools.cache
def of_first(first):
    return {"magic": first}


def byte_order(data, magic):
    kept = of_first(data[0])
    return kept.setdefault("answer", find("byte_order").reference(data, magic))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (read_magic, "`SEEN`"),
        (dequantize_per_channel, "the default of `rows`"),
        (bytes_by_dtype, "`Total.parts`"),
        (byte_order, "the cache of `of_first`"),
    ],
)
def test_a_dict_a_default_an_attribute_and_a_cache_are_named_and_without_them_all_cases_are_right(function, words):
    spec = find(function.__name__)
    report = evaluate(spec, function, search=False)
    assert report.mistake == "kept from call to call"
    assert report.cause == (
        f"What is in {words} stays there from call to call. "
        f"With an empty one for each call, your function is right on all {len(spec.all_cases())} cases."
    )


def test_what_was_kept_is_there_again_after_the_check():
    SEEN.clear()
    SEEN[b"mine"] = (1, 2)
    evaluate(find("read_magic"), read_magic, search=False)
    assert SEEN[b"mine"] == (1, 2) and len(SEEN) > 1


def test_a_function_that_is_wrong_for_another_reason_is_not_told_that_it_keeps_something():
    def byte_order(data, magic):
        SEEN[data] = (magic, 0)
        return MAGICS.get(data, "neither")

    assert evaluate(find("byte_order"), byte_order, search=False).mistake != "kept from call to call"
    assert MAGICS == {b"GGUF": "little"}


def test_a_table_that_no_call_changes_is_not_said_to_be_kept():
    def load_restricted(data, allowed):
        return find("load_restricted").reference(data, allowed | SAFE)

    report = evaluate(find("load_restricted"), load_restricted, search=False)
    cases = len(find("load_restricted").all_cases())
    assert report.cause == f"With nothing in `SAFE`, your function is right on all {cases} cases."
    assert len(SAFE) == 1


def test_of_a_list_that_is_emptied_at_once_and_returned_it_is_not_said_that_its_contents_stay():
    def off_the_list(found, allowed):
        LEFT[:] = find("off_the_list").reference(found, allowed)
        return LEFT

    report = evaluate(find("off_the_list"), off_the_list, search=False)
    assert report.mistake == "memory used again" and "call to call" not in report.cause


def test_a_second_call_for_the_same_thing_must_give_the_same():
    words = {file: find("name_the_bug").reference(file) for file in "ABCDE"}
    assert evaluate(find("name_the_bug"), lambda file: words[file]).status == "passed"
    assert evaluate(find("name_the_bug"), lambda file: words.pop(file)).status == "failed"


def test_outputs_that_are_kept_for_a_model_must_not_be_given_for_other_tokens():
    kept = {}

    def layer_errors(expected, found, tokens):
        outputs, errors = (find(name).reference for name in ("layer_outputs", "tensor_errors"))
        return errors(*(kept.setdefault(id(model), outputs(model, tokens)) for model in (expected, found)))

    assert evaluate(find("layer_errors"), layer_errors, search=False).status == "failed"


def test_bytes_that_are_never_set_are_named_whatever_the_memory_holds():
    def pack_fields(kind, length, offset):
        packed = np.empty(1, np.dtype([("kind", "u1"), ("length", "<u2"), ("offset", "<u8")], align=True))
        packed[0] = kind, length, offset
        return packed.tobytes()

    for byte in (0, 255):
        blocks = [np.full(16, byte, np.uint8) for _ in range(7)]
        del blocks
        assert "are never set: 1, 4, 5, 6, 7" in repr(evaluate(find("pack_fields"), pack_fields))


def test_a_cache_that_gives_the_same_array_again_is_refused_though_each_result_is_right():
    right = find("dequantize_q4").reference
    cached = functools.lru_cache(lambda raw, dims: right(raw, dims))

    def dequantize_q4(raw, dims):
        return cached(raw, dims)

    report = evaluate(find("dequantize_q4"), dequantize_q4)
    assert report.status == "failed" and "in the memory of an earlier call's result, on all 8 cases" in repr(report)

    def fresh(raw, dims):
        return cached(raw, dims).copy()

    assert evaluate(find("dequantize_q4"), fresh).status == "passed"


def test_a_cache_of_one_call_and_a_tuple_of_arrays_are_refused_as_well():
    right = find("quantize_per_group").reference
    last = {}

    def quantize_per_group(w, group_size):
        key = w.tobytes(), group_size
        if key not in last:
            last.clear()
            last[key] = right(w, group_size)
        return last[key]

    report = evaluate(find("quantize_per_group"), quantize_per_group)
    assert report.status == "failed" and "in the memory of an earlier call's result" in repr(report)


def test_no_change_of_an_input_is_named_where_earlier_calls_count():
    def byte_order(data, magic):
        if magic not in KNOWN:
            KNOWN[magic] = find("byte_order").reference(data, magic)
        return KNOWN[magic]

    text = repr(evaluate(find("byte_order"), byte_order))
    assert "What is in `KNOWN` stays there from call to call" in text and "the result is right with" not in text


def test_what_is_kept_from_call_to_call_is_found_where_a_case_has_two_calls():
    def layer_errors(expected, found, tokens):
        if expected not in OUTPUTS:
            OUTPUTS[expected] = find("layer_outputs").reference(expected, tokens)
        return find("tensor_errors").reference(OUTPUTS[expected], find("layer_outputs").reference(found, tokens))

    text = repr(evaluate(find("layer_errors"), layer_errors))
    assert "What is in `OUTPUTS` stays there from call to call" in text
