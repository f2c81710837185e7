"""Every kind of file that the library writes, from inputs that are the same on every machine, as SHA-256.

    python tests/formats/written_files.py > tests/formats/bytes.json    only when a format is meant to change

Nothing here is summed in an order that a processor chooses: K-quants add down columns, one row after another, and the
rest takes IEEE operations one by one. (Checked: with numpy's AVX2 code off, in one thread and in four, the same bytes.)

The weights are sums of PCG64's raw bits, exact in float32: no sampler, no logarithm, nothing that another numpy, libm
or processor could round otherwise. The trained model and its tokenizer come from the package's assets.

Left out, because the bytes depend on more than the library: whatever GPTQ, AWQ or SmoothQuant chose (BLAS adds in an
order of its own; their integers are exported here from a seeded array instead), observers other than MinMax, training
(slow, and the text is the interpreter's), the tables of ``miniquant grade`` (a column for each exercise), figures, and
the folders that ``transformers`` writes (another version, another header; the folders here are written by hand).
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from hf_by_hand import gpt2_folder, llama_folder, weights

from miniquant import PRESETS, SCHEMES, Quantized, preset, write_gguf_lite
from miniquant.core.files import atomic_write
from miniquant.formats.bump import write_bump
from miniquant.formats.bump.types import BUMP_TYPES
from miniquant.formats.ggml_legacy.types import LegacyType
from miniquant.formats.ggml_legacy.write import ggml_bytes, ggml_name
from miniquant.formats.gguf import GGMLType, LazyTensor, RawTensor, Typed, ValueType, encode, write_gguf
from miniquant.formats.gguf.codecs import CODECS
from miniquant.lab.record import write as write_record
from miniquant.models.bridge import GGUF_TYPES, ModelExporter
from miniquant.models.corpus import load_tokenizer
from miniquant.models.export import (
    Exporter,
    ExportFormat,
    GGUFQuantization,
    ModelMetadata,
    ModelWeights,
    quantize_and_export,
)
from miniquant.models.file_types import FILE_TYPES
from miniquant.models.huggingface.convert import convert_folder
from miniquant.models.minigpt import MiniGPT, MiniGPTConfig
from miniquant.models.pretrained import load_pretrained
from miniquant.models.quantizer import freeze, quantize_linear_layers
from miniquant.models.to_gguf import write_minigpt
from miniquant.quantization.config import Config, QuantizationConfig
from miniquant.quantization.grids import GRID_RULES
from miniquant.quantization.spec import Dtype, QSchemeType, QuantizationSpec
from miniquant.runtime.integer_products import encode_activations

Maker = Callable[[Path], bytes]  # an empty folder -> the bytes of a file written into it
FILES: dict[str, Maker] = {}


def file(name: str, make: Callable[..., bytes], *args: object) -> None:
    """One file more; names are unique."""
    assert name not in FILES, name
    FILES[name] = partial(make, *args) if args else make


# ---- weights ---------------------------------------------------------------------------------------------------------


def integers(seed: int, low: int, high: int, *shape: int) -> np.ndarray:
    """Whole numbers from low to high."""
    raw = np.random.PCG64(seed).random_raw(int(np.prod(shape, dtype=int)))
    return ((raw >> np.uint64(33)).astype(np.int64) % (high - low + 1) + low).reshape(shape)


def awkward(seed: int, rows: int, columns: int) -> np.ndarray:
    """What encoders stumble over: zeros, one sign only, an outlier, tiny and large rows, ties, halves."""
    w = weights(seed, rows, columns)
    w[0] = 0
    w[1] = np.abs(w[1])
    w[2] = -np.abs(w[2])
    w[3, ::97] *= 64
    w[4] *= np.float32(2.0**-20)
    w[5] *= np.float32(2.0**12)
    w[6] = np.tile(np.float32([0.5, -0.5]), columns // 2)
    w[7] = np.float32(0.25) * (np.arange(columns) % 31 - 15)
    w[8, : columns // 2] = 0
    w[9] = np.float32(0.125)
    return w


CONFIG = MiniGPTConfig(vocab_size=1024, context=32, d_model=64, n_layers=2, n_heads=2, d_mlp=128)  # the asset's tokens


@cache
def small_model() -> MiniGPT:
    """A MiniGPT of seeded weights, with the vocabulary of the committed tokenizer."""
    model = MiniGPT(CONFIG)
    state = model.state_dict()
    made = {name: weights(seed, *w.shape) * np.float32(0.25) for seed, (name, w) in enumerate(state.items())}
    for name, w in made.items():
        if w.ndim == 1 and "ln" in name and name.endswith("weight"):
            w += np.float32(1)
    model.load_state_dict({name: torch.from_numpy(w) for name, w in made.items()})
    return model.eval()


trained = cache(load_pretrained)
tokenizer = cache(load_tokenizer)


# ---- GGUF-lite -------------------------------------------------------------------------------------------------------


def lite_trained(name: str, folder: Path) -> bytes:
    write_gguf_lite(folder / "m.gguf-lite", trained(), preset(name, trained()))
    return (folder / "m.gguf-lite").read_bytes()


def lite_state(scheme: str, kind: type, folder: Path) -> bytes:
    """Matrices in one scheme; a vector, a scalar, an empty tensor beside them; metadata of the caller."""
    state = {
        "a.weight": awkward(1, 16, 128),
        "b.weight": weights(2, 5, 64).astype(kind),
        "b.bias": weights(3, 5),
        "scalar": np.array(-1.5, np.float32),
        "none": np.zeros((0, 3), np.float32),
        "cube": weights(4, 2, 3, 4),
        "naïve ✓": weights(5, 1),
    }
    schemes = {name: scheme for name in ("a.weight", "b.weight")}
    write_gguf_lite(folder / "m", state, schemes, {"name": "toy é", "steps": 7, "loss": 0.1, "tied": True, "n": 2**70})
    return (folder / "m").read_bytes()


def lite_chosen(folder: Path) -> bytes:
    """Integers and scales that somebody has chosen already."""
    state = {"eight": weights(6, 4, 64), "four": weights(7, 4, 128), "b": weights(8, 4)}
    chosen = {
        "eight": Quantized(integers(9, -128, 127, 4, 64).astype(np.int8), weights(10, 4).astype(np.float16)),
        "four": Quantized(integers(11, -8, 7, 4, 128).astype(np.int8), weights(12, 4, 2).astype(np.float16)),
    }
    write_gguf_lite(folder / "m", state, {"eight": "q8_per_channel", "four": "q4_per_group_64"}, chosen=chosen)
    return (folder / "m").read_bytes()


for name in PRESETS:
    file(f"gguf-lite of the trained model, {name}", lite_trained, name)
for scheme in SCHEMES:
    file(f"gguf-lite of seeded weights, {scheme}", lite_state, scheme, np.float32)
file("gguf-lite of seeded weights, float16 in int8", lite_state, "q8_per_channel", np.float16)
file("gguf-lite of chosen integers", lite_chosen)


# ---- GGUF ------------------------------------------------------------------------------------------------------------


def gguf_trained(kind: str, embedding: str | None, folder: Path) -> bytes:
    write_minigpt(folder / "m.gguf", trained(), tokenizer(), kind, embedding)
    return (folder / "m.gguf").read_bytes()


def gguf_metadata(folder: Path) -> bytes:
    """Every type of value, alone and in an array, with the types that Python's values get by themselves."""
    numbers = [kind for kind in ValueType if kind not in (ValueType.STRING, ValueType.ARRAY)]
    pairs: dict = {f"one.{kind.name.lower()}": Typed(1, kind) for kind in numbers if kind != ValueType.BOOL}
    pairs |= {f"many.{k.name.lower()}": Typed([0, 1, 1], ValueType.ARRAY, k) for k in numbers if k != ValueType.BOOL}
    pairs |= {"text": "héllo\nworld", "texts": ["a", "", "🙂"], "none": Typed([], ValueType.ARRAY, ValueType.STRING)}
    pairs |= {"yes": True, "flags": [True, False], "pi": 3.141592653589793, "double": np.float64(0.1)}
    pairs |= {"small": -1, "large": 2**40, "lowest": -(2**40), "array": np.arange(3, dtype=np.int16)}
    write_gguf(folder / "m.gguf", {"w": weights(20, 3, 5)}, pairs)
    return (folder / "m.gguf").read_bytes()


def gguf_tensors(alignment: int, folder: Path) -> bytes:
    """Tensors as they are, encoded, raw, lazy, from torch, of no dims, of no weights."""
    rows = awkward(21, 16, 64)
    tensors: dict = {
        "f32": weights(22, 3, 5),
        "f16": weights(23, 7).astype(np.float16),
        "f64": weights(24, 2, 2, 2).astype(np.float64),
        **{f"i{n}": integers(25, -9, 99, 3, 3).astype(f"i{n // 8}") for n in (8, 16, 32, 64)},
        "scalar": np.array(2.5, np.float32),
        "none": np.zeros((0, 32), np.float32),
        "torch": (torch.from_numpy(weights(26, 4, 32)), "Q8_0"),
        "bfloat16": torch.from_numpy(weights(27, 4, 32)).bfloat16(),
        "encoded": (rows, "Q4_1"),
        "raw": RawTensor(encode(rows, GGMLType.Q4_0), GGMLType.Q4_0, (4, 4, 64)),
        "lazy": (LazyTensor((16, 64), "float32", lambda start, stop: rows[start:stop]), "Q4_0"),
    }
    write_gguf(folder / "m.gguf", tensors, {"general.architecture": "toy"}, alignment)
    return (folder / "m.gguf").read_bytes()


def gguf_pieces(kind: str, folder: Path) -> bytes:
    """A matrix large enough to be encoded in several pieces and several threads."""
    write_gguf(folder / "m.gguf", {"w": (weights(28, 1100, 1024), kind)}, {})
    return (folder / "m.gguf").read_bytes()


def blocks(kind: GGMLType, folder: Path) -> bytes:
    w = np.concatenate([awkward(30, 16, 512), weights(31, 48, 512)])
    return (encode(w, kind) if kind in CODECS else encode_activations(w, kind)).tobytes()


for kind in FILE_TYPES:
    file(f"gguf of the trained model, {kind}", gguf_trained, kind, None)
file("gguf of the trained model, Q4_0 with an F16 embedding", gguf_trained, "Q4_0", "F16")
file("gguf with metadata of every type", gguf_metadata)
for alignment in (8, 32, 64):
    file(f"gguf with tensors of every kind, aligned to {alignment}", gguf_tensors, alignment)
for kind in ("F16", "BF16", "Q8_0", "Q4_0", "Q4_1"):
    file(f"gguf of a large matrix, {kind}", gguf_pieces, kind)
for kind in (*(kind for kind in CODECS if CODECS[kind].encodes), GGMLType.Q8_1, GGMLType.Q8_K):
    file(f"blocks of {kind.name}", blocks, kind)


# ---- safetensors, APR, model card ------------------------------------------------------------------------------------


def model_weights() -> ModelWeights:
    about = ModelMetadata("gpt2", "naïve toy", None, 64, 2, 96, {"loss": 0.1, "steps": 7, "by": "hand"})
    tensors = {"w": awkward(40, 16, 64), "odd": weights(41, 3, 33), "b": weights(42, 5), "a": weights(43, 1)}
    return ModelWeights(tensors, about)


def exported(kind: ExportFormat, quantization: GGUFQuantization, metadata: bool, folder: Path) -> bytes:
    return Exporter(folder, quantization, metadata).export(model_weights(), kind, "m").path.read_bytes()


def exported_trained(kind: ExportFormat, folder: Path) -> bytes:
    return Exporter(folder).export(ModelWeights.from_model(trained(), "MiniGPT"), kind, "m").path.read_bytes()


def exported_small(kind: ExportFormat, folder: Path) -> bytes:
    return Exporter(folder).export(ModelWeights.from_model(small_model(), "toy"), kind, "m").path.read_bytes()


def bare(folder: Path) -> bytes:
    """Without metadata, what the safetensors library writes is the same each time."""
    weights = ModelWeights(model_weights().tensors)
    return Exporter(folder).export(weights, ExportFormat.SAFETENSORS, "m").path.read_bytes()


def in_order(make: Maker, folder: Path) -> bytes:
    """A safetensors file with the keys of its metadata in order: the library writes them in another one each time."""
    data = make(folder)
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    return len(data).to_bytes(8, "little") + json.dumps(header).encode() + data[end:]


def card(quantization: GGUFQuantization, folder: Path) -> bytes:
    return quantize_and_export(model_weights(), quantization, folder, "m.gguf").readme.encode()


PLAIN = GGUFQuantization.NONE
for quantization in GGUFQuantization:
    for metadata in (True, False):
        what = f"gguf of the exporter, {quantization.value}, {'with' if metadata else 'without'} metadata"
        file(what, exported, ExportFormat.GGUF, quantization, metadata)
    file(f"model card of the exporter, {quantization.value}", card, quantization)
file("apr of seeded weights", exported, ExportFormat.APR, PLAIN, True)
file("apr of a small model", exported_small, ExportFormat.APR)
file("safetensors of seeded weights", in_order, partial(exported, ExportFormat.SAFETENSORS, PLAIN, True))
file("safetensors of a small model", in_order, partial(exported_small, ExportFormat.SAFETENSORS))
file("safetensors of the trained model", in_order, partial(exported_trained, ExportFormat.SAFETENSORS))
file("safetensors without metadata", bare)


# ---- bump ------------------------------------------------------------------------------------------------------------

LLAMA = dict(embed=256, heads=4, kv_heads=2, inner=256, vocab=40, context=16, layers=2)


def llama_gguf(path: Path, kind: str, change: str) -> None:
    """A small llama as GGUF: every matrix in one type, or with biases, or with a head of its own."""
    e, inner, vocab = LLAMA["embed"], LLAMA["inner"], LLAMA["vocab"]
    kv = e // LLAMA["heads"] * LLAMA["kv_heads"]
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocab, e), "output_norm.weight": (e,)}
    for i in range(LLAMA["layers"]):
        layer: dict[str, tuple[int, ...]] = {"attn_norm.weight": (e,), "ffn_norm.weight": (e,)}
        layer |= {"attn_q.weight": (e, e), "attn_k.weight": (kv, e), "attn_v.weight": (kv, e)}
        layer |= {"attn_output.weight": (e, e), "ffn_gate.weight": (inner, e), "ffn_up.weight": (inner, e)}
        layer |= {"ffn_down.weight": (e, inner)}
        if change == "biases":
            layer |= {"attn_q.bias": (e,), "attn_k.bias": (kv,), "attn_v.bias": (kv,), "attn_output.bias": (e,)}
        shapes |= {f"blk.{i}.{name}": shape for name, shape in layer.items()}
    if change == "head":
        shapes["output.weight"] = (vocab, e)
    tensors: dict = {name: weights(seed, *shape) for seed, (name, shape) in enumerate(shapes.items(), 50)}
    tensors = {name: (w, kind) if w.ndim == 2 else w for name, w in tensors.items()}
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": LLAMA["layers"],
        "llama.context_length": LLAMA["context"],
        "llama.embedding_length": e,
        "llama.feed_forward_length": inner,
        "llama.attention.head_count": LLAMA["heads"],
        "llama.attention.head_count_kv": LLAMA["kv_heads"],
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 500000.0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    write_gguf(path, tensors, metadata)


@cache
def bump_pair(make: Callable[[Path], None]) -> dict[str, bytes]:
    """The files of a bump, by their names; written once for all."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "m.gguf", Path(folder) / "weights.bump"
        make(source)
        write_bump(source, target)
        names = ("weights.bump", "config.json", "tokenizer.json")
        return {name: target.with_name(name).read_bytes() for name in names if target.with_name(name).exists()}


def bump(which: str, make: Callable[[Path], None], folder: Path) -> bytes:
    return bump_pair(make)[which]


def minigpt_gguf(kind: str, path: Path) -> None:
    write_minigpt(path, trained(), tokenizer(), kind)


MODELS: dict[str, Callable[[Path], None]] = {}
for kind in BUMP_TYPES:
    if kind in CODECS:
        MODELS[f"of a llama, {kind.name}"] = partial(llama_gguf, kind=kind.name, change="")
for change in ("biases", "head"):
    MODELS[f"of a llama with {change}"] = partial(llama_gguf, kind="Q8_0", change=change)
for kind in ("F16", "Q8_0", "Q4_0"):
    MODELS[f"of the trained model, {kind}"] = partial(minigpt_gguf, kind)
for name, make in MODELS.items():
    for which in ("weights.bump", "config.json"):
        file(f"{which} {name}", bump, which, make)
file("tokenizer.json of the trained model", bump, "tokenizer.json", MODELS["of the trained model, Q8_0"])


# ---- Hugging Face folders ---------------------------------------------------------------------------


def converted(make: Callable[[Path], None], kind: str, folder: Path) -> bytes:
    (folder / "toy").mkdir()  # the folder's name is the model's
    make(folder / "toy")
    convert_folder(folder / "toy", folder / "m.gguf", kind)
    return (folder / "m.gguf").read_bytes()


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
FOLDERS: dict[str, tuple[Callable[[Path], None], str]] = {
    **{
        f"llama, {name}": (partial(llama_folder, d=256 if kind.weights.block > 32 else 64), name)
        for name, kind in FILE_TYPES.items()
    },
    **{
        f"llama in {dtype}, {kind}": (partial(llama_folder, dtype=dtype), kind)
        for dtype in ("F16", "BF16")
        for kind in ("Q8_0", dtype)
    },
    "llama in shards": (partial(llama_folder, shards=3), "Q8_0"),
    "llama with a tied head": (partial(llama_folder, tie_word_embeddings=True), "Q4_0"),
    "llama with biases": (partial(llama_folder, attention_bias=True), "F16"),
    "llama with digits apart": (partial(llama_folder, pre="smollm"), "Q8_0"),
    "llama with linear rope": (partial(llama_folder, rope_scaling={"type": "linear", "factor": 2.0}), "Q8_0"),
    "llama with Llama 3's rope": (  # the only file with a power in it: float64, then rounded to float32
        partial(llama_folder, rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, **LLAMA3}), "Q8_0"
    ),
    "gpt2, F32": (gpt2_folder, "F32"),
    "gpt2, Q8_0": (gpt2_folder, "Q8_0"),
    "gpt2, Q4_K_M": (partial(gpt2_folder, d=256), "Q4_K_M"),
    "gpt2 in F16 with a prefix": (partial(gpt2_folder, dtype="F16", prefix="transformer."), "Q4_1"),
    "gpt2 with vocab.json and merges.txt": (partial(gpt2_folder, pre="lists"), "BF16"),
}  # fmt: skip
for name, (make, kind) in FOLDERS.items():
    file(f"gguf of a folder: {name}", converted, make, kind)


# ---- the bridge ------------------------------------------------------------------------------------------------------


def bridged(model: Callable[[], MiniGPT], rule: object, embedding: str | None, exclude: bool, folder: Path) -> bytes:
    """A quantized, frozen MiniGPT through the exporter."""
    config = Config(QuantizationConfig(rule), exclude=("*.fc2",) if exclude else ())  # type: ignore[arg-type]
    frozen = freeze(quantize_linear_layers(copy.deepcopy(model()), config))
    assets = resources.files("miniquant").joinpath("assets")
    with resources.as_file(assets) as place:
        path = ModelExporter(export_dir=folder).export_gguf_model(frozen, place, "minigpt", embedding)
    return path.read_bytes()


RULES = {f"{spec.name}": spec for spec in GGUF_TYPES} | {n: GRID_RULES[n] for n in ("Q8_0", "Q4_0", "Q4_1")}
for name, rule in RULES.items():
    file(f"gguf through the bridge, {name}", bridged, small_model, rule, None, False)
    file(f"gguf of the trained model through the bridge, {name}", bridged, trained, rule, None, False)
Q4_1 = QuantizationSpec(Dtype.uint4, symmetric=False, qscheme=QSchemeType.per_group, group_size=32)
file("gguf through the bridge, an F32 embedding", bridged, small_model, Q4_1, "F32", False)
file("gguf through the bridge, one layer left out", bridged, small_model, Q4_1, None, True)


# ---- the rest --------------------------------------------------------------------------------------------------------


def legacy(ftype: int, more: tuple[int, ...], folder: Path) -> bytes:
    """The format before GGUF, of lab 3."""
    numbers = {"n_vocab": 4, "n_ctx": 8, "n_embd": 64, "n_head": 2, "n_layer": 1, "ftype": ftype}
    state = small_model().state_dict()
    tensors = {ggml_name(name): w.numpy() for name, w in state.items() if "layers.1" not in name and "emb" not in name}
    return ggml_bytes(numbers, [b"a", b"", "é".encode(), b"\xff"], tensors, more)


def record(folder: Path) -> bytes:
    """The student's record of passed exercises."""
    with mock.patch.dict(os.environ, MINIQUANT_PROGRESS=str(folder / "progress.json")):
        for exercise, status in (("b", "failed"), ("a", "passed"), ("b", "passed"), ("a", "failed")):
            write_record(exercise, status)
    return (folder / "progress.json").read_bytes()


def plain(folder: Path) -> bytes:
    """An atomic write, over a longer file."""
    (folder / "f").write_bytes(bytes(1000))
    with atomic_write(folder / "f") as out:
        out.write(b"new")
    return (folder / "f").read_bytes()


for kind in map(int, LegacyType):
    file(f"legacy ggml of type {kind}", legacy, kind, ())
file("legacy ggml of version 2 with a number more", legacy, 2001, (7,))
file("record of exercises", record)
file("an atomic write over a longer file", plain)


def digest(name: str, folder: Path) -> str:
    """The SHA-256 of the file of this name, written into an empty folder."""
    return hashlib.sha256(FILES[name](folder)).hexdigest()


def main() -> None:
    """Print the hash of every file as JSON, or of those whose name contains an argument."""
    found, torch_threads = {}, torch.get_num_threads()
    torch.set_num_threads(1)
    for name in FILES:
        if sys.argv[1:] and not any(part in name for part in sys.argv[1:]):
            continue
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found[name] = digest(name, Path(folder))
        took = time.perf_counter() - begun
        if took > 0.2:
            print(f"{took:5.2f} s  {name}", file=sys.stderr)
    torch.set_num_threads(torch_threads)
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
