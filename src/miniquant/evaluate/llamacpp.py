"""A small client to real llama.cpp: the referee that we did not write.

The library comes with the ``xllamacpp`` wheel, whose shared object exports the C interface of ``llama.h`` and
``ggml.h``. A bad file can make llama.cpp abort its process, so ``LlamaCpp`` keeps it in a process of its own and talks
to it over a pipe: a crash becomes a ``LlamaCppError``.

    with LlamaCpp("minigpt.gguf") as llama:
        ids = llama.tokenize("The import statement")
        logits = llama.logits(ids)                      # (tokens, vocabulary) float32
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

from ..core.errors import MiniquantError
from ..formats.gguf.types import GGMLType
from .llamacpp_cache import Cache, cache_of

_NO_ROTATION = "LLAMA_ATTN_ROT_DISABLE"  # what llama.cpp reads from its environment


class LlamaCppError(MiniquantError):
    """llama.cpp refused a file or a call, or its process ended; the message carries the end of its log.

    ``log`` is what it wrote while it loaded a file that it refused; empty if its process ended.
    """

    log = ""


class LlamaCpp:
    """llama.cpp with one model loaded, in a process of its own. Usable in a ``with`` block.

    With ``float32_cache`` keys and values stay float32. That takes attention step by step as well: flash attention
    rounds them to float16 whatever the cache holds. With ``vocab_only`` llama.cpp reads metadata and tokenizer and no
    tensor, so the file needs none: ``tokenize`` and ``text`` work then, and nothing that computes.
    ``log`` is what it wrote while it loaded the file; ``loading_log`` says which bytes its lines were made from.

    ``cache_types`` are the types of the keys and of the values, members of ggml_type; F16 without them. Given, they
    come with flash attention, which llama.cpp wants for quantized values. Quantized keys or values are rotated before
    they are stored, where a head is a multiple of 64 wide (llama.cpp's pull request 21038), unless ``rotate_cache`` is
    false. What its log says of types and rotation is compared with what was asked for.

    ``threads`` compute; more of them than idle cores make it crawl. Unless it is ``watched``, nobody is asked before
    each tensor of the graph: it is faster then, and ``steps`` finds nothing.

    Raises ``LlamaCppError`` if llama.cpp refuses the file or the types, whether politely or by aborting.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        context: int = 256,
        float32_cache: bool = False,
        vocab_only: bool = False,
        cache_types: tuple[int, int] | None = None,
        rotate_cache: bool = True,
        threads: int = 1,
        watched: bool = True,
    ) -> None:
        if float32_cache and cache_types is not None:
            raise LlamaCppError("float32_cache is a choice of cache_types; pass one of the two")
        for kind in cache_types or ():
            if kind not in set(GGMLType):  # ggml has no name for another one, and would end the process
                raise LlamaCppError(f"{kind} is no type that a cache could have")
        kinds = None if cache_types is None else (int(cache_types[0]), int(cache_types[1]))
        own = {"GGML_NO_BACKTRACE": "1", "OMP_NUM_THREADS": str(threads), _NO_ROTATION: "0" if rotate_cache else "1"}
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 a pipe that nobody reads would fill up and block
        self._process = subprocess.Popen(
            [sys.executable, "-m", "miniquant.evaluate.llamacpp_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **own},
        )
        assert self._process.stdin is not None and self._process.stdout is not None  # they are pipes
        self._requests, self._answers = self._process.stdin, self._process.stdout
        try:
            file = None if path is None else os.fspath(path)
            self._call("load", file, context, float32_cache, vocab_only, kinds, rotate_cache, threads, watched)
            self.log: str = self._call("log")
        except LlamaCppError as error:
            with contextlib.suppress(LlamaCppError):  # its process may have ended
                error.log = self._call("log")
            self.close()
            raise

    def tokenize(self, text: str, special: bool = False, whole: bool = False) -> list[int]:
        """Token ids of a text; with ``special``, names such as <|endoftext|> become their tokens.

        With ``whole``, the tokens that the model wants around a text are added, such as one that begins it.
        """
        found: list[int] = self._call("tokenize", text, special, whole)
        return found

    def around_a_text(self) -> tuple[int | None, bool]:
        """The token that begins every text, or ``None`` if there is none; and whether one is wanted at its end."""
        found: tuple[int | None, bool] = self._call("around_a_text")
        return found

    def text(self, tokens: list[int]) -> bytes:
        """The bytes that tokens stand for."""
        found: bytes = self._call("text", tokens)
        return found

    def logits(self, tokens: list[int]) -> np.ndarray:
        """Logits after every token of one window: (tokens, vocabulary) float32."""
        found: np.ndarray = self._call("logits", list(map(int, tokens)))
        return found

    def surprise(self, tokens: list[int], first: int) -> np.ndarray:
        """The negative log-likelihood of tokens ``first + 1`` to the last of one window, in nats: float64."""
        found: np.ndarray = self._call("surprise", list(map(int, tokens)), first)
        return found

    def steps(self, tokens: list[int], names: list[str]) -> dict[str, np.ndarray]:
        """What llama.cpp has in hand on the way to the logits of one window: name -> (tokens, width) float32.

        names: of its graph, such as ``ffn_gelu-0`` or ``l_out-3``. One that the graph lacks, or that is a view of
        another, is missing in the answer.
        """
        found: dict[str, np.ndarray] = self._call("steps", list(map(int, tokens)), list(names))
        return found

    def greedy(self, tokens: list[int], n: int) -> list[int]:
        """The ``n`` most likely next tokens, one after another."""
        found: list[int] = self._call("greedy", list(map(int, tokens)), n)
        return found

    def cache(self) -> Cache:
        """The KV cache after the last call that computed: its bytes, of the tokens of that call."""
        return cache_of(self._call("state"))

    def quantize(self, w: np.ndarray, kind: int, importance: np.ndarray | None = None) -> np.ndarray:
        """ggml's own quantizer: (rows, n) float32 -> (rows, bytes) uint8. Needs no model.

        importance: (n,) float32, how much the error in each column counts; some types do not go without it
        """
        if importance is not None:
            importance = np.ascontiguousarray(np.broadcast_to(importance, w.shape[1:]), np.float32)
        found: np.ndarray = self._call("quantize", np.ascontiguousarray(w, np.float32), int(kind), importance)
        return found

    def dequantize(self, raw: np.ndarray, kind: int) -> np.ndarray:
        """ggml's own decoder: (rows, bytes) uint8 -> (rows, n) float32. Needs no model."""
        found: np.ndarray = self._call("dequantize", np.ascontiguousarray(raw, np.uint8), int(kind))
        return found

    def round_activations(self, x: np.ndarray, kind: int, reference: bool = True) -> np.ndarray:
        """ggml's rounding of activations: (rows, n) float32 -> (rows, bytes) uint8; kind is Q8_0, Q8_1 or Q8_K.

        Without ``reference`` it is the function that runs before a product on this processor, whose last digits may
        differ. Needs no model.
        """
        given = np.ascontiguousarray(x, np.float32)
        found: np.ndarray = self._call("round_activations", given, int(kind), reference)
        return found

    def products(self, w: np.ndarray, kind: int, x: np.ndarray) -> np.ndarray:
        """ggml's own product of rows of blocks: (rows, bytes) and (tokens, bytes) uint8 -> (tokens, rows) float32.

        kind: of the blocks in w; those in x are of the type that ggml multiplies it with. Needs no model.
        """
        blocks = (np.ascontiguousarray(raw, np.uint8) for raw in (w, x))
        found: np.ndarray = self._call("products", next(blocks), int(kind), next(blocks))
        return found

    def block(self, kind: int) -> tuple[int, int]:
        """The weights and the bytes of a block of a tensor type, as ggml has them. Needs no model."""
        found: tuple[int, int] = self._call("block", int(kind))
        return found

    def check(self, path: str | os.PathLike[str]) -> None:
        """Read a file with ggml's own GGUF reader, the data too, whatever model it holds. Needs no model.

        Raises ``LlamaCppError`` with what the reader complains of. If the reader aborts, the process is gone, and
        with it this object: make another.
        """
        self._call("check", os.fspath(path))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for file in (self._requests, self._answers, self._stderr):
            with contextlib.suppress(BrokenPipeError):  # a request that it did not live to read
                file.close()

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            pickle.dump((name, arguments), self._requests)
            self._requests.flush()
            ok, result = pickle.load(self._answers)  # from our own child
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            code = self._process.wait()
            if self._stderr.closed:
                raise LlamaCppError(f"cannot {name}: this llama.cpp was closed; make a new LlamaCpp") from None
            self._stderr.seek(0)
            log = self._stderr.read().decode("utf-8", "replace").strip()[-600:]
            raise LlamaCppError(f"llama.cpp ended with code {code} in {name}: {log}") from None
        if not ok:
            raise LlamaCppError(result)
        return result
