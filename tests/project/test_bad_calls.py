"""Every bad call is a clear error, and leaves an existing file as it was."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from systems import posix

from miniquant import (
    MetadataError,
    MiniquantError,
    QuantizationError,
    SchemeError,
    WriteError,
    fake_quantize_state,
    preset,
    write_gguf_lite,
)
from miniquant.formats.gguf_lite import write as writer
from miniquant.models.minigpt import random_model

GOOD = {"w": np.ones((2, 64), np.float32), "b": np.ones(3, np.float32)}
NAN, INF = math.nan, math.inf


def with_weight(value, shape=(2, 64), at=-1) -> np.ndarray:
    w = np.zeros(shape, np.float32)
    w.reshape(-1)[at] = value
    return w


@pytest.fixture
def old(no_leftovers):
    """An existing file, and a check that it is all that is left, unchanged."""
    path = no_leftovers / "model.gguf-lite"
    path.write_bytes(b"what was there before")
    yield path
    assert path.read_bytes() == b"what was there before"
    assert os.listdir(path.parent) == ["model.gguf-lite"]


BAD_CALLS = {
    # name: (model, schemes, metadata, error, what the message says)
    "unknown parameter": (GOOD, {"v": "f16"}, None, SchemeError, "schemes names 'v', and the model has no such"),
    "misspelt parameter": (
        {"layers.0.mlp.fc1.weight": GOOD["w"]},
        {"layers.0.mlp.fc_1.weight": "f16"},
        None,
        SchemeError,
        "did you mean 'layers.0.mlp.fc1.weight'?",
    ),
    "parameter that is a number": (GOOD, {3: "f16"}, None, SchemeError, "schemes names 3"),
    "unknown scheme": (GOOD, {"w": "int4"}, None, SchemeError, "there are f32, f16, q8_per_channel, q4_per_group_64"),
    "misspelt scheme": (GOOD, {"w": "q4_per_group"}, None, SchemeError, "did you mean 'q4_per_group_64'?"),
    "scheme in capitals": (GOOD, {"w": "Q8_per_channel"}, None, SchemeError, "did you mean 'q8_per_channel'?"),
    "scheme None": (GOOD, {"w": None}, None, SchemeError, "unknown scheme None for 'w'"),
    "scheme as a code": (GOOD, {"w": 3}, None, SchemeError, "unknown scheme 3 for 'w'"),
    "schemes is a preset's name": (GOOD, "int8", None, SchemeError, "pass preset('int8', model)"),
    "schemes is None": (GOOD, None, None, SchemeError, "schemes must be a dict, found None"),
    "schemes is a list": (GOOD, [("w", "f16")], None, SchemeError, "schemes must be a dict"),
    "vector for Q4": (GOOD, {"b": "q4_per_group_64"}, None, SchemeError, "'b' has shape (3,); store it as f32 or f16"),
    "vector for Q8": (GOOD, {"b": "q8_per_channel"}, None, SchemeError, "'b' has shape (3,); store it as f32 or f16"),
    "scalar for Q4": ({"s": np.float32(1)}, {"s": "q4_per_group_64"}, None, SchemeError, "'s' has shape ()"),
    "cube for Q8": ({"c": np.ones((2, 2, 2), "f4")}, {"c": "q8_per_channel"}, None, SchemeError, "shape (2, 2, 2)"),
    "width 63 for Q4": (
        {"w": np.ones((64, 63), "f4")},
        {"w": "q4_per_group_64"},
        None,
        SchemeError,
        "a multiple of 64 long, and 'w' has shape (64, 63); store it as q8_per_channel or f16",
    ),
    "width 32 for Q4": ({"w": np.ones((64, 32), "f4")}, {"w": "q4_per_group_64"}, None, SchemeError, "(64, 32)"),
    "NaN for Q4": (
        {"w": with_weight(NAN)},
        {"w": "q4_per_group_64"},
        None,
        QuantizationError,
        "'w': the weight at [1, 63] is nan",
    ),
    "NaN for Q8": ({"w": with_weight(NAN)}, {"w": "q8_per_channel"}, None, QuantizationError, "[1, 63] is nan"),
    "NaN for F16": (
        {"w": with_weight(NAN)},
        {"w": "f16"},
        None,
        QuantizationError,
        "'w': the weight at flat index 127 is nan",
    ),
    "NaN for F32": ({"w": with_weight(NAN)}, {}, None, QuantizationError, "finite weights only"),
    "infinity for Q4": ({"w": with_weight(INF)}, {"w": "q4_per_group_64"}, None, QuantizationError, "[1, 63] is inf"),
    "minus infinity for Q8": ({"w": with_weight(-INF)}, {"w": "q8_per_channel"}, None, QuantizationError, "is -inf"),
    "infinity for F32": ({"w": with_weight(INF)}, {}, None, QuantizationError, "is inf"),
    "NaN far into a big tensor": (
        {"ok": np.ones((2000, 256), "f4"), "w": with_weight(NAN, (2000, 256), 1500 * 256 + 3)},
        {"ok": "q4_per_group_64", "w": "q4_per_group_64"},
        None,
        QuantizationError,
        "'w': the weight at [1500, 3] is nan",
    ),
    "NaN in the last chunk of F32": (
        {"w": with_weight(NAN, (1_000_000,))},
        {},
        None,
        QuantizationError,
        "at flat index 999999 is nan",
    ),
    "NaN in bfloat16": ({"w": torch.tensor([NAN]).bfloat16()}, {}, None, QuantizationError, "is nan"),
    "weight beyond float16": (
        {"w": with_weight(1e5)},
        {"w": "f16"},
        None,
        QuantizationError,
        "is 100000, and float16 ends at 65504",
    ),
    "weight just beyond float16": (
        {"w": with_weight(-65520)},
        {"w": "f16"},
        None,
        QuantizationError,
        "store this tensor as f32",
    ),
    "scale beyond float16": (
        {"w": with_weight(1e6)},
        {"w": "q4_per_group_64"},
        None,
        QuantizationError,
        "a scale would be 142857, and float16 ends at 65504",
    ),
    "float64 beyond float32": (
        {"w": np.full((2, 64), 1e39)},
        {"w": "q8_per_channel"},
        None,
        QuantizationError,
        "1e+39 is beyond float32",
    ),
    "integer buffer": ({"n": torch.arange(3)}, {}, None, QuantizationError, "'n' holds torch.int64"),
    "integer array": ({"n": np.arange(3)}, {}, None, QuantizationError, "register the buffer with persistent=False"),
    "integer array with a scheme": (
        {"n": np.ones((2, 64), np.int8)},
        {"n": "q8_per_channel"},
        None,
        QuantizationError,
        "int8",
    ),
    "mask of truth values": ({"m": torch.ones(2, 2, dtype=torch.bool)}, {}, None, QuantizationError, "torch.bool"),
    "complex numbers": ({"c": np.ones(2, np.complex64)}, {}, None, QuantizationError, "complex64"),
    "text": ({"t": np.array(["a"])}, {}, None, QuantizationError, "which the format has no type for"),
    "objects": ({"o": np.array([None])}, {}, None, QuantizationError, "object"),
    "float64 without a scheme": (
        {"w": np.ones(3)},
        {},
        None,
        QuantizationError,
        "'w' holds float64, and f32 would round it",
    ),
    "torch float64 without a scheme": (
        {"w": torch.ones(3, dtype=torch.float64)},
        {},
        None,
        QuantizationError,
        "convert it, or name a scheme for it",
    ),
    "big-endian float64": ({"w": np.ones(3, ">f8")}, {}, None, QuantizationError, "f32 would round it"),
    "long double": ({"w": np.ones(3, np.longdouble)}, {}, None, QuantizationError, "f32 would round it"),
    "model is None": (None, {}, None, SchemeError, "expected an nn.Module or a state dict, found NoneType"),
    "model is a path": ("model.pt", {}, None, SchemeError, "found str"),
    "model is a list": ([1.0], {}, None, SchemeError, "found list"),
    "list in place of a tensor": (
        {"w": [1.0, 2.0]},
        {},
        None,
        SchemeError,
        "'w' is a list; a state dict holds tensors",
    ),
    "number in place of a tensor": ({"w": 1.0}, {}, None, SchemeError, "'w' is a float"),
    "whole checkpoint": ({"model": {"w": GOOD["w"]}, "step": 3}, {}, None, SchemeError, "'model' is a dict"),
    "name that is a number": ({0: GOOD["w"]}, {}, None, SchemeError, "the parameter name 0 is not a string"),
    "empty name": ({"": GOOD["w"]}, {}, None, SchemeError, "takes 0 bytes of UTF-8; the format holds 1 to 65535"),
    "name too long": ({"x" * 65536: GOOD["w"]}, {}, None, SchemeError, "takes 65536 bytes"),
    "name too long in UTF-8 alone": ({"é" * 32768: GOOD["w"]}, {}, None, SchemeError, "takes 65536 bytes"),
    "name with a lone surrogate": ({"w\udc80": GOOD["w"]}, {}, None, SchemeError, "is not valid Unicode"),
    "65 dims": ({"w": torch.ones((1,) * 65)}, {}, None, SchemeError, "dims; an array has 64 at most"),
    "256 dims": ({"w": torch.ones((1,) * 256)}, {}, None, SchemeError, "dims; an array has 64 at most"),
    "a dim of 2^32": ({"w": np.broadcast_to(np.float32(1), (0, 1 << 32))}, {}, None, SchemeError, "below 2**32"),
    "key with an equals sign": (GOOD, {}, {"a=b": 1}, MetadataError, "the key 'a=b' is not a string without '='"),
    "key with a newline": (GOOD, {}, {"a\nb": 1}, MetadataError, "newline"),
    "empty key": (GOOD, {}, {"": 1}, MetadataError, "at least one character"),
    "key that is a number": (GOOD, {}, {1: "a"}, MetadataError, "the key 1 is not a string"),
    "key of bytes": (GOOD, {}, {b"a": "a"}, MetadataError, "b'a'"),
    "value with a newline": (GOOD, {}, {"a": "b\nc"}, MetadataError, "the value of 'a' holds a newline"),
    "value that ends in a newline": (GOOD, {}, {"a": "b\n"}, MetadataError, "replace it"),
    "value None": (GOOD, {}, {"a": None}, MetadataError, "the value of 'a' is a NoneType; pass text or a number"),
    "value of bytes": (GOOD, {}, {"a": b"x"}, MetadataError, "is a bytes"),
    "value of numpy bytes": (GOOD, {}, {"a": np.bytes_(b"x")}, MetadataError, "is a bytes_"),
    "value that is a list": (GOOD, {}, {"a": [1]}, MetadataError, "is a list"),
    "value that is an array": (GOOD, {}, {"a": np.ones(2)}, MetadataError, "is a ndarray"),
    "value with a lone surrogate": (GOOD, {}, {"a": "\ud800"}, MetadataError, "valid Unicode"),
    "key with a lone surrogate": (GOOD, {}, {"\udfff": "a"}, MetadataError, "valid Unicode"),
    "metadata that is a list": (GOOD, {}, [("a", "b")], MetadataError, "metadata must be a dict"),
    "metadata that is text": (GOOD, {}, "a=b", MetadataError, "metadata must be a dict"),
    "metadata that contradicts the writer": (
        GOOD,
        {},
        {"group_size": 32},
        MetadataError,
        "the writer knows it to be 64",
    ),
    "metadata that contradicts the model": (
        random_model(),
        {},
        {"config.n_layers": 3},
        MetadataError,
        "sets config.n_layers=3, and the writer knows it to be 2",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_call_says_what_is_wrong_and_leaves_the_old_file(name, old):
    model, schemes, metadata, kind, message = BAD_CALLS[name]
    with pytest.raises(kind) as caught:
        write_gguf_lite(old, model, schemes, metadata)
    assert message in str(caught.value)
    assert isinstance(caught.value, MiniquantError)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", [n for n, call in BAD_CALLS.items() if call[3] is QuantizationError])
def test_fake_quantizing_refuses_the_same_weights_with_the_same_words(name):
    model, schemes, _, kind, message = BAD_CALLS[name]
    with pytest.raises(kind) as caught:
        fake_quantize_state(model, schemes)
    assert message in str(caught.value)


def test_a_bad_call_writes_nothing_where_nothing_was(no_leftovers):
    for model, schemes, metadata, kind, _ in BAD_CALLS.values():
        with pytest.raises(kind):
            write_gguf_lite(no_leftovers / "new", model, schemes, metadata)
    assert os.listdir(no_leftovers) == []


def test_a_preset_that_does_not_fit_the_model_names_the_tensor_and_the_remedy(old):
    model = torch.nn.Linear(100, 4)
    with pytest.raises(SchemeError, match=r"'weight' has shape \(4, 100\); store it as q8_per_channel or f16"):
        write_gguf_lite(old, model, preset("int4", model))


def test_a_batch_norms_counter_is_refused_rather_than_dropped(old):
    with pytest.raises(QuantizationError, match=r"'num_batches_tracked' holds torch\.int64"):
        write_gguf_lite(old, torch.nn.BatchNorm1d(3), {})


# ---- places that cannot be written to --------------------------------------------------------------------------------


def test_an_unwritable_path_is_a_write_error_before_any_weight_is_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "encode_tensor", lambda *_: pytest.fail("weights were encoded"))
    (tmp_path / "file").write_bytes(b"x")
    for path in (tmp_path, tmp_path / "missing" / "m", tmp_path / "file" / "m", f"{tmp_path}/a\0b"):
        with pytest.raises(WriteError) as caught:
            write_gguf_lite(path, GOOD, {})
        assert isinstance(caught.value, OSError)
    assert os.listdir(tmp_path) == ["file"]


@posix
def test_a_pipe_is_refused_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WriteError, match="not a regular file"):
        write_gguf_lite(tmp_path / "pipe", GOOD, {})
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_path_of_another_type_is_a_type_error(no_leftovers):
    for path in (None, 3.5, ["a"]):
        with pytest.raises(TypeError):
            write_gguf_lite(path, GOOD, {})


def test_a_full_disk_leaves_the_old_file(old, monkeypatch):
    def full(_fd):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left on device; whatever was there before is unchanged"):
        write_gguf_lite(old, GOOD, {})


@posix
def test_a_disk_that_fills_up_while_the_weights_are_written_leaves_the_old_file(old):
    """A limit that the kernel enforces, in a process of its own; 1 MB of weights do not fit 100,000 bytes."""
    program = """
    import resource, signal, sys
    import numpy as np
    from miniquant import WriteError, write_gguf_lite
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        write_gguf_lite(sys.argv[1], {"w": np.ones((512, 512), np.float32)}, {})
    except WriteError as error:
        print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), old], capture_output=True, text=True)
    assert "File too large" in done.stdout, done.stderr


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, RuntimeError])
def test_an_interruption_in_the_middle_of_the_weights_leaves_the_old_file(error, old, monkeypatch):
    encode = writer.encode_tensor

    def interrupted(w, dtype):
        parts = encode(w, dtype)
        yield next(parts)
        raise error

    monkeypatch.setattr(writer, "encode_tensor", interrupted)
    with pytest.raises(error):
        write_gguf_lite(old, GOOD, {"w": "q8_per_channel"})


def test_a_model_that_changes_its_mind_while_it_is_written_leaves_the_old_file(old):
    """A mapping whose tensor has gone by the time its turn comes: any error will do, the file stays."""

    class Vanishing(dict):
        reads = 0

        def __getitem__(self, name):
            self.reads += 1
            if self.reads > 1:
                raise KeyError(name)
            return super().__getitem__(name)

    with pytest.raises(KeyError):
        write_gguf_lite(old, Vanishing(GOOD), {})
