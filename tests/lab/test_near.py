"""Near solutions: a small variant of a solution that does what a wrong function does on every case, said in words."""

import ast
import inspect
import math
import re

import numpy as np
import pytest

from miniquant.lab import evaluate, exercises, find
from miniquant.lab.attempt import attempt, cases_of
from miniquant.lab.judging import _calls
from miniquant.lab.near import near
from miniquant.lab.near.named_places import NamedPlaces
from miniquant.lab.near.places import Change, Speaker, places
from miniquant.lab.near.repair import _of_helpers, place_of_repair
from miniquant.lab.near.variants import changes, cost, is_dangerous, parsed, variants
from miniquant.lab.report import SAME
from miniquant.lab.verdict import Facts
from miniquant.lessons.safetensors.items import ITEM


def same_as(name, function):
    """What the report says that a solution with the same results does."""
    spec = find(name)
    facts = Facts(spec, function, _calls(spec, function))
    assert facts.wrong
    found = near(facts)
    return found.text if found else ""


def median(expected, predicted):
    return float(np.sqrt(np.median((expected - predicted) ** 2)))


def without_bias(weight, bias, hours, jars):
    error = weight * hours - jars
    return float(2 * np.mean(error * hours)), float(2 * np.mean(error))


def by_jars(weight, bias, hours, jars):
    error = weight * hours + bias - jars
    return float(2 * np.mean(error * jars)), float(2 * np.mean(error))


def divided(raw, dims):
    out, width = dims
    scales = np.frombuffer(raw, "<f2", out).astype(np.float32)
    values = np.frombuffer(raw, np.int8, out * width, 2 * out).reshape(out, width)
    with np.errstate(all="ignore"):
        return (values / scales[:, None]).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("rmse", median, "takes `median` where the right one takes `mean`"),
        ("gradients", without_bias, "`bias`"),
        ("gradients", by_jars, "takes `jars` in place of `hours`"),
        ("dequantize_q8", divided, "divides where the right one multiplies"),
    ],
)
def test_a_wrong_function_with_the_results_of_a_near_solution_is_told_what_that_does(name, function, words):
    assert words in same_as(name, function)


def slopes_of_threes(weight, bias, hours, jars):
    error = weight * hours + bias - jars
    return float(2 * np.mean(error * hours)), float(3 * np.mean(error) / 1)


def test_a_report_says_it_under_a_label_of_its_own():
    report = evaluate(find("gradients"), slopes_of_threes)
    assert report.certainty == SAME and "where the right one takes 2" in report.mistake, report
    assert re.fullmatch(
        rf"The two agree on all {len(cases_of(find('gradients')))} cases and on \d+ further inputs\.", report.cause
    )


def test_a_function_unlike_every_variant_gets_no_near_solution():
    assert same_as("rmse", lambda expected, predicted: float(math.pi * len(expected))) == ""


def test_changes_are_undone():
    tree = parsed(find("unpack_int4").reference)
    before = ast.dump(tree)
    found = changes(tree, Speaker(("packed",), ""))
    differ = 0
    for change in found:
        with change.made():
            differ += ast.dump(tree) != before
        assert ast.dump(tree) == before, change.phrase
    assert differ > 50


def test_no_phrase_shows_a_line_of_the_solution():
    for name in ("encode_q8", "check_bounds", "rmse"):
        lines = [line.strip() for line in ast.unparse(parsed(find(name).reference)).split("\n")[1:] if len(line) > 12]
        for variant in variants(find(name)):
            assert not any(line in variant.phrase for line in lines), variant.phrase


def test_functions_that_could_do_harm_have_no_variants():
    assert is_dangerous(ast.parse("import os\nos.system('x')"))
    assert is_dangerous(ast.parse("import pickle\npickle.loads(data)"))
    assert not is_dangerous(ast.parse("data.replace(b'a', b'b')"))
    for spec in exercises().of_lab("pickle"):
        if {"loads", "Unpickler"} & set(spec.reference.__code__.co_names):
            assert variants(spec) == (), spec.name


def test_a_function_that_looks_into_a_huge_range_is_not_changed():
    def bounded_count(count, smallest, left):
        if count in range(left // smallest + 1):  # a float in its place is looked for in C, for years
            return count
        raise ValueError(f"count {count} is a lie")

    spec = find("bounded_count")
    facts = Facts(spec, bounded_count, _calls(spec, bounded_count))
    assert place_of_repair(facts) == ""


def test_variants_of_a_writer_keep_the_statements_that_open_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = find("write_file")
    found = variants(spec)
    assert len(found) > 20
    for variant in found[::5]:
        attempt(spec, variant.function, cases_of(spec)[0], 0.5)
    assert list(tmp_path.iterdir()) == []


def test_a_case_costs_as_many_lines_as_the_solution_runs():
    spec = find("gradient_descent")
    at = list(inspect.signature(spec.reference).parameters).index("steps")
    steps = [case[at] for case in cases_of(spec)]
    costs = [cost(spec, number) for number in range(len(steps))]
    assert costs[steps.index(max(steps))] == max(costs) > max(steps)


def test_the_last_line_of_the_metadata_has_no_newline():
    metadata = {"a": "b", "c": "d"}
    fields = find("metadata_bytes").fields(metadata)
    assert fields[-1][2] == len(find("metadata_bytes").reference(metadata))


def test_the_smallest_case_shown_is_not_an_empty_one_that_fails_as_few_others_do():
    def first_day(weight, bias, hours):
        jars = weight * hours
        jars[0] += bias
        return jars

    report = evaluate(find("predict_jars"), first_day)
    assert report.case["hours"].size > 0 and isinstance(report.got, np.ndarray)


def test_an_error_that_the_student_raises_on_good_input_is_a_refusal():
    def narrow(data):
        if len(data) <= 8:
            raise ValueError("short")
        return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")

    assert "refuses good input" in evaluate(find("read_magic"), narrow).what


def a_slice_too_large(data):
    if len(data) < 8:
        raise ValueError("short")
    return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:9], "little")


def place(name, function):
    spec = find(name)
    return place_of_repair(Facts(spec, function, _calls(spec, function)))


def test_the_place_where_one_change_makes_a_function_right_is_shown_in_its_own_words():
    cases = len(cases_of(find("read_magic")))
    sentence = f"With one small change at `data[4:9]`, your function is right on all {cases} cases and on "
    assert place("read_magic", a_slice_too_large).startswith(sentence)
    assert place("rmse", lambda expected, predicted: 0.5) == ""


def by_255(data):
    if len(data) < 8:
        raise ValueError("short")
    magic = sum(byte * 255**place for place, byte in enumerate(data[:4]))
    version = sum(byte * 255**place for place, byte in enumerate(data[4:8]))
    return magic, version


def one_byte_later(data):
    if len(data) < 24 or data[:8] != bytes.fromhex("89504e470d0a1a0a"):
        raise ValueError("no PNG")
    return int.from_bytes(data[17:21], "big"), int.from_bytes(data[21:25], "big")


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("read_magic", by_255, "With one small change at each `255**place`"),
        ("png_size", one_byte_later, "With the same small change at `data[17:21]` and at `data[21:25]`"),
    ],
)
def test_the_same_slip_in_two_places_is_one_change(name, function, words):
    assert place(name, function).startswith(words)


def by_the_byte(data):
    if len(data) < 8:
        raise ValueError("short")
    return int.from_bytes(data[:3], "little"), int.from_bytes(data[4:8], "big")


def test_two_different_slips_are_found_one_after_the_other():
    text = place("read_magic", by_the_byte)
    assert text.startswith('With two small changes, at `data[:3]` and at `int.from_bytes(data[4:8], "big")`'), text


def never_zero(w):
    return np.maximum(np.abs(w).max() / np.float32(127), np.float32(1e-8))


def in_64_bits(entries, n_bytes):
    names = sorted(entries, key=lambda name: entries[name]["data_offsets"])
    at = 0
    for name in names:
        begin, end = entries[name]["data_offsets"]
        size = ITEM[entries[name]["dtype"]] * np.prod(entries[name]["shape"])
        if begin != at or end - begin != size:
            raise ValueError(name)
        at = end
    if at != n_bytes:
        raise ValueError(at)
    return names


def asserted(w, group_size):
    assert w.shape[1] % group_size == 0
    return w.reshape(len(w), -1, group_size)


def other_bits(scale):
    a = np.asarray(scale, np.float32)
    u = a.view(np.uint32)
    u = u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))
    return (u & np.uint32(0xFFFF0000)).view(np.float32)


def middle(w):
    scale = np.array([np.sort(np.abs(row))[len(row) // 2] for row in w], np.float32) / np.float32(127)
    return scale.astype(np.float16).astype(np.float32)


def test_a_change_that_is_right_by_accident_is_not_shown():
    assert "np.abs(row)`" not in place("channel_scales", middle)  # not the largest in place of all numbers of a row
    assert "at `np.float32(1e-8)`" in place("absmax_scale", never_zero)  # not `np.float32`: as a float16 it is 0
    assert place("check_layout", in_64_bits) == ""  # integers rounded are floats, which do not wrap around
    assert place("group_reshape", asserted) == ""  # without the assert, reshape raises
    assert place("round_scale", other_bits) == ""  # rounded before all that is computed, and that left out


def test_a_change_that_computes_anew_what_another_line_is_for_is_not_shown():
    def absmax_scale(w):
        flat = np.asarray(w).ravel()
        best = abs(flat[0])
        for x in flat[1:]:
            if not abs(x) > best:
                best = abs(x)
        return np.float32(best / np.float32(127))

    def ties_to_0(w, scale):
        x = w / np.where(scale > 0, scale, np.float32(np.inf))[:, None]
        q = np.sign(x) * np.ceil(np.abs(x) - np.float32(0.5))
        return q.clip(-127, 127).astype(np.int8)

    assert "at `not abs(x) > best`" in place("absmax_scale", absmax_scale)  # not the largest of all, before the loop
    assert "at `np.abs(x)`" in place("quantize_per_channel", ties_to_0)  # not rounded one line before


def test_a_change_after_which_the_call_around_it_has_no_effect_is_not_shown():
    def absmax_scale(w):
        return np.float32(np.percentile(np.abs(w), 99.9)) / np.float32(127)

    assert "at `np.abs(w)`" not in place("absmax_scale", absmax_scale)


def test_a_change_that_throws_away_what_the_line_before_computes_is_not_shown():
    def three_digits(scale):
        flat = [float(f"{x:.3g}") for x in np.ravel(scale)]
        return np.array(flat, dtype=np.float32).reshape(np.shape(scale))

    assert "one small change at `np.array(flat" not in place("round_scale", three_digits)


def test_an_array_on_the_way_that_has_one_axis_has_no_rows():
    def in_order(w):
        return np.sort(np.abs(w).max(axis=1) / np.float32(127)).astype(np.float16).astype(np.float32)

    assert same_as("channel_scales", in_order) == "a solution that sorts what `max(…)` gives"


def test_a_result_too_large_to_be_written_out_is_described():
    report = evaluate(find("from_twos_complement"), lambda number, n_bits: number << 20_000)
    assert not report.passed and "an integer of " in repr(report)


def slow_learner(weight, bias, hours, jars, learning_rate, steps):
    for _ in range(steps):
        error = weight * hours + bias - jars
        weight, bias = weight - learning_rate * np.mean(error * hours), bias - learning_rate * np.mean(error)
    return float(weight), float(bias)


def three_bytes_each(magic, version):
    return b"".join(bytes([*((number >> 8 * i) % 256 for i in range(3)), 0]) for number in (magic, version))


def last_row_alone(q, scale):
    return q.astype(np.float32) * scale[-1]


def scales_of_the_next_row(q, scale):
    return (q.T * np.roll(scale, -1)).T.astype(np.float32)


def largest_so_far(w):
    scales, farthest = [], np.float32(0)
    for row in w:
        farthest = max(farthest, *np.abs(row))
        scales.append(farthest / np.float32(127))
    return np.array(scales, np.float32).astype(np.float16).astype(np.float32)


def without_the_last_of_a_group(w, group_size):
    groups = np.abs(w.reshape(len(w), -1, group_size)).copy()
    groups[..., -1] = 0
    return (groups.max(axis=2) / np.float32(7)).astype(np.float16).astype(np.float32)


def small_keys(shapes, dtypes):
    return find("tensor_offsets").reference(dict(sorted(shapes.items())), dtypes)


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("gradient_descent", slow_learner, "works with half of `learning_rate` in place of `learning_rate`"),
        ("magic_bytes", three_bytes_each, "works with the lowest 24 bits of `magic` and `version`"),
        ("get_bits", lambda number, start, count: number >> start & 2 ** (count - 1) - 1, "`count` - 1"),
    ],
)
def test_a_function_that_is_right_for_other_arguments_is_told_which(name, function, words):
    assert words in same_as(name, function)


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("dequantize_per_channel", last_row_alone, "takes the last value of `scale` for all"),
        (
            "dequantize_per_channel",
            scales_of_the_next_row,
            "uses `scale` with the values moved by one place towards the beginning",
        ),
        ("channel_scales", largest_so_far, "takes the largest so far of what"),
        ("group_scales", without_the_last_of_a_group, "leaves out the last value along axis -1 of"),
        ("tensor_offsets", small_keys, "`shapes` in sorted order"),
    ],
)
def test_the_right_solution_with_another_argument_or_array_is_said_in_words(name, function, words):

    assert words in same_as(name, function)


def by_offsets(tensors, data_size):
    find("check_bounds").reference(tensors, data_size)
    return data_size - sum(offset for offset, _ in tensors.values())


def sorted_data(path, state, schemes, metadata):
    spec = find("write_file")
    spec.reference(path, state, schemes, metadata)
    data = spec.reference.__globals__["choose_dtypes"](state, schemes)
    parts = {name: spec.reference.__globals__["encode_tensor"](w, data[name]) for name, w in state.items()}
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - sum(map(len, parts.values()))] + b"".join(parts[n] for n in sorted(parts)))


def values_turned(w):
    scale = (np.abs(w).max(1) / np.float32(127)).astype("<f2")
    divisor = np.where(scale == 0, 1, scale).astype(np.float32)
    return scale.tobytes() + np.rint(w / divisor[:, None]).clip(-127, 127).astype(np.int8)[::-1].tobytes()


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("encode_q8", values_turned, "turns around the rows of what `astype(…)` gives, in one place at least"),
        ("check_bounds", by_offsets, "takes another value in place of `size`, in one place at least"),
        ("write_file", sorted_data, "goes through the items in sorted order in a loop"),
    ],
)
def test_a_change_of_one_place_is_said_to_be_one_where_the_same_stands_elsewhere(name, function, words):
    assert words in same_as(name, function)


def with_a_format(message):
    return f"{len(message):03d}" + message


def test_a_place_inside_an_f_string_is_shown_as_the_whole_f_string():
    function = ast.parse(inspect.getsource(with_a_format)).body[0]
    say = NamedPlaces(function, 1, inspect.getsource(with_a_format))
    inside = next(place for place in places(function) if getattr(place.node, "value", "") == "03d")
    assert say(Change("", 1, ((inside, ast.Constant("04d")),))) == 'at `f"{len(message):03d}"`'


def test_a_change_that_was_tried_moves_no_node_of_the_text():
    function = ast.parse("def f(x):\n    return int(x[1:])\n").body[0]
    (call,) = [place for place in places(function) if isinstance(place.node, ast.Call)]
    with Change("", 1, ((call, call.node.args[0]),)).made():
        pass
    assert ast.get_source_segment("def f(x):\n    return int(x[1:])\n", call.node.args[0]) == "x[1:]"


def in_a_row(dims):
    return dims[1] // 64


def groups(dims):
    return dims[0] * in_a_row(dims)


def test_a_place_whose_code_is_in_a_function_that_is_called_too_is_said_with_its_line():
    tree = ast.parse("def f(dims):\n    return dims[1]\n").body[0]
    (at,) = [each for each in places(tree) if isinstance(each.node, ast.Subscript)]
    change = Change("", 1, ((at, ast.Constant(0)),))
    text = "def f(dims):\n    return dims[1]\n"
    assert NamedPlaces(tree, 1, text)(change) == "at `dims[1]`"
    assert NamedPlaces(tree, 1, text, _of_helpers(groups))(change) == "at `dims[1]` in line 2"


def test_the_same_change_in_three_places_of_a_line_is_not_one_change():
    def metadata_bytes(metadata):
        lines = []
        for key, value in metadata.items():
            value = str(value)
            if key == "":
                raise ValueError("empty key")
            if key.find("=") > 0 or key.find("\n") > 0 or value.find("\n") > 0:
                raise ValueError(f"cannot be read back: {key!r}")
            lines.append(key + "=" + value)
        return "\n".join(lines).encode("utf-8")

    line = metadata_bytes.__code__.co_firstlineno + 6
    assert place("metadata_bytes", metadata_bytes).startswith(
        f"With the same small change in 3 places in line {line}, "
    )


def test_a_change_in_an_expression_of_several_lines_is_said_of_all_its_lines():
    text = "def f(a, b):\n    return (\n        a\n        - b\n    )\n"
    tree = ast.parse(text).body[0]
    say = NamedPlaces(tree, 1, text)
    operation = next(node for node in ast.walk(tree) if isinstance(node, ast.BinOp))
    assert say._lines([operation]) == "in lines 3 to 4"
    assert say._lines([operation.right]) == "in line 4"


def test_a_solution_that_accepts_what_the_function_refuses_is_not_said():
    def check_layout(entries, n_bytes):
        find("check_layout").reference(entries, n_bytes)
        return sorted(entries, key=lambda name: entries[name]["data_offsets"][0])

    said = repr(evaluate(find("check_layout"), check_layout))
    assert "overlaps let through" not in said and "sum of the sizes" not in said
    assert "The right items are there, in another order" in said
