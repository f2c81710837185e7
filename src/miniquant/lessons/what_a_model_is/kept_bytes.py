"""How many bytes some tensors keep alive."""

import copy
import io
import zipfile

import numpy as np
import torch

from ...lab import Exercise, Mistake, body, edit


def kept_bytes(tensors):
    """How many bytes of memory some tensors keep alive.

    tensors: {name: torch tensor}, no two of them made from one NumPy array
    ->   an integer: the sizes of their storages in bytes, added up; 0 for
         no tensors

    A storage that several tensors view is counted once; two storages are
    the same one if their data_ptr() is the same. A storage is counted
    whole, even if a tensor views only a part of it, or views parts of
    it many times (`expand`). Nothing else is counted: not the gradient of
    a parameter (its `grad`), no Python objects. Tensors may have any dtype.
    """
    storages = {}
    for tensor in tensors.values():
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def oracle(tensors):
    """``torch.save`` is asked: it writes every storage once, as an entry of its own in a zip file."""
    file = io.BytesIO()
    whole = [torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()) for tensor in tensors.values()]
    torch.save(whole, file)  # as bytes: it refuses one storage under two types
    with zipfile.ZipFile(file) as archive:
        return sum(entry.file_size for entry in archive.infolist() if "/data/" in entry.filename)


class Views(dict):
    """Tensors by name; a copy of it has views where the original has views, and ``copy.deepcopy`` alone makes none."""

    def __deepcopy__(self, memo):
        return Views({name: _copied(tensor, memo) for name, tensor in self.items()})


def _copied(tensor, memo):
    """A copy of a tensor; a view becomes a view of a copy of its base."""
    if not tensor._is_view():
        whole = copy.deepcopy(tensor, memo)
        if tensor.is_leaf and tensor.grad is not None:
            whole.grad = copy.deepcopy(tensor.grad, memo)  # which a copy of a parameter leaves behind
        return whole
    whole = copy.deepcopy(tensor._base, memo).detach().view(tensor.dtype)
    return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def cases(random):
    """Tensors alone, two names for one tensor, other dtypes, views of one storage, equal twins, an empty dict."""

    def drawn(*shape):
        return torch.from_numpy(random.normal(size=shape).astype(np.float32))

    w, big, twins, rest = drawn(4, 2), drawn(8, 4), torch.ones(3), drawn(6, 6)
    learned = torch.nn.Parameter(drawn(3, 2))
    learned.grad = torch.ones(3, 2)
    made = [
        {"w": torch.zeros(2, 3)},
        {"emb": w, "head": w},
        {"half": drawn(5).half(), "levels": torch.zeros(7, dtype=torch.int8)},
        {"a": drawn(3), "another of its size": drawn(3)},
        {"row": big[0]},
        {"first": big[0], "last": big[7]},
        {"w": w, "transposed": w.T, "flat": w.view(-1)},
        {"a": twins, "b": twins.clone()},
        {"qkv": rest, "q": rest[:2], "k": rest[2:4], "v": rest[4:], "b": drawn(6)},
        {"empty": torch.zeros(0), "no rows": big[:0]},
        {"numbers": rest, "their bits": rest.view(torch.int32)},
        {"wide": torch.ones(1).expand(1000)},
        {"v": rest[4:], "b": drawn(6), "k": rest[2:4], "again": rest[4:]},
        {"learned": learned, "b": drawn(2)},
        {"large": rest, "row": big[0], "a": twins, "b": twins.clone()},  # what is shared or viewed is not the largest
        {"long": torch.zeros(3, dtype=torch.float64), "brain": torch.zeros(5, dtype=torch.bfloat16), "mask": torch.ones(7, dtype=torch.bool), "step": torch.tensor(7), "waves": torch.zeros(3, dtype=torch.complex64)},
        {"half": twins.half(), "also half": twins.half(), "parameter": torch.nn.Parameter(w)},
        {"levels": torch.zeros(8, dtype=torch.int8), "b": torch.ones(2), "waves": torch.ones(2, dtype=torch.complex64)},
        {"row": torch.zeros(6, dtype=torch.int64)},
        {},
    ]
    loaded = {"first": big[0], "last": big[7]}  # a copy of a plain dict has no views, as after torch.load
    return [*((Views(tensors),) for tensors in made), (loaded,)]


def _viewed(tensor):
    """How many bytes of its storage a tensor views, each counted once."""
    places = torch.arange(tensor.untyped_storage().nbytes() // tensor.element_size())
    seen = places.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return seen.unique().numel() * tensor.element_size()


def quantities(tensors):
    """What people count in place of storages, and what is special about some tensors."""
    tensors = copy.deepcopy(tensors)  # a function is given a copy, which may have no gradients
    storages = [tensor.untyped_storage() for tensor in tensors.values()]
    begins = [storage.data_ptr() for storage in storages]
    sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
    views = [tensor.nbytes for tensor in tensors.values()]
    largest = {begin: max(view for view, other in zip(views, begins) if other == begin) for begin in begins}
    alone = [storage.nbytes() for storage in storages if begins.count(storage.data_ptr()) == 1]
    return {
        "the bytes of all tensors": sum(views),
        "the bytes of the storages of all tensors, each as often as it is used": sum(s.nbytes() for s in storages),
        "the bytes of the largest tensor of each storage": sum(largest.values()),
        "the bytes of the largest storage": max(sizes.values(), default=0),
        "the bytes of the storages that only one tensor uses": sum(alone),
        "the bytes of the first tensor": next(iter(views), 0),
        "two tensors share a storage": len(sizes) < len(tensors),
        "two storages have the same size": len(set(sizes.values())) < len(sizes),
        "a tensor views only a part of its storage": any(_viewed(t) < s.nbytes() for t, s in zip(tensors.values(), storages)),
        "a tensor is larger than its storage": any(v > s.nbytes() for v, s in zip(views, storages)),
        "a tensor does not begin where its storage begins": any(t.storage_offset() for t in tensors.values()),
        "a tensor is not contiguous": any(not t.is_contiguous() for t in tensors.values()),
        "a parameter has a gradient": any(t.is_leaf and t.grad is not None for t in tensors.values()),
        "a tensor is not of floating-point numbers": any(not t.is_floating_point() for t in tensors.values()),
        "a tensor is not float32": any(t.dtype != torch.float32 for t in tensors.values()),
        "there is more than one tensor": len(tensors) > 1,
    }


EXERCISE = Exercise(
    goal="Count the bytes of memory that some tensors keep alive; what two of them share counts once.",
    reference=kept_bytes, oracle=oracle, cases=cases, minutes=8, difficulty="core", quantities=quantities,
    hints=(
        "A tensor is a view of a storage, and the storage takes the memory. Two storages are the same one if they begin at the same address.",
        "Build a dict with `data_ptr()` of each storage as the key: a second tensor of the same storage then replaces the first.",
    ),
    why="a tied head needs no memory of its own, and no room in a file format that knows storages.",
    mistakes=(
        Mistake("every name counted", body("return sum(tensor.nbytes for tensor in tensors.values())"),
            cause="These are the bytes of all tensors added up, each as large as it looks; what two of them share counts twice.",
            cure="Count storages in place of names.", see="twice the size for an embedding that is also the head"),
        Mistake("each tensor object once",
            edit("storages[storage.data_ptr()] = storage.nbytes()", "storages[id(tensor)] = tensor.nbytes"),
            cause="These are the bytes of the tensors, each object once; a view is an object of its own, on the same storage.",
            cure="Tell storages apart by `t.untyped_storage().data_ptr()`, where `id(t)` tells objects apart.",
            see="the tied head right, and a transposed view counted again"),
        Mistake("parameters instead of bytes", edit("storage.nbytes()", "storage.nbytes() // tensor.element_size()"),
            cause="These are numbers of elements; a float32 takes four bytes, a float16 two.",
            cure="Ask the storage for its `nbytes()`.", see="6 where 24 is expected"),
        Mistake("four bytes for everything",
            edit("storage.nbytes()", "4 * storage.nbytes() // tensor.element_size()"),
            cause="Every element is counted with four bytes, but a float16 has two and an int8 has one.",
            cure="Let the storage say how many bytes it has.", see="float32 right, and float16 twice too large"),
        Mistake("the view instead of its storage", edit("storage.nbytes()", "tensor.nbytes"),
            cause="A storage counts with the size of the last tensor that views it; a row keeps the whole matrix alive.",
            cure="Count the storage's `nbytes()`, not the tensor's.", see="16 where 128 is expected"),
        Mistake("views told apart by where they begin", edit("storage.data_ptr()", "tensor.data_ptr()"),
            cause="The tensors are told apart by the addresses of their first values: each address counts with the whole storage of the last tensor there, and all empty tensors have the address 0.",
            cure="Ask the storage: `t.untyped_storage().data_ptr()`.",
            see="a matrix counted once for each of its rows"),
        Mistake("a view's own place and a view's own size",
            edit("storage.data_ptr()", "tensor.data_ptr()").edit("storage.nbytes()", "tensor.nbytes"),
            cause="The tensors are told apart by the addresses of their first values, and each address counts with the size of the last tensor that begins there; but the whole storage stays alive, once.",
            cure="Ask `t.untyped_storage()` for both, its `data_ptr()` and its `nbytes()`.",
            see="16 where 128 is expected, and 32 for two rows of one matrix"),
        Mistake("equal values taken for the same memory", edit("storage.data_ptr()", "bytes(storage)"),
            cause="Storages with the same bytes in them count once; each of them takes memory.",
            cure="Compare the addresses of the storages, not the numbers in them.", see="12 where 24 is expected"),
        Mistake("the size of the Python object", body("""
                import sys
                return sum(sys.getsizeof(tensor) for tensor in tensors.values())
            """),
            cause="This is the size of the small Python objects; the numbers are in the storages.",
            cure="Ask the storage for its `nbytes()`.", see="about the same number for every tensor"),
        Mistake("a storage once for each type", edit("storages[storage.data_ptr()]", "storages[storage.data_ptr(), tensor.dtype]"),
            cause='The same storage seen as two types is counted twice.',
            cure='Use the address alone as the key.', see='twice the size for numbers and the view of their bits'),
        Mistake("whole storages, once for each name", body("""
                return sum(tensor.untyped_storage().nbytes() for tensor in tensors.values())
            """),
            cause='Every storage is counted whole, but as often as it has names.',
            cure='Count each address once.', see='twice the size for a tied head, and more for views'),
        Mistake("only neighbours compared", body("""
                total, last = 0, None
                for tensor in tensors.values():
                    storage = tensor.untyped_storage()
                    if storage.data_ptr() != last:
                        total += storage.nbytes()
                    last = storage.data_ptr()
                return total
            """),
            cause="A storage counts again if a tensor of another storage comes between.",
            cure='Remember all addresses, in a set or as keys of a dict.', see='right where views follow each other, wrong where another tensor is between them'),
        Mistake("gradients counted", body("""
                storages = {}
                for tensor in tensors.values():
                    for part in (tensor, tensor.grad):
                        if part is not None:
                            storage = part.untyped_storage()
                            storages[storage.data_ptr()] = storage.nbytes()
                return sum(storages.values())
            """),
            cause="The gradient of a parameter is counted, too, and nothing but the storages of the tensors themselves counts.",
            cure="Leave out `grad`.", see="a number that is too large for a parameter that has a gradient"),
        Mistake("how many storages", body("""
                return len({tensor.untyped_storage().data_ptr() for tensor in tensors.values()})
            """),
            cause='These are the storages counted, not their bytes.',
            cure='Add up their `nbytes()`.', see='1 where 24 is expected'),
    ),
)
