"""The errata rows on C-Kernel-Engine's bump files, 13, 15, 16, 17 and 20: what this project does about each.

What is wrong in the document, test_errata.py checks; that ours does as the page says, these tests check.
"""

from __future__ import annotations

import json
import re
import struct

import gguf
import numpy as np
import pytest
from bump_models import TINY, llama_metadata, llama_tensors, parse_bump, write_llama
from click.testing import CliRunner
from gguf.quants import dequantize

from miniquant import MiniquantError
from miniquant.cli import main
from miniquant.formats.bump import BumpType, open_bump, write_bump
from miniquant.formats.gguf import write_gguf
from miniquant.runtime.kernels import matvec


def test_13_our_fast_path_takes_the_weights_in_the_order_of_the_official_decoder():
    raw = np.frombuffer(struct.pack("<e", 1) + bytes(range(16, 32)), np.uint8)
    expected = dequantize(raw, gguf.GGMLQuantizationType.Q4_0)
    for place in range(32):
        x, out = np.zeros(32, np.float32), np.empty(1, np.float32)
        x[place] = 1
        matvec(raw, BumpType.Q4_0, x, out)
        assert out[0] == pytest.approx(expected[place], rel=1e-3)  # x is rounded to Q8_0, 1 / 127 to a float16


def test_15_a_llama_without_the_real_key_is_refused_whatever_the_other_key_says(tmp_path):
    metadata = llama_metadata(**TINY)
    del metadata["llama.attention.layer_norm_rms_epsilon"]
    for more, message in (({}, "layer_norm_rms_epsilon is None"), ({"llama.norm_rms_eps": 1e-5}, "epsilon is None")):
        write_gguf(tmp_path / "m.gguf", llama_tensors(**TINY), metadata | more)
        with pytest.raises(MiniquantError, match=message):
            write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    write_llama(tmp_path / "m.gguf", TINY, more={"llama.norm_rms_eps": 1e-3})  # and beside the real one it is an error
    with pytest.raises(MiniquantError, match=r"the key llama\.norm_rms_eps is"):
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    write_llama(tmp_path / "m.gguf", TINY, more={"llama.attention.layer_norm_rms_epsilon": 1e-6})
    assert write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump").epsilon == 1e-6


def test_16_one_header_serves_two_models_and_config_json_tells_them_apart(tmp_path):
    heads = {"heads": 4, "embed": 8}
    for name, sizes in {"a": {"kv_heads": 1, "inner": 3}, "b": {"kv_heads": 2, "inner": 5}}.items():
        (tmp_path / name).mkdir()
        write_llama(tmp_path / "m.gguf", TINY | heads | sizes)
        write_bump(tmp_path / "m.gguf", tmp_path / name / "weights.bump")
    a, b = ((tmp_path / name / "weights.bump").read_bytes() for name in "ab")
    assert a[:64] == b[:64] and a[96:128] == b[96:128]  # all but the checksum
    assert parse_bump(tmp_path / "a" / "weights.bump")[1][5][2] == (2, 8)  # Wk
    assert parse_bump(tmp_path / "b" / "weights.bump")[1][5][2] == (4, 8)
    for name in "ab":
        (tmp_path / name / "config.json").rename(tmp_path / f"{name}.json")
    for name, other in ("ab", "ba"):
        (tmp_path / name / "config.json").write_bytes((tmp_path / f"{other}.json").read_bytes())
        with pytest.raises(MiniquantError, match=r"header\.checksum"):
            open_bump(tmp_path / name / "weights.bump")


def test_17_inspect_prints_the_document_s_form_and_what_the_file_holds(tmp_path):
    write_llama(tmp_path / "m.gguf", TINY)
    lines = CliRunner().invoke(main, ["inspect", str(tmp_path / "m.gguf")]).output.splitlines()
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    tensors = reader.tensors
    pairs = len([name for name in reader.fields if not name.startswith("GGUF.")])
    assert lines[0] == f"[gguf] version=3 arch=llama tensors={len(tensors)} kv={pairs} alignment=32"
    assert lines[1] == "[gguf] tensor types:"
    n_bytes = sum(int(t.n_bytes) for t in tensors)
    assert lines[2] == f"  -        F32: {len(tensors):5} tensors, bytes={n_bytes} B"
    assert lines[3] == "[gguf] key tensors:"
    for line in lines[4 : lines.index(next(x for x in lines if x.startswith("[gguf] file")))]:
        name, kind, dims = re.fullmatch(r"  - (\S+): (\S+) dims=\((.*)\)", line).groups()
        official = next(t for t in tensors if t.name == name)
        assert kind == official.tensor_type.name
        assert [int(d) for d in dims.split(",") if d] == official.shape.tolist()  # ggml's order, as the document has it


def test_20_biases_and_a_head_of_its_own_are_written_and_nothing_is_dropped(tmp_path):
    shapes = {"attn_q": 4, "attn_k": 2, "attn_v": 2}
    extra = {f"blk.0.{name}.bias": np.full(n, 0.5, np.float32) for name, n in shapes.items()}
    extra["output.weight"] = np.ones((3, 4), np.float32)
    write_llama(tmp_path / "m.gguf", TINY, extra=extra)
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    found = {name: raw for name, _, _, _, raw in parse_bump(tmp_path / "weights.bump")[1]}
    for name in "qkv":
        assert found[f"layers.0.b{name}"] == extra[f"blk.0.attn_{name}.bias"].tobytes()
    assert list(found)[-1] == "output" and found["output"] == extra["output.weight"].tobytes()
    assert json.loads((tmp_path / "config.json").read_text())["attention_bias"] is True
    official = {t.data.tobytes() for t in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    assert official == {raw for raw in found.values() if any(raw)}
    write_llama(tmp_path / "m.gguf", TINY, extra=extra | {"blk.0.attn_q_norm.weight": np.ones(2, np.float32)})
    with pytest.raises(MiniquantError, match=r"no place for 'blk.0.attn_q_norm.weight'; left out"):
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
