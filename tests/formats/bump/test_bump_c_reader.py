"""The reader of bump files in C, SHA-256 included: held against hashlib, and against the reader in Python."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess

import numpy as np
import pytest
from bump_models import SMALL, TINY, parse_bump, write_llama
from c_compiler import compiled
from places import ROOT
from test_bump_malformed import tiny_gpt2
from thorough import tried

from conformance.bump_files import belonging, rehashed
from miniquant import FormatError
from miniquant.formats.bump import BumpType, open_bump, write_bump

SOURCE = ROOT / "readers" / "bump.c"


@pytest.fixture(scope="session")
def reader(tmp_path_factory):
    """The compiled program, with sanitizers where the compiler has them."""
    return compiled(SOURCE, tmp_path_factory.mktemp("c") / "bump")


NO_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}  # looking for them takes longer than reading a file


def run(reader, path, sizes, **environment: str) -> subprocess.CompletedProcess:
    command = [reader, path, str(sizes["kv_heads"]), str(sizes["inner"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ | environment)
    assert done.returncode in (0, 1), done.stderr  # a sanitizer or a signal gives another code
    assert "runtime error" not in done.stderr
    return done


def files(folder):
    """(sizes, path) of a llama in blocks, a llama with biases and its own head, and a gpt2."""
    extra = {"blk.0.attn_q.bias": np.ones(4, np.float32), "output.weight": np.ones((3, 4), np.float32)}
    for name, sizes, how in (("q", SMALL, {"kinds": {"ffn": "Q4_0", "": "Q8_0"}}), ("b", TINY, {"extra": extra})):
        (folder / name).mkdir()
        write_llama(folder / "m.gguf", sizes, **how)
        write_bump(folder / "m.gguf", folder / name / "weights.bump")
        yield sizes, folder / name / "weights.bump"
    (folder / "g").mkdir()
    tiny_gpt2(folder / "m.gguf")
    write_bump(folder / "m.gguf", folder / "g" / "weights.bump")
    yield {"kv_heads": 2, "inner": 3}, folder / "g" / "weights.bump"


def test_it_lists_every_tensor_with_its_place_and_the_hash_of_its_bytes(reader, tmp_path):
    for sizes, path in files(tmp_path):
        done = run(reader, path, sizes)
        assert done.returncode == 0, done.stderr
        _, tensors = parse_bump(path)
        expected = [
            f"{name}  {BumpType(code).name}  {offset}  {len(raw)}  {hashlib.sha256(raw).hexdigest()}"
            for name, code, _, offset, raw in tensors
        ]
        assert done.stdout.splitlines()[1:] == expected


def test_its_sha_256_is_hashlib_s_for_every_length_of_the_last_block(reader, tmp_path):
    head = struct.pack("<8s8I3Q", b"BUMPWGT3", 3, 1, 1, 1, 16, 1, 1, 16, 16, 16, 16)
    for length in [*range(0, 66), 119, 120, 127, 128, 129, 1000]:
        tail = bytes(i % 251 for i in range(length))
        (tmp_path / "w").write_bytes(head + hashlib.sha256(tail).digest() + bytes(32) + tail)
        assert "checksum" not in run(reader, tmp_path / "w", TINY, **NO_LEAKS).stderr
    for tail in (b"", b"a", bytes(200)):
        (tmp_path / "w").write_bytes(head + hashlib.sha256(tail + b"x").digest() + bytes(32) + tail)
        assert "checksum, before byte 128: a byte changed" in run(reader, tmp_path / "w", TINY, **NO_LEAKS).stderr


def test_a_file_cut_anywhere_or_changed_anywhere_is_refused(reader, tmp_path):
    sizes, path = list(files(tmp_path))[1]
    data = path.read_bytes()
    random = np.random.default_rng(0)
    for length in [*range(0, 160, 7), *range(160, len(data), 101), len(data) - 1]:
        path.write_bytes(data[:length])
        assert run(reader, path, sizes, **NO_LEAKS).returncode == 1
    for at in [*random.integers(128, len(data), 40), 0, 8, 12, 32, 36, 40, 48, 56, 64, 96, 127]:
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        assert run(reader, path, sizes, **NO_LEAKS).returncode == 1


def test_damage_under_valid_checksums_does_not_crash_it_and_both_readers_refuse_the_same(reader, tmp_path):
    sizes, path = list(files(tmp_path))[1]
    data, random = path.read_bytes(), np.random.default_rng(3)
    config = path.with_name("config.json")
    text = config.read_bytes()
    agreed = {True: 0, False: 0}
    for _ in range(tried(50, 200)):
        damaged = bytearray(data)
        for _ in range(random.integers(1, 3)):
            at = random.choice([random.integers(128, 160), random.integers(128, len(data))], p=[0.3, 0.7])
            damaged[at] = random.choice([0, 1, 2, 7, 255])
        whole = rehashed(bytes(damaged))
        path.write_bytes(whole)
        config.write_bytes(belonging(text, whole))
        try:
            open_bump(path)
            taken = True
        except FormatError:
            taken = False
        assert taken == (run(reader, path, sizes, **NO_LEAKS).returncode == 0)
        agreed[taken] += 1
    assert min(agreed.values()) >= 10
