"""Measure float, Q4_1, AWQ + Q4_1 and GPTQ + Q4_1 on MiniGPT and on MiniLlama, in PyTorch and in llama.cpp.

python quark_table.py [--windows N] [--threads 1] [--out FOLDER]

Writes results.json. Every row is a GGUF file: its linear layers are Q4_1, or F32 in the first row, and all else is F32,
so both programs compute with the same weights. Each quantized file is compared with the frozen model, layer by layer,
as the official ``gguf`` package decodes it. Ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer
from tqdm import tqdm

from miniquant.calibrate import awq, calibration_tokens, gptq, round_to_nearest, smoothquant
from miniquant.core.files import atomic_write
from miniquant.core.machine import hardware, versions
from miniquant.evaluate.estimate import Estimate
from miniquant.evaluate.paired import CONFIDENCE, RESAMPLES, Bootstrap, Interval, gap_closed
from miniquant.evaluate.quality import Quality, evaluate, evaluate_in_llamacpp
from miniquant.models import corpus, minillama
from miniquant.models.huggingface.convert import convert_folder
from miniquant.models.language import logits_of
from miniquant.models.pretrained import load_pretrained
from miniquant.models.quantizer import frozen_layers
from miniquant.models.to_gguf import gguf_name, write_minigpt
from miniquant.quark import ModelExporter

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "27-better-four-bits"))
from subjects import Remembered  # noqa: E402

ASSETS = Path(str(resources.files("miniquant").joinpath("assets")))
FLOAT, PLAIN = "float", "Q4_1"
METHODS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    FLOAT: lambda model, tokens: model,
    PLAIN: lambda model, tokens: round_to_nearest(model, "Q4_1"),
    "AWQ + Q4_1": lambda model, tokens: round_to_nearest(awq(model, tokens, "Q4_1"), "Q4_1"),
    "GPTQ + Q4_1": lambda model, tokens: gptq(model, tokens, "Q4_1"),
}
FOLDS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "AWQ": lambda model, tokens: awq(model, tokens, "Q4_1", clip=False),
    "SmoothQuant": smoothquant,
}


@dataclass(frozen=True)
class Subject:
    """A model of the table: how it is loaded, what it reads with, where it came from, and how it is written in F32."""

    load: Callable[[], Any]
    tokenizer: Callable[[], Tokenizer]
    folder: Path
    model_type: str
    weights: Path
    write_float: Callable[[Path, Any], Any]
    name: Callable[[str], str]  # of a layer, in the file

    def decoded(self, name: str, w: np.ndarray, config: Any) -> np.ndarray:
        """A layer's weights with their rows in the order of the file: in a Llama's q and k, rope pairs neighbours."""
        heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.rpartition(".")[2])
        if heads is None:
            return w
        return w.reshape(getattr(config, heads), 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def _llama_name(name: str) -> str:
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, minillama.SHAPE["num_hidden_layers"])
    return f"{table.get_name(name)}.weight"


SUBJECTS = {
    "MiniGPT": Subject(
        load_pretrained,
        corpus.load_tokenizer,
        ASSETS,
        "minigpt",
        ASSETS / "minigpt.safetensors",
        lambda path, model: write_minigpt(path, model, corpus.load_tokenizer(), "F32"),
        lambda name: gguf_name(f"{name}.weight"),
    ),
    "MiniLlama": Subject(
        minillama.load_minillama,
        minillama.load_tokenizer,
        minillama.folder(),
        "llama",
        minillama.folder() / "model.safetensors",
        lambda path, model: convert_folder(minillama.folder(), path, "F32"),
        _llama_name,
    ),
}


def equal_layers(subject: Subject, model: Any, path: Path) -> int:
    """How many layers of the file the official package decodes to the frozen model's weights, bit for bit."""
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    equal = 0
    for name in frozen_layers(model):
        tensor = stored[subject.name(name)]
        expected = subject.decoded(name, model.get_submodule(name).weight.numpy(), model.config)
        found = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        equal += tensor.tensor_type.name == "Q4_1" and np.array_equal(found.view(np.uint32), expected.view(np.uint32))
    return equal


@torch.no_grad()
def folds(model: Any, tokens: np.ndarray) -> dict[str, float]:
    """How far the logits move if the scales are folded and nothing is rounded; computed in float64, in logits."""
    ids = torch.from_numpy(tokens[:2])
    before = logits_of(copy.deepcopy(model).double(), ids)
    return {
        name: float(f"{(logits_of(fold(model, tokens).double(), ids) - before).abs().max():.3g}")
        for name, fold in FOLDS.items()
    }


def row(
    subject: Subject, name: str, model: Any, tokens: np.ndarray, windows: np.ndarray, reference: Any
) -> tuple[dict[str, Any], dict[str, Quality]]:
    """One row: bytes, seconds, layers that are equal in the file, and the quality in both programs."""
    start = time.perf_counter()
    made = METHODS[name](model, tokens)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "float.gguf"
        if name == FLOAT:
            subject.write_float(path, made)
        else:
            path = ModelExporter(export_dir=folder).export_gguf_model(made, subject.folder, subject.model_type, "F32")
        about = {"bytes": path.stat().st_size, "seconds": round(seconds, 1)}
        if name != FLOAT:
            about |= {"layers": len(frozen_layers(made)), "equal": equal_layers(subject, made, path)}
        quality = {
            "pytorch": evaluate(made, windows, reference, tokenizer=subject.tokenizer()),
            "llamacpp": evaluate_in_llamacpp(path, windows, reference, tokenizer=subject.tokenizer()),
        }
    return about, quality


def figures(quality: Quality, base: Quality, plain: Quality | None, bootstrap: Bootstrap) -> dict[str, Any]:
    """One row in one program: against the float model, and against the same bytes without an algorithm."""
    assert quality.kl is not None
    found = {
        "perplexity": _estimate(quality.perplexity) | _ends(bootstrap.interval(np.exp, quality.nll)),
        "kl": _estimate(quality.kl_divergence) | _ends(bootstrap.mean(quality.kl)),
        "nll_change": _estimate(quality.nll_change(base)) | _ends(bootstrap.difference(quality.nll, base.nll)),
    }
    if plain:
        found["against_plain"] = {
            "kl_ratio": _ends(bootstrap.ratio(quality.kl, plain.kl)),
            "nll_change": _ends(bootstrap.difference(quality.nll, plain.nll)),
            "gap_closed": _ends(bootstrap.interval(gap_closed, quality.nll, plain.nll, base.nll)),
        }
    return found


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"mean": _short(estimate.mean), "error": _short(estimate.error)}


def _ends(interval: Interval) -> dict[str, float | None]:
    return {name: _short(end) for name, end in interval._asdict().items()}


def _short(x: float) -> float | None:
    return float(f"{x:.6g}") if math.isfinite(x) else None


def measure(subject: Subject, windows: np.ndarray, tokens: np.ndarray, bar: tqdm[Any]) -> dict[str, Any]:
    """Every row of one model."""
    model, bootstrap, rows, found = subject.load(), Bootstrap(len(windows)), {}, {}
    reference = Remembered(lambda ids: logits_of(model, ids))
    for name in METHODS:
        bar.set_postfix_str(name)
        about, found[name] = row(subject, name, model, tokens, windows, reference)
        plain = found[PLAIN] if name not in (FLOAT, PLAIN) else {}
        for program, quality in found[name].items():
            about[program] = figures(quality, found[FLOAT][program], plain.get(program), bootstrap)
            about[program]["bits_per_byte"] = {
                "mean": round(quality.bits_per_byte.mean, 4),
                "error": round(quality.bits_per_byte.error, 4),
            }
        rows[name] = about
        bar.update()
    return {
        "weights_sha256": _hash(subject.weights.read_bytes(), 64),
        "tokens": int(windows[:, 1:].size),
        "windows": len(windows),
        "bytes_per_token": round(float(found[FLOAT]["pytorch"].bytes_per_token.mean()), 3),
        "calibration": {"windows": len(tokens), "sha256": _hash(tokens.astype("<i8").tobytes(), 12)},
        "folds": folds(model, tokens),
        "rows": rows,
    }


def _hash(data: bytes, digits: int) -> str:
    return hashlib.sha256(data).hexdigest()[:digits]


def results(n_windows: int | None = None, calibration: int = 128) -> dict[str, Any]:
    """Everything that results.json holds."""
    models = {}
    with tqdm(total=len(SUBJECTS) * len(METHODS), unit="row") as bar:
        for name, subject in SUBJECTS.items():
            bar.set_description(name)
            windows = corpus.held_out_windows(tokenizer=subject.tokenizer(), limit=n_windows)
            models[name] = measure(subject, windows, calibration_tokens(calibration, 256, subject.tokenizer()), bar)
    return {
        "text_hash": corpus.text_hash(corpus.held_out_documents("topics")),
        "bootstrap": {"resamples": RESAMPLES, "confidence": CONFIDENCE},
        "models": models,
        "versions": versions("numpy", "torch", "transformers", "gguf", "xllamacpp", "miniquant"),
        "hardware": hardware(),
    }


def card_table(found: dict[str, Any]) -> str:
    """The quality of the float models in Markdown, for MiniLlama's card."""
    lines = ["| model | perplexity of a token | bytes of a token | bits of a byte |", "| --- | --- | --- | --- |"]
    for name, model in found["models"].items():
        quality = model["rows"][FLOAT]["pytorch"]
        perplexity, bits = quality["perplexity"], quality["bits_per_byte"]
        lines.append(
            f"| {name} | {perplexity['mean']:.1f} ± {perplexity['error']:.1f} | {model['bytes_per_token']:.2f} | "
            f"{bits['mean']:.2f} ± {bits['error']:.2f} |"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windows", type=int, help="of held-out text (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE, help="an existing folder (default: beside this script)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    found = results(options.windows)
    with atomic_write(options.out / "results.json") as file:
        file.write((json.dumps(found, indent=1) + "\n").encode())
    print(card_table(found))
    print(f"wrote results.json: {sum(len(model['rows']) for model in found['models'].values())} rows")


if __name__ == "__main__":
    main()
