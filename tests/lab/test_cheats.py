"""Cheats and escapes: each is one small cell, and each is stopped, or passes with a flag in its row."""

# ruff: noqa: E501 a cell is one line here, so that the tables can be read

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cheats import (
    BY_THE_LIBRARY,
    CHEATS,
    ESCAPES,
    HELP,
    PACKING,
    START,
    graded,
    parameters,
    try_escapes,
    words_of,
    write,
)

from miniquant.lab import exercises, judging
from miniquant.lab.attempt import cases_of, expected_of
from miniquant.lab.grading import grade as grading
from miniquant.lab.grading.draw import drawn
from miniquant.lab.grading.inside import walls
from miniquant.lab.grading.judge import Desk, library_names
from miniquant.lab.grading.remote import stage_of
from miniquant.lab.grading.room import BARE, FREE, LIBRARY, PACKAGE, Nursery

pytestmark = pytest.mark.skipif(bool(walls.missing()), reason=f"no walls: {walls.missing()}")


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A class: its folder, a file that nobody may touch, and the words with which cells speak of them."""
    folder = tmp_path_factory.mktemp("class")
    precious = folder / "precious"
    precious.write_text("the only copy")
    precious.chmod(0o640)
    neighbour = write(folder / "neighbour" / "09-writer.ipynb", PACKING)
    return folder, words_of(folder, precious, neighbour)


@pytest.fixture(scope="module")
def desk():
    found = Desk(seed=20261124)
    yield found
    found.close()


# ---- cheats ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cheated(desk, room):
    """The grades of all cheats. Why an answer is wrong is not looked for: that comes after it was found to be wrong."""
    folder, words = room
    cells = [code.replace("NAME", name).replace("ARGS", parameters(name)) for _, name, code in CHEATS]
    path = write(folder / "cheater" / "all.ipynb", words, *cells, f"@exercise('pack_int4')\n{PACKING}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "_cause", lambda *_: ({}, frozenset()))
        return graded(desk, path)


@pytest.mark.parametrize(("title", "name"), [(title, name) for title, name, _ in CHEATS])
def test_no_cheat_passes(cheated, title, name):
    assert cheated.status(name) != "passed", (title, cheated.answers.get(name))


def test_a_right_answer_beside_all_cheats_passes(cheated):
    assert cheated.status("pack_int4") == "passed", cheated.answers.get("pack_int4")


def test_the_cases_that_were_learned_by_heart_are_not_those_of_the_grading(desk, room):
    folder, words = room
    name = "get_bits"
    spec = exercises()[name]
    table = {repr(case): outcome.result for case, outcome in zip(cases_of(spec), expected_of(spec))}
    cell = f"TABLE = {table!r}\n@exercise('{name}')\ndef {name}(ARGS):\n    return TABLE[repr((ARGS,))]"
    path = write(folder / "memory" / "01-bytes.ipynb", words, cell.replace("ARGS", parameters(name)))
    assert graded(desk, path).status(name) == "failed"


@pytest.mark.parametrize("title", BY_THE_LIBRARY)
def test_an_answer_that_calls_the_library_passes_with_a_flag(desk, room, title):
    folder, words = room
    result = graded(desk, write(folder / title / "09-writer.ipynb", words, BY_THE_LIBRARY[title]))
    assert result.answers["pack_int4"]["status"] == "passed", result.answers
    assert result.answers["pack_int4"]["flag"] == "passes only with the library"


def test_an_answer_of_ones_own_beside_imports_of_the_library_has_no_flag(desk, room):
    folder, words = room
    cell = f"import miniquant\nfrom miniquant import pack_nibbles\npack_nibbles(np.int8([1, 2]))\n@exercise('pack_int4')\n{PACKING}"
    result = graded(desk, write(folder / "own" / "09-writer.ipynb", words, cell))
    assert result.answers["pack_int4"]["status"] == "passed"
    assert "flag" not in result.answers["pack_int4"]


def test_a_link_to_a_neighbours_notebook_is_not_graded(desk, room):
    folder, _ = room
    (folder / "linker").mkdir()
    (folder / "linker" / "09-writer.ipynb").symlink_to(folder / "neighbour" / "09-writer.ipynb")
    result = graded(desk, folder / "linker" / "09-writer.ipynb")
    assert result.answers == {}
    assert result.problems


# ---- escapes ---------------------------------------------------------------------------------------------------------


def children(pid):
    """The processes whose parent is ``pid``."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


@pytest.fixture(scope="module", params=[BARE, LIBRARY])
def escaped(request, desk, room):
    """What each escape came to, with and without the library, and the room that the child had."""
    folder, words = room
    os.environ["MINIQUANT_TEST_SECRET"] = "secret"
    path = write(folder / "runaway" / "09-writer.ipynb", words + HELP)
    nursery = desk.nursery(request.param)
    with nursery.room(b"", 4096, 60) as child:
        child.until = time.monotonic() + 60
        tried = try_escapes(child, path)
        scratch = child.scratch
        assert scratch.exists()
    del os.environ["MINIQUANT_TEST_SECRET"]
    return tried, scratch, nursery


@pytest.mark.parametrize("name", ESCAPES)
def test_no_escape_succeeds(escaped, name):
    allowed = f"DONE {ESCAPES[name].split(' -> ')[1]}" if " -> " in ESCAPES[name] else None
    assert escaped[0][name] == allowed if allowed else not escaped[0][name].startswith("DONE"), escaped[0][name]


def test_nothing_is_left_of_a_hostile_notebook(escaped, room):
    _, scratch, nursery = escaped
    folder = room[0]
    assert not scratch.exists()
    assert children(nursery.process.pid) == []
    assert "stolen" not in os.listdir("/dev/shm")  # other programs write there, too
    assert not (folder / "stolen").exists()
    assert (folder / "precious").read_text() == "the only copy"


def test_nothing_is_left_when_the_grader_is_killed_while_a_notebook_runs(room, tmp_path):
    words = room[1]
    write(tmp_path / "class" / "ann" / "09-writer.ipynb", words, "open('mine', 'w').write('x'); time.sleep(60)")
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "miniquant.cli", "grade", str(tmp_path / "class"), "--out", str(tmp_path / "g")]
    with subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")}, stderr=subprocess.DEVNULL
    ) as grader:
        end = time.monotonic() + 60
        while not (mine := list((tmp_path / "tmp").rglob("mine"))) and time.monotonic() < end:
            time.sleep(0.1)
        assert mine
        (nursery,) = children(grader.pid)
        (child,) = children(nursery)
        grader.kill()
    end = time.monotonic() + 10
    while (os.path.exists(f"/proc/{child}") or list((tmp_path / "tmp").iterdir())) and time.monotonic() < end:
        time.sleep(0.1)
    assert not os.path.exists(f"/proc/{child}")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_modes_owners_and_times_of_files_stay(desk, room):
    folder, words = room
    before = (folder / "precious").stat()
    cells = "for act in (lambda: os.chmod(PRECIOUS, 0o777), lambda: os.chown(PRECIOUS, 1, 1), lambda: os.utime(PRECIOUS, (1, 1)), lambda: os.chmod(CLASS, 0)):\n    try:\n        act()\n    except OSError:\n        pass"
    graded(desk, write(folder / "modes" / "09-writer.ipynb", words, cells))
    after = (folder / "precious").stat()
    assert (before.st_mode, before.st_uid, before.st_mtime) == (after.st_mode, after.st_uid, after.st_mtime)


def test_a_full_folder_ends_the_notebook(desk, room, monkeypatch):
    folder, words = room
    monkeypatch.setattr("miniquant.lab.grading.room.FILES", 300)
    cell = "number = 0\nwhile True:\n    number += 1\n    open(f'f{number}', 'w').close(); time.sleep(0.001)"
    result = graded(desk, write(folder / "full" / "09-writer.ipynb", words, cell, f"@exercise('pack_int4')\n{PACKING}"))
    assert result.status("pack_int4") == "passed"
    assert any("kept more than" in problem for problem in result.problems)


# ---- what the walls rest on ------------------------------------------------------------------------------------------


def test_no_module_that_a_notebook_may_import_has_a_solution_or_an_oracle():
    references = {spec.reference.__name__ for spec in map(exercises().__getitem__, exercises())}
    for name in FREE:
        text = (PACKAGE / "lessons" / f"{name}.py").read_text()
        assert "EXERCISE =" not in text
        assert "def oracle" not in text
        assert not [found for found in references if f"def {found}(" in text], name


def test_what_runs_beside_a_student_is_in_a_module_that_may_be_imported():
    staged = {name for name in exercises() if stage_of(exercises()[name])}
    assert staged == {"load_restricted", "layer_outputs", "layer_errors", "model_shapes"}
    for name in staged:
        module = stage_of(exercises()[name]).partition(":")[0]
        assert module.removeprefix("miniquant.lessons.").replace(".", "/") in FREE


def test_a_grader_without_walls_refuses_code_unless_it_is_trusted(monkeypatch, tmp_path):
    write(tmp_path / "a" / "09-writer.ipynb", START, f"@exercise('pack_int4')\n{PACKING}")
    start = Nursery.start

    def without(self):
        start(self)
        self.missing = "this kernel has no Landlock"

    monkeypatch.setattr(Nursery, "start", without)
    with pytest.raises(ValueError, match=r"no Landlock.*--trust"):
        grading.grade(tmp_path)
    (result,) = grading.grade(tmp_path, trust=True)
    assert result.status("pack_int4") == "passed"


def test_there_are_more_than_sixty_cheats_and_escapes():
    assert len({*ESCAPES, *BY_THE_LIBRARY, *(title for title, *_ in CHEATS)}) > 100


def test_the_flag_knows_what_a_solution_uses_itself():
    assert library_names(exercises()["pack_int4"]) == set()
    assert library_names(exercises()["read_file"])


def test_cases_are_drawn_anew_and_are_right():
    one, again, other = drawn("get_bits", 1), drawn("get_bits", 1), drawn("get_bits", 2)
    assert one is again
    assert repr(cases_of(one)) != repr(cases_of(other))
    assert len(cases_of(one)) == len(cases_of(exercises()["get_bits"]))
