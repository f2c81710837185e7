"""How many bytes some tensors keep alive."""

import io
import zipfile

import numpy as np
import torch

from ...lab import Exercise, Mistake, body, edit


def kept_bytes(tensors):
    """The memory behind some tensors.

    tensors: {name: torch tensor}   ->   bytes, an integer: every storage counted once, and counted whole
    """
    storages = {}
    for tensor in tensors.values():
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def oracle(tensors):
    """``torch.save`` is asked: it writes every storage once, as an entry of its own in a zip file."""
    file = io.BytesIO()
    torch.save(tensors, file)
    with zipfile.ZipFile(file) as archive:
        return sum(entry.file_size for entry in archive.infolist() if "/data/" in entry.filename)


def cases(random):
    """Tensors alone, two names for one tensor, other dtypes, views of one storage, equal twins, nothing at all."""

    def drawn(*shape):
        return torch.from_numpy(random.normal(size=shape).astype(np.float32))

    w, big, twins, rest = drawn(4, 2), drawn(8, 4), torch.ones(3), drawn(6, 6)
    made = [
        {"w": torch.zeros(2, 3)},
        {"emb": w, "head": w},
        {"half": drawn(5).half(), "levels": torch.zeros(7, dtype=torch.int8)},
        {"row": big[0]},
        {"first": big[0], "last": big[7]},
        {"w": w, "transposed": w.T, "flat": w.view(-1)},
        {"a": twins, "b": twins.clone()},
        {"qkv": rest, "q": rest[:2], "k": rest[2:4], "v": rest[4:], "b": drawn(6)},
        {"no rows": big[:0], "empty": torch.zeros(0)},
        {},
    ]
    return [(tensors,) for tensors in made]


EXERCISE = Exercise(
    goal="Count the bytes of memory that some tensors keep alive; what two of them share counts once.",
    reference=kept_bytes, oracle=oracle, cases=cases, minutes=8, difficulty="core",
    hints=(
        "A tensor is a view of a storage, and the storage is what takes memory: `t.untyped_storage()` gives it, its `data_ptr()` says where it lies, its `nbytes()` how large it is.",
        "Build a dict {where the storage lies: the storage}: a second tensor of the same storage then falls into the same place. Add up `nbytes()` of its values.",
    ),
    why="a tied head costs nothing in memory, and nothing in a file that knows about storages.",
    mistakes=(
        Mistake("every name counted", body("return sum(tensor.nbytes for tensor in tensors.values())"),
            cause="Tensors that share a storage are counted once for each name.",
            cure="Count storages in place of names.", see="twice the size for an embedding that is also the head"),
        Mistake("each tensor object once",
            edit("storages[storage.data_ptr()] = storage.nbytes()", "storages[id(tensor)] = tensor.nbytes"),
            cause="Two names for one object are seen, but a view is an object of its own, on the same storage.",
            cure="Tell storages apart by `t.untyped_storage().data_ptr()`, where `id(t)` tells objects apart.",
            see="the tied head right, and a transposed view counted again"),
        Mistake("parameters instead of bytes", edit("storage.nbytes()", "storage.nbytes() // tensor.element_size()"),
            cause="These are numbers of elements; a float32 takes four bytes, a float16 two.",
            cure="Ask the storage for its `nbytes()`.", see="6 where 24 is expected"),
        Mistake("four bytes for everything",
            edit("storage.nbytes()", "4 * storage.nbytes() // tensor.element_size()"),
            cause="Every element is counted with four bytes, and float16 and int8 take less.",
            cure="Let the storage say how many bytes it has.", see="float32 right, and float16 twice too large"),
        Mistake("the view instead of its storage", edit("storage.nbytes()", "tensor.nbytes"),
            cause="A row of a matrix keeps the whole matrix alive, and only the row was counted.",
            cure="Count the storage's `nbytes()`, not the tensor's.", see="16 where 128 is expected"),
        Mistake("views told apart by where they begin", edit("storage.data_ptr()", "tensor.data_ptr()"),
            cause="`t.data_ptr()` is where the view begins; two rows of one matrix begin at different places.",
            cure="Ask the storage: `t.untyped_storage().data_ptr()`.",
            see="a matrix counted once for each of its rows"),
        Mistake("a view's own place and a view's own size",
            edit("storage.data_ptr()", "tensor.data_ptr()").edit("storage.nbytes()", "tensor.nbytes"),
            cause="Views are told apart by where they begin, and each counts its own numbers; what stays alive is the whole storage, once.",
            cure="Ask `t.untyped_storage()` for both, its `data_ptr()` and its `nbytes()`.",
            see="16 where 128 is expected, and 32 for two rows of one matrix"),
        Mistake("equal values taken for the same memory", edit("storage.data_ptr()", "bytes(storage)"),
            cause="Two tensors with equal numbers in them are still two, each in a place of its own.",
            cure="Compare where they lie, not what they hold.", see="12 where 24 is expected"),
        Mistake("the size of the Python object", body("""
                import sys
                return sum(sys.getsizeof(tensor) for tensor in tensors.values())
            """),
            cause="`sys.getsizeof` measures the small Python object, and the numbers lie elsewhere.",
            cure="Ask the storage for its `nbytes()`.", see="about the same number for every tensor"),
    ),
)
