"""Lab 16: the verdicts are those of the errata page, the bugs are caught by the claims that the lab names."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import strategies as st
from places import ROOT

from miniquant.lab import evaluate, find
from miniquant.lessons.claims.bugs import BUGS, AlignedTo64, DocumentsExporter, DocumentsQ4, LyingCard
from miniquant.lessons.claims.falsify import Attempt, Board, Entry, Verdict, attack, attack_each, draws
from miniquant.lessons.claims.pipeline import (
    InMemory,
    Pipeline,
    entries,
    names_on_disk,
    official,
    read_card,
    weights,
)
from miniquant.lessons.claims.stage import judged
from miniquant.models.export import GGUFQuantization, ModelMetadata, ModelWeights

F32, Q4_0, Q8_0 = GGUFQuantization.NONE, GGUFQuantization.Q4_0, GGUFQuantization.Q8_0
FOLDERS = ("solutions", "notebooks")


def printed(folder: str, cell_id: str) -> str:
    cells = json.loads((ROOT / folder / "16-claims.ipynb").read_text("utf-8"))["cells"]
    (cell,) = [cell for cell in cells if cell["id"] == cell_id]
    outputs = [output.get("text") or output["data"].get("text/markdown", "") for output in cell["outputs"]]
    return "\n".join("".join(output) for output in outputs)


def verdicts(folder: str) -> dict[str, str]:
    """claim -> its verdict, from the table that the lab prints; of the document's sixteen."""
    rows = [re.split(r" {2,}", line) for line in printed(folder, "lab12-087").splitlines()[1:]]
    return {row[0]: row[2] for row in rows if int(row[0][2:]) <= 16}


# ---- the lab and the errata page -------------------------------------------------------------------------------------


def rows_on_claims() -> dict[str, str]:
    """claim -> what the errata page says where it speaks of it."""
    text = re.sub(r"\s+", " ", (ROOT / "book/errata.md").read_text("utf-8"))
    rows = re.split(r"\* - \*\*\[L?\d+\]\{#row-l?\d+\}\*\* ", text)[1:]
    rows = [row.partition("```")[0] for row in rows]  # the last row of a table ends it
    named = [(re.findall(r"C-0\d\d", row), row) for row in rows]
    return {found[0]: row for found, row in named if len(found) == 1}  # row 30 counts the claims


def phrases(text: str) -> set[str]:
    return {verdict.value for verdict in Verdict if verdict.value in text}


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_errata_page_gives_every_claim_the_verdict_of_the_lab(folder):
    told, rows = verdicts(folder), rows_on_claims()
    assert rows.keys() >= {"C-006", "C-013"}  # rows 35 and 36
    assert rows.keys() >= {number for number, verdict in told.items() if verdict != Verdict.SURVIVES.value}
    for number, row in rows.items():
        found = phrases(row)
        assert "; ".join(sorted(found)) == told[number], f"{number}: the page says {found}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_lab_tells_a_false_program_from_a_claim_that_asks_for_a_wrong_file(folder):
    told = verdicts(folder)
    assert list(told) == [f"C-{number:03}" for number in range(1, 17)]
    assert {n for n, verdict in told.items() if verdict == Verdict.CANNOT_HOLD.value} == {"C-003", "C-006", "C-015"}
    assert {n for n, verdict in told.items() if verdict == Verdict.FALSE_OF_DOCUMENTS.value} == {"C-011"}
    assert Verdict.OPEN.value not in told.values()


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_form_in_the_last_column_survives_and_c004_has_a_thousand_seeds(folder):
    lines = printed(folder, "lab12-087").splitlines()[1:]
    rows = {line[:5]: re.split(r" {2,}", line) for line in lines}
    assert len(rows) == 18
    assert all(row[-1].startswith("survives ") for row in rows.values())
    assert {number for number, row in rows.items() if row[-2] != "100"} == {"C-004"}
    assert rows["C-004"][-2] == "1,000"


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_c018_catches_the_documents_q4_and_only_c015_the_lying_card(folder):
    head, _, *rows = printed(folder, "lab12-083").splitlines()
    columns = [part.strip() for part in head.strip("|").split("|")][1:]
    caught = {}
    for row in rows:
        name, *marks = [part.strip() for part in row.strip("|").split("|")]
        caught[name] = [column for column, mark in zip(columns, marks) if mark == "caught"]
    assert list(caught) == [bug.__name__ for bug in BUGS]
    assert caught["DocumentsQ4"] == ["C-018"]
    assert caught["LyingCard"] == ["C-015"]
    assert all(caught.values())
    assert re.search(r"^DocumentsQ4 +caught by NOTHING$", printed(folder, "lab12-078"), re.M)


# ---- verdicts --------------------------------------------------------------------------------------------------------

FALL, STAND = Attempt(1, {"n": 0}, "the claim does not hold"), Attempt(100)


@pytest.mark.parametrize(
    ("documents", "ours", "rule", "expected"),
    [
        (STAND, STAND, "", [Verdict.SURVIVES]),
        (STAND, STAND, "a rule", [Verdict.SURVIVES]),
        (FALL, STAND, "", [Verdict.FALSE_OF_DOCUMENTS]),
        (FALL, STAND, "a rule", [Verdict.FALSE_OF_DOCUMENTS]),
        (STAND, FALL, "a rule", [Verdict.CANNOT_HOLD]),
        (STAND, FALL, "", [Verdict.OPEN]),
        (FALL, FALL, "a rule", [Verdict.FALSE_OF_DOCUMENTS, Verdict.CANNOT_HOLD]),
    ],
)
def test_a_fall_of_our_exporter_counts_against_a_claim_only_with_a_rule(documents, ours, rule, expected):
    assert Entry("as written", "", ours, documents, rule).verdicts == expected


def test_a_board_attacks_a_claim_as_written_with_both_exporters_and_a_corrected_one_with_ours(capsys):
    board = Board("ours", "theirs", cases=20)
    board.attack("C-001", "text", lambda pipeline, n: n < 5 or pipeline == "theirs", st.integers(0, 9), rule="so it is")
    said = capsys.readouterr().out
    assert "the document's exporter: survives" in said
    assert "our exporter: FALLS, the claim does not hold\n    smallest case: n = 5" in said
    assert f"verdict: {Verdict.CANNOT_HOLD.value}\n    because so it is" in said
    board.attack("C-001", "better", lambda pipeline, n: pipeline == "ours", st.integers(0, 9), form="as corrected")
    assert capsys.readouterr().out == "C-001 as corrected: survives 10 cases\n"
    assert board.rows() == [("C-001", "better", Verdict.CANNOT_HOLD.value, "10", "survives as corrected")]
    assert not board.hunt("flawed")["C-001"].survived


def test_listed_cases_are_all_tried_and_an_error_or_no_boolean_falsifies():
    tried = []
    assert attack_each(lambda n: tried.append(n) is None, [(n,) for n in range(1000)]) == Attempt(1000)
    assert tried == list(range(1000))
    assert attack_each(lambda n: 1 // n > 0, [(1,), (0,)]).reason == "raises ZeroDivisionError"
    assert "neither True nor False" in attack(lambda n: n, st.integers(1, 3)).reason


def test_draws_are_the_same_each_time():
    assert draws(st.integers(), 30) == draws(st.integers(), 30)


# ---- the exporters ---------------------------------------------------------------------------------------------------


def test_the_documents_exporter_departs_from_gguf_where_the_errata_page_says():
    model = weights({"odd": (3, 33)}, ModelMetadata("gpt2", "m", hidden_size=33))
    data = DocumentsExporter().gguf(model, Q4_0)
    assert entries(data) == (
        {
            "general.architecture": "STRING",
            "general.name": "STRING",
            "general.parameter_count": "UINT64",
            "general.hidden_size": "UINT32",
        },
        ["odd"],
    )
    with pytest.raises(ValueError, match="not a multiple"):
        official(data)
    assert "- quantized\n" in DocumentsExporter().card(weights({}), F32)[0]


def test_an_alignment_of_64_is_read_by_the_official_reader():
    model = weights({"a": (5,), "b": (3, 32)})
    keys, found = official(AlignedTo64().gguf(model))
    assert keys["general.alignment"] == ("UINT32", 64)
    assert all(np.array_equal(t.data, model.tensors[t.name]) for t in found)


def test_names_on_disk_are_those_of_the_official_reader():
    data = Pipeline().gguf(weights({"b": (3,), "a": (2, 32), "caf\u00e9": (1,)}), Q8_0, include=False)
    data = data if data[16:24] == bytes(8) else Pipeline().gguf(weights({"b": (3,), "a": (2, 33)}), include=False)
    assert names_on_disk(data) == entries(data)[1] == [tensor.name for tensor in official(data)[1]]


@pytest.mark.parametrize("pipeline", [Pipeline(), InMemory()])
def test_a_card_is_read_value_by_value(pipeline):
    card, data = pipeline.card(weights({"w": (2, 64), "b": (64,)}, ModelMetadata("gpt2", "tiny")), Q8_0)
    assert read_card(card) == {
        "tags": ["miniquant", "gguf", "quantized"],
        "model_name": "tiny",
        "title": "tiny",
        "Architecture": "gpt2",
        "Quantization": "Q8_0",
        "File": f"`model.gguf`, {len(data)} B",
        "Tensors": "2",
        "Parameters": "192",
        "types": {"F32": ("1", "256 B"), "Q8_0": ("1", "136 B")},
    }


def test_the_lying_card_lies_and_its_file_is_right():
    model = weights({"w": (2, 64)})
    card, data = LyingCard().card(model, Q8_0)
    assert data == Pipeline().gguf(model, Q8_0)
    assert read_card(card)["File"] == "`model.gguf`, 136 B"


def test_the_documents_q4_writes_noise_of_the_right_size():
    model = weights({"w": (64, 128)})
    right, wrong = (p.gguf(model, Q4_0) for p in (Pipeline(), DocumentsQ4()))
    assert len(right) == len(wrong)
    after = [official(data)[1][0].weights.ravel() for data in (right, wrong)]
    apart = [abs(np.corrcoef(model.tensors["w"].ravel(), w)[0, 1]) for w in after]
    assert apart[0] > 0.99
    assert apart[1] < 0.1


# ---- what the checks accept and refuse -------------------------------------------------------------------------------

ANSWERS = [
    (
        "model_shapes",
        """def model_shapes(names):
    n = st.one_of(st.just(32), st.just(64), st.integers(1, 300))
    one = st.tuples(st.sampled_from(names), st.one_of(st.tuples(n), st.tuples(st.integers(1, 8), n)))
    return st.lists(one, max_size=5, unique_by=lambda pair: pair[0]).map(dict)""",
        "right on all",
    ),
    (
        "size_is_true",
        """def size_is_true(said, n_bytes):
    number, unit = said.split()
    n = n_bytes / {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}[unit]
    return round(n, len(number.split(".")[1]) if "." in number else 0) == float(number)""",
        "right on all",
    ),
    (
        "size_is_true",
        """def size_is_true(said, n_bytes):
    number, unit = said.split()
    return unit in ("B", "kB", "MB", "GB") and float(number) >= 0""",
        "wrong on",
    ),
    (
        "within_one_step",
        """def within_one_step(pipeline, w, quantization):
    try:
        (t,) = official(pipeline.gguf(ModelWeights({"w": w}), quantization))[1]
        a, b = w.reshape(-1, 32), t.weights.reshape(-1, 32)
        n = {"F32": np.inf, "Q8_0": 127, "Q4_0": 8}[quantization.value]
        return t.weights.shape == w.shape and bool(np.all(abs(a - b) <= 1.01 * abs(a).max(1)[:, None] / n))
    except ValueError:
        return False""",
        "right on all",
    ),
    (
        "within_one_step",
        """def within_one_step(pipeline, w, quantization):
    data = pipeline.gguf(ModelWeights({"w": w}), quantization)
    return len(data) > w.size""",
        "pipeline = LastBit",
    ),
]


@pytest.mark.parametrize(("name", "source", "said"), ANSWERS)
def test_an_answer_in_another_style_is_judged_by_what_it_does(name, source, said):
    scope = {"st": st, "np": np, "official": official, "ModelWeights": ModelWeights}
    exec(source, scope)
    report = evaluate(find(name), scope[name])
    assert said in repr(report)


def test_a_strategy_in_another_style_has_the_results_of_the_mistake_that_it_makes():
    def model_shapes(names):
        n = st.integers(1, 300)
        return st.dictionaries(st.sampled_from(names), st.tuples(n) | st.tuples(st.integers(1, 8), n), max_size=5)

    spec = find("model_shapes")
    (mistake,) = [mistake for mistake in spec.mistakes if mistake.name == "whole blocks left to chance"]
    mine, theirs, right = (
        [judged(function, case) for case in spec.all_cases()]
        for function in (model_shapes, mistake.wrong, spec.reference)
    )
    assert mine == theirs != right


def test_the_first_draw_that_is_no_valid_model_is_named():
    def model_shapes(names):
        n = st.sampled_from([32, 64]) | st.integers(1, 300)
        return st.dictionaries(st.sampled_from(names), st.tuples(n) | st.tuples(st.integers(0, 8), n), max_size=5)

    found = judged(model_shapes, find("model_shapes").all_cases()[0])
    assert found["a draw that is no valid model"].endswith("the number of rows must be from 1 to 8")


def test_the_dims_of_a_drawn_shape_may_be_integers_of_numpy():
    def model_shapes(names):
        n = (st.sampled_from([32, 64, 96]) | st.integers(1, 300)).map(np.int64)
        shapes = st.tuples(n) | st.tuples(st.integers(1, 8), n)
        return st.dictionaries(st.sampled_from(names), shapes, max_size=5)

    def of_bools(names):
        return model_shapes(names).map(lambda drawn: {name: (True, 32) for name in drawn})

    case = find("model_shapes").all_cases()[0]
    assert judged(model_shapes, case) == judged(find("model_shapes").reference, case)
    assert "must be ints" in judged(of_bools, case)["a draw that is no valid model"]
