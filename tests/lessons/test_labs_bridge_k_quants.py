"""The labs on the bridge to Q4_1 and on K-quants: what they print is true, and any search that holds is accepted."""

from __future__ import annotations

import re

import nbformat
import numpy as np
import pytest
from places import ROOT

from miniquant.evaluate.block_search import (
    block_errors,
    ggml_search,
    plain_rounding,
    restored,
    score_searches,
    unseen_blocks,
)
from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import GGMLType, decode
from miniquant.lab import evaluate, find
from miniquant.lessons.k_quants.fit_scale_and_minimum import fit_scale_and_minimum
from miniquant.lessons.k_quants.search_blocks import search_blocks as reference

FOLDERS = ("solutions", "notebooks")


def printed(folder: str, name: str, cell: str) -> str:
    notebook = nbformat.read(ROOT / folder / name, as_version=4)
    (found,) = [c for c in notebook.cells if c.id == cell]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in found.outputs)


@pytest.fixture(scope="module")
def matrix(trained):
    return trained.state_dict()["layers.1.mlp.fc1.weight"].numpy()


def lost(back: np.ndarray, w: np.ndarray) -> float:
    return 100 * float(np.sqrt(np.mean((back - w) ** 2) / np.mean(w**2)))


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_four_cells_are_those_of_ggml_and_of_the_judge_of_searches(folder, matrix):
    said = printed(folder, "21-k-quants.ipynb", "lab21-two-by-two")
    plain = re.search(r"plain rounding +(\d\.\d\d) % +(\d\.\d\d) %", said)
    search = re.search(r"ggml's search +(\d\.\d\d) % +(\d\.\d\d) %", said)
    blocks = matrix.reshape(-1, 32)
    for found, way in ((plain, plain_rounding), (search, ggml_search)):
        assert found[1] == f"{lost(restored(blocks, *way(blocks)), blocks):.2f}"
    with LlamaCpp(None) as llama:
        assert search[2] == f"{lost(decode(llama.quantize(matrix, GGMLType.Q4_K), GGMLType.Q4_K), matrix):.2f}"
        q4_0 = lost(decode(llama.quantize(matrix, GGMLType.Q4_0), GGMLType.Q4_0), matrix)
    # what the lab concludes: the search gains in both layouts, and by more than the layout costs
    assert min(float(plain[i]) - float(search[i]) for i in (1, 2)) > 0.5
    assert all(0 <= float(row[2]) - float(row[1]) < 0.2 for row in (plain, search))
    assert q4_0 - float(plain[2]) > 0.5


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_table_of_searches_has_the_student_s_beside_both_others(folder):
    said = printed(folder, "21-k-quants.ipynb", "lab21-scores")
    scores = score_searches({"plain rounding": plain_rounding, "yours": reference, "ggml's search": ggml_search})
    for name, found in scores.items():
        (line,) = [line for line in said.split("\n") if line.startswith(name)]
        assert re.findall(r"\d+\.\d\d %", line) == [f"{score.rmse:.2f} %" for score in found.values()]
        assert f"{sum(score.worse for score in found.values())} of 8,000" in line


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_the_exact_minimum_in_memory_leaves_a_gap_and_the_error_is_the_same(folder):
    said = printed(folder, "17-q4_1-bridge.ipynb", "lab17-when-m")
    rows = re.findall(r"^(\d)\. .* file (\S+) +mean squared error of the file (\S+)$", said, re.M)
    assert [number for number, *_ in rows] == ["1", "2", "3"]
    assert float(rows[0][1]) > 0
    assert [float(gap) for _, gap, _ in rows[1:]] == [0, 0]
    assert len({error for *_, error in rows}) == 1


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize(
    ("name", "cell", "lines"), [("17-q4_1-bridge", "lab13-081", 3), ("21-k-quants", "lab21-speaks", 4)]
)
def test_both_labs_end_with_sentences_from_llamacpp(folder, name, cell, lines):
    said = [line for line in printed(folder, f"{name}.ipynb", cell).split("\n") if "The object " in line]
    assert len(said) == lines
    assert all(len(line.split("The object ")[1]) > 30 for line in said)


# ---- the open-ended search -------------------------------------------------------------------------------------------


def kept(w, tries):
    """Of plain rounding and the pairs of ``tries``, the best for each block."""
    best = plain_rounding(w)
    error = block_errors(w, *best)
    for pair in tries:
        better = (new := block_errors(w, *pair)) < error
        best = tuple(np.where(better, a, b) for a, b in zip(pair, best))
        error = np.where(better, new, error)
    return best


def round_and_fit_in_turns(w):
    def tries(s, m):
        for _ in range(20):
            s, m = fit_scale_and_minimum(w, np.clip(np.rint((w - m) / s), 0, 15))
            yield s, m

    return kept(w, tries(*plain_rounding(w)))


def chance(w):
    rng, (s, m) = np.random.default_rng(1), plain_rounding(w)
    pairs = ((s * rng.normal(1, 0.05, s.shape), m + s * rng.normal(0, 0.3, s.shape)) for _ in range(200))
    return list(kept(w, ((a.astype(np.float32), b.astype(np.float32)) for a, b in pairs)))


def ends_moved_inwards(w):
    cuts, (s, m) = np.float32([0, 0.02, 0.04, 0.06]), plain_rounding(w)
    return kept(w, ((s * (1 - a - b), m + 15 * a * s) for a in cuts for b in cuts))


@pytest.mark.parametrize("function", [round_and_fit_in_turns, chance, ends_moved_inwards])
def test_any_search_that_is_good_enough_passes(function):
    report = evaluate(find("search_blocks"), function, search=False)
    assert report.passed, report


def student(body: str):
    scope = {"np": np, "plain_rounding": plain_rounding}
    exec("def search_blocks(w):\n" + "\n".join(f"    {line}" for line in body.split("\n")), scope)
    return scope["search_blocks"]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("return plain_rounding(w)", "the sum of all errors is not 5 % smaller"),
        ("s, m = plain_rounding(w)\nreturn s * np.float32(0.9), m", "loses more than plain rounding on some block"),
        ("s, m = plain_rounding(w)\nw -= m\nreturn s, m", "your function changes its argument in place"),
        ("return None", "two arrays are expected"),
        ("s, m = plain_rounding(w)\nreturn s[:, 0], m", "the scale must be an array of shape (1, 1)"),
        ("s, m = plain_rounding(w)\nreturn s, m.astype(float)", "the minimum must be float32"),
        (
            "s, m = plain_rounding(w)\nreturn s * np.float32(np.inf), m",
            "the scale of some block is not a finite number",
        ),
    ],
)
def test_a_search_that_is_not_is_refused_and_the_report_says_why(body, what):
    report = evaluate(find("search_blocks"), student(body), search=False)
    assert report.status == "failed"
    assert what in report.what


def test_the_reference_of_the_search_holds_on_blocks_that_it_has_not_seen():
    for name, w in unseen_blocks().items():
        before, after = block_errors(w, *plain_rounding(w)), block_errors(w, *reference(w))
        assert (after <= 1.01 * before).all()
        assert after.sum() < 0.9 * before.sum(), name
