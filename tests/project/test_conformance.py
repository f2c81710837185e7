"""The conformance suite: its files are what its generator gives, and its command tells right readers from wrong."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shlex
import sys
import zipfile
from collections import Counter
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
from places import ROOT

from conformance import record, suite
from conformance.__main__ import main
from conformance.compare import difference
from conformance.readers import ours
from conformance.run import GOOD, NOT_MINE, OUTCOMES, Said, ask, command_of, judge, report, try_all
from miniquant import FormatError

ENTRIES = suite.load()
RESULTS = json.loads(record.RESULTS.read_text("utf-8"))
PAGE = (ROOT / "book" / "conformance.md").read_text("utf-8")
README = (ROOT / "conformance" / "README.md").read_text("utf-8")


@cache
def entry(path: str) -> dict:
    return next(each for each in ENTRIES if each["path"] == path)


def accepted(reader: str, outcome: str = "wrong acceptance") -> set[str]:
    """The names of the files with that outcome."""
    return {entry(path)["name"] for path, said in RESULTS["readers"][reader]["outcomes"].items() if said[0] == outcome}


# ---- the files -------------------------------------------------------------------------------------------------------


def test_manifest_and_archive_are_what_the_generator_gives():
    """If not: ``python -m conformance make``, then ``python -m conformance record``."""
    cases = suite.cases()
    assert suite.MANIFEST.read_text("utf-8") == suite.manifest(cases)
    with zipfile.ZipFile(suite.ARCHIVE) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == suite.files(cases)


def test_the_suite_is_small_and_has_files_of_each_format_and_verdict():
    counts = Counter((each["format"], each["verdict"]) for each in ENTRIES)
    assert counts["gguf", "read"] >= 20 and counts["gguf", "refuse"] >= 140 and counts["gguf-lite", "refuse"] >= 120
    assert min(counts[kind, verdict] for kind in suite.ENDINGS for verdict in ("read", "refuse")) >= 4
    assert suite.ARCHIVE.stat().st_size < 150_000 and suite.MANIFEST.stat().st_size < 250_000
    for each in ENTRIES:
        assert each["path"].startswith(f"{each['format']}/") and each["path"].endswith(f".{each['format']}")
        assert ("expected" in each) == (each["verdict"] == "read")
        assert ("reason" in each) == (each["verdict"] != "read")


def test_no_two_files_are_the_same_and_each_malformed_one_breaks_a_rule_of_its_format():
    same = Counter((each["sha256"], str(each.get("beside")), each["format"]) for each in ENTRIES)
    assert max(same.values()) == 1
    assert all(each["reason"] for each in ENTRIES if each["verdict"] != "read")
    with pytest.raises(ValueError, match="no rule is told"):
        suite.rule("a name", "nothing of the kind")


def test_the_generator_knows_nothing_of_the_library():
    for path in (ROOT / "conformance").glob("*.py"):
        assert "miniquant import" not in path.read_text("utf-8"), path
        assert "import miniquant" not in path.read_text("utf-8"), path


def test_our_readers_do_every_file_right_and_name_field_and_byte(tmp_path):
    suite.unpack(tmp_path)
    for each in ENTRIES:
        try:
            said = ours.read(str(tmp_path / each["path"]))
        except FormatError as error:
            assert each["verdict"] != "read", each["path"]
            assert each["field"] is None or each["field"] in error.field, each["path"]
            assert each["offset"] in (None, error.offset), each["path"]
        else:
            assert each["verdict"] == "read", each["path"]
            printed = json.loads(json.dumps(said))
            assert difference(each["format"], each["expected"], printed) == ""
            assert all(
                tensor.keys() <= printed["tensors"][name].keys() for name, tensor in each["expected"]["tensors"].items()
            )


# ---- the command -----------------------------------------------------------------------------------------------------

FIRST = next(each for each in ENTRIES if each["name"] == "three keys and one tensor")
BAD = next(each for each in ENTRIES if each["name"] == "an array of arrays")
MAY = next(each for each in ENTRIES if each["name"] == "big-endian")


def printed(change=lambda said: None) -> Said:
    """A reader that prints what is expected of the first file, after a change."""
    said = copy.deepcopy(FIRST["expected"])
    change(said)
    return Said(0, json.dumps(said).encode())


@pytest.mark.parametrize(
    ("each", "said", "outcome"),
    [
        (FIRST, printed(), "right values"),
        (FIRST, Said(0, b'{"tensors": {"w": {}}}'), "right values"),
        (FIRST, Said(0, b"{}"), "wrong values"),
        (FIRST, Said(0, b"hello"), "wrong values"),
        (FIRST, Said(1), "wrong refusal"),
        (FIRST, Said(-11), "crash"),
        (FIRST, Said(139), "crash"),
        (FIRST, Said(None), "too slow"),
        (FIRST, Said(NOT_MINE), "not applicable"),
        (BAD, Said(1, b"", "no"), "right refusal"),
        (BAD, Said(0), "wrong acceptance"),
        (BAD, Said(None), "too slow"),
        (MAY, Said(1), "right refusal"),
        (MAY, Said(0), "right values"),
    ],
)
def test_every_end_of_a_reader_has_its_outcome(each, said, outcome):
    assert judge(each, said).outcome == outcome
    assert outcome in OUTCOMES and f"| {outcome} |" in README


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda said: said["metadata"].update(n=8), "metadata: n is 8, expected 7"),
        (lambda said: said["metadata"].pop("s"), "metadata: other keys"),
        (lambda said: said["metadata"].update(a=[-2, -1, 0]), "metadata: a is"),
        (lambda said: said["metadata"].update(n=True), "metadata: n is True"),
        (lambda said: said["types"].update(n="INT32"), "types: n is INT32, expected UINT32"),
        (lambda said: said["tensors"].update(v={}), "tensors: ['v', 'w']"),
        (lambda said: said["tensors"]["w"].update(dims=[2, 64]), "tensor w: dims is [2, 64], expected [64, 2]"),
        (lambda said: said["tensors"]["w"].update(type="F16"), "tensor w: type"),
        (lambda said: said["tensors"]["w"].update(offset=32), "tensor w: offset"),
        (lambda said: said["tensors"]["w"]["values"].__setitem__(5, -0.0), "tensor w: values"),
        (lambda said: said["tensors"]["w"]["values"].__setitem__(5, 1e-30), "tensor w: values"),
    ],
)
def test_a_wrong_value_anywhere_is_named(change, detail):
    found = judge(FIRST, printed(change))
    assert found.outcome == "wrong values" and detail in found.detail


@pytest.mark.parametrize(
    ("value", "said", "equal"),
    [
        (2**64 - 1, str(2**64 - 1), True),
        (2**64 - 1, float(2**64), False),
        (0.1, 0.10000000149011612, False),
        (0.10000000149011612, "0.100000001", True),
        ("NaN", "NaN", True),
        ("NaN", 0.0, False),
        ("Infinity", "-Infinity", False),
        (-0.0, "-0", True),
        (-0.0, 0.0, False),
        (1.0, 1, True),
        ("a", "b", False),
        ("7", 7, False),
        (True, 1, False),
        ([1, 2], [1, 2, 3], False),
        (1.0, None, False),
    ],
)
def test_numbers_are_compared_by_value_however_json_writes_them(value, said, equal):
    expected = {"metadata": {"a": value}, "tensors": {}}
    assert (difference("gguf", expected, {"metadata": {"a": said}, "tensors": {}}) == "") is equal


def test_a_planted_reader_is_reported_file_by_file(tmp_path, monkeypatch, capsys):
    """It reads everything, and knows one answer; it stops on one file and crashes on another."""
    chosen = [FIRST, BAD, entry("gguf/malformed/type-13.gguf"), entry("gguf/malformed/five-dims.gguf")]
    crash = "os.abort()" if os.name == "posix" else "os._exit(200)"
    script = tmp_path / "planted.py"
    script.write_text(
        "import json, os, sys, time\n"
        "if 'type-13' in sys.argv[1]: time.sleep(60)\n"
        f"if 'five-dims' in sys.argv[1]: {crash}\n"
        "print(json.dumps({'metadata': {'n': 8, 's': '', 'a': []}, 'tensors': {'w': {}}}))\n"
    )
    monkeypatch.setattr(suite, "load", lambda: chosen)
    reader, kept = shlex.join([sys.executable, "-S", str(script)]), tmp_path / "kept.json"
    assert main(["run", "--reader", reader, "--format", "gguf", "--seconds", "1.5", "--json", str(kept)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"wrong values: {FIRST['path']}: metadata: n is 8, expected 7"
    assert lines[1:3] == [f"wrong acceptance: {BAD['path']}", f"too slow: {chosen[2]['path']}: it was stopped"]
    assert lines[3].startswith(f"crash: {chosen[3]['path']}: exit code")
    assert lines[4:] == ["gguf: 1 wrong values, 1 wrong acceptance, 1 crash, 1 too slow"]
    assert json.loads(kept.read_text())[FIRST["path"]]["outcome"] == "wrong values"


def test_a_right_reader_passes_by_the_command(tmp_path):
    suite.unpack(tmp_path)
    command = command_of(shlex.join([sys.executable, str(ROOT / "conformance" / "readers" / "ours.py")]))
    found = try_all([FIRST, BAD], lambda path: ask(command, tmp_path / path, 60))
    assert [outcome.outcome for outcome in found.values()] == ["right values", "right refusal"]
    assert "metadata" in found[FIRST["path"]].parts and "element type at byte" in found[BAD["path"]].detail
    assert report([FIRST, BAD], found) == ["gguf: 1 right values, 1 right refusal"]


def test_the_example_of_the_readme_is_a_file_of_the_suite():
    example = json.loads(README.split("```json\n")[1].split("```")[0].replace("…", ""))
    expected = copy.deepcopy(FIRST["expected"])
    w, said = expected["tensors"].pop("w"), example["tensors"].pop("w")
    assert example == expected
    assert w.pop("sha256").startswith(said.pop("sha256")) and w.pop("values")[:2] == said.pop("values") and w == said


# ---- the results -----------------------------------------------------------------------------------------------------


def test_the_stored_results_are_of_this_suite_and_name_every_file():
    """If not: ``python -m conformance record``."""
    assert RESULTS["manifest"] == record.suite_hash() == hashlib.sha256(suite.MANIFEST.read_bytes()).hexdigest()
    assert list(RESULTS["readers"]) == list(record.ALL)
    for name, reader in RESULTS["readers"].items():
        assert list(reader["outcomes"]) == [e["path"] for e in ENTRIES if e["format"] in record.ALL[name].formats]
        assert {said[0] for said in reader["outcomes"].values()} <= set(OUTCOMES)
        assert list(reader["compared"]) == list(record.ALL[name].formats)


def test_the_versions_of_the_results_are_those_that_the_tests_run_with():
    found = {name: reader["version"] for name, reader in RESULTS["readers"].items()}
    for name, package in {"gguf": "gguf", "llama.cpp": "xllamacpp", "safetensors": "safetensors"}.items():
        assert found[name].startswith(f"{package} ")
    pins = (ROOT / "constraints.txt").read_text("utf-8")
    for name in ("gguf", "llama.cpp", "safetensors"):
        assert found[name].replace(" ", "==") in pins.splitlines()
    assert found["miniquant"] == f"miniquant {version('miniquant')}"
    assert set(record.NODE[:1]) == {found["@huggingface/gguf"].replace(" ", "@")}
    assert f'"{record.NODE[0]}", "{record.NODE[1]}"' in (ROOT / "tools" / "inspect_referee.py").read_text("utf-8")


def test_in_the_results_miniquant_and_safetensors_do_everything_right():
    for reader in ("miniquant", "safetensors"):
        assert {said[0] for said in RESULTS["readers"][reader]["outcomes"].values()} <= GOOD


def test_what_the_page_says_of_each_reader_is_in_the_results():
    package, ggml, browser = accepted("gguf"), accepted("llama.cpp"), accepted("@huggingface/gguf")
    assert {"two tensors that overlap", "an array of arrays", "five dims", "an empty key"} <= package - ggml
    assert {"a truth value of 2", "a truth value of 255"} <= ggml
    slow = accepted("gguf", "too slow")
    assert slow and all(name.startswith(("an array of UINT8", "an array of BOOL")) for name in slow)
    assert {"a key with a stray byte FF", "a string in Latin-1", "a name with half a character"} <= ggml
    assert accepted("llama.cpp", "wrong values") == {"a text with a zero byte"}
    assert {"tensors in another order", "a gap between tensors", "a name of 64 bytes"} <= accepted(
        "llama.cpp", "wrong refusal"
    )
    assert accepted("llama.cpp", "crash") == {"dims whose bytes overflow 64 bits", "dims of an exabyte"}
    assert {"truncated in the data, nothing left", "an offset beyond the end", "truncated in a string"} <= browser
    assert "offset" in RESULTS["readers"]["@huggingface/gguf"]["compared"]["gguf"]
    assert "values" not in RESULTS["readers"]["@huggingface/gguf"]["compared"]["gguf"]
    for kind in ("name", "metadata", "overlap", "tensor"):
        assert any(kind in name for name in accepted("readers in C"))
    assert not accepted("readers in C", "wrong values") | accepted("readers in C", "crash")


def test_the_page_reads_the_stored_results_and_types_no_number():
    prose = "".join(PAGE.split("---\n")[2:])
    cells = prose.split("```")
    text = "".join(cells[::2])
    text = text.replace("ends with 0,", "")  # an exit code
    assert not [word for word in text.split() if word.strip(".,()").isdigit()]
    assert "results.json" in PAGE and "manifest.json" in PAGE
    for reader in ("gguf", "llama.cpp", "@huggingface/gguf", "safetensors"):
        assert reader in text
    assert Path(ROOT / "book" / "_toc.yml").read_text("utf-8").count("file: book/conformance") == 1
