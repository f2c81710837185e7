"""The wall of WebAssembly: the same cheats and escapes as at the kernel's, and the ways by JavaScript."""

# ruff: noqa: E501 a cell is one line here, so that the tables can be read

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from cheats import BY_THE_LIBRARY, CHEATS, ESCAPES, HELP, PACKING, graded, parameters, try_escapes, words_of, write

from miniquant.core.errors import MiniquantError
from miniquant.lab.grading.judge import Desk
from miniquant.lab.grading.room import BARE, Gone
from miniquant.lab.grading.wasm import pack, pyodide_folder

PYODIDE = Path(os.environ.get("PYODIDE_DIST", "/nowhere"))
needs_wasm = pytest.mark.skipif(
    not shutil.which("node") or not (PYODIDE / "pyodide.asm.wasm").exists(),
    reason="two minutes, with Node and the folder of Pyodide in PYODIDE_DIST; make live makes one: _build/live_files/pyodide",
)
# of the escapes of the other wall, those that act on the memory of WebAssembly alone, where each notebook has its own
HARMLESS = {
    "make a device", "make a link there", "make a folder there", "create a file", "change the clock",
    "take much memory", "map much memory", "write a large file", "open many files", "the descriptors", "open a socket", "look up a host", "write to the shared memory",
    "other folders of work", "see the class", "a secret of the grader's",
}  # fmt: skip
BY_JAVASCRIPT = {
    "import JavaScript": "__import__('js').process.pid",
    "import Pyodide": "__import__('pyodide_js').FS",
    "import Pyodide's Python": "__import__('pyodide').code.run_js('1')",
    "import its core": "__import__('_pyodide_core').run_js",
    "load its core": "importlib.machinery.BuiltinImporter.load_module('_pyodide_core').run_js",
    "find its core": "importlib.util.module_from_spec(importlib.machinery.BuiltinImporter.find_spec('_pyodide_core')).JsProxy",
    "make code of text": "first(lambda each: each.constructor.constructor('return process')())",
    "reach the process": "first(lambda each: each.process.pid)",
    "reach Node's parts": "first(lambda each: each.getBuiltinModule('fs') or each.binding('fs') or each.mainModule)",
    "read by Node": "first(lambda each: each.readFileSync('/etc/passwd'))",
    "mount a folder of the host": "first(lambda each: each.mountNodeFS('/host', '/') or os.listdir('/host'))",
    "mount by Emscripten": "first(lambda each: each.mount(each.filesystems.NODEFS, {'root': '/'}, '/notebook') or open('/notebook/etc/passwd').read())",
    "fetch by JavaScript": "first(lambda each: each.fetch('http://127.0.0.1'))",
    "start a worker": "first(lambda each: each.Worker.new('data:text/javascript,1'))",
    "import by JavaScript": "first(lambda each: each.require('fs'))",
    "load a package": "settled(first(lambda each: each.loadPackage('/etc/passwd')))",
    "open the line again": "os.open('/dev/line', os.O_RDWR)",
    "read the host's root": "open(SOLUTIONS + '/../pyproject.toml').read()",
}
WALK = """
def of_javascript():
    found, waiting = [], [*gc.get_objects(), *sys.modules.values()]
    frame = sys._getframe()
    while frame:
        waiting += [*frame.f_globals.values(), *frame.f_locals.values()]
        frame = frame.f_back
    proxies = [each for each in waiting if 'js' in type(each).__name__.lower() or 'pyodide' in str(type(each).__module__)]
    for deep in range(3):
        for proxy in list(proxies):
            for name in dir(proxy):
                try:
                    value = getattr(proxy, name)
                except BaseException:
                    continue
                if 'js' in type(value).__name__.lower() and len(proxies) < 2000:
                    proxies.append(value)
    return proxies
def first(act):
    for each in of_javascript():
        try:
            return act(each)
        except BaseException:
            continue
    raise LookupError('none of them did')
def settled(promise):
    time.sleep(0.5)
    if not promise.done():
        raise TimeoutError('a promise that nobody keeps')
    return promise
"""
SAYING = HELP.replace(
    "        try:\n            tried[name]",
    "        os.write(2, f'try {name}\\n'.encode())\n        try:\n            tried[name]",
)


def test_what_is_packed_for_a_students_process_is_all_that_it_imports(tmp_path):
    with zipfile.ZipFile(BytesIO(pack(BARE))) as packed:
        packed.extractall(tmp_path)
    package = tmp_path / "miniquant"
    start = f"import nursery, pathlib; nursery.prepare(pathlib.Path({str(package)!r}), library=False)"
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=package / "lab/grading/inside", capture_output=True, text=True
    )
    assert not done.returncode, done.stderr


@pytest.fixture(scope="module")
def desk():
    found = Desk(seed=20261124, wasm=str(PYODIDE))
    yield found
    found.close()


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    (folder / "precious").write_text("the only copy")
    neighbour = write(folder / "neighbour" / "09-writer.ipynb", PACKING)
    return folder, words_of(folder, folder / "precious", neighbour)


@pytest.fixture(scope="module")
def cheated(desk, room):
    folder, words = room
    cells = [code.replace("NAME", name).replace("ARGS", parameters(name)) for _, name, code in CHEATS]
    path = write(folder / "cheater" / "all.ipynb", words, *cells, f"@exercise('pack_int4')\n{PACKING}")
    return graded(desk, path, 300)


@needs_wasm
@pytest.mark.parametrize(("title", "name"), [(title, name) for title, name, _ in CHEATS])
def test_no_cheat_passes_in_webassembly(cheated, title, name):
    assert cheated.status(name) != "passed", (title, cheated.answers.get(name))


@needs_wasm
def test_a_right_answer_beside_all_cheats_passes_in_webassembly(cheated):
    assert cheated.status("pack_int4") == "passed", (cheated.answers.get("pack_int4"), cheated.problems)


@needs_wasm
def test_an_answer_that_calls_the_library_passes_with_a_flag_in_webassembly(desk, room):
    folder, words = room
    result = graded(desk, write(folder / "user" / "09-writer.ipynb", words, BY_THE_LIBRARY["imported"]), 120)
    assert result.answers["pack_int4"]["status"] == "passed", result.answers
    assert result.answers["pack_int4"]["flag"] == "passes only with the library"


@pytest.fixture(scope="module")
def escaped(desk, room):
    """What each escape came to. Some end the worker: then the rest is tried in a new one."""
    folder, words = room
    left, found = {**ESCAPES, **BY_JAVASCRIPT}, {}
    while left:
        path = write(folder / "runaway" / "09-writer.ipynb", words, f"ESCAPES = {left!r}\n{WALK}", SAYING)
        with desk.nursery(BARE).room(b"", 2048, 60) as child:
            try:
                found |= try_escapes(child, path)
            except Gone as gone:
                found[re.findall(r"try (.*)", child.kept)[-1]] = gone.why
        left = {name: code for name, code in left.items() if name not in found}
    return found


@needs_wasm
@pytest.mark.parametrize("name", [name for name in (*ESCAPES, *BY_JAVASCRIPT) if name not in HARMLESS])
def test_no_escape_succeeds_in_webassembly(escaped, name):
    assert not escaped[name].startswith("DONE"), escaped[name]


@needs_wasm
def test_what_a_notebook_keeps_in_its_memory_has_an_end(desk, room):
    folder, words = room
    cell = "kept = [open(f'f{i}', 'wb').truncate(1 << 30) for i in range(100)]"
    result = graded(
        desk, write(folder / "large" / "09-writer.ipynb", words, cell, f"@exercise('pack_int4')\n{PACKING}")
    )
    assert result.status("pack_int4") == "passed", result.problems
    assert any("code cell 2, line 1" in problem for problem in result.problems)


@needs_wasm
def test_no_file_of_the_host_changes(escaped, room):
    folder = room[0]
    assert not (folder / "stolen").exists()
    assert (folder / "precious").read_text() == "the only copy"


@needs_wasm
def test_a_notebook_without_an_end_costs_its_exercise_alone(desk, room):
    folder, words = room
    endless = "@exercise('choose_dtypes')\ndef choose_dtypes(state, schemes):\n    while True:\n        pass"
    result = graded(
        desk, write(folder / "slow" / "09-writer.ipynb", words, endless, f"@exercise('pack_int4')\n{PACKING}"), 60
    )
    assert result.status("pack_int4") == "passed", result.answers
    assert result.status("choose_dtypes") == "timed out"


@needs_wasm
def test_an_exercise_that_needs_pytorch_is_named_and_not_graded(desk, room):
    folder, words = room
    cell = "@exercise('kept_bytes')\ndef kept_bytes(tensors):\n    return 1"
    result = graded(desk, write(folder / "torch" / "02-what-a-model-is.ipynb", words, cell), 60)
    assert result.status("kept_bytes") == "missing"
    assert any("kept_bytes is not graded: it needs PyTorch" in problem for problem in result.problems)


@needs_wasm
def test_node_ends_with_the_grader(room, tmp_path):
    write(tmp_path / "class" / "ann" / "09-writer.ipynb", room[1], "time.sleep(60)")
    command = [sys.executable, "-m", "miniquant.cli", "grade", str(tmp_path / "class"), "--out", str(tmp_path / "g")]
    with subprocess.Popen([*command, "--wasm", str(PYODIDE)], stderr=subprocess.DEVNULL) as grader:
        end = time.monotonic() + 60
        while not (found := _nodes(grader.pid)) and time.monotonic() < end:
            time.sleep(0.1)
        assert found
        grader.kill()
    end = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in found) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in found)


def _nodes(parent):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        if int(text.rsplit(")", 1)[1].split()[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def test_a_folder_that_is_no_pyodide_is_refused_with_what_is_missing(tmp_path):
    (tmp_path / "pyodide.mjs").touch()
    with pytest.raises(MiniquantError, match=r"has no pyodide.asm.mjs, .*--wasm FOLDER, or make the live site first"):
        pyodide_folder(str(tmp_path))
