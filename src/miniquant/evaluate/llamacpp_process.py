"""The process that holds llama.cpp: its C interface by ``ctypes``, and requests answered over a pipe.

``LlamaCpp`` starts it with ``python -m``; a file that makes llama.cpp abort ends this
process and no other.
"""

from __future__ import annotations

import ctypes as c
import importlib.util
import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import ggml_products
from .llamacpp import LlamaCppError


class _Parameters(c.Structure):
    """``llama_model_params`` or ``llama_context_params``: opaque and larger than either; passed by value."""

    _fields_ = [("words", c.c_uint32 * 128)]


class _ReadParameters(c.Structure):
    """``gguf_init_params``: without ``no_alloc`` the data is read into a new context, left at ``tensors``."""

    _fields_ = [("no_alloc", c.c_bool), ("tensors", c.POINTER(c.c_void_p))]


class _Batch(c.Structure):
    """``llama_batch``: tokens with their positions and sequences."""

    _fields_ = [
        ("n_tokens", c.c_int32),
        ("token", c.POINTER(c.c_int32)),
        ("embd", c.c_void_p),
        ("pos", c.POINTER(c.c_int32)),
        ("n_seq_id", c.POINTER(c.c_int32)),
        ("seq_id", c.POINTER(c.POINTER(c.c_int32))),
        ("logits", c.POINTER(c.c_int8)),
    ]


class _Tensor(c.Structure):
    """The first fields of ``ggml_tensor``; ``ne`` counts numbers along each dim, the innermost first."""

    _fields_ = [("type", c.c_int), ("buffer", c.c_void_p), ("ne", c.c_int64 * 4), ("nb", c.c_size_t * 4)]


class _TypeTraits(c.Structure):
    """The first fields of ``ggml_type_traits``."""

    _fields_ = [
        ("type_name", c.c_char_p),
        ("block_size", c.c_int64),
        ("block_size_interleave", c.c_int64),
        ("type_size", c.c_size_t),
        ("is_quantized", c.c_bool),
        ("to_float", c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_int64)),
    ]


_LOG = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)
_STEP = c.CFUNCTYPE(c.c_bool, c.POINTER(_Tensor), c.c_bool, c.c_void_p)  # ggml_backend_sched_eval_callback
_FUNCTIONS = {  # name: (result, arguments)
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [_LOG, c.c_void_p]),
    "llama_model_default_params": (_Parameters, []),
    "llama_context_default_params": (_Parameters, []),
    "llama_model_load_from_file": (c.c_void_p, [c.c_char_p, _Parameters]),
    "llama_init_from_model": (c.c_void_p, [c.c_void_p, _Parameters]),
    "llama_set_n_threads": (None, [c.c_void_p, c.c_int32, c.c_int32]),
    "llama_model_get_vocab": (c.c_void_p, [c.c_void_p]),
    "llama_vocab_bos": (c.c_int32, [c.c_void_p]),
    "llama_vocab_get_add_bos": (c.c_bool, [c.c_void_p]),
    "llama_vocab_get_add_eos": (c.c_bool, [c.c_void_p]),
    "llama_vocab_n_tokens": (c.c_int32, [c.c_void_p]),
    "llama_tokenize": (
        c.c_int32,
        [c.c_void_p, c.c_char_p, c.c_int32, c.POINTER(c.c_int32), c.c_int32, c.c_bool, c.c_bool],
    ),
    "llama_token_to_piece": (c.c_int32, [c.c_void_p, c.c_int32, c.c_char_p, c.c_int32, c.c_int32, c.c_bool]),
    "llama_batch_init": (_Batch, [c.c_int32, c.c_int32, c.c_int32]),
    "llama_batch_free": (None, [_Batch]),
    "llama_decode": (c.c_int32, [c.c_void_p, _Batch]),
    "llama_get_logits": (c.POINTER(c.c_float), [c.c_void_p]),
    "llama_get_memory": (c.c_void_p, [c.c_void_p]),
    "llama_memory_clear": (None, [c.c_void_p, c.c_bool]),
    "llama_state_seq_get_size": (c.c_size_t, [c.c_void_p, c.c_int32]),
    "llama_state_seq_get_data": (c.c_size_t, [c.c_void_p, c.c_void_p, c.c_size_t, c.c_int32]),
    "ggml_row_size": (c.c_size_t, [c.c_int, c.c_int64]),
    "ggml_type_name": (c.c_char_p, [c.c_int]),
    "ggml_blck_size": (c.c_int64, [c.c_int]),
    "ggml_type_size": (c.c_size_t, [c.c_int]),
    "ggml_get_type_traits": (c.POINTER(_TypeTraits), [c.c_int]),
    **ggml_products.FUNCTIONS,
    "ggml_free": (None, [c.c_void_p]),
    "ggml_get_name": (c.c_char_p, [c.POINTER(_Tensor)]),
    "ggml_backend_tensor_get": (None, [c.POINTER(_Tensor), c.c_void_p, c.c_size_t, c.c_size_t]),
    "gguf_init_from_file": (c.c_void_p, [c.c_char_p, _ReadParameters]),
    "gguf_free": (None, [c.c_void_p]),
    "ggml_quantize_chunk": (
        c.c_size_t,
        [c.c_int, c.c_void_p, c.c_void_p, c.c_int64, c.c_int64, c.c_int64, c.c_void_p],
    ),
}


_F32, _F16 = 0, 1  # members of ggml_type
_VOCAB_ONLY = 18  # the word of llama_model_params whose first byte is vocab_only: the log says whether it was
_OTHER_ORDER = "this llama.cpp orders its parameters in another way; install the version in constraints.txt"


def _places(defaults: _Parameters) -> tuple[int, int, int]:
    """The words of ``llama_context_params`` where flash_attn_type, cb_eval and type_k stand, told by their defaults.

    They are -1 (automatic), null, and F16 like type_v after it; cb_eval and its data are the pointers before type_k.
    """
    words = list(defaults.words[:64])
    for types in range(4, 63):
        if words[types - 4 : types + 2] == [0, 0, 0, 0, _F16, _F16] and 0xFFFFFFFF in words[:types]:
            return types - 1 - words[:types][::-1].index(0xFFFFFFFF), types - 4, types
    raise LlamaCppError(_OTHER_ORDER)


_OF_THE_VOCABULARY = ("tokenize", "around_a_text", "text")
_COMPUTING = ("logits", "surprise", "steps", "greedy", "state")


def _log_of_sum(row: np.ndarray) -> float:
    """log(sum(exp(row))) in float64.   row: (vocabulary,) float32."""
    wide = row.astype(np.float64)
    top = wide.max()
    return float(top + np.log(np.exp(wide - top).sum()))


class _Inside:
    """What runs in the child: each public method answers the call of the same name."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("xllamacpp")
        if spec is None or not spec.submodule_search_locations:
            raise LlamaCppError("llama.cpp computes this, and its package is not installed: pip install xllamacpp")
        folder = Path(next(iter(spec.submodule_search_locations)))
        self.lib = c.CDLL(str(next(folder.glob("xllamacpp*.so"))))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.model: int | None = None
        self.context: int | None = None
        self.messages: list[str] = []
        self.written: list[str] = []
        self.loading = False
        self._log, self._step = _LOG(self._remember), _STEP(self._watch)  # kept alive: C holds pointers to them
        self._pointer = c.cast(self._step, c.c_void_p).value or 0
        self.watched: set[str] = set()
        self.found: dict[str, np.ndarray] = {}
        self.said = ""  # of attention and its cache, in llama.cpp's own words
        self.lib.llama_log_set(self._log, None)
        self.lib.llama_backend_init()

    def answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if self.model is None and name in (*_OF_THE_VOCABULARY, *_COMPUTING):
            raise LlamaCppError(f"no model is loaded, so there is nothing to {name}; pass LlamaCpp the path of one")
        if self.context is None and name in _COMPUTING:
            raise LlamaCppError(f"only the vocabulary is loaded, so there is nothing to {name}; leave out vocab_only")
        return getattr(self, name)(*arguments)

    def _remember(self, level: int, text: bytes, _: object) -> None:
        if level >= 2 and self.loading:  # all but what is for llama.cpp's own developers
            self.written.append(text.decode("utf-8", "replace"))
        if level >= 3:  # warnings and errors
            self.messages = [*self.messages[-20:], text.decode("utf-8", "replace")]
        elif b"flash_attn " in text or b"V (" in text or b"n_rot_" in text:
            self.said += text.decode("utf-8", "replace")

    def _watch(self, tensor: Any, ask: bool, _: object) -> bool:
        """Before a tensor of the graph is computed: is it wanted? After: here it is."""
        name = self.lib.ggml_get_name(tensor).decode()
        if ask or name not in self.watched:
            return name in self.watched
        value = np.empty(tensor.contents.ne[::-1], np.float32)
        if tensor.contents.type == _F32 and tuple(tensor.contents.nb) == value.strides[::-1]:
            self.lib.ggml_backend_tensor_get(tensor, value.ctypes.data, 0, value.nbytes)
            self.found[name] = value[0] if value.shape[1] > 1 else value[0, 0]
        return True

    def load(
        self,
        path: str | None,
        context: int,
        float32_cache: bool,
        vocab_only: bool,
        cache_types: tuple[int, int] | None,
        rotate: bool,
        threads: int,
        watched: bool,
    ) -> None:
        if path is None:
            return
        if not watched:
            self._pointer = 0
        self.loading = True
        try:
            self._load_model(path, vocab_only)
            if not vocab_only:
                self._make_context(context, (_F32, _F32) if float32_cache else cache_types, not float32_cache, rotate)
                self.lib.llama_set_n_threads(self.context, threads, threads)  # more than idle cores make it crawl
        finally:
            self.loading = False

    def _load_model(self, path: str, vocab_only: bool) -> None:
        defaults = self.lib.llama_model_default_params()
        defaults.words[_VOCAB_ONLY] |= vocab_only
        self.model = self.lib.llama_model_load_from_file(os.fsencode(path), defaults)
        if not self.model:
            raise LlamaCppError(f"llama.cpp refuses {path}: " + "".join(self.messages).strip())
        self.vocab = self.lib.llama_model_get_vocab(self.model)
        if vocab_only and not re.search(r"vocab_only += 1\n", self.log()):
            raise LlamaCppError(_OTHER_ORDER)

    def _make_context(self, context: int, kinds: tuple[int, int] | None, flash: bool, rotate: bool) -> None:
        """kinds: the types of keys and values; without them llama.cpp's defaults stay, and flash has no say."""
        parameters = self.lib.llama_context_default_params()
        flash_at, step, types = _places(parameters)
        parameters.words[0] = parameters.words[1] = parameters.words[2] = context  # n_ctx, n_batch, n_ubatch
        parameters.words[step], parameters.words[step + 1] = self._pointer & 0xFFFFFFFF, self._pointer >> 32
        wanted = []
        if kinds is not None:
            k, v = (self.lib.ggml_type_name(kind).decode() for kind in kinds)
            parameters.words[types], parameters.words[types + 1] = kinds
            parameters.words[flash_at] = int(flash)
            wanted = ["= enabled" if flash else "= disabled", f"K ({k})", f"V ({v})"]
            wanted += [] if rotate else ["n_rot_k = 0", "n_rot_v = 0"]
        self.said, self.messages = "", []
        self.context, self.size, self.used = self.lib.llama_init_from_model(self.model, parameters), context, 0
        if not self.context:
            raise LlamaCppError("llama.cpp makes no context: " + "".join(self.messages).strip())
        for words in wanted:
            if words not in self.said:
                raise LlamaCppError(f"no {words!r} in what llama.cpp says of its cache: {self.said}")

    def log(self) -> str:
        return "".join(self.written)

    def tokenize(self, text: str, special: bool, whole: bool) -> list[int]:
        data = text.encode("utf-8")
        room = (c.c_int32 * (len(data) + 8))()
        count = self.lib.llama_tokenize(self.vocab, data, len(data), room, len(room), whole, special)
        return list(room[:count])

    def around_a_text(self) -> tuple[int | None, bool]:
        first = self.lib.llama_vocab_bos(self.vocab) if self.lib.llama_vocab_get_add_bos(self.vocab) else None
        return first, self.lib.llama_vocab_get_add_eos(self.vocab)

    def text(self, tokens: list[int]) -> bytes:
        room, out = c.create_string_buffer(512), b""
        for token in tokens:  # piece by piece: llama_detokenize strips spaces
            length = self.lib.llama_token_to_piece(self.vocab, token, room, len(room), 0, True)
            if length < 0:  # the room that it needs
                room = c.create_string_buffer(-length)
                length = self.lib.llama_token_to_piece(self.vocab, token, room, len(room), 0, True)
            out += room.raw[:length]
        return out

    def logits(self, tokens: list[int]) -> np.ndarray:
        self._forget()
        return self._feed(tokens)

    def _forget(self) -> None:
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)
        self.used = 0

    def surprise(self, tokens: list[int], first: int) -> np.ndarray:
        self._forget()
        logits = self._feed(tokens, first)
        rows = ((logits[i], tokens[first + 1 + i]) for i in range(len(tokens) - first - 1))
        return np.array([_log_of_sum(row) - float(row[token]) for row, token in rows])

    def steps(self, tokens: list[int], names: list[str]) -> dict[str, np.ndarray]:
        self.watched, self.found = set(names), {}
        try:
            self.logits(tokens)
            return self.found
        finally:
            self.watched, self.found = set(), {}

    def greedy(self, tokens: list[int], n: int) -> list[int]:
        found = [int(self.logits(tokens)[-1].argmax())]
        while len(found) < n:
            found.append(int(self._feed(found[-1:])[-1].argmax()))
        return found[:n]

    def state(self) -> np.ndarray:
        size = self.lib.llama_state_seq_get_size(self.context, 0)
        raw = np.zeros(size, np.uint8)
        return raw[: self.lib.llama_state_seq_get_data(self.context, raw.ctypes.data, size, 0)]

    def quantize(self, w: np.ndarray, kind: int, importance: np.ndarray | None) -> np.ndarray:
        out = np.zeros((w.shape[0], self.lib.ggml_row_size(kind, w.shape[1])), np.uint8)
        given = None if importance is None else importance.ctypes.data
        self.lib.ggml_quantize_chunk(kind, w.ctypes.data, out.ctypes.data, 0, *w.shape, given)
        return out

    def dequantize(self, raw: np.ndarray, kind: int) -> np.ndarray:
        traits = self.lib.ggml_get_type_traits(kind).contents
        out = np.zeros((raw.shape[0], raw.shape[1] // traits.type_size * traits.block_size), np.float32)
        traits.to_float(raw.ctypes.data, out.ctypes.data, out.size)
        return out

    def round_activations(self, x: np.ndarray, kind: int, reference: bool) -> np.ndarray:
        return ggml_products.round_activations(self.lib, x, kind, reference)

    def products(self, w: np.ndarray, kind: int, x: np.ndarray) -> np.ndarray:
        return ggml_products.products(self.lib, w, kind, x)

    def block(self, kind: int) -> tuple[int, int]:
        return self.lib.ggml_blck_size(kind), self.lib.ggml_type_size(kind)

    def check(self, path: str) -> None:
        self.messages, tensors = [], c.c_void_p()
        file = self.lib.gguf_init_from_file(os.fsencode(path), _ReadParameters(False, c.pointer(tensors)))
        if not file:
            raise LlamaCppError(f"llama.cpp refuses {path}: " + "".join(self.messages).strip())
        self.lib.gguf_free(file)
        self.lib.ggml_free(tensors)

    def _feed(self, tokens: list[int], first: int = 0) -> np.ndarray:
        """Compute tokens that follow; the logits after each of them from ``first`` on."""
        if not tokens or self.used + len(tokens) > self.size:  # llama_decode would abort the process
            raise LlamaCppError(f"{self.used} + {len(tokens)} tokens do not fit the context of {self.size}")
        batch = self.lib.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, self.used + i, 1, i >= first
            batch.seq_id[i][0] = 0
        code = self.lib.llama_decode(self.context, batch)
        self.lib.llama_batch_free(batch)
        if code:
            raise LlamaCppError(f"llama_decode failed with code {code}")
        self.used += len(tokens)
        shape = (len(tokens) - first, self.lib.llama_vocab_n_tokens(self.vocab))
        return np.ctypeslib.as_array(self.lib.llama_get_logits(self.context), shape).copy()


def _serve() -> None:
    """Answer calls from stdin on stdout, until stdin ends; whatever llama.cpp prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    inside = None
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            inside = inside or _Inside()
            answer = (True, inside.answer(name, arguments))
        except Exception as error:
            answer = (False, f"{error}" if isinstance(error, LlamaCppError) else f"{type(error).__name__}: {error}")
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    _serve()
