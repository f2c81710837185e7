"""Measure what a type for every matrix is worth: the best mix within the bytes of each of llama.cpp's own files.

python mixed.py [--windows N] [--calibration 16] [--threads 1] [--out FOLDER]

Writes results.json, a model after the other, and after every file that was measured: a run that was stopped goes on
where it was. First each matrix is quantized alone in every type (``sensitivities``, on calibration text). Then, for a
number of bytes, the types are chosen whose KL divergences have the smallest sum (``best_types``), the file is written,
and PyTorch and llama.cpp read held-out text with it. Twenty minutes on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tqdm import tqdm

import miniquant
from miniquant.calibrate import calibration_tokens
from miniquant.core.files import atomic_write
from miniquant.core.machine import hardware, versions
from miniquant.evaluate.estimate import Estimate
from miniquant.evaluate.mixed import Costs, best_types, costs_from_json, costs_to_json, sensitivities, with_types
from miniquant.evaluate.quality import Quality, evaluate, evaluate_in_llamacpp
from miniquant.formats.gguf import read_gguf
from miniquant.models import corpus, minillama
from miniquant.models.file_types import PRESETS, FileType
from miniquant.models.huggingface.convert import convert_folder
from miniquant.models.pretrained import load_pretrained
from miniquant.models.quantize_gguf import quantize_gguf
from miniquant.models.to_gguf import write_minigpt

HERE = Path(__file__).resolve().parent
LIBRARY = Path(miniquant.__file__).parent
ASSETS = Path(str(resources.files("miniquant").joinpath("assets")))
SOURCES = (Path(__file__), LIBRARY / "evaluate" / "mixed.py", LIBRARY / "models" / "file_types.py")
TYPES = ("TQ2_0", "Q2_K", "Q3_K", "MXFP4", "IQ4_XS", "IQ4_NL", "Q4_K", "Q5_K", "Q6_K", "Q8_0")
THEIRS = ("Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_XS", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K")
BETWEEN = (2.25, 2.75, 3.0, 3.75, 5.0, 6.0, 7.0)  # bits a weight at which no preset is
Z = 1.96  # standard errors to either side of a 95 % interval


@dataclass(frozen=True)
class Subject:
    """A model of the figure: how it is loaded, its tokenizer, where its weights are, how it is written in F32."""

    load: Callable[[], Any]
    tokenizer: Callable[[], Tokenizer]
    weights: Path
    write_float: Callable[[Path, Any], Any]


SUBJECTS = {
    "MiniGPT": Subject(
        load_pretrained,
        corpus.load_tokenizer,
        ASSETS / "minigpt.safetensors",
        lambda path, model: write_minigpt(path, model, corpus.load_tokenizer(), "F32"),
    ),
    "MiniLlama": Subject(
        minillama.load_minillama,
        minillama.load_tokenizer,
        ASSETS / "minillama" / "model.safetensors",
        lambda path, model: convert_folder(minillama.folder(), path, "F32"),
    ),
}


# ---- figures and their intervals -------------------------------------------------------------------------------------


def interval(estimate: Estimate) -> dict[str, float]:
    """A mean and the ends of its 95 % interval."""
    low, high = estimate.mean - Z * estimate.error, estimate.mean + Z * estimate.error
    return {name: float(f"{x:.6g}") for name, x in (("value", estimate.mean), ("low", low), ("high", high))}


def ratio(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """The mean of a over the mean of b, measured on the same windows, in pairs.

    >>> ratio(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    {'value': 0.5, 'low': 0.5, 'high': 0.5}
    """
    part = float(a.mean() / b.mean())
    return interval(Estimate(part, Estimate.of((a - part * b) / b.mean()).error))


def figures(quality: Quality) -> dict[str, Any]:
    """What is stored of one file in one program."""
    return {"kl": interval(quality.kl_divergence), "perplexity": interval(quality.perplexity)}


# ---- one model -------------------------------------------------------------------------------------------------------


class Once:
    """The float model, which reads every window once, though each file asks for its logits twice."""

    def __init__(self, model: Any) -> None:
        self.model, self.logits = model, {}

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens: (batch, time)   ->   logits: (batch, time, vocab_size)."""
        found = []
        for window in tokens:
            key = window.numpy().tobytes()
            if key not in self.logits:
                logits = self.model(window[None])
                self.logits[key] = getattr(logits, "logits", logits)[0]
            found.append(self.logits[key])
        return torch.stack(found)


def sizes(costs: Costs, source: Path) -> dict[str, int]:
    """For how many bytes of all matrices a mix is looked for: those of llama.cpp's files, and some between."""
    with read_gguf(source) as file:
        shapes = {name: tensor.shape for name, tensor in file.tensors.items()}
        of = {name: PRESETS[name].types_of(shapes, file.metadata) for name in THEIRS}
    theirs = {name: sum(types[n].bytes_of(shapes[n]) for n in costs) for name, types in of.items()}
    weights = sum(int(np.prod(shapes[n])) for n in costs)
    between = {f"{bits:g} bits": int(bits * weights / 8) for bits in BETWEEN}
    least = sum(min(cost.n_bytes for cost in of.values()) for of in costs.values())
    return {name: n for name, n in (theirs | between).items() if n >= least}


def point(
    subject: Subject, model: Any, reference: Once, costs: Costs, source: Path, chosen: FileType, windows: np.ndarray
) -> tuple[dict[str, Any], dict[str, Quality]]:
    """One file: its types and bytes, the sum that foretells its KL, and its quality in each program."""
    target, tokenizer = source.with_name("made.gguf"), subject.tokenizer()
    quantize_gguf(source, target, chosen)
    with read_gguf(target) as file:
        types = {name: file.tensors[name].dtype for name in costs}
    quality = {
        "pytorch": evaluate(with_types(model, types), windows, reference, tokenizer=tokenizer),
        "llamacpp": evaluate_in_llamacpp(target, windows, reference, tokenizer=tokenizer),
    }
    alone = [costs[name][dtype] for name, dtype in types.items()]
    about = {
        "bytes": sum(cost.n_bytes for cost in alone),
        "file_bytes": target.stat().st_size,
        "foretold": float(f"{sum(cost.kl for cost in alone):.6g}"),
        "types": {name: dtype.name for name, dtype in types.items()},
    }
    return about | {program: figures(q) for program, q in quality.items()}, quality


def measure(subject: Subject, windows: np.ndarray, tokens: np.ndarray, found: dict[str, Any]) -> Iterator[None]:
    """Fill in ``found``, the results of one model; stops after each piece, so that it can be stored."""
    model, tokenizer = subject.load(), subject.tokenizer()
    if "costs" not in found:
        found["costs"] = costs_to_json(sensitivities(model, TYPES, tokens, tokenizer=tokenizer, progress=True))
        yield
    costs, reference = costs_from_json(found["costs"]), Once(model)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "f32.gguf"
        subject.write_float(source, model)
        about = (subject, model, reference, costs, source)
        for name, n_bytes in tqdm(sizes(costs, source).items(), desc="sizes", unit="size"):
            if name in found.setdefault("sizes", {}):
                continue
            mix = PRESETS["Q4_K_M"].choosing(best_types(costs, n_bytes))
            row, quality = point(*about, mix, windows)
            rows = {"allowed": n_bytes, "mixed": row}
            if name in THEIRS:
                rows["llama.cpp"], other = point(*about, PRESETS[name], windows)
                row["of llama.cpp's"] = {program: ratio(q.kl, other[program].kl) for program, q in quality.items()}
            found["sizes"][name] = rows
            yield


# ---- the file --------------------------------------------------------------------------------------------------------


def sha256(*paths: Path) -> str:
    """One hash of the contents of files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def about(subject: Subject, windows: np.ndarray, tokens: np.ndarray) -> dict[str, Any]:
    """What the figures of one model depend on: a stored run with another one is begun again."""
    return {
        "weights_sha256": sha256(subject.weights),
        "windows": len(windows),
        "tokens": int(windows[:, 1:].size),
        "calibration": {
            "windows": len(tokens),
            "sha256": hashlib.sha256(tokens.astype("<i8").tobytes()).hexdigest()[:12],
        },
    }


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windows", type=int, help="of held-out text (default: all)")
    parser.add_argument("--calibration", type=int, default=16, help="windows of training text for the sensitivities")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE, help="an existing folder (default: beside this script)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    path = options.out / "results.json"
    head = {
        "sources_sha256": sha256(*SOURCES),
        "text_hash": corpus.text_hash(corpus.held_out_documents("topics")),
        "types": list(TYPES),
        "versions": versions("numpy", "torch", "gguf", "xllamacpp", "miniquant"),
        "hardware": hardware(),
    }
    stored = json.loads(path.read_text("utf-8")) if path.exists() else {}
    same = all(stored.get(key) == head[key] for key in ("sources_sha256", "text_hash"))
    models: dict[str, Any] = stored["models"] if same else {}
    for name, subject in SUBJECTS.items():
        windows = corpus.held_out_windows(tokenizer=subject.tokenizer())[: options.windows]
        tokens = calibration_tokens(options.calibration, tokenizer=subject.tokenizer())
        depends = about(subject, windows, tokens)
        if any(models.get(name, {}).get(key) != value for key, value in depends.items()):
            models[name] = depends
        for _ in measure(subject, windows, tokens, models[name]):
            with atomic_write(path) as file:
                file.write((json.dumps(head | {"models": models}, indent=1) + "\n").encode())
    print(f"results.json: {sum(len(found['sizes']) for found in models.values())} sizes")


if __name__ == "__main__":
    main()
