"""A name that no cell has defined yet: the notebook says which cells to run."""

import io
from contextlib import redirect_stdout

import pytest
from IPython.core.interactiveshell import InteractiveShell

from miniquant.lab.unknown_name import watch


@pytest.fixture
def shell():
    made = InteractiveShell.instance()
    watch()
    yield made
    InteractiveShell.clear_instance()


def shown(shell, code):
    """What a cell prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        shell.run_cell(code)
    return out.getvalue()


def test_a_check_whose_function_was_not_defined_names_the_cell_to_run(shell):
    text = shown(shell, "from miniquant.lab import check\ncheck(pack_int4)")
    assert "NameError" in text
    assert text.rstrip().endswith("Run the cell that defines `pack_int4`, and the cells above it, first.")


def test_a_name_of_the_lab_says_how_it_is_imported(shell):
    text = shown(shell, "hint(pack_int4)")
    assert text.rstrip().endswith("Does it not import `hint`? Type `from miniquant.lab import hint`.")


def test_any_other_name_may_be_misspelled_or_stand_in_a_cell_above(shell):
    text = shown(shell, "print(wieghts)")
    assert text.rstrip().endswith("run the cells above this one first: one of them defines it.")


def test_other_errors_are_shown_as_ever(shell):
    assert "run the cells above" not in shown(shell, "1 / 0").lower()


def test_without_a_notebook_nothing_is_changed():
    watch()
