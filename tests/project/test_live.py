"""The tools of the live site: every file is checked, pages are marked once, and a cell says what it lacks."""

import asyncio
import importlib
import io
import json
import sys
import zipfile
from pathlib import Path

import live
import pytest

from miniquant.inspect.inspector import Inspector

ROOT = Path(__file__).resolve().parents[2]


def pinned(sha: str, name: str = "one") -> list[dict]:
    return [{"name": name, "version": "1.0", "kind": "npm", "files": {f"package/{name}.js": [f"{name}.js", sha]}}]


def test_a_file_with_another_sha256_is_refused(tmp_path, monkeypatch):
    (tmp_path / "one.js").write_bytes(b"other")
    monkeypatch.setenv("PYODIDE_DIST", str(tmp_path))
    with pytest.raises(live.LiveError, match=r"package/one\.js of one 1\.0 has SHA-256 d9298a1"):
        live.fetch(pinned("0" * 64), tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_folder_of_files_is_enough_and_nothing_is_fetched(tmp_path, monkeypatch):
    (tmp_path / "one.js").write_bytes(b"right")
    monkeypatch.setenv("PYODIDE_DIST", str(tmp_path))
    live.fetch(pinned(live.digest(b"right")), tmp_path / "store")
    assert (tmp_path / "store" / "one.js").read_bytes() == b"right"
    (tmp_path / "one.js").unlink()
    live.fetch(pinned(live.digest(b"right")), tmp_path / "store")  # it lies in the store


def test_a_folder_without_the_files_says_which_package_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PYODIDE_DIST", str(tmp_path))
    with pytest.raises(live.NotToBeHad, match=r"neither the files of two 1\.0 nor its archive"):
        live.fetch(pinned("0" * 64, "two"), tmp_path / "store")


def test_a_broken_archive_is_named(tmp_path, monkeypatch):
    (tmp_path / "two-1.0.tgz").write_bytes(b"half of it")
    monkeypatch.setenv("PYODIDE_DIST", str(tmp_path))
    with pytest.raises(live.LiveError, match=r"two-1\.0\.tgz is no archive"):
        live.fetch(pinned("0" * 64, "two"), tmp_path / "store")


def test_formats_are_left_out_where_their_compiler_cannot_be_had_and_fail_where_it_is_another(
    tmp_path, monkeypatch, capsys
):
    import kaitai

    kaitai.compiled.cache_clear()  # what another test has compiled
    monkeypatch.setattr(kaitai, "STORE", tmp_path / "store")
    monkeypatch.setenv("PYODIDE_DIST", str(tmp_path))
    assert kaitai.main() == 3
    assert "has neither the files of kaitai-struct-compiler" in capsys.readouterr().out
    (tmp_path / "kaitai-struct-compiler.js").write_bytes(b"another")
    assert kaitai.main() == 1
    assert "has SHA-256" in capsys.readouterr().out


def test_a_client_that_is_missing_or_fails_is_told_apart_from_a_wrong_file(tmp_path, monkeypatch):
    monkeypatch.delenv("PYODIDE_DIST", raising=False)
    monkeypatch.setattr(live, "ROOT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(live.NotToBeHad, match=r"npm cannot fetch three 1\.0"):
        live.fetch(pinned("0" * 64, "three"), tmp_path / "store")


def test_every_pinned_file_has_its_sha256_and_its_licence():
    pins = json.loads((ROOT / "tools" / "live_files.json").read_text("utf-8"))
    files = [entry for package in pins["packages"] for entry in package["files"].values()]
    assert all(len(sha) == 64 and not place.startswith("/") for place, sha in files)
    assert len({place for place, _ in files}) == len(files)
    assert all(package["licence"] and package["version"] for package in pins["packages"])


def test_cells_get_their_ids_once_and_the_script_stands_once(tmp_path):
    page, notebook = tmp_path / "a.html", tmp_path / "a.ipynb"
    box = '<div class="cell tag_hide docutils container">'
    page.write_text(f"<head></head><h1>A</h1><article><h1>A</h1>{box}1</div>{box}2</div></article>", "utf-8")
    cells = [{"cell_type": kind, "id": name} for kind, name in (("code", "x"), ("markdown", "y"), ("code", "z"))]
    notebook.write_text(json.dumps({"cells": cells}), "utf-8")
    live.mark(page, notebook, 12_400_000)
    first = page.read_text("utf-8")
    assert [first.count(f'data-cell="{name}"') for name in "xyz"] == [1, 0, 1]
    assert first.count("_live/live.js") == first.count("_live/live.css") == first.count("it loads 12 MB") == 1
    assert first.index("<article><h1>A</h1><div") < first.index("Try it here") < first.index("data-cell")
    live.mark(page, notebook, 12_400_000)
    assert page.read_text("utf-8") == first
    notebook.write_text(json.dumps({"cells": cells[:1]}), "utf-8")
    with pytest.raises(live.LiveError, match=r"a\.html has 2 code cells, its notebook 1"):
        live.mark(page, notebook, 12_400_000)


def test_modules_of_the_editor_find_each_other_by_file(tmp_path):
    file = tmp_path / "a.js"
    file.write_text("import { x, y } from '@c/state';\nexport * from \"./b.js\";\nimport 'crelt';\n", "utf-8")
    live.relative_imports(tmp_path, {"@c/state": "c-state.js", "crelt": "crelt.js"})
    assert (
        file.read_text("utf-8")
        == "import { x, y } from './c-state.js';\nexport * from \"./b.js\";\nimport './crelt.js';\n"
    )
    file.write_text("import z from 'other';\n", "utf-8")
    with pytest.raises(live.LiveError, match="imports other"):
        live.relative_imports(tmp_path, {})


def test_the_wheel_has_the_library_without_the_models(tmp_path):
    beside = live.wheel(tmp_path / "w.whl")
    assert "minigpt.safetensors" in beside and "evaluation.txt" not in beside
    assert (tmp_path / "w.whl").stat().st_size < 2_000_000


def test_modules_that_are_loaded_are_compiled_and_import_without_their_source(tmp_path, monkeypatch):
    import live_compile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("loaded_first.py", "value = 6 * 7")
        archive.writestr("loaded_never.py", "value = 0")
        archive.writestr("loaded_first.pyi", "value: int")
    place = tmp_path / "a.zip"
    place.write_bytes(live_compile.compiled(packed.getvalue(), str(place), [f"{place}/loaded_first.py"], False))
    assert zipfile.ZipFile(place).namelist() == ["loaded_first.pyc", "loaded_never.py"]
    monkeypatch.syspath_prepend(str(place))
    assert importlib.import_module("loaded_first").value == 42


def test_a_compiled_module_of_the_library_keeps_its_source_beside_it(tmp_path):
    import live_compile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/b.py", "value = 1")
    made = live_compile.compiled(packed.getvalue(), "/x", ["/x/a/b.py"], True)
    names = zipfile.ZipFile(io.BytesIO(made)).namelist()
    assert names == [f"a/__pycache__/b.{sys.implementation.cache_tag}.pyc", "a/b.py"]


@pytest.fixture
def shell(monkeypatch, tmp_path):
    import builtins
    import signal

    import shell as page

    modules, path = dict(sys.modules), Path.cwd()
    monkeypatch.setattr(signal, "setitimer", signal.setitimer)
    monkeypatch.setattr(signal, "getitimer", signal.getitimer)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(builtins, "display", None, raising=False)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    outputs = []

    async def load(names):
        outputs.append(json.loads(names))

    made = page.Shell(lambda text: outputs.append(json.loads(text)), lambda *_: None, load)

    def run(source, cell="c", page=()):
        return json.loads(asyncio.run(made.run(cell, source, json.dumps(list(page))))), outputs

    yield run
    for name in set(sys.modules) - set(modules):
        if name == "__main__" or name.startswith("IPython"):
            del sys.modules[name]
    sys.modules.update({name: modules[name] for name in modules if name == "__main__" or name.startswith("IPython")})
    assert path


def test_the_last_expression_is_shown_and_print_is_a_stream(shell):
    done, outputs = shell("x = 2\nprint('a')\nx + 1")
    assert done["state"] == "done" and done["needs"] == ""
    kinds = {output["output_type"]: output for output in outputs}
    assert kinds["stream"]["text"] == "a\n"
    assert kinds["execute_result"]["data"] == {"text/plain": "3"}


def test_what_needs_an_absent_library_is_left_out_and_the_rest_runs(shell):
    done, outputs = shell("import xllamacpp_absent_for_sure as a\n")
    assert done["state"] == "error"  # an unknown library is an ordinary error
    import shell as page

    page.stand_ins.NOT_HERE.add("nowhere_at_all")
    done, outputs = shell("import nowhere_at_all as t\nbefore = 1\nmodel = t.load()\nafter = model + 1\nprint(before)")
    assert (done["state"], done["needs"]) == ("left out", "nowhere_at_all")
    assert outputs[-1] == {"output_type": "stream", "name": "stdout", "text": "1\n"}


@pytest.fixture
def lab(shell, monkeypatch):
    """Runs cells of a lab by their number, with one library that is not here; what the page is told of the last one."""
    import stand_ins

    monkeypatch.setattr(stand_ins, "NOT_HERE", {*stand_ins.NOT_HERE, "nowhere_at_all"})

    def run(sources, chosen, edited=()):
        page = [{"id": f"c{n}", "source": source, "edited": n in edited} for n, source in enumerate(sources)]
        told = [shell(page[n]["source"], page[n]["id"], page) for n in chosen]
        return told[-1]

    return run


LEFT_OUT = ["import nowhere_at_all as t", "model = t.load()", "top = model.layers[0]", "print(top)"]


def test_a_cell_names_the_earlier_one_that_was_left_out_and_what_that_one_needs(lab):
    first, second = (lab(LEFT_OUT, range(n))[0] for n in (3, 4))
    assert (first["state"], first["needs"]) == (second["state"], second["needs"]) == ("left out", "nowhere_at_all")
    assert [each["first"]["cell"] for each in (first, second)] == ["c1", "c2"]
    assert [each["first"]["name"] for each in (first, second)] == ["model", "top"]
    assert lab(LEFT_OUT, range(2))[0]["first"] is None  # it needs the library itself


@pytest.mark.parametrize(
    ("above", "chosen", "state"),
    [("w = 1", [1], "not run"), ("w = 1 / 0", [0, 1], "error"), ("w = [", [1], None), ("v = 1", [0, 1], None)],
)
def test_a_name_that_no_cell_made_leads_to_the_cell_that_makes_it(lab, above, chosen, state):
    done, outputs = lab([above, "print(w)"], chosen)
    assert done["state"] == "error" and done["needs"] == ""
    assert (done["first"] or {"state": None})["state"] == state
    assert ("Is `w` spelled right?" in str(outputs[-1])) == (state is None)


def test_the_nearest_cell_above_makes_a_name_and_else_the_first_below(lab):
    sources = ["w = 1", "w = 2", "print(w)", "w = 3", "w = 4"]
    assert lab(sources, [2])[0]["first"]["cell"] == "c1"
    assert lab(sources[2:], [0])[0]["first"]["cell"] == "c1"


def test_a_missing_library_does_not_hide_an_error_that_has_nothing_to_do_with_it(lab):
    sources = [*LEFT_OUT[:2], "def f():\n    return ()", "row = f()", "print(row[0])"]
    done, outputs = lab(sources, range(5), edited=[2])
    assert (done["state"], done["first"]) == ("error", None)
    assert outputs[-1]["ename"] == "IndexError"


def test_what_a_left_out_cell_should_have_filled_or_written_is_its_fault(lab):
    table = ["import nowhere_at_all as t\nfound = {}", "found['a'] = t.load()", "print(found['a'])"]
    done = lab(table, range(3))[0]
    assert (done["state"], done["first"]["cell"], done["first"]["name"]) == ("left out", "c1", "found")
    file = [LEFT_OUT[0], "t.save('a.bin')", "open('a.bin')"]
    done = lab(file, range(3))[0]
    assert (done["state"], done["first"]["cell"], done["first"]["name"]) == ("left out", "c1", "a.bin")
    assert lab(["1", "open('a.bin')"], range(2))[0]["state"] == "error"
    done = lab([*LEFT_OUT[:2], "open('../experiments/a.json')"], range(3))[0]
    assert (done["needs"], done["title"], done["first"]) == ("folder", "a file from the folder of the course", None)


def test_a_cell_that_needs_what_took_too_long_says_so(lab, monkeypatch):
    import shell as page

    monkeypatch.setattr(page, "SECONDS", 0.05)
    endless = ["while True:\n    w = 1", "print(w + 1)"]
    from miniquant.lab import limit

    def stopped(_):
        raise limit.TooSlow("long")

    monkeypatch.setattr(limit, "time_limit", stopped)
    assert lab(endless, [0])[0]["needs"] == "time"
    monkeypatch.undo()
    done = lab(endless, [1])[0]
    assert (done["state"], done["needs"], done["first"]["cell"]) == ("left out", "time", "c0")


def test_an_error_shows_the_cell_alone_and_a_name_gets_advice(shell):
    done, outputs = shell("def f():\n    return wieghts\nf()")
    assert done["state"] == "error"
    error = next(output for output in outputs if output["output_type"] == "error")
    assert error["ename"] == "NameError" and "return wieghts" in "\n".join(error["traceback"])
    assert "shell.py" not in "\n".join(error["traceback"])
    assert "Is `wieghts` spelled right?" in outputs[-1]["text"]


def test_a_cell_that_only_shows_is_told_from_one_that_defines():
    import shell as page

    showing, defining = ("check(f)", "plots.curves(x)", "guess"), ("f = 1", "p.write_bytes(b)", "1 +")
    assert all(map(page.only_shows, showing)) and not any(map(page.only_shows, defining))


def test_the_samples_of_the_inspector_open_or_say_what_is_wrong_and_its_script_stands_once(tmp_path):
    page = tmp_path / "book" / "inspector.html"
    page.parent.mkdir()
    page.write_text("<head></head>", "utf-8")
    for number in (1, 2):
        live.inspect(tmp_path, tmp_path / str(number))
    assert page.read_text("utf-8").count('src="../_live/inspect.js"') == 1
    samples = json.loads((tmp_path / "1" / "samples" / "samples.json").read_text("utf-8"))
    wrong = {"wrong-count.gguf": "header.n_tensors", "cut.gguf": ": offset", "wrong-magic.gguf-lite": "header.magic"}
    for sample in samples:
        assets = ROOT / "src" / "miniquant"
        where = {url: (assets if url.startswith("assets/") else tmp_path / "1") / url for url in
                 (sample["url"], *sample["beside"].values())}  # fmt: skip
        beside = {name: where[url].read_bytes() for name, url in sample["beside"].items()}
        seen = Inspector(where[sample["url"]].read_bytes(), beside)
        if sample["file"] in wrong:
            assert seen.error.field.endswith(wrong[sample["file"]])
        else:
            assert seen.error is None and (seen.file is None) == bool(seen.refused)
    refused = [sample["file"] for sample in samples if sample["file"].endswith((".pt", ".pkl"))]
    assert refused == ["norms.pt", "command.pkl"]
