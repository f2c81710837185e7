"""Malformed files: whatever the bytes are, nothing but ``FormatError`` comes out, quickly and without large memory."""

from __future__ import annotations

import math
import struct
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lines import lines_of_python
from thorough import tried

from conformance.gguf_lite_files import CORPUS, F16, F32, METADATA, Q4, Q8, SIZE, VALID, assemble, descriptor, one
from miniquant import FormatError, MiniquantError, open_gguf_lite, read_gguf_lite
from miniquant.formats.gguf_lite.sizes import file_sizes

every_malformation = pytest.mark.parametrize("name", CORPUS)


def read_everything(path) -> dict[str, np.ndarray]:
    """Open a file and read each of its tensors in every way that there is."""
    with open_gguf_lite(path) as file:
        weights = {name: file.tensor(name) for name in file.tensors}
        for name, info in file.tensors.items():
            raw = file.raw(name)
            assert len(raw) == info.n_bytes
            assert weights[name].shape == info.shape
            if info.dtype.scheme.startswith("q"):
                assert file.quantized(name).values.shape == info.shape
    return weights


def test_the_corpus_is_large_and_its_files_differ():
    assert len(CORPUS) >= 50
    assert len({fault.data for fault in CORPUS.values()}) == len(CORPUS)


def test_the_file_that_the_corpus_is_made_from_is_valid(tmp_path):
    path = tmp_path / "valid.gguf-lite"
    path.write_bytes(VALID)
    assert np.array_equal(read_everything(path)["w"], np.zeros((2, 64), np.float32))
    assert open_gguf_lite(path).metadata == {"a": "1", "b": "2"}
    assert len(read_gguf_lite(path)) == 1


@every_malformation
def test_a_malformed_file_is_refused_with_its_field_and_offset_and_little_memory(name, tmp_path):
    fault, path = CORPUS[name], tmp_path / "bad.gguf-lite"
    path.write_bytes(fault.data)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError) as caught:
            read_everything(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.path == str(path)
    assert fault.field in error.field
    if fault.offset is not None:
        assert error.offset == fault.offset
    assert str(error).startswith(f"{path}: {error.field} at byte {error.offset}: ")
    assert peak < len(fault.data) + 1_000_000


@every_malformation
def test_a_malformed_file_is_refused_by_the_functions_that_open_files(name, tmp_path):
    path = tmp_path / "bad.gguf-lite"
    path.write_bytes(CORPUS[name].data)
    with pytest.raises(FormatError):
        read_gguf_lite(path)
    if "scales" not in CORPUS[name].field:  # those are looked at when the tensor is read
        with pytest.raises(FormatError):
            file_sizes(path)


def test_a_malformed_file_is_refused_after_a_few_hundred_lines_of_python(tmp_path):
    """In place of a clock: no count in a file makes a loop long."""
    path = tmp_path / "bad.gguf-lite"
    for name, fault in CORPUS.items():
        path.write_bytes(fault.data)
        assert 0 < lines_of_python(lambda: read_everything(path)) < 2000, name


def test_a_bigger_lie_costs_no_more_memory(tmp_path):
    """Counts and lengths of every size, on a file of 556 bytes."""
    path = tmp_path / "bad.gguf-lite"
    for power in range(4, 32):
        for data in (
            assemble([descriptor()], bytes(SIZE), n_tensors=1 << power),
            assemble([descriptor()], bytes(SIZE), metadata_len=1 << power),
            one(dims=(1 << power, 64)),
            one(dims=(2, 1 << power)),
            one(dims=(1 << power, 0), dtype=Q8),
            one(dims=(2, 1 << max(6, power)), dtype=Q4),
        ):
            path.write_bytes(data)
            tracemalloc.start()
            try:
                read_everything(path)
            except FormatError:
                pass
            finally:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert peak < 200_000


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "cut.gguf-lite"
    for original, _, _ in SEEDS:
        for length in range(len(original)):
            path.write_bytes(original[:length])
            with pytest.raises(FormatError):
                read_everything(path)


def test_what_is_not_a_file_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_gguf_lite(tmp_path / "missing.gguf-lite")
    with pytest.raises(OSError, match="irectory"):
        open_gguf_lite(tmp_path)


def test_the_messages_say_what_was_expected(tmp_path):
    path = tmp_path / "bad.gguf-lite"
    for name, expected in {
        "magic is real GGUF": "this is a real GGUF file",
        "magic is GLFT, big-endian": "this one is big-endian",
        "version 2": "found version 2, this reader knows version 1",
        "dtype 4": "0 F32, 1 F16, 2 Q8_PER_CHANNEL, 3 Q4_PER_GROUP_64",
        "Q4 with rows of 63": "a multiple of 64, found (2, 63)",
        "two tensors overlap by one byte": "offset 15 lies inside 'a', which ends at 16",
        "data without its last byte": "truncated",
        "metadata with a key twice": "the key 'a' stands twice",
        "n_tensors 42": "found 42, and the 533 bytes after the metadata hold 41 descriptors at most",
    }.items():
        path.write_bytes(CORPUS[name].data)
        with pytest.raises(FormatError) as caught:
            open_gguf_lite(path)
        assert expected in str(caught.value)


def test_a_long_name_or_line_does_not_make_a_long_message(tmp_path):
    path = tmp_path / "bad.gguf-lite"
    for data in (one(name=b"n" * 60_000, dtype=9), assemble([], metadata=b"m" * 500_000)):
        path.write_bytes(data)
        with pytest.raises(FormatError) as caught:
            open_gguf_lite(path)
        assert len(str(caught.value)) < 400 + len(str(path))


# ---- random damage ---------------------------------------------------------------------------------------------------


def seed_files() -> list[tuple[bytes, list[tuple[int, int]], list[int]]]:
    """Valid files; where each of their numbers stands: (first byte, number of bytes); and some of their scales."""
    tensors = [
        (b"f", (3, 5), F32, 60),
        (b"half", (7,), F16, 14),
        (b"eight", (3, 10), Q8, 36),
        (b"four", (2, 128), Q4, 136),
        (b"s", (), F32, 4),
        (b"none", (0, 3), F16, 0),
    ]
    data = struct.pack("<15f", *range(15)) + struct.pack("<7e", *range(7))
    data += struct.pack("<3e", 1, 0.5, 2) + bytes(range(30)) + struct.pack("<4e", 1, 2, 3, 4) + bytes(range(128))
    data += struct.pack("<f", 2.5)
    parts, fields, at, offset = [], [(0, 4), (4, 4), (8, 4), (12, 4)], 16 + len(METADATA), 0
    for name, dims, dtype, size in tensors:
        part = descriptor(name, dims, dtype, offset)
        after = at + 2 + len(name)
        fields += [(at, 2), (after, 1), *((after + 1 + 4 * d, 4) for d in range(len(dims)))]
        fields += [(at + len(part) - 9, 1), (at + len(part) - 8, 8)]
        parts.append(part)
        at, offset = at + len(part), offset + size
    scales = [at + 74, at + 78, at + 110, at + 116]  # the first and last of "eight" and of "four"
    return [
        (assemble(parts, data), fields, scales),
        (VALID, [(8, 4), (12, 4), (23, 2), (26, 1), (27, 4), (31, 4), (36, 8)], []),
    ]


SEEDS = seed_files()


def test_the_files_to_be_damaged_are_valid(tmp_path):
    for data, _, _ in SEEDS:
        (tmp_path / "seed").write_bytes(data)
        assert read_everything(tmp_path / "seed")


@st.composite
def damaged(draw) -> bytes:
    """A valid file after one to four injuries."""
    original, fields, scales = draw(st.sampled_from(SEEDS))
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["field", "field", "scale", "bit", "cut", "insert", "delete", "splice", "bytes"]))
        if kind == "field":
            start, width = draw(st.sampled_from(fields))
            top = (1 << 8 * width) - 1
            old = int.from_bytes(data[start : start + width], "little")
            near = [old + 1, old - 1, old * 2, len(data), len(data) - start, len(data) - len(original)]
            extremes = [
                0,
                1,
                2,
                3,
                4,
                13,
                63,
                64,
                65,
                255,
                256,
                top,
                top - 1,
                top >> 1,
                (top >> 1) + 1,
                1 << 30,
                1 << 31,
            ]
            number = draw(st.one_of(st.sampled_from(near + extremes), st.integers(0, top))) & top
            data[start : start + width] = number.to_bytes(width, "little")
        elif kind == "scale" and scales:
            start = draw(st.sampled_from(scales))
            data[start : start + 2] = draw(st.sampled_from([b"\x00\x7c", b"\x01\xfc", b"\xff\xff", b"\x00\x80"]))
        elif kind == "bit" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[at:]
        elif kind == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=40))
        elif kind == "delete":
            del data[at : at + draw(st.integers(1, 40))]
        elif kind == "splice":
            start = draw(st.integers(0, len(data)))
            piece = data[start : start + draw(st.integers(1, 80))]
            data[at : at + len(piece)] = piece
        else:
            piece = draw(st.binary(min_size=1, max_size=12))
            data[at : at + len(piece)] = piece
    return bytes(data)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "damaged.gguf-lite"


def test_random_damage_gives_weights_or_a_format_error_and_nothing_else(scratch):
    refused, whole = Counter(), 0

    @given(damaged())
    @settings(max_examples=tried(300, 800))
    @example(b"")
    @example(VALID)
    def read(data):
        nonlocal whole
        scratch.write_bytes(data)
        tracemalloc.start()
        try:
            weights = read_everything(scratch)
            sizes = file_sizes(scratch)
        except FormatError as error:
            assert 0 <= error.offset <= len(data)
            refused[error.field.split(": ")[-1]] += 1
        else:
            assert sum(w.nbytes for w in weights.values()) <= 8 * len(data)  # 4 bits become 32
            assert sum(sizes.by_part.values()) == sizes.total == len(data)
            whole += 1
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 40 * len(data) + 1_000_000

    read()
    # The damage got past the header and reached every check there is; and some files survived it.
    assert {"header.magic", "header.version", "header.n_tensors", "header.metadata_len", "metadata"} <= refused.keys()
    assert {"name_len", "name", "n_dims", "dims", "dtype", "offset", "scales"} <= refused.keys()
    assert whole > 20


@given(damaged())
@settings(max_examples=tried(25, 100))
def test_random_damage_never_crashes_loading_a_model(scratch, data):
    from miniquant.models.pretrained import load_gguf_lite

    scratch.write_bytes(data)
    with pytest.raises(MiniquantError):
        load_gguf_lite(scratch)


@given(st.binary(max_size=200))
@settings(max_examples=tried(25, 100))
def test_random_bytes_behind_a_good_header_give_weights_or_a_format_error(scratch, tail):
    for n_tensors in (0, 1, 3):
        for metadata_len in (0, 5):
            scratch.write_bytes(struct.pack("<4I", 0x474C4654, 1, n_tensors, metadata_len) + tail)
            try:
                read_everything(scratch)
            except FormatError as error:
                assert 0 <= error.offset <= 16 + len(tail)


def test_a_file_that_holds_weights_that_are_not_finite_is_read_as_it_stands(tmp_path):
    """Only scales are held against NaN: a weight in F32 is what the file says."""
    (tmp_path / "f").write_bytes(one(struct.pack("<128f", math.nan, math.inf, *[0.0] * 126)))
    weights = read_everything(tmp_path / "f")["w"]
    assert math.isnan(weights[0, 0])
    assert math.isinf(weights[0, 1])
