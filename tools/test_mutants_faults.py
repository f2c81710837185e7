"""Run by ``make mutants``, which installs mutmut, before anything is measured."""

from __future__ import annotations

import mutants_faults as mutants


def test_the_faults_are_small_and_the_wording_of_an_error_is_left_out():
    source = 'def f(a: int = 3) -> None:\n    """D."""\n    if a < 8:\n        raise ValueError(f"no {a + 1}", 5)\n'
    found, left_out = mutants.mutants(source)
    lines = {mutant.mutated for mutant in found}
    assert {"if a <= 8:", "if a < 9:", "def f(a: int = 4) -> None:"} <= lines
    assert any("6)" in line for line in lines) and any("None, 5" in line for line in lines)
    assert not any("a - 1" in line for line in lines)
    assert left_out["wording of an error message"] >= 2


def test_an_alias_that_only_annotations_use_is_left_out_and_a_table_is_not():
    source = "Work = Callable[[int], None]\nSource = str | bytes\nNAMES = dict[0]\nFLAGS = 1 | 2\n"
    lines = {mutant.mutated for mutant in mutants.mutants(source)[0]}
    assert lines == {
        "NAMES = None",
        "NAMES = dict[1]",
        "FLAGS = None",
        "FLAGS = 2 | 2",
        "FLAGS = 1 | 3",
        "FLAGS = 1 & 2",
    }
