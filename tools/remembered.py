"""What the kernels of one test run remember for each other: the results of slow functions of the library.

Every lab runs twice, solved and unsolved, and most of what both compute is the same: encoded weights, models measured
on text. ``tools/prepared_kernels.py`` makes a folder for the run and names it in the environment; a result lies there
under a hash of the function and of the bytes of all its arguments, files and models included. Only what stands in
``FUNCTIONS`` is remembered. A call with a student's function, with a model that has a hook or a class of the notebook's
own, or with anything else that no bytes describe, is always made.

Nothing is remembered outside of such a run, nor with ``MINIQUANT_THOROUGH=1``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import io
import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = "MINIQUANT_REMEMBERED"
FUNCTIONS = (
    "miniquant.models.corpus:_docstrings",
    "miniquant.formats.gguf.codecs.rows:encode",
    "miniquant.evaluate.quality:evaluate",
    "miniquant.evaluate.quality:evaluate_in_llamacpp",
    "miniquant.evaluate.kv_cache:cache_qualities",
    "miniquant.evaluate.speech:speak",
    "miniquant.plots.style:svg",
    "miniquant.runtime.memory:measure",
)
WORTH = 0.02  # seconds: what takes less is not kept
LEAST = 2**17  # bytes of an array: with fewer, looking for a result takes longer than computing it
MOST = 2**25  # bytes of weights whose hashes are known
_hashes: dict[int, tuple[bytes, bytes]] = {}  # by the address of a weight: its bytes and their hash
KNOWN = {"torch", "transformers", "miniquant"}  # their classes and functions are the same in all notebooks


class Unknown(Exception):
    """An argument that no bytes describe."""


def is_on() -> bool:
    """Whether results are remembered here."""
    return FOLDER in os.environ and os.environ.get("MINIQUANT_THOROUGH") != "1"


def add(digest: Any, value: Any) -> None:
    """Put a value into a hash, with its type; a path with the bytes of its file. Raises ``Unknown``."""
    known = getattr(value if inspect.isfunction(value) else type(value), "__module__", "").split(".")[0] in KNOWN
    if value is None or isinstance(value, bool | int | float | str | bytes | os.PathLike):
        parts = [repr(value).encode()]
        if isinstance(value, str | os.PathLike) and os.path.isfile(value):
            parts.append(Path(value).read_bytes())
    elif isinstance(value, tuple | list | dict | set):
        parts = [f"{len(value)}".encode()]
    elif type(value).__name__ == "ndarray":
        raw = value if value.flags.c_contiguous else value.copy("C")
        parts = [f"{value.dtype} {value.shape}".encode(), raw.reshape(-1).view("u1")]
    elif type(value).__name__ == "Tokenizer":
        parts = [value.to_str().encode()]
    elif type(value).__module__ == "matplotlib.figure":
        parts = [_drawn(value)]
    elif known and inspect.isfunction(value) and not value.__closure__:
        parts = [f"{value.__module__}.{value.__qualname__}".encode()]
    elif known and hasattr(value, "named_modules"):
        parts = []
        _add_model(digest, value)
    elif known and hasattr(value, "__dict__"):
        parts = []
        add(digest, vars(value))
    elif known:
        parts = [repr(value).encode()]
    else:
        raise Unknown(type(value).__name__)
    for part in (type(value).__qualname__.encode(), *parts):
        digest.update(f"{len(part)} ".encode())
        digest.update(part)
    if isinstance(value, tuple | list | dict | set):
        inside = map(list, value.items()) if isinstance(value, dict) else value
        for one in sorted(inside, key=repr) if isinstance(value, set) else inside:
            add(digest, one)


def _add_model(digest: Any, model: Any) -> None:
    """A model: its classes, what stands in its parts, and its weights. Raises ``Unknown`` for a part with a hook."""
    import torch

    usual = set(vars(torch.nn.Module()))
    for name, part in model.named_modules():
        forward = type(part).forward  # a notebook might have put its own one there
        if {type(part).__module__.split(".")[0], forward.__module__.split(".")[0]} - KNOWN:
            raise Unknown(name)
        if part._forward_hooks or part._forward_pre_hooks:
            raise Unknown(name)
        own = {key: value for key, value in vars(part).items() if key not in usual}
        digest.update(repr((name, type(part).__qualname__, part.training)).encode())
        add(digest, own)
    for name, weight in [*model.named_parameters(), *model.named_buffers()]:
        raw = weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        digest.update(repr((name, str(weight.dtype), tuple(weight.shape), raw.nbytes)).encode())
        digest.update(_hash_of(raw))


def _hash_of(raw: Any) -> bytes:
    """The hash of a weight's bytes; of the last ones of that place in memory if they are the same: that is faster."""
    where, data = raw.__array_interface__["data"][0], raw.tobytes()
    if where not in _hashes or _hashes[where][0] != data:
        if sum(len(known) for known, _ in _hashes.values()) > MOST:
            _hashes.clear()
        _hashes[where] = data, hashlib.sha256(data).digest()
    return _hashes[where][1]


def _drawn(figure: Any) -> bytes:
    """A figure as bytes: all that is drawn, without the addresses in memory that a pickle of one holds.

    Raises ``Unknown`` for one that cannot be pickled, or that calls a function of the notebook.
    """
    from matplotlib.transforms import TransformNode

    class Pickler(pickle.Pickler):
        def reducer_override(self, one: Any) -> Any:
            if isinstance(one, TransformNode):
                made, given, state = one.__reduce_ex__(4)[:3]  # type: ignore[misc]
                return made, given, {**state, "_parents": list(state["_parents"].values())}
            if getattr(one, "__module__", "") == "__main__":
                raise Unknown(repr(one))
            if inspect.isfunction(one) and "<" in one.__qualname__:  # it has no name that a pickle could say
                code, inside = one.__code__, [cell.cell_contents for cell in one.__closure__ or ()]
                return tuple, ((one.__module__, code.co_firstlineno, code.co_code, one.__defaults__, inside),)
            return NotImplemented

    data = io.BytesIO()
    try:
        Pickler(data, 4).dump(figure)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise Unknown(str(error)) from error
    return data.getvalue()


def remembering(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; a slow call is not made again with the same arguments."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def answered(*args: Any, **named: Any) -> Any:
        if not is_on() or (args and getattr(args[0], "nbytes", LEAST) < LEAST):
            return function(*args, **named)
        digest = hashlib.sha256()  # the fastest where the processor knows it: models have millions of bytes
        try:
            given = signature.bind(*args, **named).arguments
            add(digest, [function.__module__, function.__qualname__, given])
        except (Unknown, TypeError):  # TypeError: the call is wrong, and the function will say so
            return function(*args, **named)
        if given.get("progress"):
            return function(*args, **named)
        place, start = Path(os.environ[FOLDER], digest.hexdigest()), time.perf_counter()
        if place.exists():
            return pickle.loads(place.read_bytes())
        result = function(*args, **named)
        if time.perf_counter() - start > WORTH:
            draft = place.with_suffix(f".{os.urandom(8).hex()}")
            draft.write_bytes(pickle.dumps(result))
            draft.replace(place)
        return result

    return answered


def install() -> None:
    """From now on this process and its copies remember; whoever imported a function before gets the new one."""
    for name in FUNCTIONS:
        module, _, attribute = name.partition(":")
        plain = getattr(importlib.import_module(module), attribute)
        ours = remembering(plain)
        for other in [other for name, other in sys.modules.items() if name.startswith("miniquant.")]:
            for key in [key for key, value in vars(other).items() if value is plain]:
                setattr(other, key, ours)
