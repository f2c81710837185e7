"""The command line, on both formats: what it prints, what it returns, and how it fails."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tracemalloc
import warnings
from contextlib import redirect_stdout
from io import StringIO

import gguf
import numpy as np
import pytest
from cli_calls import call
from systems import posix

import miniquant as mq
from miniquant.cli import _print_description, run
from miniquant.formats.describe import describe
from miniquant.formats.gguf import read_gguf, write_gguf
from miniquant.models.corpus import load_tokenizer
from miniquant.models.minigpt import random_model
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import write_minigpt


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The trained model in both formats, and a file that is neither."""
    folder = tmp_path_factory.mktemp("cli")
    model = load_pretrained()
    mq.write_gguf_lite(folder / "int4.gguf-lite", model, mq.preset("int4-small-embeddings", model))
    mq.write_gguf_lite(folder / "f32.gguf-lite", model, {})
    write_minigpt(folder / "f32.gguf", model, load_tokenizer(), "F32")
    write_minigpt(folder / "q8.gguf", model, load_tokenizer(), "Q8_0")
    (folder / "garbage").write_bytes(b"not a model file at all")
    return folder


def test_inspect_prints_the_document_s_form_and_the_truth(files):
    output = call("inspect", files / "q8.gguf").output
    reader = gguf.GGUFReader(files / "q8.gguf")
    n_pairs = len([f for f in reader.fields if not f.startswith("GGUF.")])
    assert f"[gguf] version=3 arch=gpt2 tensors={len(reader.tensors)} kv={n_pairs} alignment=32" in output
    n_q8 = sum(t.tensor_type.name == "Q8_0" for t in reader.tensors)
    size = sum(int(t.n_bytes) for t in reader.tensors if t.tensor_type.name == "Q8_0")
    assert f"  -       Q8_0: {n_q8:5} tensors, bytes={size / 2**20:.2f} MiB" in output
    assert "  - token_embd.weight: Q8_0 dims=(256, 1024)" in output


def test_inspect_of_a_gguf_lite_file(files):
    output = call("inspect", files / "int4.gguf-lite").output
    assert output.startswith("[gguf-lite] version=1 arch=MiniGPT tensors=52")
    assert "Q4_PER_GROUP_64:    16 tensors" in output
    assert "dims_order = out,in" in output


@pytest.mark.parametrize("name", ["int4.gguf-lite", "q8.gguf"])
def test_inspect_as_json_counts_every_byte(files, name):
    found = json.loads(call("inspect", files / name, "--json").output)
    assert sum(kind["bytes"] for kind in found["types"].values()) + found["overhead"] == found["bytes"]
    assert found["bytes"] == (files / name).stat().st_size


def test_list_agrees_with_the_official_reader(files):
    rows = {row["name"]: row for row in json.loads(call("list", files / "q8.gguf", "--json").output)}
    for tensor in gguf.GGUFReader(files / "q8.gguf").tensors:
        row = rows.pop(tensor.name)
        assert row["type"] == tensor.tensor_type.name
        assert row["shape"] == [int(d) for d in tensor.shape[::-1]]
        assert (row["offset"], row["n_bytes"]) == (tensor.data_offset, tensor.n_bytes)
    assert not rows


def test_list_prints_a_line_for_every_tensor(files):
    lines = call("list", files / "int4.gguf-lite").output.splitlines()
    assert len(lines) == 1 + 52
    assert lines[0].split() == ["name", "type", "shape", "offset", "bytes"]
    assert lines[1].split()[:3] == ["tok_emb.weight", "Q8_PER_CHANNEL", "1024×256"]


@pytest.mark.parametrize("name", ["int4.gguf-lite", "q8.gguf"])
def test_hexdump_names_the_header(files, name):
    output = call("hexdump", files / name, "--length", "32").output
    assert "header.magic" in output
    assert (files / name).read_bytes()[:4].hex(" ") in output


def test_hexdump_begins_at_a_tensor(files):
    name = "layers.0.mlp.fc1.weight"
    output = call("hexdump", files / "int4.gguf-lite", "--tensor", name, "--length", "16").output
    with mq.open_gguf_lite(files / "int4.gguf-lite") as file:
        assert bytes(file.raw(name)[:8]).hex(" ") in output
    for start in (16, 100, -16):
        output = call("hexdump", files / "int4.gguf-lite", "--tensor", name, "--start", start, "--length", "16").output
        with mq.open_gguf_lite(files / "int4.gguf-lite") as file:
            at = file.data_start + file.tensors[name].offset + start
        assert f"bytes {at} to {at + 15}" in output
    result = call("hexdump", files / "int4.gguf-lite", "--tensor", "nope")
    assert "no tensor 'nope'" in str(result.exception)


def test_verify_is_silent_about_equal_files_and_returns_1_past_the_limit(files):
    same = call("verify", files / "f32.gguf-lite", files / "f32.gguf")
    assert same.exit_code == 0, same.output
    assert "52 of 52 tensors within 1e-06" in same.output
    differ = call("verify", files / "f32.gguf-lite", files / "int4.gguf-lite", "--json")
    found = json.loads(differ.output)
    assert differ.exit_code == 1
    assert "blk.0.ffn_up.weight" in found["beyond"]
    assert "blk.0.attn_norm.weight" not in found["beyond"]


@pytest.mark.parametrize("suffix", [".gguf-lite", ".gguf", ".safetensors", ".apr"])
def test_export_writes_every_format_and_reads_either_container(files, tmp_path, suffix):
    out = tmp_path / f"model{suffix}"
    sources = [["--model", files / "q8.gguf"], ["--model", files / "f32.gguf-lite"], []]
    if suffix == ".apr":  # the model is read before the suffix counts, and as JSON the trained one takes seconds
        mq.write_gguf_lite(tmp_path / "small.gguf-lite", random_model(), {})
        sources = [["--model", tmp_path / "small.gguf-lite"]]
    for source in sources:
        result = call("export", out, *source)
        assert result.exit_code == 0, result.output
        assert f"wrote {out}" in result.output
        assert out.stat().st_size > 100_000


def test_export_refuses_a_pickle_and_an_unknown_extension(tmp_path):
    for name in ("model.pt", "model.zip"):
        assert call("export", tmp_path / name).exception is not None
    assert list(tmp_path.iterdir()) == []


def test_perplexity_is_the_same_from_both_containers_and_in_llama_cpp(files):
    def measure(name, *options):
        result = call("perplexity", files / name, "--windows", "2", "--json", *options)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["perplexity"]["mean"]

    ours = measure("f32.gguf-lite")
    assert measure("f32.gguf") == ours
    assert abs(measure("f32.gguf", "--llamacpp") / ours - 1) < 0.005


@pytest.mark.parametrize("command", ["inspect", "list", "hexdump", "perplexity"])
def test_a_known_error_is_one_line_and_exit_code_1(files, command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["miniquant", command, str(files / "garbage")])
    if command == "hexdump":  # shows what can be shown
        assert "a GGUF" in call("hexdump", files / "garbage").output
        return
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("miniquant: ")
    assert "\n" not in error
    assert "header.magic at byte 0" in error


@pytest.mark.parametrize(("package", "extra"), [("miniquant.lab", "labs"), ("numba", "run"), ("tokenizers", "run")])
def test_a_package_that_is_not_installed_is_one_line_that_says_what_to_install(package, extra, monkeypatch, capsys):
    def missing():
        raise ModuleNotFoundError(name=package)

    monkeypatch.setattr("miniquant.cli.main", missing)
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == 1
    assert f"the package {package}; pip install 'miniquant[{extra}]' brings it" in capsys.readouterr().err


def test_a_wrong_call_is_exit_code_2(files):
    assert call("inspect", files / "missing").exit_code == 2
    assert call("inspect").exit_code == 2
    assert call("nonsense").exit_code == 2


@pytest.mark.parametrize("name, options", [("x.gguf", ("--type", "Q9")), ("x", ()), ("x.bump", ())])
def test_an_export_to_what_does_not_exist_is_a_wrong_call_and_writes_nothing(tmp_path, name, options):
    result = call("export", tmp_path / name, *options)
    assert result.exit_code == 2
    assert "q4_k_m" in result.output if options else "miniquant to-bump" in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


def test_inspect_and_verify_import_neither_torch_nor_matplotlib(files):
    one, other = str(files / "q8.gguf"), str(files / "f32.gguf-lite")
    code = (
        "import sys; from click.testing import CliRunner; from miniquant.cli import main; "
        f"r = CliRunner().invoke(main, ['inspect', {one!r}]); assert r.exit_code == 0, r.output; "
        f"r = CliRunner().invoke(main, ['verify', {one!r}, {other!r}]); assert r.exit_code == 1, r.output; "
        "print(sorted({'torch', 'matplotlib', 'rich', 'IPython'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_model_goes_through_gguf_and_comes_back_to_the_bit(files):
    from miniquant.models.to_gguf import minigpt_from_gguf

    with read_gguf(files / "f32.gguf") as file:
        again = minigpt_from_gguf(file)
    for name, w in load_pretrained().state_dict().items():
        assert np.array_equal(again.state_dict()[name].numpy(), w.numpy()), name


def test_a_gguf_file_that_is_no_minigpt_is_refused_by_name(tmp_path):
    from miniquant.models.to_gguf import minigpt_from_gguf

    write_gguf(tmp_path / "a.gguf", {"w": np.zeros((2, 2), np.float32)}, {"general.architecture": "llama"})
    with read_gguf(tmp_path / "a.gguf") as file, pytest.raises(mq.MiniquantError, match="architecture is 'llama'"):
        minigpt_from_gguf(file)


# ---- streams ---------------------------------------------------------------------------------------------------------


def shell(line, **environment):
    """Run a line of bash with ``miniquant`` as in a terminal: its output, errors and exit code."""
    line = line.replace("miniquant", f"{shlex.quote(sys.executable)} -W always::RuntimeWarning -m miniquant.cli", 1)
    done = subprocess.run(["bash", "-c", line], capture_output=True, env={**os.environ, **environment})
    assert b"Traceback" not in done.stderr, done.stderr.decode("utf-8", "replace")
    assert b"Warning" not in done.stderr
    return done


@posix
@pytest.mark.parametrize("command", ["hexdump", "inspect", "list"])
def test_a_pipe_and_a_device_are_refused_in_one_line(files, command, monkeypatch, capsys):
    pipe, fed = os.pipe()
    os.write(fed, (files / "q8.gguf").read_bytes()[:4096])
    os.close(fed)
    for source in (f"/dev/fd/{pipe}", "/dev/zero"):
        monkeypatch.setattr(sys, "argv", ["miniquant", command, source])
        with pytest.raises(SystemExit) as stopped:
            run()
        assert stopped.value.code == 1
        error = capsys.readouterr().err
        assert "this is a pipe or a device; save what it gives as a file first" in error
        assert error.count("\n") == 1
    os.close(pipe)


def test_a_closed_stream_changes_no_exit_code(files):
    for arguments, code, *closed in (
        (f"list {files}/q8.gguf", 0, ">&-", "<&- >&- 2>&-"),
        (f"verify {files}/f32.gguf {files}/int4.gguf-lite", 1, ">&-"),
        (f"inspect {files}/garbage", 1, "<&- >&- 2>&-"),
        ("inspect", 2, "<&- >&- 2>&-"),
    ):
        for streams in closed:
            assert shell(f"miniquant {arguments} {streams}").returncode == code, arguments


def test_what_is_printed_to_a_closed_stream_does_not_reach_the_file_that_is_written(files, tmp_path):
    for streams, name in (("<&- >&- 2>&-", "closed.gguf"), ("", "open.gguf")):
        assert shell(f"miniquant quantize {files}/f32.gguf {tmp_path}/{name} --type q8_0 {streams}").returncode == 0
    assert (tmp_path / "closed.gguf").read_bytes() == (tmp_path / "open.gguf").read_bytes()


IN_TURN = """import json, sys
from miniquant.cli import run
codes = []
for sys.argv in json.loads(sys.argv[1]):
    try:
        run()
    except SystemExit as end:
        codes.append(end.code or 0)
print(codes)"""


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_letter_that_the_encoding_lacks_is_escaped(encoding, tmp_path):
    path = f"{tmp_path}/m.gguf"
    write_gguf(path, {"größe": np.ones((2, 2), np.float32)}, {"general.architecture": "語é"})
    commands = [["inspect", path, "--json"], ["list", f"{tmp_path}/語"]]
    commands += [[command, path] for command in ("list", "inspect", "hexdump") if encoding == "latin-1"]  # else click's
    line = json.dumps([["miniquant", *arguments] for arguments in commands])
    command = [sys.executable, "-W", "always::RuntimeWarning", "-c", IN_TURN, line]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert b"Traceback" not in done.stderr and b"Warning" not in done.stderr
    printed = done.stdout.decode(encoding)
    assert json.JSONDecoder().raw_decode(printed)[0]["arch"] == "語é"
    assert json.loads(printed.splitlines()[-1]) == [0, 2, 0, 0, 0][: len(commands)]


def test_a_name_that_is_not_utf8_can_be_read_and_named(files, tmp_path):
    os.link(files / "garbage", os.fsencode(tmp_path) + b"/\xff")
    done = shell(f"miniquant list {tmp_path}/$'\\xff'")
    assert done.returncode == 1
    assert b"header.magic at byte 0" in done.stderr
    done = shell(f"miniquant quantize {files}/f32.gguf {tmp_path}/$'\\xff'.gguf --type q8_0")
    assert done.returncode == 0, done.stderr
    assert os.path.getsize(os.fsencode(tmp_path) + b"/\xff.gguf") > 10_000


def test_infinities_are_compared_without_a_warning_and_printed_as_json(tmp_path):
    w = np.array([[np.inf, -np.inf, 1, 2]], np.float32)
    write_gguf(tmp_path / "a.gguf", {"w": w}, {"x": float("nan"), "y": [float("inf"), -float("inf")]})
    write_gguf(tmp_path / "b.gguf", {"w": w}, {})
    write_gguf(tmp_path / "c.gguf", {"w": np.zeros_like(w)}, {})

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    found = {}
    for name in "bc":
        with warnings.catch_warnings(action="error"):
            done = call("verify", tmp_path / "a.gguf", tmp_path / f"{name}.gguf", "--json")
        assert done.exit_code == 1, done.exception
        found[name] = json.loads(done.stdout, parse_constant=refuse)["errors"]["w"]
    assert found == {"b": "NaN", "c": "Infinity"}
    done = call("inspect", tmp_path / "a.gguf", "--json")
    assert json.loads(done.stdout, parse_constant=refuse)["metadata"] == {"x": "NaN", "y": ["Infinity", "-Infinity"]}


def test_a_long_text_is_cut_before_it_is_made_visible(tmp_path):
    """Escaped, each of these letters takes six; none but the first 90 are."""
    write_gguf(tmp_path / "m.gguf", {}, {"short": "\x01" * 20, "long": "\x01" * 2_000_000, "fits": "x" * 90})
    found = describe(tmp_path / "m.gguf")
    tracemalloc.start()
    with redirect_stdout(StringIO()) as printed:
        _print_description(found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    lines = printed.getvalue().splitlines()
    assert "  - long = " + ("\\u0001" * 15)[:89] + "…" in lines
    assert "  - short = " + ("\\u0001" * 15)[:89] + "…" in lines
    assert "  - fits = " + "x" * 90 in lines
    assert peak < 1_000_000


@pytest.mark.parametrize(
    "name, option",
    [("x.safetensors", "--type"), ("x.apr", "--type"), ("x.gguf-lite", "--type"), ("x.gguf", "--preset")],
)
def test_an_option_that_the_format_has_no_use_for_is_a_wrong_call_and_writes_nothing(name, option, tmp_path):
    result = call("export", tmp_path / name, option, "q4_0" if option == "--type" else "int4-small-embeddings")
    said = " ".join(result.output.replace("\u2502", " ").split())
    needed = ".gguf" if option == "--type" else ".gguf-lite"
    assert result.exit_code == 2
    assert f"{option}: it is for {needed} files" in said
    assert f"leave it out, or give a name that ends in {needed}" in said
    assert list(tmp_path.iterdir()) == []


def test_an_extension_in_capitals_is_the_same_format(files, tmp_path):
    """Such a file was once written without its tokenizer, and every option was ignored."""
    for name in ("a.gguf", "A.GGUF"):
        call("export", tmp_path / name, "--type", "q4_0", "--model", files / "f32.gguf")
    assert (tmp_path / "A.GGUF").read_bytes() == (tmp_path / "a.gguf").read_bytes()


@pytest.mark.parametrize(
    ("name", "options", "quantization", "tags"),
    [
        ("m.gguf", ("--type", "q4_k_m"), "Q4_K_M", ["gguf", "quantized"]),
        ("m.gguf", ("--type", "f16"), "F16", ["gguf"]),
        ("m.gguf-lite", ("--preset", "int8"), "int8", ["gguf-lite", "quantized"]),
        ("m.gguf-lite", ("--preset", "f16"), "f16", ["gguf-lite"]),
        ("m.safetensors", (), "F32", ["safetensors"]),
    ],
)
def test_export_writes_a_model_card_beside_every_format_if_asked(files, tmp_path, name, options, quantization, tags):
    result = call("export", tmp_path / name, *options, "--card", "--model", files / "f32.gguf")
    assert result.exit_code == 0, result.output
    assert f"wrote {tmp_path / 'README.md'}" in result.output
    card = (tmp_path / "README.md").read_text("utf-8")
    found = describe(tmp_path / name)
    front = "".join(f"- {tag}\n" for tag in ["miniquant", *tags])
    assert card.startswith(f'---\ntags:\n{front}model_name: "MiniGPT"\n---\n# MiniGPT\n')
    assert f"- Quantization: {quantization}\n- File: `{name}`, " in card
    for kind, (count, _) in found.by_type().items():
        assert f"\n| {kind} | {count} | " in card
    if found.format == "gguf":
        kinds = {tensor.tensor_type.name for tensor in gguf.GGUFReader(tmp_path / name).tensors}
        assert set(found.by_type()) == kinds


def test_export_leaves_a_readme_alone_that_is_no_model_card(files, tmp_path):
    (tmp_path / "README.md").write_text("# My own project")
    result = call("export", tmp_path / "m.gguf", "--card", "--model", files / "f32.gguf")
    assert "is no model card of miniquant; choose another folder" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert call("export", tmp_path / "m.gguf", "--model", files / "f32.gguf").exit_code == 0
    assert (tmp_path / "README.md").read_text() == "# My own project"
