"""The place in a student's code that runs where results are wrong, and the reasons for which bad input is bad."""

import linecache

import pytest
from test_detect import made

from miniquant.lab import Mistake, edit, evaluate
from miniquant.lab.detect.lines import of_lines
from miniquant.lab.judging import _calls
from miniquant.lab.near import Variant, _least
from miniquant.lab.verdict import Facts


def written(source, name):
    """A function from its text, which can be read again as that of a notebook's cell can."""
    filename = f"<cell {abs(hash(source))}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {}
    exec(compile(source, filename, "exec"), scope)
    return scope[name]


def run(program):
    """The number that a program of pushes, sums and products leaves. -> int"""
    stack = []
    for word in program.split():
        if word == "+":
            stack.append(stack.pop() + stack.pop())
        elif word == "*":
            stack.append(stack.pop() * stack.pop())
        else:
            stack.append(int(word))
    return stack[-1]


PROGRAMS = ("7", "2 3 +", "5 6 *", "9 1 + 8 *", "4 5 + 6 +", "2 2 * 3 *", "7 8 * 9 +", "11", "1 9 +")
RUN = made(run, [(program,) for program in PROGRAMS])

PRODUCT = """
def run(program):
    stack = []
    for word in program.split():
        if word == "+":
            stack.append(stack.pop() + stack.pop())
        elif word == "*":
            one = stack.pop()
            stack.pop()
            stack.append(one * one + 13)
        else:
            stack.append(int(word))
    return stack[-1]
"""

TOP = """
def run(program):
    stack = []
    for word in program.split():
        if word in ("+", "*"):
            if word == "*":
                stack[-2:] = [stack[0] * stack[1] + (stack[0] > 6)]
            else:
                stack[-2:] = [sum(stack)]
        else:
            stack.append(int(word))
    return stack[-1]
"""


def report(source):
    return repr(evaluate(RUN, written(source, "run")))


def test_a_line_that_only_wrong_cases_run_is_named():
    text = report(PRODUCT)
    assert (
        "Lines 8 to 10, from `one = stack.pop()` on, run on all 4 wrong cases and on none of the 5 right ones." in text
    )
    assert "what your results show: a line of the wrong cases" in text


def test_what_is_said_about_a_line_counts_the_cases_that_run_it():
    function = written(TOP, "run")
    assert of_lines(Facts(RUN, function, _calls(RUN, function))) is None  # of few cases, both may run it by chance
    more = made(run, [(program,) for program in (*PROGRAMS, *(f"{n} {n + 1} +" for n in range(12, 26)))])
    found = of_lines(Facts(more, function, _calls(more, function)))
    assert found.text.startswith("Line 7, `stack[-2:] = [stack[0] * stack[1] + (stack[0] > 6)]`, runs on both")
    assert found.text.endswith("wrong cases and on 2 of the 21 right ones."), found.text


def test_of_one_wrong_case_no_line_is_named_that_right_ones_run_too():
    function = written(TOP.replace("> 6", "> 8"), "run")
    assert of_lines(Facts(RUN, function, _calls(RUN, function))) is None


def test_no_line_is_named_where_an_error_has_a_traceback():
    text = report(PRODUCT.replace("one * one + 13", "one[0]"))
    assert "traceback" in text
    assert "right ones" not in text


GUARDED = """\
def run(program):
    stack = []
    for word in program.split():
        if word == "+":
            stack[-2:] = [sum(stack)]
        elif word == "*":
            if len(stack) < 2:
                raise ValueError("too few numbers")
            stack[-2:] = [stack[0] * stack[1] + 1]
        else:
            stack.append(int(word))
    return stack[-1]
"""


def test_a_line_that_never_runs_is_not_counted_among_those_that_do():
    text = report(GUARDED)
    places = (
        "Line 7, `if len(stack) < 2` and line 9, `stack[-2:] = [stack[0] * stack[1] + 1]`, run on all 4 wrong cases"
    )
    assert f"{places} and on none of the 5 right ones." in text


def picky(data):
    """The first byte. Raises ValueError for fewer than 2 bytes and for a first byte of 0."""
    if len(data) < 2:
        raise ValueError(f"{len(data)} bytes are too few")
    if not data[0]:
        raise ValueError("the first byte is 0")
    return data[0]


PICKY = made(picky, [(b"ab",), (b"xyz",), (b"",), (b"a",), (b"\0a",), (b"\0ab",)])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("if len(data) < 2:\n        raise ValueError\n    return data[0]", 'refuses them with "the first byte is 0"'),
        (
            "if not data or not data[0]:\n        raise ValueError\n    return data[0]",
            'refuses it with "1 bytes are too few"',
        ),
    ],
)
def test_bad_input_that_is_accepted_is_told_with_the_words_of_the_solution(body, words):
    assert words in repr(evaluate(PICKY, written(f"def picky(data):\n    {body}\n", "picky")))


def letter(number):
    """The letter of a number: A, B, C or D by its remainder of 7, E for 4 to 6. -> str"""
    return "ABCDEEE"[number % 7]


LETTER = made(letter, [(n,) for n in range(20)])


def test_one_of_few_texts_in_place_of_another_is_said_and_no_near_solution():
    text = repr(evaluate(LETTER, lambda number: "ABCDDEE"[number % 7]))
    assert "The answer is 'D' where 'E' is right, on 3 of 20 cases" in text
    assert "same results as" not in text


def test_one_text_in_place_of_many_is_said():
    text = repr(evaluate(LETTER, lambda number: "ABCDEEE"[number % 7] if number % 7 in (4, 0) else "E"))
    assert "The answer is 'E' where 'B' or 'C' or 'D' is right; where 'B' or 'C' or 'D' is right, it is never" in text


def head(data):
    """The two bytes before the data and where it begins. Raises ValueError for another length. -> (bytes, int)"""
    if len(data) < 2:
        raise ValueError("short")
    at = 2 + data[0]
    return data[:2], at


TWO = made(
    head,
    [(b"\1a!",), (b"\0b",), (b"\5c.....",), (b"a",)],
    mistakes=(
        Mistake("the two bytes forgotten", edit("2 + data[0]", "data[0]"), cause="C.", cure="C.", see="0"),
        Mistake("short data let through", edit("< 2", "< 0"), cause="C.", cure="C.", see="0"),
    ),
)


def test_of_two_known_mistakes_only_the_one_that_the_results_need_is_named():
    def head(data):
        return (data[:2], data[0]) if len(data) > 1 else "?"

    facts = Facts(TWO, head, _calls(TWO, head))
    both = Variant("makes two known mistakes: one, and another", 3.6, head, mistakes=TWO.mistakes)
    good = [call for call in facts.calls if not call.refusal]
    assert _least(facts, both, good, lambda _: 1).phrase == "makes a known mistake: the two bytes forgotten"
    assert _least(facts, both, facts.calls, lambda _: 1) is both
    assert _least(facts, both, good, lambda _: None) is both  # beyond the cases it does something else


def test_lines_are_not_counted_in_a_second_call_of_a_function_that_keeps_something():
    kept = written(PRODUCT.replace("def run(program):", "def run(program, kept=[]):\n    kept.append(1)"), "run")
    assert of_lines(Facts(RUN, kept, _calls(RUN, kept))) is None
    fresh = written(PRODUCT, "run")
    assert of_lines(Facts(RUN, fresh, _calls(RUN, fresh))) is not None
