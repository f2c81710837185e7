"""The stored measurements of mixes: they come from these weights and sources, and a mix is better at every size."""

import json
import platform
import re

import mixed as script
import numpy as np
import pytest
from places import ROOT

from miniquant.evaluate.mixed import best_types, costs_to_json, known_costs
from miniquant.models import corpus

FOLDER = ROOT / "experiments" / "29-mixed-precision"


@pytest.fixture(scope="module")
def table():
    return json.loads((FOLDER / "results.json").read_text("utf-8"))


def test_it_comes_from_these_weights_and_from_the_script_as_it_is(table):
    assert list(table["models"]) == list(script.SUBJECTS)
    for name, found in table["models"].items():
        assert found["weights_sha256"] == script.sha256(script.SUBJECTS[name].weights)
    assert table["sources_sha256"] == script.sha256(*script.SOURCES)
    assert set(table["hardware"]) == {"cpu", "cores", "system"}
    assert not re.search(r"/(home|root|work|tmp)\b", json.dumps(table))


def test_it_was_measured_on_the_held_out_text(table):
    if table["versions"]["python"] != platform.python_version():
        pytest.skip("another Python has other documentation")
    assert table["text_hash"] == corpus.text_hash(corpus.held_out_documents("topics"))


def test_the_library_has_the_same_costs_and_chooses_the_same_types(table):
    for name, found in table["models"].items():
        costs = known_costs(name)
        assert costs_to_json(costs) == found["costs"]
        for row in found["sizes"].values():
            chosen = {matrix: dtype.name for matrix, dtype in best_types(costs, row["allowed"]).items()}
            assert chosen == row["mixed"]["types"]
            assert row["mixed"]["bytes"] <= row["allowed"]


def test_at_every_size_of_llama_cpps_files_the_mix_has_a_lower_kl_with_its_whole_interval(table):
    for found in table["models"].values():
        compared = {name: row for name, row in found["sizes"].items() if "llama.cpp" in row}
        assert {"Q4_K_S", "Q4_K_M", "Q5_K_M"} <= set(compared)
        for row in compared.values():
            assert row["mixed"]["bytes"] <= row["llama.cpp"]["bytes"]
            for program in ("pytorch", "llamacpp"):
                assert row["mixed"][program]["kl"]["high"] < row["llama.cpp"][program]["kl"]["low"]
                assert row["mixed"]["of llama.cpp's"][program]["high"] < 1


def test_the_sum_foretells_the_kl_of_every_file(table):
    for found in table["models"].values():
        for row in found["sizes"].values():
            for kind in {"mixed", "llama.cpp"} & set(row):
                assert row[kind]["pytorch"]["kl"]["value"] == pytest.approx(row[kind]["foretold"], rel=0.2)


def test_the_interval_of_a_ratio_is_that_of_pairs():
    b = np.array([1.0, 2.0, 3.0, 6.0])
    noise = np.array([0.01, -0.01, 0.01, -0.01])
    found = script.ratio(0.5 * b + noise, b)
    assert found["value"] == pytest.approx(0.5) and found["high"] - found["low"] < 0.02
