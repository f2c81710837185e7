"""Tensors that are read when they are written: the same file as from arrays, and never more than a piece at a time."""

from __future__ import annotations

import threading
import time
from functools import partial

import numpy as np
import pytest
from thorough import in_turns

from miniquant.core.errors import SchemeError
from miniquant.formats.gguf import LazyTensor, encode, read_gguf, write_gguf
from miniquant.formats.gguf.codecs import CODECS, rows
from miniquant.formats.gguf.write import CHUNK, PIECE, Weighed, _in_order, _pieces, weighed


def lazy(w, asked):
    flat = w.reshape(-1, w.shape[-1])

    def read(start, stop):
        asked.append((start, stop))
        return flat[start:stop]

    return LazyTensor(w.shape, w.dtype.name, read)


KINDS = [*(kind.name for kind in CODECS if kind.block <= 32), None]
SHAPES = [(5, 256), (2, 3, 256), (1100, 1024), (0, 256)]
KIND_AND_SHAPE = [*in_turns(KINDS, SHAPES[:2]), *in_turns([None, "Q8_0"], SHAPES), (None, (7,))]


@pytest.mark.parametrize(("kind", "shape"), KIND_AND_SHAPE)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_lazy_tensor_gives_the_bytes_of_the_array(shape, kind, dtype, tmp_path):
    w = np.random.default_rng(0).normal(size=shape).astype(dtype)
    asked = []
    for name, value in (("array", w), ("lazy", lazy(w, asked))):
        write_gguf(tmp_path / name, {"w": (value, kind) if kind else value, "last": w}, {})
    assert (tmp_path / "array").read_bytes() == (tmp_path / "lazy").read_bytes()
    asked.sort()  # of two threads, either may ask first
    starts, stops = [start for start, _ in asked], [stop for _, stop in asked]
    n_rows = w.size // shape[-1]
    assert starts == [0, *stops[:-1]][: len(starts)] and (stops[-1] if stops else 0) == n_rows
    assert all((stop - start) * shape[-1] <= max(CHUNK, PIECE) for start, stop in asked)


def test_bfloat16_comes_as_float32_and_is_stored_as_bfloat16_unless_a_type_is_asked_for(tmp_path):
    w = np.array([[1.0, -2.5, 3.0]], np.float32)
    tensor = LazyTensor((1, 3), "bfloat16", lambda start, stop: w[start:stop])
    write_gguf(tmp_path / "a", {"w": tensor}, {})
    write_gguf(tmp_path / "b", {"w": (w, "BF16")}, {})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint8", "bool", "F32"])
def test_a_lazy_tensor_of_another_dtype_is_refused(dtype, tmp_path):
    with pytest.raises(SchemeError, match=f"'w': a LazyTensor is float32, float16 or bfloat16, found {dtype}"):
        write_gguf(tmp_path / "a", {"w": LazyTensor((1, 3), dtype, lambda start, stop: None)}, {})
    assert not list(tmp_path.iterdir())


def test_an_error_while_reading_leaves_what_was_there(tmp_path):
    def rows(start, stop):
        raise OSError("the disk is gone")

    (tmp_path / "a").write_bytes(b"before")
    with pytest.raises(OSError, match="the disk is gone"):
        write_gguf(tmp_path / "a", {"w": LazyTensor((1, 3), "float32", rows)}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"before"


@pytest.mark.parametrize("shape", [(2, 33), (2, 31), (1, 32), (3, 32), (64,), (32, 2), (4, 16)])
def test_rows_of_another_shape_than_announced_are_refused_and_move_no_other_tensor(shape, tmp_path):
    tensor = LazyTensor((2, 32), "float32", lambda start, stop: np.ones(shape, np.float32))
    for kind in ("F32", "Q8_0"):
        with pytest.raises(SchemeError, match=r"'w': rows 0 to 2 came in shape .*, expected \(2, 32\)"):
            write_gguf(tmp_path / "a", {"w": (tensor, kind), "last": np.ones(3, np.float32)}, {})
    assert not list(tmp_path.iterdir())


def test_pieces_are_read_in_several_threads_at_once_and_written_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "THREADS", 2)
    w = np.random.default_rng(0).normal(size=(64, 2**15)).astype(np.float32)
    met = threading.Barrier(2, timeout=60)  # passes when two threads are there; eight pieces are four pairs

    def some(start, stop):
        met.wait()
        return w[start:stop]

    write_gguf(tmp_path / "lazy.gguf", {"w": (LazyTensor(w.shape, "float32", some), "Q8_0"), "b": w[0]}, {})
    write_gguf(tmp_path / "plain.gguf", {"w": (w, "Q8_0"), "b": w[0]}, {})
    assert (tmp_path / "lazy.gguf").read_bytes() == (tmp_path / "plain.gguf").read_bytes()


def test_no_more_threads_read_than_there_are_cores_and_one_piece_more_waits_for_its_turn(monkeypatch):
    monkeypatch.setattr(rows, "THREADS", 2)
    drawn, busy, most, lock = [], [0], [0], threading.Lock()

    def job(number):
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.02)
        with lock:
            busy[0] -= 1
        return bytes([number])

    def jobs():
        for number in range(12):
            drawn.append(number)
            yield partial(job, number)

    parts = _in_order(jobs(), threads=True)
    assert next(parts) == b"\0" and drawn == [0, 1, 2]
    assert b"".join(parts) == bytes(range(1, 12)) and most == [2]


def test_each_expert_of_one_row_begins_a_piece():
    assert list(_pieces(3, 1, 5)) == [(0, 1), (1, 2), (2, 3)]


def test_a_tensor_is_weighed_if_there_is_an_importance_and_a_pair_if_there_is_none():
    w, importance = np.ones((2, 32), np.float32), np.ones((1, 32), np.float32)
    assert weighed(w, "Q4_0", None) == (w, "Q4_0")
    found = weighed(w, "Q4_0", importance)
    assert isinstance(found, Weighed) and found.data is w and found.dtype == "Q4_0" and found.importance is importance


def test_each_expert_is_encoded_with_its_own_importance(tmp_path):
    random = np.random.default_rng(4)
    w, importance = (
        random.normal(size=(3, 2, 256)).astype(np.float32),
        random.uniform(0.1, 9, (3, 256)).astype(np.float32),
    )
    write_gguf(tmp_path / "experts.gguf", {"w": Weighed(w, "Q4_K", importance)}, {})
    with read_gguf(tmp_path / "experts.gguf") as file:
        found = file.raw("w").tobytes()
    assert found == b"".join(encode(w[i], "Q4_K", importance[i]).tobytes() for i in range(3))
