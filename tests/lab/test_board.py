"""Open exercises: the figure of an answer is measured, kept, and shown beside the reference's and its rivals'."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner

from miniquant.cli import main
from miniquant.core.errors import MiniquantError
from miniquant.lab import Contest, board, catalogue, check, contest, find, session
from miniquant.lab.checking import Answer
from miniquant.lab.contest import measured, open_exercises

LENGTHS = Contest(
    what="length of the result",
    unit="bytes",
    measure=lambda function: len(function(7, 1)),
    rivals=lambda: {"a long one": 9.0, "short": 1.0},
)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("MINIQUANT_PROGRESS", str(path))
    session.reset()
    contest._others.cache_clear()
    yield path
    session.reset()
    contest._others.cache_clear()


@pytest.fixture
def magic_bytes(monkeypatch):
    """An exercise of the course, as if it were open: any number of zeros may follow."""

    def use(made):
        spec = replace(find("magic_bytes"), contest=made)
        known = dict(catalogue.exercises()) | {"magic_bytes": spec}
        for module in (catalogue, contest):
            monkeypatch.setattr(module, "exercises", lambda: known)
        return spec

    return use


def eight_bytes(magic, version):
    return magic.to_bytes(4, "little") + version.to_bytes(4, "little")


def test_a_check_that_passes_measures_the_answer_and_keeps_its_best_figure(magic_bytes, place):
    spec = magic_bytes(LENGTHS)
    report = check(Answer(spec, eight_bytes))
    assert report.passed and "your score: length of the result: 8 bytes" in repr(report)
    assert json.loads(place.read_text())["magic_bytes"]["best"] == 8
    worse = replace(spec, contest=replace(LENGTHS, measure=lambda f: 8.5))
    assert "8.5 bytes" in repr(check(Answer(worse, eight_bytes)))
    assert json.loads(place.read_text())["magic_bytes"]["best"] == 8


def test_the_board_has_the_best_first_and_says_which_are_yours(magic_bytes):
    spec = magic_bytes(LENGTHS)
    assert "no figure of yours yet" in repr(board("magic_bytes"))
    check(Answer(spec, eight_bytes))
    check(Answer(replace(spec, contest=replace(LENGTHS, measure=lambda f: 8.5)), eight_bytes))
    shown = board("magic_bytes")
    assert [row.name for row in shown.rows] == ["short", "the reference", "your best", "yours", "a long one"]
    assert [row.name for row in shown.rows if row.own] == ["your best", "yours"]
    assert "→ yours          8.5 bytes" in repr(shown) and "lower is better" in repr(shown)
    assert "→ yours" in shown._repr_html_()


def test_where_higher_is_better_the_order_and_the_best_are_the_other_way_round(magic_bytes, place):
    spec = magic_bytes(replace(LENGTHS, lower_is_better=False))
    check(Answer(spec, eight_bytes))
    check(Answer(replace(spec, contest=replace(spec.contest, measure=lambda f: 8.5)), eight_bytes))
    assert json.loads(place.read_text())["magic_bytes"]["best"] == 8.5
    assert [row.name for row in board("magic_bytes").rows] == ["a long one", "yours", "the reference", "short"]


def test_an_answer_that_fails_its_check_has_no_figure(magic_bytes, place):
    spec = magic_bytes(LENGTHS)
    assert "your score" not in repr(check(Answer(spec, lambda magic, version: b"")))
    assert "best" not in json.loads(place.read_text())["magic_bytes"]


def test_an_answer_that_fails_on_the_contest_itself_is_told_so_and_is_not_kept(magic_bytes, place):
    spec = magic_bytes(replace(LENGTHS, measure=lambda f: 1 / 0))
    assert "fails on the data of the contest" in repr(check(Answer(spec, eight_bytes)))
    assert "best" not in json.loads(place.read_text())["magic_bytes"]
    assert math.isnan(measured(spec.contest, eight_bytes))


def test_a_figure_that_differs_from_run_to_run_is_only_on_the_board(magic_bytes):
    spec = magic_bytes(replace(LENGTHS, steady=False))
    score = check(Answer(spec, eight_bytes)).score
    assert score == "`board(magic_bytes)` shows it beside the others"


def test_an_exercise_with_one_answer_has_no_board(magic_bytes):
    magic_bytes(None)
    with pytest.raises(MiniquantError, match="magic_bytes has one right answer"):
        board("magic_bytes")
    with pytest.raises(MiniquantError, match="no exercise is called"):
        board("no such thing")


def test_the_command_shows_one_board_and_refuses_other_names(magic_bytes):
    magic_bytes(LENGTHS)
    shown = CliRunner().invoke(main, ["board", "magic_bytes"])
    assert shown.exit_code == 0 and "length of the result" in shown.output
    wrong = CliRunner().invoke(main, ["board", "magic_byte"])
    assert "did you mean 'magic_bytes'" in str(wrong.exception)


@pytest.mark.parametrize("name", list(open_exercises()))
def test_the_reference_of_an_open_exercise_is_measured_and_has_rivals(name):
    rows = {row.name: row.value for row in board(name).rows}
    assert len(rows) >= 3 and all(math.isfinite(value) for value in rows.values())
    worst = (max if find(name).contest.lower_is_better else min)(rows.values())
    assert find(name).contest.better(rows["the reference"], worst)


def test_a_choice_that_keeps_to_the_rules_in_the_check_only_has_no_figure():
    def choose(weights, budget):
        types = find("choose_types").reference(weights, budget)
        return types | {"token_embd.weight": "Q6_K"} if "token_embd.weight" in weights else types

    assert math.isnan(measured(find("choose_types").contest, choose))
