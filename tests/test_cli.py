"""The command line, on both formats: what it prints, what it returns, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys

import gguf
import numpy as np
import pytest
from click.testing import CliRunner

import miniquant as mq
from miniquant.cli import main, run
from miniquant.formats.gguf import read_gguf, write_gguf
from miniquant.models.corpus import load_tokenizer
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


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


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
    for source in ([], ["--model", files / "q8.gguf"], ["--model", files / "f32.gguf-lite"]):
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
        result = call("perplexity", files / name, "--windows", "6", "--json", *options)
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


def test_a_package_that_is_not_installed_is_one_line_that_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "miniquant.lab", None)
    monkeypatch.setattr(sys, "argv", ["miniquant", "progress"])
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == 1
    assert "pip install 'miniquant[labs]'" in capsys.readouterr().err


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


def test_inspect_imports_neither_torch_nor_matplotlib(files):
    code = (
        "import sys; from click.testing import CliRunner; from miniquant.cli import main; "
        f"r = CliRunner().invoke(main, ['inspect', {str(files / 'q8.gguf')!r}]); assert r.exit_code == 0, r.output; "
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
