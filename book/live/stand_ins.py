"""What a lab in the page has in place of libraries that need a computer: the trained weights, the tokenizer, IPython.

``load_pretrained`` gives the model's weights as arrays. They can be read, and not run: a forward pass needs PyTorch.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np

NOT_HERE = {  # libraries that have no build for a browser, or need a computer
    "torch", "safetensors", "transformers", "tokenizers", "sentencepiece", "numba", "xllamacpp", "gguf",
    "tqdm", "rich", "process", "resource", "fcntl",
}  # fmt: skip
TITLES = {
    "torch": "PyTorch",
    "time": "more than the time of a cell in the page",
    "xllamacpp": "llama.cpp on your computer",
    "gguf": "the official package gguf",
    "process": "a second process on your computer",
    "folder": "a file from the folder of the course",
}


class LeftOutError(ModuleNotFoundError):
    """The error of an import that failed in an earlier cell: ``cell`` is its id, and ``made`` the name it did not make.

    Both are empty for a name that the library itself would be.
    """

    def __init__(self, library: str, cell: str, made: str) -> None:
        super().__init__(f"No module named {library!r}", name=library)
        self.cell, self.made = cell, made


class Absent:
    """Stands for something that needs a library which is not here; whatever is done with it raises the import's error.

    ``again`` is the import statement that binds the name once the library has been loaded; ``cell`` is the id of the
    cell that would have made something, and ``made`` the name that it has there.
    """

    def __init__(self, library: str, again: str = "", cell: str = "", made: str = "") -> None:
        for key, value in (("_library", library), ("_again", again), ("_cell", cell), ("_made", made)):
            object.__setattr__(self, key, value)

    def __getattr__(self, name: str) -> Any:
        raise needs(self)

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        raise needs(self)

    __call__ = __iter__ = __getitem__ = __len__ = __enter__ = __bool__ = __add__ = __radd__ = __sub__ = __rsub__ = _fail
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __float__ = __int__ = __index__ = __lt__ = __gt__ = _fail
    __eq__ = __ne__ = __le__ = __ge__ = __matmul__ = __rmatmul__ = __pow__ = __mod__ = __abs__ = __fspath__ = _fail
    __delattr__ = __setattr__ = __or__ = __and__ = _fail
    __hash__ = object.__hash__
    __mro_entries__ = __contains__ = __setitem__ = __neg__ = __str__ = __repr__ = __format__ = _fail


def needs(value: Absent) -> LeftOutError:
    """The error of the import that ``value`` stands for."""
    return LeftOutError(*(object.__getattribute__(value, key) for key in ("_library", "_cell", "_made")))


class Weights(np.ndarray):
    """An array that also has the methods by which labs read a tensor."""

    def numpy(self) -> np.ndarray:
        """The plain array."""
        return np.asarray(self)

    def detach(self) -> Weights:
        """Itself."""
        return self

    cpu = contiguous = float = detach

    def is_floating_point(self) -> bool:
        """Whether it holds floating-point numbers."""
        return bool(np.issubdtype(self.dtype, np.floating))

    def clone(self) -> Weights:
        """A copy."""
        return self.copy()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    def numel(self) -> int:
        """How many numbers there are."""
        return int(self.size)


class Model:
    """The trained MiniGPT as its weights; anything else needs PyTorch."""

    def __init__(self, config: dict[str, Any], state: dict[str, Weights]) -> None:
        fields = [(name, type(value)) for name, value in config.items()]
        made = dataclasses.make_dataclass(
            "MiniGPTConfig", fields, frozen=True, namespace={"to_dict": dataclasses.asdict}
        )
        self.config, self._state = made(**config), state

    def state_dict(self) -> dict[str, Weights]:
        """The weights by name."""
        return dict(self._state)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    def __call__(self, *args: Any) -> Any:
        """Raises: a forward pass needs PyTorch."""
        raise ModuleNotFoundError("No module named 'torch'", name="torch")


def load_pretrained() -> Model:
    """The trained MiniGPT's weights."""
    from miniquant.formats.safetensors.read import open_safetensors

    file = open_safetensors(str(resources.files("miniquant").joinpath("assets/minigpt.safetensors")))
    state = {name: np.array(file.tensor(name)).view(Weights) for name in file.tensors}
    return Model(json.loads(file.metadata["config"]), state)


class Tokenizer:
    """The tokenizer's file as what a GGUF file needs of it; cutting text into tokens needs a library."""

    def __init__(self, text: str) -> None:
        self.text, parts = text, json.loads(text)
        known = {**parts["model"]["vocab"], **{t["content"]: t["id"] for t in parts["added_tokens"]}}
        self.tokens = {number: token for token, number in known.items()}

    def to_str(self) -> str:
        """The file."""
        return self.text

    def get_vocab_size(self) -> int:
        """How many tokens there are."""
        return len(self.tokens)

    def id_to_token(self, number: int) -> str:
        """The text of a token."""
        return self.tokens[number]

    def __getattr__(self, name: str) -> Any:
        raise ModuleNotFoundError("No module named 'tokenizers'", name="tokenizers")


def load_tokenizer() -> Tokenizer:
    """The tokenizer of the trained model."""
    return Tokenizer(resources.files("miniquant").joinpath("assets/tokenizer.json").read_text("utf-8"))


def write_minigpt(path: Any, model: Model, tokenizer: Tokenizer, kind: str = "F32", embedding: Any = None) -> None:
    """The trained model as a GGUF file, by the library's own writer."""
    from miniquant.formats.gguf import write_gguf
    from miniquant.models.to_gguf import gguf_name, minigpt_metadata, minigpt_types

    types_of = minigpt_types(model, kind, embedding)  # type: ignore[arg-type]
    tensors = {gguf_name(name): (w.numpy(), types_of[name]) for name, w in model.state_dict().items()}
    write_gguf(path, tensors, minigpt_metadata(model, tokenizer, kind, embedding=embedding))  # type: ignore[arg-type]


OWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("miniquant.models.pretrained", "load_pretrained"): load_pretrained,
    ("miniquant.models.corpus", "load_tokenizer"): load_tokenizer,
    ("miniquant.models.to_gguf", "write_minigpt"): write_minigpt,
}


def of(module: str, name: str) -> Callable[..., Any] | None:
    """The stand-in for a function of the library, or nothing."""
    return OWN.get((module, name))


def ipython(display: Callable[..., None]) -> dict[str, types.ModuleType]:
    """The modules of IPython that the labs and their engine ask for."""
    root, shown = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    core, transform = types.ModuleType("IPython.core"), types.ModuleType("IPython.core.inputtransformer2")
    root.version_info = (9, 0)  # type: ignore[attr-defined]  # matplotlib asks
    root.get_ipython = lambda: None  # type: ignore[attr-defined]
    shown.display = root.display = display  # type: ignore[attr-defined]
    for name, method in (("HTML", "_repr_html_"), ("Markdown", "_repr_markdown_"), ("SVG", "_repr_svg_")):
        setattr(shown, name, type(name, (), {"__init__": _keep, method: lambda self: self.data}))
    transform.TransformerManager = type("TransformerManager", (), {"transform_cell": lambda self, cell: cell})  # type: ignore[attr-defined]
    return {m.__name__: m for m in (root, shown, core, transform)}


def _keep(self: Any, data: str) -> None:
    self.data = data
