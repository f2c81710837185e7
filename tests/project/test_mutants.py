"""The stored result of ``make mutants`` is of these sources and good enough; the tool leaves out what it says."""

from __future__ import annotations

from collections import Counter

import mutants
import pytest
from mutants_faults import Mutant, fingerprint
from mutants_run import choose

RESULT = mutants.load()
MEASURED, NOT_MEASURED = RESULT["modules"], RESULT["not_measured"]
RUN = "run make mutants MODULES="


@pytest.mark.parametrize("module", mutants.modules_of([]))
def test_a_module_has_a_result_of_its_code_as_it_is_now_or_is_listed_as_not_measured(module):
    if module not in NOT_MEASURED:
        assert module in MEASURED, f"{RUN}{module}, or list it under not_measured"
        assert MEASURED[module]["hash"] == mutants.current(module), f"its code has changed: {RUN}{module}"


def test_the_list_of_what_is_not_measured_names_modules_that_exist_and_have_no_result():
    assert not set(NOT_MEASURED) & set(MEASURED), "what has a result leaves the list"
    assert set(NOT_MEASURED) | set(MEASURED) <= set(mutants.modules_of([])), "these modules are gone"
    assert len(NOT_MEASURED) == len(set(NOT_MEASURED))


@pytest.mark.parametrize("package", mutants.PACKAGES)
def test_at_most_one_mutant_in_twenty_survives_in_a_package(package):
    entries = [entry for module, entry in MEASURED.items() if module.startswith(package + "/")]
    alive = sum(len(entry["survived"]) for entry in entries)
    assert alive <= mutants.WORST * sum(entry["sampled"] for entry in entries)


@pytest.mark.parametrize("module", MEASURED)
def test_the_counts_add_up_and_every_survivor_has_a_reason(module):
    entry = MEASURED[module]
    assert entry["killed"] + entry["timeout"] + len(entry["survived"]) == entry["sampled"] <= entry["mutants"]
    for survivor in entry["survived"]:
        assert len(survivor["reason"]) >= 10, f"line {survivor['line']}: {survivor['mutated']}"


def test_the_page_shows_the_counts_of_the_stored_result():
    page = mutants.PAGE.read_text("utf-8")
    assert mutants.rendered(page, RESULT) == page, "run make mutants"


def test_a_package_with_too_many_survivors_shows_in_the_counts():
    entry = {"mutants": 40, "sampled": 20, "killed": 17, "timeout": 1, "survived": [{}, {}]}
    page = mutants.counts({"modules": {"core/files.py": entry}, "not_measured": ["core/text.py"]})
    every = len(mutants.modules_of(["core"]))
    assert f"| `core` | 1 of {every} | 20 | 17 | 1 | 2 (10.0%) |" in page
    assert "`core/files.py` (20 of 40)" in page
    assert "Not measured yet: `core/text.py`" in page


def test_a_docstring_or_a_comment_does_not_make_a_result_stale_and_code_does():
    source = "def f(a: int = 1) -> int:\n    return a + 1\n"
    documented = '"""A module."""\n\ndef f(a: int = 1) -> int:\n    """A function."""\n    return a + 1  # a sum\n'
    assert fingerprint(documented) == fingerprint(source)
    for changed in ("a: int = 2", "b: int = 1", "a: str = 1", "a: int"):
        assert fingerprint(source.replace("a: int = 1", changed)) != fingerprint(source)
    assert fingerprint("x = 1") != fingerprint("x = 1.0") != fingerprint("x = '1.0'")


def test_the_hash_is_the_same_under_every_python():
    source = "class A:\n    def f(self, *a: int, b=None, **c):\n        return [x for x in a if x] + [f'{b!r:>{c}}']\n"
    assert fingerprint(source) == "909f59d85289ce38"


@pytest.mark.parametrize("function", [None, (22, 23)], ids=["a table", "a function that only the table calls"])
def test_what_no_test_executes_is_tried_first_by_the_files_that_name_its_module_then_by_its_folder_s(function):
    named, near = "tests/formats/bump/test_bump_tokenizer.py", "tests/formats/gguf/test_gguf_lazy.py"
    far = "tests/core/test_lazy.py"
    known = {
        far: {"times": {"quick": 0.25, "slow": 35.0}, "lines": {}},
        near: {"times": {"d": 0.5}, "lines": {}},
        named: {"times": {"a": 4.0, "b": 0.5, "c": 9.0}, "lines": {}},
    }
    fault = Mutant("", 23, 23, "", "", "", function)
    chosen = choose("formats/gguf/pre_tokenizers.py", fault, known, Counter({far: 9, near: 3}))
    assert chosen == [(named, ["b", "a", "c"], 13.5), (near, ["d"], 0.5), (far, ["quick"], 0.25)]


def test_a_module_with_quick_tests_of_its_own_is_tried_with_these_and_any_other_with_its_package_s():
    assert mutants.asked("core/files.py") == ["core"]
    assert mutants.asked("core/registers.py") == ["core/test_registers.py"]
    loops = mutants.asked("formats/gguf/compiled/k_quants.py")
    assert loops == ["formats/gguf/codecs/test_compiled_in_python.py"]
    assert mutants.asked("formats/gguf/compiled/vectors.py") != loops
    for what, files in mutants.FILES.items():
        assert (mutants.SOURCE / what).exists(), what
        assert all((mutants.ROOT / "tests" / file).is_file() for file in files), what
