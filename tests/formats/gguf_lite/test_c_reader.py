"""The reader in C: compiled with every warning an error, and held against the reader in Python."""

from __future__ import annotations

import math
import os
import struct
import subprocess

import numpy as np
import pytest
from c_compiler import compile_c, compiled, compiler, is_cl
from places import ROOT
from thorough import tried

from conformance.gguf_lite_files import CORPUS, F16, NOT_SEEN_BY_C, Q8, VALID, assemble, descriptor, one
from miniquant import PRESETS, FormatError, open_gguf_lite, preset, write_gguf_lite
from miniquant.models.minigpt import random_model

SOURCE = ROOT / "readers" / "gguf_lite.c"


@pytest.fixture(scope="session")
def reader(tmp_path_factory):
    """The compiled program, with sanitizers where the compiler has them."""
    return compiled(SOURCE, tmp_path_factory.mktemp("c") / "gguf_lite")


NO_LEAKS = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}  # looking for them takes longer than reading a file


def run(reader, *arguments, check: bool = True) -> subprocess.CompletedProcess:
    """What it does with a file, and what it leaves in memory where it must be able to read it."""
    environment = os.environ if check else NO_LEAKS
    done = subprocess.run([reader, *arguments], capture_output=True, timeout=60, env=environment)
    assert done.returncode in (0, 1), done.stderr.decode()  # a sanitizer or a signal gives another code
    assert b"runtime error" not in done.stderr
    if check:
        assert done.returncode == 0, done.stderr.decode()
    return done


def printed(weights: np.ndarray) -> list[str]:
    """Nine digits tell every float32 from its neighbours."""
    return [f"{w:.9g}" for w in weights.reshape(-1).tolist()]


def test_it_compiles_without_a_warning_as_its_own_comment_says(tmp_path):
    done = compile_c(SOURCE, tmp_path / "x.exe", "-O2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "" or is_cl(compiler())  # cl prints the name of what it compiles
    assert "cc -std=c99 -o gguf_lite gguf_lite.c" in SOURCE.read_text()
    includes = [line for line in SOURCE.read_text().splitlines() if line.startswith("#include")]
    assert includes == [f"#include <{name}.h>" for name in ("math", "stdint", "stdio", "stdlib", "string")]


def test_it_prints_metadata_names_dims_and_types(reader, tmp_path):
    state = {
        "a": np.zeros(3, np.float32),
        "größe": np.zeros((2, 2), np.float32),
        "q8": np.zeros((3, 5), np.float32),
        "q4": np.zeros((1, 64), np.float32),
        "scalar": np.float32(1),
    }
    schemes = {"größe": "f16", "q8": "q8_per_channel", "q4": "q4_per_group_64"}
    write_gguf_lite(tmp_path / "m", state, schemes, {"author": "Zoë"})
    assert run(reader, tmp_path / "m").stdout.decode().splitlines() == [
        "dims_order=out,in",
        "group_size=64",
        "author=Zoë",
        "a  [3]  F32",
        "größe  [2, 2]  F16",
        "q8  [3, 5]  Q8_PER_CHANNEL",
        "q4  [1, 64]  Q4_PER_GROUP_64",
        "scalar  []  F32",
    ]


@pytest.mark.parametrize("name", [p for p in PRESETS if p.startswith("int4") or p == "int8"])
def test_it_prints_the_same_weights_as_the_python_reader(name, reader, tmp_path):
    model = random_model(4)
    schemes = preset(name, model) | {"ln_f.bias": "f16"}
    write_gguf_lite(tmp_path / "m", model, schemes)
    with open_gguf_lite(tmp_path / "m") as file:
        # one tensor of each type and shape is enough: a process each
        chosen = {(info.dtype, info.shape): key for key, info in file.tensors.items()}
        assert len({dtype for dtype, _ in chosen}) >= 3
        for key in chosen.values():
            assert run(reader, tmp_path / "m", key).stdout.decode().split() == printed(file.tensor(key))


def test_it_decodes_every_float16_as_struct_does(reader, tmp_path):
    every = [i for i in range(1 << 16) if i & 0x7C00 != 0x7C00]  # all but infinities and NaNs
    data = struct.pack(f"<{len(every)}H", *every)
    expected = struct.unpack(f"<{len(every)}e", data)
    (tmp_path / "m").write_bytes(one(data, dims=(len(every),), dtype=F16))
    found = np.array(run(reader, tmp_path / "m", "w").stdout.split(), np.float32).tolist()
    assert found == list(expected)
    assert [math.copysign(1, x) for x in found] == [math.copysign(1, x) for x in expected]


def test_it_prints_infinities_and_nans_of_unquantized_tensors(reader, tmp_path):
    (tmp_path / "m").write_bytes(one(struct.pack("<4H", 0x7C00, 0xFC00, 0x7E00, 0x3C00), dims=(4,), dtype=F16))
    words = run(reader, tmp_path / "m", "w").stdout.decode().split()
    assert words[:2] == ["inf", "-inf"]
    assert words[2].strip("-") == "nan"
    assert words[3] == "1"


def test_it_goes_by_the_offsets_and_reads_empty_tensors(reader, tmp_path):
    parts = [descriptor(b"a", (2,), 0, 11), descriptor(b"b", (1, 2), Q8, 3), descriptor(b"c", (0, 5))]
    data = b"\xee" * 3 + struct.pack("<e2b", 0.5, -128, 127) + b"\xee" * 4 + struct.pack("<2f", 1.5, -0.0) + b"\xee"
    (tmp_path / "m").write_bytes(assemble(parts, data, b""))
    assert run(reader, tmp_path / "m", "a").stdout.split() == [b"1.5", b"-0"]
    assert run(reader, tmp_path / "m", "b").stdout.split() == [b"-64", b"63.5"]
    assert run(reader, tmp_path / "m", "c").stdout == b""


@pytest.mark.parametrize("name", CORPUS)
def test_no_malformed_file_crashes_it_and_it_refuses_each_that_it_claims_to_check(name, reader, tmp_path):
    (tmp_path / "m").write_bytes(CORPUS[name].data)
    read = run(reader, tmp_path / "m", "w", check=False)
    if name not in NOT_SEEN_BY_C:
        assert read.returncode == 1
        assert b"before byte" in read.stderr
        assert b"no such tensor" not in read.stderr  # it has not come so far, and a list begins where names are known
    if name in NOT_SEEN_BY_C or "scales" in CORPUS[name].field or name == "version 2":
        listed = run(reader, tmp_path / "m", check=False)
        assert listed.returncode == (1 if name == "version 2" else 0)


def test_a_file_cut_anywhere_is_refused(reader, tmp_path):
    for length in [*range(0, 48), *range(48, len(VALID), 100), len(VALID) - 1]:
        (tmp_path / "m").write_bytes(VALID[:length])
        assert run(reader, tmp_path / "m", "w", check=False).returncode == 1


def test_random_damage_does_not_crash_it_and_where_both_read_they_agree(reader, tmp_path):
    random = np.random.default_rng(7)
    data = struct.pack("<2e", 0.25, 1.5) + bytes(range(8))
    valid = assemble([descriptor(b"w", (2, 4), Q8), descriptor(b"v", (3,), F16, 12)], data + bytes(6))
    both = 0
    for _ in range(tried(60, 200)):
        damaged = bytearray(valid)
        for _ in range(random.integers(1, 4)):
            damaged[random.integers(len(damaged))] = random.choice([0, 1, 2, 127, 128, 254, 255])
        (tmp_path / "m").write_bytes(
            damaged[: random.choice([len(damaged), random.integers(len(damaged))], p=[0.8, 0.2])]
        )
        done = run(reader, tmp_path / "m", "w", check=False)
        try:
            with open_gguf_lite(tmp_path / "m") as file:
                weights = file.tensor("w") if "w" in file.tensors else None
        except FormatError:
            continue
        if weights is not None:
            assert done.stdout.decode().split() == printed(weights)
            both += 1
    assert both >= 5


def test_a_missing_file_a_folder_an_unknown_tensor_and_no_arguments_say_so(reader, tmp_path):
    (tmp_path / "m").write_bytes(VALID)
    for arguments, message in [
        ([tmp_path / "nothing"], "cannot be opened"),
        ([tmp_path], "cannot be read"),
        ([tmp_path / "m", "v"], "no such tensor"),
        ([tmp_path / "m", ""], "no such tensor"),
    ]:
        done = run(reader, *arguments, check=False)
        assert done.returncode == 1
        assert message in done.stderr.decode()
    done = subprocess.run([reader], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
