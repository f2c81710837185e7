"""The files that take longest are handed out first; the others stay in their order."""

from __future__ import annotations

from types import SimpleNamespace

from longest_first import LONGEST, TOGETHER, pytest_collection_modifyitems, scope_of
from places import ROOT


def test_every_file_that_goes_first_exists_and_is_named_once():
    assert [file for file in LONGEST if not (ROOT / file).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_the_longest_files_go_first_and_the_others_keep_their_order():
    names = ["tests/b.py::two", f"{LONGEST[1]}::x", "tests/a.py::one", f"{LONGEST[0]}::z", f"{LONGEST[0]}::y"]
    items = [SimpleNamespace(nodeid=name) for name in names]
    pytest_collection_modifyitems(items)
    first = [f"{LONGEST[0]}::z", f"{LONGEST[0]}::y", f"{LONGEST[1]}::x"]
    assert [item.nodeid for item in items] == [*first, "tests/b.py::two", "tests/a.py::one"]


def test_the_student_labs_come_after_the_solved_ones():
    names = [
        "notebooks/16-claims.ipynb::Cell 0",
        "notebooks/01-bytes.ipynb::Cell 0",
        "solutions/01-bytes.ipynb::Cell 0",
    ]
    items = [SimpleNamespace(nodeid=name) for name in names]
    pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == [names[2], names[0], names[1]]


def test_files_that_share_what_a_process_computes_once_are_one_unit():
    assert len({scope_of(f"{file}::test_x[a-b::c]") for file in TOGETHER}) == 1
    assert scope_of("tests/a.py::test_x[b::c]") == "tests/a.py"
