"""Malformed GGUF files: only ``FormatError`` comes out, at once and for little memory; and ggml refuses them too."""

from __future__ import annotations

import contextlib
import struct
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lines import lines_of_python
from thorough import in_turns, tried

from conformance import gguf_files as bad
from conformance.gguf_files import CORPUS, LENIENT, VALID
from miniquant.core.errors import FormatError, QuantizationError
from miniquant.evaluate.llamacpp import LlamaCpp, LlamaCppError
from miniquant.formats.gguf import GGUFFile, Typed, ValueType, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.formats.gguf.metadata import NUMPY
from miniquant.formats.gguf.read import INTEGERS

every_malformation = pytest.mark.parametrize("name", CORPUS)


def read_everything(path: Path) -> dict[str, np.ndarray]:
    """Open a file, read every value of its metadata and each of its tensors in every way that there is."""
    with read_gguf(path) as file:
        assert file.typed().keys() == file.metadata.keys()
        for value in file.metadata.values():
            if not isinstance(value, str | int | float):
                list(value)
        return dict(read_tensors(file))


def read_tensors(file: GGUFFile) -> Iterator[tuple[str, np.ndarray]]:
    for name, info in file.tensors.items():
        raw = file.raw(name)
        assert len(raw) == info.n_bytes
        if info.dtype in CODECS or info.dtype in INTEGERS:
            w = file.tensor(name)
            assert w.shape == info.shape
            yield name, w
        else:  # a good file, of a type that cannot be decoded here
            with pytest.raises(QuantizationError):
                file.tensor(name)


@contextlib.contextmanager
def peak_below(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("malformed") / "bad.gguf"


class Referee:
    """ggml's reader, in a process that is started again when a file has made it abort."""

    def __init__(self) -> None:
        self.llama = LlamaCpp(None)

    def refuses(self, path: Path) -> bool:
        try:
            self.llama.check(path)
        except LlamaCppError as error:
            if "ended with code" in str(error):
                self.llama.close()
                self.llama = LlamaCpp(None)
            return True
        return False


@pytest.fixture(scope="module")
def ggml():
    referee = Referee()
    yield referee
    referee.llama.close()


# ---- the corpus ------------------------------------------------------------------------------------------------------


def test_the_corpus_is_large_and_its_files_differ():
    assert len(CORPUS) >= 140
    assert len({fault.data for fault in CORPUS.values()}) == len(CORPUS)
    assert sum(fault.ggml for fault in CORPUS.values()) >= 130


def test_the_file_that_the_corpus_is_made_from_is_valid(scratch, ggml):
    scratch.write_bytes(VALID)
    assert not ggml.refuses(scratch)
    assert np.array_equal(read_everything(scratch)["w"], np.zeros((2, 64), np.float32))
    with read_gguf(scratch) as file:
        assert (file.metadata["n"], file.metadata["s"], file.metadata["a"].tolist()) == (7, "xyz", [-2, -1, 0, 1])


@every_malformation
def test_a_malformed_file_is_refused_with_its_field_and_offset_and_little_memory(name, scratch):
    fault = CORPUS[name]
    scratch.write_bytes(fault.data)
    with peak_below(len(fault.data) + 1_000_000), pytest.raises(FormatError) as caught:
        read_everything(scratch)
    error = caught.value
    assert (error.field, error.offset) == (fault.field, fault.offset)
    assert str(error).startswith(f"{scratch}: {fault.field} at byte {fault.offset}: ")
    assert isinstance(error, ValueError)


@every_malformation
def test_ggml_refuses_what_we_refuse_but_for_text_and_truth_values(name, scratch, ggml):
    scratch.write_bytes(CORPUS[name].data)
    assert ggml.refuses(scratch) == CORPUS[name].ggml


@pytest.mark.parametrize("name", LENIENT)
def test_what_the_specification_allows_is_read_though_llama_cpp_refuses_it(name, scratch, ggml):
    scratch.write_bytes(LENIENT[name])
    assert ggml.refuses(scratch)
    assert read_everything(scratch)


def test_a_file_cut_anywhere_is_refused(scratch):
    for original, padding in ((VALID, 0), (SEED, 56)):
        for length in (n for n in range(len(original) - padding) if (n < 840 and n % 2 == 0) or n % 9 == 0):
            scratch.write_bytes(original[:length])
            with pytest.raises(FormatError):
                read_everything(scratch)


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "big-endian": "the file is big-endian, and this reader reads little-endian files only",
        "version 1": "found version 1, this reader knows 2 and 3; version 1 is obsolete, convert the model again",
        "version 4": "found version 4, this reader knows 2 and 3",
        "version 0": "found version 0, this reader knows 2 and 3",
        "magic of GGUF-lite": "a GGUF file begins with b'GGUF'; this is a GGUF-lite file",
        "an empty file": "the file has 0 bytes, a header takes 24",
        "n_tensors a thousand": "found 1000, and the file has room for 27 at most",
        "n_kv -1": "found 18446744073709551615, and the file has room for 46 at most",
        "a key twice": "the key 'n' stands twice; keys are unique",
        "a name twice": "the name 'a' stands twice; names are unique",
        "a name of 65 bytes": "found 65 bytes, 64 at most",
        "type 13": "found type 13; the types are 0 to 12",
        "an array of arrays": "arrays of arrays are not supported, by llama.cpp neither",
        "a truth value of 2": "found the byte 2 for a truth value; it is 0 or 1",
        "alignment 24": "found 24, expected a power of two",
        "alignment of type UINT64": "its type is UINT64, expected UINT32",
        "five dims": "found 5 dims, 4 at most",
        "rows of 33 in Q8_0": "rows of 33 are no multiple of Q8_0's block of 32",
        "a negative dim": "are negative or multiply to more than any file holds",
        "type 99": "found type 99, which is none of ggml's",
        "an offset of 16": "found 16, expected a multiple of 32",
        "an offset at the end": "end outside the data section of 512 bytes; the file is truncated, or",
        "two tensors that overlap": "offset 32 lies inside 'a', which ends at 64",
        "truncated in a number": "it is truncated",
        "a string in Latin-1": "not valid UTF-8 (invalid start byte)",
    }.items(),
)
def test_the_message_says_what_was_found_and_what_was_expected(name, expected, scratch):
    scratch.write_bytes(CORPUS[name].data)
    with pytest.raises(FormatError) as caught:
        read_everything(scratch)
    assert expected in str(caught.value)


def test_a_long_key_or_name_does_not_make_a_long_message(scratch):
    key = bad.pair(b"k" * 60_000, bad.UINT32, bytes(4))
    for data in (
        bad.assemble([key, key], []),
        bad.assemble([bad.pair(b"k" * 60_000, 99, b"")], []),
        bad.assemble([bad.pair(b"k" * 60_000, bad.STRING, bad.string(b"\xff"))], []),
        bad.one(name=b"n" * 60_000),
        bad.assemble([], [bad.info(b"n" * 60_000)] * 2),
    ):
        scratch.write_bytes(data)
        with pytest.raises(FormatError) as caught:
            read_everything(scratch)
        assert len(str(caught.value)) < 400 + len(str(scratch))


# ---- lies cost nothing -----------------------------------------------------------------------------------------------


def test_a_malformed_file_is_refused_after_a_few_hundred_lines_of_python(scratch):
    """In place of a clock: no count in a file makes a loop long."""
    for name, fault in CORPUS.items():
        scratch.write_bytes(fault.data)
        assert 0 < lines_of_python(lambda: read_everything(scratch)) < 2000, name


def lies(number: int, tail: bytes) -> Iterator[bytes]:
    """Files with one count or length that says ``number``, and then whatever follows."""
    yield bad.assemble(bad.PAIRS, [bad.info()], tail, n_tensors=number)
    yield bad.assemble(bad.PAIRS, [bad.info()], tail, n_pairs=number)
    yield bad.assemble([bad.pair(b"k", bad.UINT32, bytes(4), number)], [], tail)
    yield bad.assemble([bad.pair(b"k", bad.STRING, bad.string(b"", number))], [], tail)
    for of in (bad.UINT8, bad.UINT64, bad.STRING, bad.BOOL, bad.ARRAY):
        yield bad.assemble([bad.pair(b"k", bad.ARRAY, bad.array(of, number, b""))], [], tail)
    yield bad.one(tail, name_len=number)
    yield bad.one(tail, n_dims=min(number, 2**32 - 1))
    yield bad.one(tail, dims=(number,))
    yield bad.one(tail, dims=(32, number), kind=bad.Q8_0)
    yield bad.one(tail, dims=(number, 0))
    yield bad.one(tail, offset=number)


@pytest.mark.parametrize("power", [*range(4, 64, 3), 63])
def test_a_bigger_lie_costs_no_more_memory(power, scratch):
    for data in lies(1 << power, bytes(512)):
        scratch.write_bytes(data)
        with peak_below(200_000), contextlib.suppress(FormatError):
            read_everything(scratch)


@pytest.mark.parametrize(("share", "fill"), in_turns([1, 8, 24, 1000], [b"\0", b"\1", b"a", b"\xff"]))
def test_a_lie_in_a_large_file_costs_no_more_than_the_file(share, fill, scratch):
    """The counts are as large as the file's size can bear."""
    size = 1_000_000
    for data in lies(size // share, fill * size):
        scratch.write_bytes(data)
        with peak_below(len(data) + 300_000), contextlib.suppress(FormatError):
            read_gguf(scratch)


def test_a_hundred_thousand_empty_strings_cost_less_than_the_file(scratch):
    strings = bad.array(bad.STRING, 100_000, bytes(800_000))
    scratch.write_bytes(bad.assemble([bad.pair(b"k", bad.ARRAY, strings)], []))
    with peak_below(800_000):
        file = read_gguf(scratch)
    assert len(file.metadata["k"]) == 100_000


def test_entries_that_are_really_there_cost_memory_in_proportion(scratch):
    """The smallest pairs and tensors that can be: Python's objects for one take some dozen times its bytes."""
    keys = [bad.pair(b"%05d" % i, bad.UINT8, b"\0") for i in range(4_000)]
    infos = [bad.info(b"%05d" % i, (0,)) for i in range(4_000)]
    for data in (bad.assemble(keys, []), bad.assemble([], infos)):
        scratch.write_bytes(data)
        with peak_below(40 * len(data)):
            file = read_gguf(scratch)
        assert len(file.metadata) + len(file.tensors) == 4_000


def test_dims_beside_a_zero_are_an_empty_tensor_whatever_they_are(scratch):
    for dims in ((0,), (0, 5), (64, 0), (2**40, 0), (0, 2**40, 3), (1, 2, 3, 0)):
        scratch.write_bytes(bad.assemble([], [bad.info(dims=dims)]))
        assert read_everything(scratch)["w"].shape == dims[::-1]


def test_the_largest_dims_beside_a_zero_are_read_or_refused(scratch):
    for kind in (bad.F32, bad.F16, bad.Q8_0, 24, 28):  # I8, F64
        for dims in (
            (2**59, 0),
            (2**60 - 32, 0),
            (2**60, 0),
            (2**62, 0),
            (0, 2**62),
            (2**31, 2**31, 0),
            (2**63 - 32, 0),
        ):
            scratch.write_bytes(bad.assemble([], [bad.info(dims=dims, kind=kind)]))
            with contextlib.suppress(FormatError):
                read_everything(scratch)


@pytest.mark.parametrize("letter", ["a", "é", "☃", "𝄞"])
def test_bad_text_of_any_length_is_found_at_its_byte(letter, scratch):
    """Long texts are looked through in pieces; characters that a piece cuts in two are whole."""
    for size in (10, 2**16 - 1, 2**16, 2**16 + 1, 2**16 + 7, 200_001):
        good = (letter * size).encode()[: size - size % len(letter.encode())]
        for text, fault in (
            (good, None),
            (good + b"\xff", len(good)),
            (good + b"\xff" + good, len(good)),
            (good + "☃".encode()[:2], len(good)),
            (good + "☃".encode()[:2] + b"a" * 70_000, len(good)),
            (b"\x80" + good, 0),
        ):
            for array in (False, True):
                value = bad.array(bad.STRING, 1, bad.string(text)) if array else bad.string(text)
                scratch.write_bytes(bad.assemble([bad.pair(b"k", bad.ARRAY if array else bad.STRING, value)], []))
                if fault is None:
                    found = read_gguf(scratch).metadata["k"]
                    assert (found[0] if array else found) == text.decode()
                else:
                    with pytest.raises(FormatError) as caught:
                        read_everything(scratch)
                    assert caught.value.offset == 37 + len(value) - len(text) + fault


# ---- random damage ---------------------------------------------------------------------------------------------------


def seed_file() -> bytes:
    """A valid file with every type of value, and a tensor in blocks of each size that is encoded here."""
    w = np.random.default_rng(0).standard_normal((2, 256)).astype(np.float32)
    metadata = {
        "general.alignment": 64,
        **{kind.name.lower(): Typed(1, kind) for kind in ValueType if kind in NUMPY and kind != ValueType.BOOL},
        **{"text": "some text", "truth": True, "texts": ["one", "", "three"], "truths": [True, False, True]},
        "floats": [0.5, 1.5],
    }
    sizes = {(kind.block, kind.block > 1 or kind.n_bytes): kind for kind in CODECS if CODECS[kind].encodes}
    tensors = {kind.name: (w[:, : 64 if kind.block <= 32 else 256], kind) for kind in sizes.values()} | {
        "ints": np.arange(6, dtype=np.int16),
        "scalar": np.float64(2),
    }
    with tempfile.TemporaryDirectory() as folder:
        write_gguf(Path(folder) / "seed.gguf", tensors, metadata, 64)
        return (Path(folder) / "seed.gguf").read_bytes()


SEED = seed_file()


def numbers_of(data: bytes, path: Path) -> list[tuple[int, int]]:
    """Where the counts, lengths, names, types, dims and offsets of a valid file stand: (first byte, how many)."""
    found = [(0, 4), (4, 4), (8, 8), (16, 8)]
    path.write_bytes(data)
    with read_gguf(path) as file:
        for name, (start, end) in file.spans.items():
            (length,) = struct.unpack_from("<Q", data, start)
            after = start + 8 + length
            found += [(start, 8), (start + 8, min(8, length)), (after, 4)]
            if name.startswith("tensor:"):
                found += [(at, 8) for at in range(after + 4, end - 12, 8)]
                found += [(end - 12, 4), (end - 8, 8)]
            else:
                found += [(after + 4, min(8, end - after - 4)), (after + 8, min(8, max(1, end - after - 8)))] * 3  # few
    return found


EXTREMES = [0, 1, 2, 3, 4, 5, 8, 9, 12, 13, 31, 32, 33, 63, 64, 65, 255, 2**16, 2**31, 2**32 - 1, 2**61, 2**62, 2**63]


@st.composite
def damaged(draw, places: dict[bytes, list[tuple[int, int]]]) -> bytes:
    """A valid file after one to four injuries."""
    original = draw(st.sampled_from(list(places)))
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        header = draw(st.booleans())  # most of the files are data, and damage there is only another weight
        at = draw(st.integers(0, min(len(data), 900 if header else len(data))))
        kind = draw(
            st.sampled_from(["number", "number", "number", "bit", "cut", "insert", "delete", "splice", "bytes"])
        )
        if kind == "number":
            start, width = draw(st.sampled_from(places[original]))
            top = (1 << 8 * width) - 1
            old = int.from_bytes(data[start : start + width], "little")
            near = [old + 1, old - 1, old * 2, old + 32, old - 32, len(data), len(data) - start, 2**64 - old]
            number = draw(st.one_of(st.sampled_from(near + EXTREMES), st.integers(0, top))) & top
            data[start : start + width] = number.to_bytes(width, "little")
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


def test_random_damage_gives_weights_or_a_format_error_and_nothing_else(scratch):
    refused, whole = Counter(), 0
    places = {data: numbers_of(data, scratch) for data in (SEED, VALID)}

    @given(damaged(places))
    @settings(max_examples=tried(400, 1000))
    @example(b"")
    @example(VALID)
    @example(SEED)
    @example(CORPUS["a name twice"].data)
    def read(data):
        nonlocal whole
        scratch.write_bytes(data)
        with peak_below(40 * len(data) + 1_000_000):
            try:
                weights = read_everything(scratch)
            except FormatError as error:
                assert 0 <= error.offset <= len(data)
                part = error.field.split(" ")[0] if ":" not in error.field else error.field.split(": ", 1)[1]
                refused[f"{error.field.split(' ')[0]} {part}"] += 1
            else:
                assert sum(w.nbytes for w in weights.values()) <= 30 * len(data)  # a little more than a bit becomes 32
                whole += 1

    read()
    # The damage got past the header and reached every check that there is; and some files survived it.
    for part in ("header.magic", "header.version", "header.n_tensors", "header.n_kv"):
        assert refused[f"{part} {part}"], part
    for part in (
        "key length",
        "key key",
        "metadata type",
        "metadata element type",
        "metadata length",
        "metadata metadata",
    ):
        assert refused[part], part
    for part in ("tensor name", "tensor name: length", "tensor n_dims", "tensor dims", "tensor type", "tensor offset"):
        assert refused[part], part
    assert whole > 20


@given(st.binary(max_size=300))
@settings(max_examples=tried(25, 100))
def test_random_bytes_behind_a_good_header_give_weights_or_a_format_error(scratch, tail):
    for n_tensors, n_pairs in ((0, 0), (1, 0), (0, 1), (3, 2)):
        scratch.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, n_tensors, n_pairs) + tail)
        try:
            read_everything(scratch)
        except FormatError as error:
            assert 0 <= error.offset <= 24 + len(tail)


def test_what_is_not_finite_is_read_as_it_stands(scratch):
    """Weights and scales are what the file says: here the writer is the one who refuses."""
    block = struct.pack("<e", float("nan")) + bytes(32)
    scratch.write_bytes(bad.assemble([], [bad.info(dims=(32,), kind=bad.Q8_0)], block + bytes(30)))
    assert np.isnan(read_everything(scratch)["w"]).all()


def test_more_strings_than_the_rest_of_the_file_can_hold_are_refused_at_their_count(tmp_path):
    write_gguf(tmp_path / "m.gguf", {}, {"a": ["x", "y"]})
    data = (tmp_path / "m.gguf").read_bytes()
    at = data.index(struct.pack("<IQ", ValueType.STRING, 2)) + 4
    count = (len(data) - at - 8) // 8 + 1
    with pytest.raises(FormatError, match=f"found {count} strings") as caught:
        read_gguf(data[:at] + struct.pack("<Q", count) + data[at + 8 :])
    assert (caught.value.field, caught.value.offset) == ("metadata 'a': length", at)
