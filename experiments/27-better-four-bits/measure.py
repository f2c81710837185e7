"""Measure what better rounding is worth: the same bytes, several ways to choose them, in PyTorch and in llama.cpp.

python measure.py [--windows N] [--threads 2] [--out FOLDER]

Writes results.json. Every row is a way to make a model smaller (``METHODS``). Where the row's type is one of GGUF, a
file is written, and both PyTorch and llama.cpp compute with what stands in it; the other types are computed in PyTorch
alone. All of it is done twice: for MiniGPT as it was trained, and with planted outliers. Half an hour on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from miniquant.calibrate import (
    awq,
    calibration_tokens,
    gptq,
    plant_outliers,
    round_to_nearest,
    smoothquant,
    w8a8,
)
from miniquant.core.files import atomic_write
from miniquant.core.machine import hardware, versions
from miniquant.evaluate.quality import Estimate, Quality, evaluate, evaluate_in_llamacpp
from miniquant.formats.gguf import read_gguf
from miniquant.formats.gguf_lite.write import write_gguf_lite
from miniquant.models import corpus
from miniquant.models.minigpt import MiniGPT
from miniquant.models.pretrained import load_gguf_lite, load_pretrained
from miniquant.models.quantizer import quantized_layers
from miniquant.models.to_gguf import minigpt_from_gguf, write_minigpt
from miniquant.models.to_gguf_lite import to_gguf_lite
from miniquant.quantization.grids import GRID_RULES
from miniquant.quark import ModelExporter

HERE = Path(__file__).resolve().parent
ASSETS = resources.files("miniquant").joinpath("assets")
RESAMPLES, CONFIDENCE = 10_000, 0.95
EMBEDDINGS = {"tok_emb.weight": "q8_per_channel", "pos_emb.weight": "f16"}  # beside integers in groups of 64
MODELS: dict[str, Callable[[MiniGPT], MiniGPT]] = {"as trained": lambda m: m, "planted outliers": plant_outliers}
Make = Callable[[MiniGPT, np.ndarray], MiniGPT]


@dataclass(frozen=True)
class Method:
    """One row: ``make`` takes the float model and calibration text; ``kind`` is what its linear layers are stored as.

    ``plain`` names the row that the same bytes hold without any algorithm: what this one is compared with.
    """

    kind: str
    make: Make
    plain: str = ""


def _as_it_is(model: MiniGPT, _: np.ndarray) -> MiniGPT:
    return model


def _rounding(target: str) -> dict[str, Method]:
    """All algorithms on one target. What is not frozen yet is rounded to nearest; in a GGUF file by ggml's own rule."""
    to_file = _as_it_is if target not in PYTORCH_ONLY else lambda m, _: round_to_nearest(m, target)

    def then(algorithm: Make) -> Make:
        return lambda m, t: to_file(algorithm(m, t), t)

    made = {
        "AWQ, scales only": then(lambda m, t: awq(m, t, target, clip=False)),
        "AWQ": then(lambda m, t: awq(m, t, target)),
        "GPTQ": lambda m, t: gptq(m, t, target),
        "AWQ + GPTQ": lambda m, t: gptq(awq(m, t, target, clip=False), t, target, clip=True),
    }
    return {target: Method(target, to_file)} | {
        f"{target} {n}": Method(target, make, target) for n, make in made.items()
    }


PYTORCH_ONLY = ("int4_g64", "int3_g64")
METHODS: dict[str, Method] = {
    "float": Method("F32", _as_it_is),
    "Q8_0": Method("Q8_0", _as_it_is),
    "Q6_K": Method("Q6_K", _as_it_is),
    "Q4_K_M": Method("Q4_K_M", _as_it_is),
    "Q4_K": Method("Q4_K", _as_it_is),
    "Q4_0": Method("Q4_0", _as_it_is),
    **_rounding("Q4_1"),
    **_rounding("int4_g64"),
    **_rounding("int3_g64"),
    "W8A8": Method("w8a8", lambda m, _: w8a8(m)),
    "W8A8 SmoothQuant": Method("w8a8", lambda m, t: w8a8(smoothquant(m, t)), "W8A8"),
}


# ---- a model, as it comes out of a file ------------------------------------------------------------------------------


def stored(model: MiniGPT, kind: str, folder: Path) -> tuple[MiniGPT, int | None, Path | None]:
    """The model that a file of this kind gives back, the file's bytes, and the file if llama.cpp can run it."""
    if kind == "w8a8":
        return model, None, None
    if kind in PYTORCH_ONLY:
        return _in_groups_of_64(model, kind, folder)
    if quantized_layers(model):
        path = ModelExporter(export_dir=folder).export_gguf_model(model, ASSETS, "minigpt")
    else:
        path = folder / "minigpt.gguf"
        write_minigpt(path, model, corpus.load_tokenizer(), kind)
    with read_gguf(path) as file:
        return minigpt_from_gguf(file), path.stat().st_size, path


def _in_groups_of_64(model: MiniGPT, kind: str, folder: Path) -> tuple[MiniGPT, int, None]:
    """Through a GGUF-lite file; it has no three bits, so those travel in four and are counted as three."""
    path, layers = folder / "minigpt.gguf-lite", quantized_layers(model)
    if kind == "int4_g64":
        schemes, chosen = to_gguf_lite(model)
        write_gguf_lite(path, model, schemes | EMBEDDINGS, chosen=chosen)
        return load_gguf_lite(path), path.stat().st_size, None
    schemes = {f"{name}.weight": "q4_per_group_64" for name in layers}
    write_gguf_lite(path, model, schemes | EMBEDDINGS)
    back = load_gguf_lite(path)  # for its embeddings
    back.load_state_dict({n: back.state_dict()[n] if n in EMBEDDINGS else w for n, w in model.state_dict().items()})
    weights = sum(layer.weight.numel() for layer in layers.values())
    return back, path.stat().st_size - weights // 8, None


# ---- figures and their intervals -------------------------------------------------------------------------------------


class Bootstrap:
    """Intervals from windows drawn again and again, the same windows for every row: so that rows are compared in pairs.

    >>> Bootstrap(2).interval(lambda a, b: a - b, np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    {'value': 0.5, 'low': 0.5, 'high': 0.5}
    """

    def __init__(self, n: int) -> None:
        draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)
        self.weights = draws / n  # (resamples, windows)

    def interval(self, statistic: Callable[..., Any], *samples: np.ndarray) -> dict[str, float]:
        """A statistic of the means of samples (windows,), and where 95 % of its values on drawn windows lie."""
        value = statistic(*(s.mean() for s in samples))
        tail = 50 * (1 - CONFIDENCE)
        low, high = np.percentile(statistic(*(self.weights @ s for s in samples)), [tail, 100 - tail])
        return {"value": _short(value), "low": _short(low), "high": _short(high)}


def figures(quality: Quality, base: Quality, plain: Quality | None, bootstrap: Bootstrap) -> dict[str, Any]:
    """One row in one program: against the float model, and against the same bytes without an algorithm."""
    found = {
        "perplexity": _estimate(quality.perplexity),
        "kl": _estimate(quality.kl_divergence) | bootstrap.interval(lambda a: a, quality.kl),
        "nll_change": _estimate(quality.nll_change(base)) | bootstrap.interval(np.subtract, quality.nll, base.nll),
    }
    if plain:
        found["against_plain"] = {
            "kl_ratio": bootstrap.interval(np.divide, quality.kl, plain.kl),
            "nll_change": bootstrap.interval(np.subtract, quality.nll, plain.nll),
            "gap_closed": bootstrap.interval(gap_closed, quality.nll, plain.nll, base.nll),
        }
    return found


def gap_closed(nll: np.ndarray, plain: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Which part of the perplexity that plain rounding adds to the float model's is gone again.

    >>> float(gap_closed(np.log(5.5), np.log(6), np.log(5)).round(6))
    0.5
    """
    return (np.exp(plain) - np.exp(nll)) / (np.exp(plain) - np.exp(base))


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"mean": _short(estimate.mean), "error": _short(estimate.error)}


def _short(x: float) -> float | None:
    return float(f"{x:.6g}") if math.isfinite(x) else None


# ---- the table -------------------------------------------------------------------------------------------------------


def source_hash() -> str:
    """The SHA-256 of the trained weights' own file."""
    return hashlib.sha256(ASSETS.joinpath("minigpt.safetensors").read_bytes()).hexdigest()


def row(
    method: Method, model: MiniGPT, tokens: np.ndarray, windows: np.ndarray, reference: MiniGPT | Remembered
) -> tuple[dict[str, Any], dict[str, Quality]]:
    """One row: bytes and seconds, and its quality in each program that can run it."""
    start = time.perf_counter()
    made = method.make(model, tokens)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        back, size, path = stored(made, method.kind, Path(folder))
        quality = {"pytorch": evaluate(back, windows, reference)}
        if path:
            quality["llamacpp"] = evaluate_in_llamacpp(path, windows, reference)
    about = {"kind": method.kind, "plain": method.plain, "bytes": size, "seconds": round(seconds, 1)}
    return about, quality


class Remembered:
    """The float model, which reads every window once, though each row asks for its logits twice."""

    def __init__(self, model: MiniGPT) -> None:
        self.model, self.logits = model, {}

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens: (batch, time)   ->   logits: (batch, time, vocab_size)."""
        found = []
        for window in tokens:
            key = window.numpy().tobytes()
            if key not in self.logits:
                self.logits[key] = self.model(window[None])[0]
            found.append(self.logits[key])
        return torch.stack(found)


def measure(windows: np.ndarray, tokens: np.ndarray, methods: dict[str, Method] = METHODS) -> dict[str, Any]:
    """Every method on every model: model -> row -> its figures."""
    trained, bootstrap, table = load_pretrained(), Bootstrap(len(windows)), {}
    reference = Remembered(trained)
    with tqdm(total=len(MODELS) * len(methods), unit="row") as bar:
        for label, prepare in MODELS.items():
            model, rows, found = prepare(trained), {}, {}
            for name, method in methods.items():
                bar.set_postfix_str(f"{label}: {name}")
                about, found[name] = row(method, model, tokens, windows, reference)
                plain = found.get(method.plain, {})
                rows[name] = about | {
                    program: figures(quality, found["float"][program], plain.get(program), bootstrap)
                    for program, quality in found[name].items()
                }
                bar.update()
            table[label] = rows
    return table


def results(windows: np.ndarray, tokens: np.ndarray) -> dict[str, Any]:
    """Everything that results.json holds."""
    return {
        "weights_sha256": source_hash(),
        "held_out": {
            "windows": len(windows),
            "tokens": int(windows[:, 1:].size),
            "text_hash": corpus.text_hash(corpus.held_out_documents("topics")),
        },
        "calibration": {"windows": len(tokens), "tokens": int(tokens.size), "sha256": _hash(tokens)},
        "bits": {name: _bits(name) for name in ("Q8_0", "Q4_0", "Q4_1", "int4_g64", "int3_g64")},
        "bootstrap": {"resamples": RESAMPLES, "confidence": CONFIDENCE},
        "models": measure(windows, tokens),
        "versions": versions("numpy", "torch", "gguf", "xllamacpp", "miniquant"),
        "hardware": hardware(),
    }


def _hash(tokens: np.ndarray) -> str:
    return hashlib.sha256(tokens.astype("<i8").tobytes()).hexdigest()[:12]


def _bits(target: str) -> float:
    """Bits of one weight, its share of the group's float16 numbers included."""
    grid = GRID_RULES[target]
    fields = 2 if target == "Q4_1" else 1
    whole = math.ceil(math.log2(grid.high - getattr(grid, "low", 0) + 1))
    return whole + 16 * fields / grid.group_size


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windows", type=int, help="of held-out text (default: all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE, help="an existing folder (default: beside this script)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    found = results(corpus.held_out_windows()[: options.windows], calibration_tokens())
    with atomic_write(options.out / "results.json") as file:
        file.write((json.dumps(found, indent=1) + "\n").encode())
    print(f"wrote results.json: {sum(map(len, found['models'].values()))} rows")


if __name__ == "__main__":
    main()
