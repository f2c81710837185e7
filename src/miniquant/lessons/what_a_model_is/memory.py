"""The exercise of lab 01 on memory: how many bytes some tensors keep alive."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ...lab.spec import Case, Exercise, Mistake

Tensors = dict[str, Tensor]


def kept_bytes(tensors: Tensors) -> int:
    """The reference: the bytes of all storages behind some tensors, each counted once."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors.values()}
    return sum(storage.nbytes() for storage in storages.values())


def kept_oracle(tensors: Tensors) -> int:
    """``torch.save`` is asked: it writes every storage once, as an entry of its own in a zip file."""
    file = io.BytesIO()
    torch.save(tensors, file)
    with zipfile.ZipFile(file) as archive:
        return sum(entry.file_size for entry in archive.infolist() if "/data/" in entry.filename)


def _kept_cases(random: np.random.Generator) -> list[Case]:
    def drawn(*shape: int) -> Tensor:
        return torch.from_numpy(random.normal(size=shape).astype(np.float32))

    w, big, twins = drawn(4, 2), drawn(8, 4), torch.ones(3)
    cases = [
        {"w": torch.zeros(2, 3)},
        {"emb": w, "head": w},
        {"half": drawn(5).half(), "levels": torch.zeros(7, dtype=torch.int8)},
        {"row": big[0]},
        {"first": big[0], "last": big[7]},
        {"w": w, "transposed": w.T, "flat": w.view(-1)},
        {"a": twins, "b": twins.clone()},
    ]
    rest = drawn(6, 6)
    return [(case,) for case in [*cases, {"qkv": rest, "q": rest[:2], "k": rest[2:4], "v": rest[4:], "b": drawn(6)}]]


def _once(key: Callable[[Tensor], object], size: Callable[[Tensor], int]) -> Callable[[Tensors], int]:
    def count(tensors: Tensors) -> int:
        found: dict[object, Tensor] = {}
        for tensor in tensors.values():
            found.setdefault(key(tensor), tensor)
        return sum(size(tensor) for tensor in found.values())

    return count


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


KEPT_BYTES = Exercise(
    name="kept_bytes",
    lab="01",
    goal="Count the bytes of memory that some tensors keep alive; what two of them share counts once.",
    minutes=8,
    difficulty="core",
    reference=kept_bytes,
    oracle=kept_oracle,
    cases=_kept_cases,
    hints=(
        "A tensor is a view of a storage, and the storage is what takes memory: `t.untyped_storage()` gives it, its "
        "`data_ptr()` says where it lies, its `nbytes()` how large it is.",
        "Build a dict {where the storage lies: the storage}: a second tensor of the same storage then falls into the "
        "same place. Add up `nbytes()` of its values.",
    ),
    why="a tied head costs nothing in memory, and nothing in a file that knows about storages.",
    mistakes=(
        Mistake(
            "every name counted",
            lambda tensors: sum(t.nbytes for t in tensors.values()),
            "Tensors that share a storage are counted once for each name.",
            "Count storages in place of names.",
            "twice the size for an embedding that is also the head",
        ),
        Mistake(
            "each tensor object once",
            _once(id, lambda t: t.nbytes),
            "Two names for one object are seen, but a view is an object of its own, on the same storage.",
            "Tell storages apart by `t.untyped_storage().data_ptr()`, where `id(t)` tells objects apart.",
            "the tied head right, and a transposed view counted again",
        ),
        Mistake(
            "parameters instead of bytes",
            _once(_storage, lambda t: t.untyped_storage().nbytes() // t.element_size()),
            "These are numbers of elements; a float32 takes four bytes, a float16 two.",
            "Ask the storage for its `nbytes()`.",
            "6 where 24 is expected",
        ),
        Mistake(
            "four bytes for everything",
            _once(_storage, lambda t: 4 * t.untyped_storage().nbytes() // t.element_size()),
            "Every element is counted with four bytes, and float16 and int8 take less.",
            "Let the storage say how many bytes it has.",
            "float32 right, and float16 twice too large",
        ),
        Mistake(
            "the view instead of its storage",
            _once(_storage, lambda t: t.nbytes),
            "A row of a matrix keeps the whole matrix alive, and only the row was counted.",
            "Count the storage's `nbytes()`, not the tensor's.",
            "16 where 128 is expected",
        ),
        Mistake(
            "views told apart by where they begin",
            _once(lambda t: t.data_ptr(), lambda t: t.untyped_storage().nbytes()),
            "`t.data_ptr()` is where the view begins; two rows of one matrix begin at different places.",
            "Ask the storage: `t.untyped_storage().data_ptr()`.",
            "a matrix counted once for each of its rows",
        ),
        Mistake(
            "a view's own place and a view's own size",
            _once(lambda t: t.data_ptr(), lambda t: t.nbytes),
            "Views are told apart by where they begin, and each counts as its own numbers alone; what stays alive is "
            "the storage behind them, whole and once.",
            "Ask `t.untyped_storage()` for both, its `data_ptr()` and its `nbytes()`.",
            "16 where 128 is expected, and 32 for two rows of one matrix",
        ),
        Mistake(
            "equal values taken for the same memory",
            _once(
                lambda t: (t.dtype, bytes(t.untyped_storage())),
                lambda t: t.untyped_storage().nbytes(),
            ),
            "Two tensors with equal numbers in them are still two, each in a place of its own.",
            "Compare where they lie, not what they hold.",
            "12 where 24 is expected",
        ),
        Mistake(
            "the size of the Python object",
            lambda tensors: sum(sys.getsizeof(t) for t in tensors.values()),
            "`sys.getsizeof` measures the small Python object, and the numbers lie elsewhere.",
            "Ask the storage for its `nbytes()`.",
            "about the same number for every tensor",
        ),
    ),
)
