"""The assignment's deliverable, experiments/26-gguf-export/, as a student runs it, and the walk through bit-packing."""

import contextlib
import copy
import doctest
import hashlib
import importlib
import io
import json
import multiprocessing
import platform
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

from miniquant import open_gguf_lite
from miniquant.formats.gguf_lite.write import encode_descriptor

FOLDER = ROOT / "experiments" / "26-gguf-export"
SCRIPTS = ("export", "load", "verify", "report")
MACHINE = ("versions", "hardware")  # the parts of the manifest that differ between machines


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a script as ``python SCRIPT …`` does, in this process: its exit code, standard output and standard error."""

    def as_main(script: str, *arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [str(FOLDER / script), *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(FOLDER / script), run_name="__main__")
        return end.value.code or 0, *capsys.readouterr()

    return as_main


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Written by a process of its own, which has nothing but the script's folder."""
    out = tmp_path_factory.mktemp("exported")
    how = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"  # a copy has torch already
    process = multiprocessing.get_context(how).Process(target=alone, args=("export.py", "--out", str(out)))
    process.start()
    process.join(240)
    assert process.exitcode == 0
    return out


def alone(script: str, *arguments: str) -> None:
    """What ``python SCRIPT …`` does, in a process that ends with it."""
    elsewhere = [place for place in sys.path if not Path(place).is_relative_to(ROOT / "experiments")]
    sys.path[:] = [str(FOLDER), *elsewhere]
    for name in SCRIPTS:
        sys.modules.pop(name, None)
    sys.argv = [str(FOLDER / script), *arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")


@pytest.fixture(scope="module")
def scripts():
    """export, load, verify and report as modules; they import each other by those names."""
    return {name: importlib.import_module(name) for name in SCRIPTS}


@pytest.fixture(scope="module")
def watched(scripts):
    """What ``verify.py --quick`` measures, on fewer windows, and what it shows on stderr meanwhile."""
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        return scripts["verify"].measure(limit=2), shown.getvalue()


@pytest.fixture(scope="module")
def measured(watched):
    return watched[0]


@pytest.fixture
def found(measured):
    return copy.deepcopy(measured)


def test_export_writes_the_committed_manifest_but_for_versions_and_hardware(exported):
    written = json.loads((exported / "manifest.json").read_text())
    committed = json.loads((FOLDER / "manifest.json").read_text())
    assert all(written.pop(part) and committed.pop(part) for part in MACHINE)
    assert written == committed


def test_the_manifest_hashes_and_weighs_the_file_beside_it(exported):
    manifest = json.loads((exported / "manifest.json").read_text())
    data = (exported / "minigpt.gguf-lite").read_bytes()
    sizes = manifest["sizes"]
    assert manifest["sha256"]["minigpt.gguf-lite"] == hashlib.sha256(data).hexdigest()
    assert sizes["file"] == len(data) == sum(sizes[part] for part in ("header", "metadata", "descriptors", "data"))
    assert sizes["ratio"] == round(sizes["torch_save"] / len(data), 4) >= 6


def test_the_manifest_tells_the_kind_of_machine_and_not_whose_it_is(exported):
    manifest = json.loads((exported / "manifest.json").read_text())
    text = json.dumps(manifest)
    assert set(manifest["versions"]) == {"python", "numpy", "torch", "miniquant"}
    assert set(manifest["hardware"]) == {"cpu", "cores", "system"}
    assert str(Path.home()) not in text and str(exported) not in text
    assert platform.node() not in manifest["hardware"].values()


def test_two_exports_are_equal_to_the_byte(exported, scripts, tmp_path):
    scripts["export"].export("int4-small-embeddings", tmp_path)
    for name in ("minigpt.gguf-lite", "manifest.json"):
        assert (tmp_path / name).read_bytes() == (exported / name).read_bytes(), name


def test_an_unknown_preset_is_refused_and_nothing_is_written(run, tmp_path):
    code, _, said = run("export.py", "--preset", "int5", "--out", tmp_path)
    assert code == 2 and "int4-small-embeddings" in said
    assert list(tmp_path.iterdir()) == []


def test_load_rebuilds_the_model_from_the_file_alone(run, exported, tmp_path):
    moved = tmp_path / "alone.gguf-lite"  # no manifest beside it
    moved.write_bytes((exported / "minigpt.gguf-lite").read_bytes())
    code, said, trouble = run("load.py", moved)
    assert code == 0, trouble
    assert "config.d_model = 256" in said and "Q4_PER_GROUP_64: 16 of 52 tensors" in said
    assert len(said.split(" |")[1]) > 20  # it continues the sentence


def test_load_says_what_is_wrong_with_a_file(scripts, tmp_path, capsys):
    broken = tmp_path / "broken.gguf-lite"
    broken.write_bytes(b"GGUF" + bytes(60))
    assert scripts["load"].main([str(broken)]) == 1
    assert "header.magic" in capsys.readouterr().out
    assert scripts["load"].main([str(tmp_path / "missing.gguf-lite")]) == 1
    assert "run export.py first" in capsys.readouterr().out


def test_verify_finds_the_exported_file_exact(run, exported):
    code, said, trouble = run("verify.py", exported / "minigpt.gguf-lite")
    assert code == 0, said + trouble
    assert "Every limit holds." in said


def test_verify_exits_with_1_if_one_weight_of_a_file_is_off_by_one_step(scripts, exported, tmp_path, capsys):
    data = bytearray((exported / "minigpt.gguf-lite").read_bytes())
    with open_gguf_lite(exported / "minigpt.gguf-lite") as file:
        info = file.tensors["layers.2.mlp.fc1.weight"]
        at = file.data_start + info.offset + info.n_bytes - 1
    data[at] ^= 0x10
    (tmp_path / "off.gguf-lite").write_bytes(data)
    assert scripts["verify"].main([str(tmp_path / "off.gguf-lite")]) == 1
    said = capsys.readouterr().out
    assert "layers.2.mlp.fc1.weight: expected an error of exactly 0" in said
    assert "layers.1.mlp.fc1.weight: expected" not in said


def test_verify_exits_with_1_and_names_the_field_if_a_file_is_cut_short(scripts, exported, tmp_path, capsys):
    (tmp_path / "short.gguf-lite").write_bytes((exported / "minigpt.gguf-lite").read_bytes()[:-1])
    assert scripts["verify"].main([str(tmp_path / "short.gguf-lite")]) == 1
    said = capsys.readouterr().out
    assert "ln_f.bias" in said and "truncated" in said


def test_verify_quick_checks_every_preset_and_exits_with_0(scripts, found, watched, monkeypatch, capsys):
    limits = []
    monkeypatch.setattr(scripts["verify"], "measure", lambda limit: limits.append(limit) or found)
    assert scripts["verify"].main(["--quick"]) == 0
    assert limits == [scripts["verify"].QUICK]
    said = capsys.readouterr().out
    for part in (
        "int4-everything",
        "exact scale in memory",
        "header and descriptors",
        "KL(float, int8)",
        "embeddings take",
    ):
        assert part in said
    assert "preset/s" in watched[1]  # progress


def test_every_promise_holds_and_the_trap_breaks_the_assignments_limits(scripts, found):
    table = scripts["verify"].limits(found, judge_quality=False)[1:]
    verdicts = {what: verdict for what, _, _, verdict in table}
    assert [verdict for verdict in verdicts.values() if verdict in ("yes", "NO")] == ["yes"] * 4
    assert len([what for what, verdict in verdicts.items() if "the trap" in what and verdict.startswith("past")]) == 2


def test_a_broken_promise_is_named_and_exits_with_1(scripts, found, monkeypatch, capsys):
    verify = scripts["verify"]
    trip = found.trips["int8"]
    trip.weights["ln_f.bias"] = float("nan")
    trip.layers["ln_f"] = 1e-9
    found.quality["int8"].nll[:] += 1
    monkeypatch.setattr(verify, "measure", lambda limit: found)
    monkeypatch.setattr(verify, "SIZE_BARS", {"int8": 3.5, "int4": 6.0})
    assert verify.main([]) == 1
    said = capsys.readouterr().out.partition("Past the limits:")[2]
    assert len(said.strip().splitlines()) == 4
    for part in ("weights:", "activations", "torch.save / int8: expected at least 3.5", "change of NLL, int8"):
        assert part in said


def test_the_committed_pages_are_what_the_report_renders(scripts, found):
    """Numbers that depend on the text of this Python, or on the machine, stand in lines with ± or ≈: masked here."""
    report = scripts["report"]
    for name, text in report.render(found).items():
        committed = report.RENDERED[name].read_text("utf-8")
        assert [masked(line) for line in text.splitlines()] == [masked(line) for line in committed.splitlines()], name


def masked(line: str) -> str:
    if re.search("[±≈]", line):
        line = re.sub(r"\b[0-9a-f]{12}\b|-?\d[\d.]*(e[-+]\d+)?|yes|NO", "#", line)
    return re.sub(r"[ -]+", " ", line)


def test_the_staircase_accounts_for_every_byte_of_the_file(scripts, found):
    report = scripts["report"]
    last = report.staircase(found)[-1]
    assert last[2] == f"{found.trips['int4-small-embeddings'].sizes.total:,}"
    shares = report.share_rows(found.trips["int4-small-embeddings"].sizes.by_dtype)
    assert shares[1][0] == "Q4_PER_GROUP_64"  # the largest contributor, as the assignment expects


def test_the_walk_through_bit_packing_runs():
    walk = ROOT / "solutions" / "03-gguf-export-ref.md"
    assert walk.read_text("utf-8").count(">>> ") > 40
    assert doctest.testfile(str(walk), module_relative=False).failed == 0


def test_the_hand_made_file_of_the_walk_is_what_struct_spells(tmp_path):
    from miniquant import write_gguf_lite
    from miniquant.formats.gguf_lite.types import DType
    from miniquant.formats.tensor import TensorInfo

    row = np.tile(np.array([*range(8), *range(0, -8, -1)], np.float32), 4).reshape(1, 64)
    write_gguf_lite(tmp_path / "row", {"w": row}, {"w": "q4_per_group_64"})
    spelled = (
        b"TFLG" + bytes.fromhex("01000000 01000000 1f000000")
        + b"dims_order=out,in\ngroup_size=64"
        + encode_descriptor(TensorInfo("w", (1, 64), DType.Q4_PER_GROUP_64, 0))
        + bytes.fromhex("003c") + bytes.fromhex("10325476 f0debc9a") * 4
    )  # fmt: skip
    assert (tmp_path / "row").read_bytes() == spelled


@pytest.mark.parametrize("page", ["PHASE_26_REPORT.template.md", "../../solutions/PHASE_26_REPORT.md"])
def test_both_reports_have_the_seven_sections(page):
    text = (FOLDER / page).read_text("utf-8")
    sections = re.findall(r"^## (.+)$", text, re.M)
    expected = ["Goal", "What was built", "Evidence", "What surprised", "Pitfalls met", "Limits", "Next"]
    assert sections == expected and text.startswith("# ")
