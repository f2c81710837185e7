"""The tools on bump files: hexview's fields, the command line, make."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
import pytest
from bump_models import TINY, parse_bump, write_llama
from click.testing import CliRunner
from places import ROOT
from systems import posix

from miniquant import MiniquantError
from miniquant.cli import main
from miniquant.formats.bump import BumpType, open_bump, write_bump
from miniquant.formats.describe import describe
from miniquant.inspect.hexview import diff, fields, hexview, ribbon
from miniquant.models.corpus import load_tokenizer
from miniquant.models.load import load_any, weights_of
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import write_minigpt


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The trained model as Q8_0, and a tiny llama, both in GGUF and in bump."""
    folder = tmp_path_factory.mktemp("tools")
    write_minigpt(folder / "m.gguf", load_pretrained(), load_tokenizer(), "Q8_0")
    write_llama(folder / "llama.gguf", TINY)
    for name, source in (("gpt", "m.gguf"), ("llama", "llama.gguf")):
        (folder / name).mkdir()
        write_bump(folder / source, folder / name / "weights.bump")
    return folder


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


# ---- fields ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_every_byte_lies_in_exactly_one_field_and_the_fields_say_what_the_referee_reads(name, folder):
    path = folder / name / "weights.bump"
    data = path.read_bytes()
    found = fields(path)
    assert found[0].start == 0 and found[-1].end == len(data)
    assert all(a.end == b.start for a, b in pairwise(found))
    assert not [f for f in found if f.category == "unread"]
    header, tensors = parse_bump(path)
    by_name = {f.name: f for f in found}
    for field in ("num_layers", "vocab_size", "embed_dim", "context_len", "num_heads", "head_dim"):
        assert by_name[f"header.{field}"].value == header[field]
    assert by_name["header.magic"].value == "BUMPWGT3" and by_name["header.checksum"].value == header["checksum"]
    assert by_name["dtype table: count"].value == len(tensors)
    for tensor, code, shape, offset, raw in tensors:
        assert by_name[f"type of {tensor!r}"].value == BumpType(code)
        field = by_name[f"tensor {tensor!r}: data"]
        assert (field.start, field.end, field.raw.tobytes()) == (offset, offset + len(raw), raw)
        assert field.value.shape == shape
    padding = [f for f in found if f.category == "padding"]
    assert all(not f.raw.any() and len(f) < 64 and f.end % 64 == 0 for f in padding)


def test_a_placeholder_of_zeros_says_so(folder):
    by_name = {f.name: f for f in fields(folder / "llama" / "weights.bump")}
    assert "a bias that the model does not have" in by_name["tensor 'layers.0.bq': data"].explanation
    assert "does not have" not in by_name["tensor 'layers.0.Wq': data"].explanation


def test_a_broken_checksum_leaves_every_field_named(folder, tmp_path):
    shutil.copytree(folder / "gpt", tmp_path / "gpt")
    path = tmp_path / "gpt" / "weights.bump"
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    assert not [f for f in fields(path) if f.category == "unread"]
    assert "header.checksum at byte 64: found" in repr(hexview(path, 0, 64))
    assert "byte 5000" in repr(diff(path, folder / "gpt" / "weights.bump"))


def test_without_config_json_header_and_types_are_named_and_the_rest_is_unread(folder, tmp_path):
    data = (folder / "gpt" / "weights.bump").read_bytes()
    (tmp_path / "weights.bump").write_bytes(data)
    for source in (tmp_path / "weights.bump", data):
        found = fields(source)
        assert [f.name for f in found if f.category == "header"][-1] == "header.reserved"
        assert found[-1].category == "unread" and found[-1].end == len(data)
        assert "config.json" in repr(hexview(source, 0, 32))


def test_the_header_alone_and_any_cut_of_a_file_can_be_looked_at(folder, tmp_path):
    data = (folder / "llama" / "weights.bump").read_bytes()
    assert "header.aligned_context" in repr(hexview(data[:128]))
    for length in range(0, len(data), 13):
        found = fields(data[:length])
        assert sum(map(len, found)) == length
    shutil.copytree(folder / "llama", tmp_path / "l")
    random, path = np.random.default_rng(0), tmp_path / "l" / "weights.bump"
    for _ in range(60):
        damaged = bytearray(data)
        struct.pack_into("<I", damaged, int(random.integers(0, 160)), int(random.integers(2**32)))
        path.write_bytes(damaged)
        assert sum(map(len, fields(path))) == len(data)


def test_the_ribbon_draws_a_bump_file(folder):
    assert "weights.bump" in repr(ribbon(folder / "gpt" / "weights.bump"))


# ---- the command line ------------------------------------------------------------------------------------------------


def test_to_bump_says_every_file_that_it_wrote_and_what_stays_behind(folder, tmp_path):
    done = call("to-bump", folder / "m.gguf", "-o", tmp_path / "w.bump")
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir(tmp_path)) == ["config.json", "tokenizer.json", "w.bump"]
    assert done.output.splitlines()[0].startswith(f"wrote {tmp_path / 'w.bump'}, ")
    assert done.output.splitlines()[0].endswith(" MB: gpt2, 4 layers, 4 heads, 4 of keys and values")
    assert done.output.splitlines()[1:3] == [f"wrote {tmp_path / name}" for name in ("config.json", "tokenizer.json")]
    assert "general.name" in done.output and "gpt2.block_count" not in done.output
    assert "tokenizer.ggml.tokens" not in done.output  # they are in tokenizer.json
    assert "general.architecture" not in done.output


def test_to_bump_says_that_a_file_without_a_tokenizer_gives_none(folder, tmp_path):
    write_llama(tmp_path / "m.gguf", TINY)
    done = call("to-bump", tmp_path / "m.gguf", "-o", tmp_path / "w.bump")
    assert sorted(os.listdir(tmp_path)) == ["config.json", "m.gguf", "w.bump"]
    missing = "there is no tokenizer.json beside it, which miniquant run needs: "
    assert done.output.splitlines()[2] == f"{missing}{tmp_path / 'm.gguf'} holds no tokenizer"


def test_inspect_and_list_of_a_bump_file_agree_with_the_referee(folder):
    path = folder / "gpt" / "weights.bump"
    _, tensors = parse_bump(path)
    lines = call("inspect", path).output.splitlines()
    assert lines[0].startswith(f"[bump] version=3 arch=gpt2 tensors={len(tensors)} kv=")
    assert lines[0].endswith("alignment=64")
    q8 = [raw for _, code, _, _, raw in tensors if code == 8]
    assert f"  -       Q8_0: {len(q8):5} tensors, bytes={sum(map(len, q8)) / 2**20:.2f} MiB" in lines
    assert "  - token_embd: Q8_0 shape=(1024, 256)" in lines
    rows = json.loads(call("list", path, "--json").output)
    assert [(r["name"], tuple(r["shape"]), r["offset"], r["n_bytes"]) for r in rows] == [
        (name, shape, offset, len(raw)) for name, _, shape, offset, raw in tensors
    ]
    assert describe(path).overhead == path.stat().st_size - sum(len(raw) for *_, raw in tensors)


def test_hexdump_begins_at_a_tensor_of_a_bump_file(folder):
    path = folder / "gpt" / "weights.bump"
    with open_bump(path) as file:
        assert bytes(file.raw("layers.1.Wo")[:8]).hex(" ") in call("hexdump", path, "--tensor", "layers.1.Wo").output


def test_verify_finds_a_bump_file_equal_to_its_gguf(folder):
    done = call("verify", folder / "m.gguf", folder / "gpt" / "weights.bump", "--limit", "0")
    assert done.exit_code == 0 and "52 of 52 tensors within 0" in done.output
    assert weights_of(folder / "llama.gguf").keys() == weights_of(folder / "llama" / "weights.bump").keys()


def test_a_minigpt_comes_back_from_a_bump_file_and_a_llama_does_not(folder):
    a, b = (load_any(path).state_dict() for path in (folder / "m.gguf", folder / "gpt" / "weights.bump"))
    assert all(np.array_equal(a[name], b[name]) for name in a)
    with pytest.raises(MiniquantError, match="is no MiniGPT: llama"):
        load_any(folder / "llama" / "weights.bump")


def test_a_file_that_cannot_be_converted_is_one_line_and_exit_code_1(folder, tmp_path):
    command = [sys.executable, "-m", "miniquant.cli", "to-bump", str(folder / "gpt" / "weights.bump")]
    done = subprocess.run([*command, "-o", str(tmp_path / "w.bump")], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "a GGUF file begins with b'GGUF'" in done.stderr and not os.listdir(tmp_path)


@posix
@pytest.mark.parametrize("target", ["gguf-inspect", "gguf-list", "gguf-to-bump"])
def test_make_runs_the_tools_and_asks_for_a_file(target, folder, tmp_path):
    make = ["make", "-s", "-o", ".venv/.installed", f"BIN={Path(sys.executable).parent}", target]
    done = subprocess.run(
        [*make, f"GGUF={folder / 'm.gguf'}", f"GGUF_OUT={tmp_path / 'out'}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    if target == "gguf-to-bump":
        assert sorted(os.listdir(tmp_path / "out")) == ["config.json", "tokenizer.json", "weights.bump"]
        parse_bump(tmp_path / "out" / "weights.bump")
    else:
        matrices = [t for t in gguf.GGUFReader(folder / "m.gguf").tensors if len(t.shape) == 2 and "blk.0" in t.name]
        assert all(t.name in done.stdout for t in matrices)
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "name a file: make gguf-inspect GGUF=model.gguf" in done.stdout


def test_make_test_quant_runs_test_files_that_exist():
    text = (ROOT / "Makefile").read_text()
    (line,) = [line for line in text.splitlines() if "tests/runtime/test_bump_kernels.py" in line]
    for pattern in [word for word in line.split() if word.startswith("tests/")]:
        assert list(ROOT.glob(pattern)), pattern
