"""The lab on mixed precision: its search is the library's, and what it concludes from its measurements is true."""

from __future__ import annotations

import re

import nbformat
import numpy as np
import pytest
from places import ROOT

from miniquant.evaluate.mixed import best_types, known_costs
from miniquant.lessons.mixed_precision import trial
from miniquant.lessons.mixed_precision.best_within import best_within
from miniquant.lessons.mixed_precision.choice_cost import choice_cost
from miniquant.lessons.mixed_precision.choose_mix import choose_mix
from miniquant.lessons.mixed_precision.one_at_a_time import one_at_a_time
from miniquant.models.file_types import PRESETS


def printed(cell: str) -> str:
    notebook = nbformat.read(next((ROOT / "solutions").glob("*-mixed-precision.ipynb")), as_version=4)
    (found,) = [c for c in notebook.cells if c.id == cell]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in found.outputs)


def row(cell: str, start: str) -> list[float]:
    """The numbers of a printed row after its name."""
    (found,) = re.findall(rf"^ *{re.escape(start)} (.*)$", printed(cell), re.M)
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d.,]*", found)]


@pytest.mark.parametrize("bits", [2.25, 3.5, 4.5, 6.25])
def test_the_solution_chooses_as_the_library_does(bits):
    stored = known_costs("MiniGPT")
    costs = {name: {kind.name: tuple(cost) for kind, cost in of.items()} for name, of in stored.items()}
    allowed = int(bits * 3_407_872 / 8)
    units = {name: {kind: (n // 512, kl) for kind, (n, kl) in of.items()} for name, of in costs.items()}
    expected = {name: kind.name for name, kind in best_types(stored, allowed).items()}
    chosen = best_within(units, allowed // 512)
    assert choice_cost(costs, chosen) == pytest.approx(choice_cost(costs, expected), rel=1e-12)
    assert choose_mix(costs, allowed, None) == chosen


def test_the_trial_knows_the_types_of_q4_k_m(trained):
    shapes = {name: w.shape for name, w in trial._parameters().items() if "position" not in name}
    keys = {"general.architecture": "gpt2", "gpt2.block_count": 4}
    assert trial.q4_k_m() == {name: kind.name for name, kind in PRESETS["Q4_K_M"].types_of(shapes, keys).items()}
    assert trial.q4_k_m().keys() == trial.table().keys()


def test_a_measure_answers_so_often_and_is_nearly_the_sum():
    costs = {name: dict(of) for name, of in trial.table().items()}
    types = choose_mix(costs, trial.bytes_of(trial.q4_k_m()), None)
    measure = trial.Measure()
    assert measure(types) == pytest.approx(choice_cost(costs, types)[1], rel=0.3)
    measure.left = 0
    with pytest.raises(ValueError, match="more than 12 times"):
        measure(types)


def test_a_choice_that_is_too_large_has_no_figure():
    with pytest.raises(ValueError, match="the budget is 2,221,056"):
        trial.score(lambda costs, n_bytes, measure: dict.fromkeys(costs, "Q8_0"))


def test_the_single_costs_are_those_of_a_model_of_which_one_matrix_changed():
    weights = {"a": np.ones((1, 2), np.float32), "b": np.zeros((1, 1), np.float32)}
    seen = []

    def measure(changed):
        seen.append({name: w.tolist() for name, w in changed.items()})
        return float(len(seen))

    found = one_at_a_time(weights, ["x"], lambda w, kind: (w.size, w + 5), measure)
    assert seen == [{"a": [[6, 6]], "b": [[0]]}, {"a": [[1, 1]], "b": [[5]]}]
    assert found == {"a": {"x": (2, 1.0)}, "b": {"x": (1, 2.0)}}


def test_the_embedding_and_block_0_count_most_and_late_attention_least():
    kl = {name: of["Q3_K"][1] for name, of in trial.table().items()}
    order = sorted(kl, key=kl.get, reverse=True)
    assert order[0] == "token_embd.weight"
    assert {"blk.0.attn_qkv.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"} == set(order[1:4])
    assert all("attn" in name and "blk.0" not in name for name in order[-6:])
    ratios = [of["Q3_K"][1] / of["Q6_K"][1] for of in trial.table().values()]
    assert max(ratios) < 1.6 * min(ratios)


def test_the_rules_give_their_many_bits_to_late_blocks_and_the_best_mix_to_block_0():
    many = re.findall(r"^(\S+) +Q6_K +(\S+)$", printed("mixed-best"), re.M)
    assert {name[:5] for name, _ in many} == {"token", "blk.2", "blk.3"}
    assert [kind for name, kind in many if name[:5] == "token"] == ["Q6_K"]
    assert all(kind != "Q6_K" for name, kind in many if name[:5] != "token")
    mine = re.findall(r"^(\S+) +Q4_K +Q6_K$", printed("mixed-best"), re.M)
    assert mine and all(name.startswith("blk.0") for name in mine)


def test_the_sum_is_near_what_is_measured_but_too_large_for_three_levels():
    parts = [row("mixed-sum", start)[-1] for start in ("2.25", "3", "4.5", "6")]
    assert all(90 < part < 110 for part in parts)
    assert row("mixed-sum", "TQ2_0")[-1] < 90


def test_in_llama_cpp_the_mixes_are_better_and_q4_k_m_is_not_better_than_q4_k_s():
    lines = printed("mixed-files").splitlines()
    found = [[float(x) for x in re.findall(r"\d\.\d+", line)] for line in lines if "±" in line]
    for (their_kl, their_error), (kl, error) in zip(found[::2], found[1::2], strict=True):
        assert kl + error < their_kl - their_error
    assert row("mixed-files", "Q4_K_M")[0] > row("mixed-files", "Q4_K_S")[0]
    assert found[2][0] + found[2][1] > found[0][0]
