"""The code of a notebook outside Jupyter: what IPython runs is kept, magics are not, a bad cell costs only itself."""

from __future__ import annotations

import ast
import json

import pytest

from miniquant.core.errors import MiniquantError
from miniquant.lab.notebook import definitions, read_code, statements_of


def notebook(folder, *cells):
    path = folder / "09-writer.ipynb"
    found = {"cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    path.write_text(json.dumps(found), "utf-8")
    return path


def kept(source):
    return [ast.unparse(statement) for statement in statements_of(source)]


@pytest.mark.parametrize(
    ("source", "statements"),
    [
        ("x = (7\n% 2)", ["x = 7 % 2"]),
        ("np.zeros?\nx = 1", ["x = 1"]),
        ("?np.zeros\nx = 1", ["x = 1"]),
        ("files = %who_ls\nx = 1", ["files = None", "x = 1"]),
        ("files = !ls\nx = 1", ["files = None", "x = 1"]),
        ("%matplotlib inline\n!pip list\nx = 1", ["x = 1"]),
        ("def f(x):\n    %timeit g()\n    return x", ["def f(x):\n    None\n    return x"]),
        ("%time x = f()", ["x = f()"]),
        ("%timeit x = f()", []),
        ("%%time\ndef f(x):\n    return x", ["def f(x):\n    return x"]),
        ("%%capture out\n%%time\nx = 1", ["x = 1"]),
        ("%%bash\nx=1", []),
        ("%%writefile helper.py\nx = 1", []),
        (">>> x = 1\n>>> y = 2", ["x = 1", "y = 2"]),
        ("MASKS.append(15)", ["MASKS.append(15)"]),
        ("text = '''\n%matplotlib inline\n'''", ["text = '\\n%matplotlib inline\\n'"]),
    ],
)
def test_what_ipython_would_run_is_kept_and_magics_are_not(source, statements):
    assert kept(source) == statements


@pytest.mark.parametrize(
    "bad",
    ["def broken(:", "x = '\ud800'", "(" * 300 + ")" * 300, "-" * 100_000 + "1", "x = 1 +" * 20_000 + "1", "\0"],
    ids=["syntax", "surrogate", "parentheses", "minus", "sum", "zero"],
)
def test_a_cell_that_cannot_be_read_costs_only_itself(tmp_path, bad):
    code = read_code(notebook(tmp_path, "x = 1", bad, ["y = 2\n", "z = 3"]))
    texts = [ast.unparse(step.code) for step in code.steps if step.place != "code cell 2, line 1"]
    assert texts == ["x = 1", "y = 2", "z = 3"]
    assert [step.place for step in code.steps][-1] == "code cell 3, line 2"
    assert all(line.startswith("code cell 2 is left out: ") for line in code.lost)


def test_the_surrogate_that_python_can_write_is_kept(tmp_path):
    assert len(read_code(notebook(tmp_path, "x = '\\ud800'")).steps) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', '{"cells": [{"cell_type": "code"}]}', "[" * 100_000])
def test_a_file_that_is_no_notebook_is_refused_with_its_name(tmp_path, text):
    path = tmp_path / "09-writer.ipynb"
    path.write_text(text, "utf-8")
    with pytest.raises(MiniquantError, match="is no notebook"):
        read_code(path)


def test_definitions_are_the_steps_that_do_nothing_else(tmp_path):
    cells = [
        "import struct\nfrom math import pi",
        "MASKS = [1, 2]\nMASKS.append(15)\nMASKS += [3]\nT: dict = {}\nT.update(m=15)",
        "model = train()\nmodel.eval()\nprint(MASKS)\nMASKS.append(slow())\nfor i in range(9): pass",
        "def f():\n    return slow()\nclass A: pass",
    ]
    found = [ast.unparse(step.code).split("\n")[0] for step in definitions(read_code(notebook(tmp_path, *cells)).steps)]
    assert found == [
        "import struct",
        "from math import pi",
        "MASKS = [1, 2]",
        "MASKS.append(15)",
        "MASKS += [3]",
        "T: dict = {}",
        "T.update(m=15)",
        "def f():",
        "class A:",
    ]
