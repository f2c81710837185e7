"""The course's table of everything: nothing in it is stale, a run goes on where it was stopped, its bars hold."""

from __future__ import annotations

import ast
import contextlib
import json
import multiprocessing
import platform
import re
import subprocess
from itertools import pairwise

import measure as script
import methods
import numpy as np
import pytest
import subjects
from places import ROOT
from thorough import THOROUGH, in_turns, tried

from miniquant.calibrate import awq, calibration_tokens, plant_outliers, round_to_nearest
from miniquant.evaluate import llamacpp
from miniquant.evaluate.paired import CONFIDENCE, RESAMPLES, Bootstrap, gap_closed
from miniquant.evaluate.quality import evaluate
from miniquant.models import corpus

FOLDER = ROOT / "experiments" / "27-better-four-bits"
PAGE = ROOT / "book" / "better-bits.md"
PROGRAMS = ("pytorch", "llamacpp")
ALL = MINIGPT, PLANTED, MINILLAMA = tuple(script.SUBJECTS)


@pytest.fixture(scope="module")
def table():
    return json.loads((FOLDER / "results.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def same_text(table):
    """Whether this Python has the documentation that the table was measured on."""
    return table["text_hash"] == corpus.text_hash(corpus.held_out_documents("topics"))


def sample(table, label, name, program="pytorch", figure="kl"):
    return np.array(table["models"][label]["rows"][name][program][figure])


def kl_ratio(table, label, name, other, program="pytorch"):
    a, b = (sample(table, label, row, program) for row in (name, other))
    return Bootstrap(len(a)).ratio(a, b)


# ---- the stored rows and the sources ---------------------------------------------------------------------------------


def test_no_stored_row_is_stale_or_missing(table, same_text):
    if table["versions"]["python"] != platform.python_version():
        pytest.skip("another Python has other documentation, and prints source in another way")
    assert same_text
    assert script.stale(table) == [], "run: python experiments/27-better-four-bits/measure.py"
    for label, model in table["models"].items():
        assert model | script.texts(label, script.WINDOWS) == model
        assert list(model["rows"]) == [name for name, method in script.METHODS.items() if label in method.models]


def test_the_table_says_what_it_was_measured_on(table):
    assert list(table["models"]) == list(script.SUBJECTS)
    assert table["bootstrap"] == {"resamples": RESAMPLES, "confidence": CONFIDENCE}
    for model in table["models"].values():
        assert (model["windows"], model["tokens"]) == (script.WINDOWS, 256 * script.WINDOWS)
        assert model["calibration_tokens"] == 256 * script.CALIBRATION
        for row in model["rows"].values():
            for program in PROGRAMS:
                for samples in row.get(program, {}).values():
                    assert len(samples) == model["windows"] and np.isfinite(samples).all()


def test_every_row_says_what_its_method_says_and_which_programs_ran_it(table):
    for model in table["models"].values():
        for name, row in model["rows"].items():
            method = script.METHODS[name]
            assert (row["kind"], row["how"], row["plain"]) == (method.kind, method.how, method.plain)
            assert ("pytorch" in row) == (not method.how.startswith("KV cache"))
            assert ("llamacpp" in row) == (method.kind not in (*methods.GROUPS, "W8A8"))
            assert "refused" not in row
            assert not row["plain"] or row["plain"] in model["rows"]


AGAIN = ("Q8_0", "Q4_K imatrix", "Q3_K_M", "NVFP4", "int3_g64", "W8A8", "F32 KV cache Q4_0")  # of each way, one
AGAIN = AGAIN[:: tried(2, 1)]
MEASURED = [(name, label) for name, label in in_turns(AGAIN, ALL) if label in script.METHODS[name].models]


@pytest.mark.parametrize(("name", "label"), MEASURED)
def test_measuring_a_row_again_gives_what_is_stored(table, same_text, label, name):
    """On the first two windows, which a shorter run has as well: the first and the last."""
    again, stored = script.measure(label, name, 2), table["models"][label]["rows"][name]
    assert (again["bytes"], again["bits"]) == (stored["bytes"], stored["bits"])
    assert again.keys() == stored.keys()
    for program in PROGRAMS:
        for figure, samples in again.get(program, {}).items():
            ends = [stored[program][figure][i] for i in (0, -1)]
            if same_text:
                assert samples == pytest.approx(ends, rel=0.02, abs=1e-6)


# ---- how rows are made -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def of_two_rows(*labels):
    """A table of two quick rows for these models."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (script, methods):
            patch.setattr(module, "METHODS", {name: methods.METHODS[name] for name in ("Q4_0", "Q4_K")})
        patch.setattr(script, "SUBJECTS", {label: script.SUBJECTS[label] for label in labels})
        yield


@pytest.fixture
def two_rows():
    with of_two_rows(MINIGPT, MINILLAMA):
        yield


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What one process finds of them, on two windows."""
    with of_two_rows(MINIGPT, MINILLAMA):
        return script.run(tmp_path_factory.mktemp("ran") / "results.json", 1, 2)


def test_a_run_that_is_stopped_goes_on_where_it_was_and_says_how_far_it_is(
    two_rows, ran, tmp_path, monkeypatch, capsys
):
    path, calls = tmp_path / "results.json", []

    def measure(label, name, windows):
        calls.append((label, name))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return ran["models"][label]["rows"][name]  # what it would measure

    monkeypatch.setattr(script, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        script.run(path, 1, 2)
    first = json.loads(path.read_text("utf-8"))
    assert [list(model["rows"]) for model in first["models"].values()] == [["Q4_0", "Q4_K"], []]
    assert re.search(
        r"0 of 4 rows stand, 4 to measure\nrow 1 of 4  MiniGPT: Q4_0, KL 0\.\d+ +\d:\d\d spent, about \d+:\d\d to go",
        capsys.readouterr().out,
    )
    again = script.run(path, 1, 2)
    assert calls[3:] == [(MINILLAMA, "Q4_0"), (MINILLAMA, "Q4_K")]
    assert again["models"][MINIGPT] == first["models"][MINIGPT]
    assert "2 of 4 rows stand, 2 to measure" in capsys.readouterr().out
    script.run(path, 1, 2)
    assert len(calls) == 5, "nothing was left to do"
    lines = path.read_text("utf-8").splitlines()
    assert sum('"hash"' in line for line in lines) == 4, "a row a line"


def test_only_the_rows_whose_code_has_changed_are_stale(two_rows, ran, tmp_path, monkeypatch):
    assert script.stale(ran, 2) == []
    assert len(script.stale(ran, 3)) == 4, "other windows"
    library = tmp_path / "library"
    for source in {source for method in methods.METHODS.values() for source in method.sources}:
        (library / source).parent.mkdir(parents=True, exist_ok=True)
        (library / source).write_text((methods.LIBRARY / source).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(methods, "LIBRARY", library)
    changed = library / "formats/gguf/codecs/q4_0.py"
    text = changed.read_text("utf-8")
    changed.write_text(text.replace('"""', '"""Another docstring. ', 1) + "\n# a comment\n", "utf-8")
    assert script.stale(ran, 2) == []
    changed.write_text(text + "\nanswer = 42\n", "utf-8")
    assert script.stale(ran, 2) == [(MINIGPT, "Q4_0"), (MINILLAMA, "Q4_0")]


def test_other_processes_find_what_this_one_finds(ran, tmp_path, monkeypatch):
    """A run asks for two. One measures both rows here, and on ordinary days it is a copy of this one, made at once."""
    asked, pool = [], script.ProcessPoolExecutor

    def one(jobs, context, begin):
        asked.append(jobs)
        if THOROUGH or "fork" not in multiprocessing.get_all_start_methods():
            return pool(1, context, begin)

        def afresh():
            script.workshop.cache_clear()
            script.texts.cache_clear()
            llamacpp.subprocess = subprocess  # it has no part in what makes this one's llama.cpps
            begin()

        return pool(1, multiprocessing.get_context("fork"), afresh)

    monkeypatch.setattr(script, "ProcessPoolExecutor", one)
    with of_two_rows(MINIGPT):
        model = script.run(tmp_path / "2.json", 2, 2)["models"][MINIGPT]
    assert asked == [2] and len(model["rows"]) == 2
    for name, row in ran["models"][MINIGPT]["rows"].items():
        assert {**row, "seconds": 0} == {**model["rows"][name], "seconds": 0}


def test_a_method_is_one_function_in_one_list(monkeypatch):
    monkeypatch.setattr(methods, "METHODS", {})

    @methods.rows(["Q4_0", "Q4_1"], "by hand", models=[MINIGPT], sources=lambda kind: ["calibrate/rounding.py"])
    def by_hand(shop, kind):
        return shop.quantized(kind)

    assert list(methods.METHODS) == ["Q4_0 by hand", "Q4_1 by hand"]
    row = methods.METHODS["Q4_1 by hand"]
    assert (row.kind, row.how, row.given, row.plain, row.models) == ("Q4_1", "by hand", "Q4_1", "Q4_1", (MINIGPT,))


@pytest.mark.parametrize("label", script.SUBJECTS)
def test_a_model_comes_back_from_its_float_file_as_it_was(label):
    shop = script.workshop(label, 2)
    for again in (shop.model_in(shop.float_file), shop.model_in(shop.file_of(shop.model))):
        for name, w in shop.model.state_dict().items():
            assert np.array_equal(again.state_dict()[name].numpy(), w.numpy()), name


def test_integers_that_no_file_has_are_counted_as_if_one_had_them():
    shop = script.workshop(MINILLAMA, 2)
    rounded, plain = round_to_nearest(shop.model, "Q4_0"), shop.quantized(subjects.FILE_TYPES["Q4_0"])
    made = shop.in_pytorch(rounded, 4.5)
    assert abs(made.n_bytes - plain.n_bytes) < 100  # of metadata
    expected = dict.fromkeys(shop.layers, rounded) | dict.fromkeys(
        ("model.embed_tokens.weight", "lm_head.weight"), plain.model
    )
    for name, other in expected.items():
        one, two = (model.get_parameter(name).detach().numpy() for model in (made.model, other))
        assert np.array_equal(one, two), name


# ---- bars, as they were measured -------------------------------------------------------------------------------------


def test_awq_saves_what_planted_outliers_spoil(trained, shallow):
    model, windows, text = trained if THOROUGH else shallow, corpus.held_out_windows()[::40], calibration_tokens(4)
    planted = plant_outliers(model)
    plain, better = (evaluate(round_to_nearest(found), windows, model) for found in (planted, awq(planted, text)))
    base = evaluate(model, windows)
    assert better.kl.mean() <= 0.3 * plain.kl.mean()
    assert gap_closed(better.nll.mean(), plain.nll.mean(), base.nll.mean()) >= 0.8


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_table_reaches_every_bar_with_its_whole_interval(table, program):
    for label in (MINIGPT, MINILLAMA):
        assert kl_ratio(table, label, "Q4_1 GPTQ", "Q4_1", program).high <= 0.5
    assert kl_ratio(table, MINIGPT, "int3_g64 GPTQ", "int3_g64").high <= 0.5
    assert kl_ratio(table, PLANTED, "Q4_1 AWQ", "Q4_1", program).high <= 0.3
    nll = [sample(table, PLANTED, name, program, "nll") for name in ("Q4_1 AWQ", "Q4_1", "F32")]
    assert Bootstrap(len(nll[0])).interval(gap_closed, *nll).low >= 0.8


def test_rows_that_differ_in_the_choice_of_integers_alone_take_the_same_bytes(table):
    for model in table["models"].values():
        for name, row in model["rows"].items():
            if row["plain"] and row["bytes"] and row["how"] != "mixed types":
                assert abs(row["bytes"] - model["rows"][row["plain"]]["bytes"]) < 1000, name  # of metadata


def test_more_bits_mean_less_divergence(table):
    for label in (MINIGPT, MINILLAMA):
        for kinds in (("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_0"), ("Q4_0", "Q5_0", "Q8_0")):
            for few, many in pairwise(kinds):
                assert kl_ratio(table, label, many, few).high < 1, (label, few, many)


def test_both_programs_tell_the_same_story_where_no_activation_stands_out(table):
    """llama.cpp rounds activations too. That costs next to nothing, except where outliers are left in them."""
    for label in (MINIGPT, MINILLAMA):
        for name, row in table["models"][label]["rows"].items():
            if all(program in row for program in PROGRAMS) and np.mean(row["pytorch"]["kl"]) < 0.1:
                more = np.mean(row["llamacpp"]["kl"]) - np.mean(row["pytorch"]["kl"])
                assert abs(more) < 0.002, (label, name, more)


def test_the_results_say_nothing_about_whose_machine_it_was(table):
    assert set(table["hardware"]) == {"cpu", "cores", "system"}
    assert not re.search(r"/(home|root|work|tmp)\b", json.dumps(table))


# what the page says in words: a row, one that it is better than, and the models of which that is said
SAID = [
    ("Q4_1 AWQ", "Q4_1 AWQ, scales only", [MINIGPT]),  # what AWQ gains, it gains by clipping
    ("Q4_0", "Q4_1", [PLANTED]),  # no level at zero
    ("Q4_0", "Q4_K", [PLANTED]),
    ("int2_g64", "Q2_0", ALL),  # fitted levels
    ("F32 KV cache Q8_0 and Q4_0", "F32 KV cache Q4_0 and Q8_0", [MINIGPT, MINILLAMA]),
    ("F32 KV cache Q4_0, not rotated", "F32 KV cache Q4_0", [MINIGPT]),  # the rotation helps on one model alone
    ("F32 KV cache Q4_0", "F32 KV cache Q4_0, not rotated", [MINILLAMA]),
    ("W8A8 SmoothQuant", "W8A8", [PLANTED]),
]


@pytest.mark.parametrize(("better", "worse", "labels"), SAID, ids=lambda value: value if isinstance(value, str) else "")
def test_what_the_page_says_in_words_is_more_than_chance(table, better, worse, labels):
    for label in labels:
        row = table["models"][label]["rows"][better]
        assert kl_ratio(table, label, better, worse, "pytorch" if "pytorch" in row else "llamacpp").high < 1


def test_rounding_inputs_costs_much_only_where_outliers_are_left_in_them(table):
    def more(label, name):
        return np.mean(sample(table, label, name, "llamacpp")) - np.mean(sample(table, label, name))

    assert more(PLANTED, "Q8_0") > 20 * max(more(MINIGPT, "Q8_0"), more(PLANTED, "Q4_1 AWQ"))


def test_a_rotation_has_nothing_to_spread_in_minillama(table):
    for name, row in table["models"][MINILLAMA]["rows"].items():
        if row["how"] == "rotation":
            assert kl_ratio(table, MINILLAMA, name, row["plain"]).high > 1


# ---- the page --------------------------------------------------------------------------------------------------------

NAMES = r"Llama-2-7b|[A-Za-z_]+\d[\w.]*|\d+-[a-z]\S*|[Ll]abs? \d+"  # Q4_1, W8A8, float32, MiniGPT's type names; lab 18


def test_the_page_prints_no_number_that_was_typed():
    text = PAGE.read_text("utf-8").partition("\n---\n")[2]
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    prose = re.sub(r"`[^`]*`|\{[a-z:-]+\}|\]\([^)]*\)|^\([^)]*\)=$", "", prose, flags=re.M)
    prose = re.sub(NAMES, "", prose)
    assert re.findall(r"^.*\d.*$", prose, flags=re.M) == []


def test_the_cells_of_the_page_hold_no_measured_number():
    """A number in code is a format, a place or a probability; what was measured comes from the file."""
    cells = re.findall(r"```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)```", PAGE.read_text("utf-8"), flags=re.S)
    numbers = {
        node.value
        for cell in cells
        for node in ast.walk(ast.parse(cell))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    }
    assert numbers <= {0, 1, 2, 3, 8, 100, 1000, 1e6}
