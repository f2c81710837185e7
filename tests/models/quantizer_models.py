"""Small GGUF files of many shapes, and what llama.cpp's own quantizer makes of each: types, and whole files by hash.

The wheel that the other tests use does not export ``llama_model_quantize``; other builds of llama.cpp do, such as the
library in npm's ``@node-llama-cpp/linux-x64`` or in ``llama-cpp-python``. With the folder of one,

    python tests/models/quantizer_models.py FOLDER > tests/models/llama_quantizer.json
    python tests/models/quantizer_models.py FOLDER imatrix > tests/models/llama_quantizer_imatrix.json

stores what it answers, without and with an importance matrix. The files are written by the official ``gguf`` package.
"""

from __future__ import annotations

import ctypes as c
import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from miniquant.models.file_types import PRESETS

STORED = Path(__file__).with_name("llama_quantizer.json")
STORED_WEIGHED = Path(__file__).with_name("llama_quantizer_imatrix.json")
LAYERS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 22, 24, 28, 31, 32, 33, 48, 64, 80, 126)


def model(
    architecture: str = "llama",
    layers: int = 2,
    heads: tuple[int, int] = (8, 2),
    width: int = 256,
    tied: bool = False,
    experts: int = 0,
    parts: tuple[str, ...] = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"),
    others: tuple[str, ...] = (),
    every: int = 1,
) -> dict[str, Any]:
    """A file's keys and the shapes of its tensors; attention stands in every ``every``-th layer."""
    keys = {
        "block_count": layers,
        "context_length": 64,
        "embedding_length": width,
        "feed_forward_length": width,
        "attention.head_count": heads[0],
        "attention.head_count_kv": heads[1],
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.layer_norm_epsilon": 1e-5,
        "expert_count": experts,
        "expert_used_count": min(experts, 2),
    }
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (4, width), "output_norm.weight": (width,)}
    shapes |= {} if tied else {"output.weight": (4, width)}
    for n in range(layers):
        for part in parts:
            if n % every == 0 or not part.startswith("attn"):
                inside = (experts,) if part.endswith("_exps") else ()
                shapes[f"blk.{n}.{part}.weight"] = (*inside, 2, width)
        shapes[f"blk.{n}.attn_norm.weight"] = (width,)
        shapes[f"blk.{n}.attn_q.bias"] = (width,)
    shapes |= dict.fromkeys(others, (2, width))
    return {"architecture": architecture, "keys": {k: v for k, v in keys.items() if v}, "shapes": shapes}


_EXPERTS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate_inp", "ffn_up_exps", "ffn_down_exps")
_FUSED = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")
_SMALL = (  # names that some architecture has, in a file of another: the quantizer goes by the name
    *("blk.0.ffn_norm.weight", "blk.0.altup_router.weight", "blk.0.laurel_l.weight", "per_layer_model_proj.weight"),
    *("blk.0.ssm_conv1d.weight", "blk.0.shortconv.conv.weight", "blk.0.indexer.k_proj.weight", "token_types.weight"),
    *("blk.0.indexer.q_proj.weight", "blk.0.attn_rel_b.weight", "v.position_embd.weight", "v.sam.pos_embd.weight"),
    *("v.sam.neck.0.weight", "v.sam.net_2.weight", "v.blk.0.rel_pos_h.weight", "v.patch_embd.weight"),
    *("v.patch_merger.weight", "a.rvq.codebook.weight", "mm.a.code_embd.weight", "per_layer_token_embd.weight"),
    *(f"blk.0.time_mix_{part}.weight" for part in ("first", "w1", "w2", "v1", "a2", "g1", "decay_w1", "lerp_fused")),
    *("blk.0.attn_kv_b.weight", "blk.1.attn_kv_a_mqa.weight", "blk.0.ssm_in.weight", "blk.0.time_mix_key.weight"),
    *("blk.0.ffn_down_shexp.weight", "blk.0.attn_v.scale", "cls.output.weight", "blk.1.attn_sub_norm.weight"),
)
MODELS: dict[str, dict[str, Any]] = {
    **{f"llama of {n} layers": model(layers=n, tied=n % 2 == 0) for n in LAYERS},
    **{f"llama of {n} layers, a head each": model(layers=n, heads=(8, 8)) for n in (4, 32, 80)},
    **{f"llama whose values serve {n} heads": model(layers=8, heads=(8, 8 // n)) for n in (1, 4, 8)},
    **{f"llama, rows of {n}": model(layers=3, width=n) for n in (32, 64, 288, 512)},
    **{f"llama, rows of {n}, tied": model(layers=3, width=n, tied=True) for n in (64, 768)},
    "llama, rows of 40": model(layers=2, width=40),
    **{f"llama of {n} experts": model(layers=24, experts=n, parts=_EXPERTS) for n in (2, 4, 8)},
    "llama of 80 layers and 8 experts": model(layers=80, experts=8, parts=_EXPERTS),
    "llama with attention in every third layer": model(layers=24, every=3),
    "llama with small matrices": model(others=_SMALL),
    **{f"{name} of 80 layers, a head each": model(name, 80, (8, 8)) for name in ("deci", "olmo", "llama-embed")},
    "llama-embed of 80 layers": model("llama-embed", 80),
    **{f"qwen2 of {n} layers": model("qwen2", n, tied=n < 30, heads=(14, 2)) for n in (24, 28, 80)},
    "qwen2 of 80 layers, a head each": model("qwen2", 80, heads=(8, 8)),
    **{f"gpt2 of {n} layers": model("gpt2", n, (4, 4), tied=True, parts=_FUSED) for n in (4, 12)},
    "gpt2 with positions": model("gpt2", 2, (4, 4), parts=_FUSED, others=("position_embd.weight",)),
    **{f"falcon of {n} layers": model("falcon", n, (8, 1), parts=_FUSED, tied=n == 60) for n in (4, 32, 60)},
    "phi3 of 40 layers": model("phi3", 40, (40, 10), parts=_FUSED),
    "qwen3 of 80 layers": model("qwen3", 80),
}
WHOLE = (
    "llama of 3 layers",
    "qwen2 of 24 layers",
    "gpt2 with positions",
    "llama, rows of 288",
)  # compared byte by byte


def write(path: Path, name: str) -> None:
    """One of ``MODELS`` as a file, its weights the same on every machine."""
    what = MODELS[name]
    writer, rng = gguf.GGUFWriter(path, what["architecture"]), np.random.Generator(np.random.PCG64(len(name)))
    for key, value in what["keys"].items():
        (writer.add_float32 if isinstance(value, float) else writer.add_uint32)(f"{what['architecture']}.{key}", value)
    for tensor, shape in what["shapes"].items():
        w = rng.integers(-(2**20), 2**20, shape).astype(np.float32) * np.float32(2**-22)
        writer.add_tensor(tensor, w * np.abs(w))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def summary(types: dict[str, str]) -> str:
    """How many tensors are of each type, and a hash of names and types in the file's order."""
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(types.values()).items()))
    return f"{counts}; {hashlib.sha256(repr(list(types.items())).encode()).hexdigest()[:12]}"


WEIGHED = (*WHOLE, "llama of 16 layers", "llama of 8 experts", "falcon of 32 layers")  # with an importance matrix
IMATRIX = "imatrix of the tests.gguf"


def write_importance(path: Path, name: str) -> dict[str, np.ndarray]:
    """An importance matrix for one of ``MODELS``, with zeros in it, as ``llama-imatrix`` writes it; and its means."""
    writer, rng = gguf.GGUFWriter(path, ""), np.random.Generator(np.random.PCG64(len(name)))
    writer.add_string("general.type", "imatrix")
    writer.add_array("imatrix.datasets", ["a text.txt", "another text.txt"])
    writer.add_uint32("imatrix.chunk_count", 3)
    writer.add_uint32("imatrix.chunk_size", 512)
    means = {}
    for tensor, shape in sorted(MODELS[name]["shapes"].items()):
        if len(shape) < 2 or not tensor.startswith("blk.") or "attn_output" in tensor:
            continue
        experts = shape[0] if len(shape) == 3 else 1
        sums = np.float32(2) ** rng.integers(-10, 10, (experts, shape[-1])).astype(np.float32)
        sums[rng.random(sums.shape) < 0.1] = 0
        counts = rng.integers(0 if experts > 1 else 1, 5, experts).astype(np.float32) * 100
        writer.add_tensor(f"{tensor}.in_sum2", sums if experts > 1 else sums[0])
        writer.add_tensor(f"{tensor}.counts", counts[:, None] if experts > 1 else counts)
        means[tensor] = np.stack([s / k if k else np.ones_like(s) for s, k in zip(sums, counts, strict=True)])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return means


class _Parameters(c.Structure):
    """``llama_model_quantize_params``: the first fields, with room for more."""

    _fields_ = [
        *[(name, c.c_int32) for name in ("threads", "file_type", "output", "embedding")],
        ("flags", c.c_bool * 8),
        *[(name, c.c_void_p) for name in ("imatrix", "overrides")],
        ("rest", c.c_uint32 * 64),
    ]


class _Importance(c.Structure):
    """``llama_model_imatrix_data``; a list of them ends with one without a name."""

    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p), ("size", c.c_size_t)]


class _Override(c.Structure):
    """``llama_model_kv_override``; a list of them ends with one without a key."""

    _fields_ = [("tag", c.c_int32), ("key", c.c_char * 128), ("number", c.c_int64), ("rest", c.c_char * 120)]


def _overrides(entries: int) -> Any:
    """What the program llama-quantize sets for an importance matrix before it calls the library."""
    texts = {"file": IMATRIX, "dataset": "a text.txt"}
    numbers = {"entries_count": entries, "chunks_count": 3}
    found = (_Override * (len(texts) + len(numbers) + 1))()
    for one, (key, text) in zip(found, texts.items(), strict=False):
        one.tag, one.key = 3, f"quantize.imatrix.{key}".encode()
        c.memmove(c.addressof(one) + _Override.number.offset, text.encode(), len(text))
    for one, (key, number) in zip(found[2:], numbers.items(), strict=False):
        one.tag, one.key, one.number = 0, f"quantize.imatrix.{key}".encode(), number
    return found


def _quantizer(folder: Path) -> Any:
    for name in ("libggml-base*.so*", "libggml.*so*", "libllama.*so*"):
        library = c.CDLL(str(next(iter(sorted(folder.glob(name))))), mode=c.RTLD_GLOBAL)
    library.llama_model_quantize_default_params.restype = _Parameters
    library.llama_model_quantize.argtypes = [c.c_char_p, c.c_char_p, c.POINTER(_Parameters)]
    library.llama_model_quantize.restype = c.c_uint32

    def quantize(source: Path, target: Path, number: int, means: dict[str, np.ndarray] | None = None) -> bool:
        parameters = library.llama_model_quantize_default_params()
        parameters.threads, parameters.file_type = 1, number
        if means:
            rows = [(name.encode(), w.ctypes.data, w.size) for name, w in means.items()]
            given, keys = (_Importance * (len(rows) + 1))(*rows), _overrides(len(means))
            parameters.imatrix, parameters.overrides = c.addressof(given), c.addressof(keys)
        return not library.llama_model_quantize(os.fsencode(source), os.fsencode(target), c.byref(parameters))

    return quantize


def _answers(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    from miniquant.models.corpus import load_tokenizer
    from miniquant.models.pretrained import load_pretrained
    from miniquant.models.to_gguf import write_minigpt

    quantize = _quantizer(folder)
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place) / "in.gguf", Path(place) / "out.gguf"
        for name in (*MODELS, "MiniGPT"):
            if name in MODELS:
                write(source, name)
            else:
                write_minigpt(source, load_pretrained(), load_tokenizer(), "F32")
            found = {}
            for preset, kind in PRESETS.items():
                if not quantize(source, target, kind.number):
                    found[preset] = "refused"
                    continue
                found[preset] = summary({t.name: t.tensor_type.name for t in gguf.GGUFReader(target).tensors})
                if name in (*WHOLE, "MiniGPT"):
                    found[preset] += f"; {hashlib.sha256(target.read_bytes()).hexdigest()}"
            yield name, found


def _weighed_answers(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    quantize = _quantizer(folder)
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place) / "in.gguf", Path(place) / "out.gguf"
        for name in WEIGHED:
            write(source, name)
            means, found = write_importance(Path(place) / "imatrix.gguf", name), {}
            for preset, kind in PRESETS.items():
                assert quantize(source, target, kind.number, means), (name, preset)
                types = {t.name: t.tensor_type.name for t in gguf.GGUFReader(target).tensors}
                found[preset] = f"{summary(types)}; {hashlib.sha256(target.read_bytes()).hexdigest()}"
            yield name, found


if __name__ == "__main__":
    answers = _weighed_answers if sys.argv[2:] == ["imatrix"] else _answers
    json.dump(dict(answers(Path(sys.argv[1]))), sys.stdout, indent=0, ensure_ascii=False)
    print()
