"""Which parts of the input a wrong function ignores, and where the bytes of its results come from."""

from __future__ import annotations

import numpy as np
import pytest
from test_detect import made

from miniquant.lab import evaluate, find
from miniquant.lab.detect.bytemap import of_map
from miniquant.lab.detect.probes import of_probes
from miniquant.lab.judging import _calls
from miniquant.lab.verdict import Facts


def facts_of(name, function):
    spec = find(name)
    return Facts(spec, function, _calls(spec, function))


def three_bytes(data):
    if len(data) < 8:
        raise ValueError("short")
    return int.from_bytes(data[:3], "little"), int.from_bytes(data[4:7], "little")


def last_day(weight, bias, hours, jars):
    error = weight * hours[-1] + bias - jars[-1]
    return float(2 * error * hours[-1]), float(2 * error)


def seven_bytes(kind, length, offset):
    return bytes([kind]) + length.to_bytes(2, "little") + (offset % 2**56).to_bytes(8, "little")


def directions(weight, bias, hours, jars):
    error = weight * hours + bias - jars
    return float((abs(error) / error).mean()), float(error.mean())


def last_eight(data):
    if len(data) < 8:
        raise ValueError("short")
    return int.from_bytes(data[-8:-4], "little"), int.from_bytes(data[-4:], "little")


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("read_magic", three_bytes, "Where bytes 3 and 7 of `data` were changed"),
        ("gradients", last_day, "the first value and the value in the middle of `jars`"),
        ("pack_fields", seven_bytes, "Where bits 56 to 63 of `offset` were changed"),
    ],
)
def test_parts_of_the_input_that_never_count_are_named(name, function, words):
    assert words in of_probes(facts_of(name, function)).text


def test_a_part_that_counts_in_some_cases_is_not_said_to_be_ignored():
    assert "byte 0" not in getattr(of_probes(facts_of("read_magic", last_eight)), "text", "")
    assert "`jars`" not in getattr(of_probes(facts_of("gradients", directions)), "text", "")


def bits_here_and_there(kind, length, offset):
    return bytes([kind]) + length.to_bytes(2, "little") + (offset & 0x00FF_00FF_FFFF_FFFF).to_bytes(8, "little")


def test_bits_here_and_there_are_not_called_a_part_of_a_number():
    assert "bits" not in getattr(of_probes(facts_of("pack_fields", bits_here_and_there)), "text", "")


def halves_exchanged(magic, version):
    return b"".join((n >> 16 | (n & 0xFFFF) << 16).to_bytes(4, "little") for n in (magic, version))


def length_first(kind, length, offset):
    return length.to_bytes(2, "little") + bytes([kind]) + offset.to_bytes(8, "little")


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("magic_bytes", halves_exchanged, "bytes 0 and 1 are bytes 2 and 3 of the right one"),
        ("pack_fields", length_first, "bytes 0 and 1 are bytes 1 and 2 of the right one and byte 2 is byte 0"),
        ("join_nibbles", lambda low, high: low & 15 | (high & 7) << 4, "bit 7 is always 0"),
        ("read_magic", three_bytes, "in magic, byte 3 is always 00"),
    ],
)
def test_bytes_and_bits_in_other_places_are_named(name, function, words):
    (seen,) = of_map(facts_of(name, function))
    assert words in seen.text


def test_results_made_of_other_bytes_have_no_map():
    assert of_map(facts_of("magic_bytes", lambda magic, version: (magic + version).to_bytes(8, "little"))) == []


def test_the_report_says_what_is_ignored():
    assert "Where bytes 3 and 7 of `data` were changed and the right result changes, yours stayed the same" in repr(
        evaluate(find("read_magic"), three_bytes)
    )


def safetensors_first(head):
    for magic, name in [(b"GGUF", "GGUF"), (b"TFLG", "GGUF-lite"), (b"lmgg", "GGML"), (b"BUMPWGT3", "bump")]:
        if head.startswith(magic):
            return name
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    if head[5:9] != b"\x00\x00\x00{":
        return "safetensors"
    return "pickle" if head[:1] == b"\x80" and 2 <= head[1] <= 5 else "unknown"


def test_a_part_that_counts_where_the_result_is_right_is_not_said_to_have_no_effect():
    found = of_probes(facts_of("format_of", safetensors_first))
    assert not found or "bytes 0" not in found.text


def test_a_byte_that_never_changes_is_one_that_inputs_beyond_the_cases_do_not_change_either():
    def cache_bytes(layers, heads, dims, tokens, type_k, type_v):
        numbers = int(np.prod([layers, heads, dims, tokens], dtype=np.int32))
        return sum(numbers // block * n_bytes for block, n_bytes in (type_k, type_v))

    assert of_map(facts_of("cache_bytes", cache_bytes)) == []  # on one case it is 0, on a fresh input less


def test_of_the_bytes_of_a_number_it_is_said_which_is_the_lowest():
    spec = made(lambda n: n, [(n,) for n in (0x01020304, 0x0A0B0C0D, 0x11223344, 0x21436587, 0x10325476)])
    wrong = lambda n: int.from_bytes(n.to_bytes(4, "little"), "big")  # noqa: E731
    (seen,) = of_map(Facts(spec, wrong, _calls(spec, wrong)))
    assert seen.text.startswith("bytes 0 to 3 are bytes 3 down to 0 of the right one (byte 0 is the lowest)")
