"""Train MiniGPT with rounded weights, and compare with rounding afterwards: plain, and by GPTQ, in the same bits.

python qat_table.py [--steps N] [--windows N] [--threads 2] [--out FOLDER]

Writes results.json, and the trained ternary model as ternary.gguf. Every grid of ``GRIDS`` is one run of training; its
state is stored in runs/ every 50 steps, so a run that was stopped goes on where it was. Ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

import miniquant
from miniquant.calibrate import calibration_tokens, gptq, round_to_nearest
from miniquant.calibrate.qat import RECIPE, Ternary, Training
from miniquant.core.files import atomic_write
from miniquant.core.machine import hardware, versions
from miniquant.evaluate.estimate import Estimate
from miniquant.evaluate.quality import Quality, evaluate, evaluate_in_llamacpp
from miniquant.formats.gguf.write import write_gguf
from miniquant.models import corpus
from miniquant.models.minigpt import MiniGPT
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import gguf_name, write_minigpt
from miniquant.quantization.grids import GRID_RULES, GridRule

HERE = Path(__file__).resolve().parent
LIBRARY = Path(miniquant.__file__).parent
WEIGHTS = Path(str(resources.files("miniquant").joinpath("assets/minigpt.safetensors")))
SOURCES = (Path(__file__), LIBRARY / "calibrate" / "qat.py", LIBRARY / "models" / "train.py")
GRIDS: dict[str, tuple[GridRule, float, float]] = {  # bits of a weight with its share of the scales; learning rate
    "int3_g64": (GRID_RULES["int3_g64"], 3.25, 1e-4),
    "int2_g64": (GRID_RULES["int2_g64"], 2.25, 3e-4),
    "ternary_g256": (Ternary(), 2.0625, 1e-3),  # the coarser the grid, the farther the weights must go
}
FILES = ("TQ2_0", "TQ1_0")  # what holds the ternary weights without any change
EVERY = 50  # steps between two stored states
Z = 1.96  # standard errors to either side of a 95 % interval


def interval(estimate: Estimate) -> dict[str, float]:
    """A mean and the ends of its 95 % interval."""
    low, high = estimate.mean - Z * estimate.error, estimate.mean + Z * estimate.error
    return {name: float(f"{x:.6g}") for name, x in (("value", estimate.mean), ("low", low), ("high", high))}


def figures(quality: Quality) -> dict[str, Any]:
    """What is stored of one model in one program."""
    return {"kl": interval(quality.kl_divergence), "perplexity": interval(quality.perplexity)}


def trained(run: Training, path: Path, label: str) -> dict[str, Any]:
    """Train to the end of the recipe, from the state that is stored at ``path`` if there is one: seconds and losses."""
    losses, seconds = [], 0.0
    if path.exists():
        state = torch.load(path, weights_only=True)
        run.load_state_dict(state)
        losses, seconds = state["losses"], state["seconds"]
    with tqdm(total=run.recipe.steps, initial=run.step, desc=label, unit="step") as bar:
        while run.step < run.recipe.steps:
            start = time.process_time()
            losses += run.advance(EVERY)
            seconds += time.process_time() - start
            torch.save(run.state_dict() | {"losses": losses, "seconds": seconds}, path)
            bar.update(run.step - bar.n)
            bar.set_postfix(kl=f"{np.mean(losses[-EVERY:]):.3f}")
    blocks = [losses[i : i + 10] for i in range(0, len(losses), 10)]
    return {"cpu_seconds": round(seconds), "loss_of_10_steps": [float(f"{np.mean(b):.4g}") for b in blocks]}


def methods(rule: GridRule, run: Training, tokens: np.ndarray) -> dict[str, Callable[[MiniGPT], MiniGPT]]:
    """The ways to come to levels of a grid, by their names."""
    return {
        "plain": lambda model: round_to_nearest(model, rule),
        "GPTQ": lambda model: gptq(model, tokens, rule, progress=False),
        "GPTQ, clipped": lambda model: gptq(model, tokens, rule, clip=True, progress=False),
        "QAT": lambda model: run.frozen(),
    }


def write_ternary(path: Path, model: MiniGPT) -> None:
    """What training changed and nothing else: matrices as TQ1_0, norms and biases as F32. It is no whole model."""
    tensors = {
        gguf_name(name): (w.detach(), "TQ1_0" if w.ndim == 2 else "F32")
        for name, w in model.state_dict().items()
        if "emb" not in name
    }
    write_gguf(path, tensors, {"general.architecture": "gpt2", "general.name": "MiniGPT, trained ternary, in part"})


def results(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that results.json holds."""
    model, tokens, windows = load_pretrained(), calibration_tokens(), corpus.held_out_windows()[: options.windows]
    documents = corpus.training_documents()
    ids = corpus.encode_documents(corpus.load_tokenizer(), documents)
    recipe = replace(RECIPE, steps=options.steps or RECIPE.steps)
    head = {
        "sources_sha256": sha256(*SOURCES),
        "weights_sha256": sha256(WEIGHTS),
        "training_text": corpus.text_hash(documents),
        "held_out": {
            "windows": len(windows),
            "text_hash": corpus.text_hash(corpus.held_out_documents("topics")),
        },
        "calibration": {"windows": len(tokens), "tokens": int(tokens.size)},
        "recipe": asdict(recipe) | {"tokens": recipe.steps * recipe.batch * model.config.context},
        "versions": versions("numpy", "torch", "gguf", "xllamacpp", "miniquant"),
        "hardware": hardware() | {"threads": options.threads},
    }
    runs = options.out / "runs"
    runs.mkdir(exist_ok=True)
    key = hashlib.sha256(
        json.dumps([head["training_text"], head["recipe"], head["weights_sha256"], str(GRIDS)]).encode()
    )
    grids: dict[str, Any] = {}
    for name, (rule, bits, rate) in GRIDS.items():
        run = Training(model, ids, rule, replace(recipe, learning_rate=rate))
        grids[name] = {"bits": bits, "learning_rate": rate} | trained(
            run, runs / f"{name}-{key.hexdigest()[:12]}.pt", name
        )
        grids[name]["rows"] = {
            method: {"pytorch": figures(evaluate(make(model), windows, model))}
            for method, make in tqdm(methods(rule, run, tokens).items(), desc=f"{name}, measured", unit="row")
        }
        if name == "ternary_g256":
            frozen = run.frozen()
            write_ternary(options.out / "ternary.gguf", frozen)
            grids[name]["rows"]["QAT"]["files"] = {kind: in_llamacpp(frozen, kind, windows, model) for kind in FILES}
    return head | {"float": figures(evaluate(model, windows, model)), "grids": grids}


def in_llamacpp(frozen: MiniGPT, kind: str, windows: np.ndarray, reference: MiniGPT) -> dict[str, Any]:
    """The bytes of a whole file of this type, and llama.cpp's figures for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ternary.gguf"
        plain = MiniGPT(frozen.config)
        plain.load_state_dict(frozen.state_dict())
        write_minigpt(path, plain, corpus.load_tokenizer(), kind, embedding="Q8_0")
        return {"bytes": path.stat().st_size} | figures(evaluate_in_llamacpp(path, windows, reference))


def sha256(*paths: Path) -> str:
    """One hash of the contents of files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, help="of each run (default: those of the recipe)")
    parser.add_argument("--windows", type=int, help="of held-out text (default: all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE, help="an existing folder (default: beside this script)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    found = results(options)
    with atomic_write(options.out / "results.json") as file:
        file.write((json.dumps(found, indent=1) + "\n").encode())
    print(f"wrote results.json: {sum(len(grid['rows']) for grid in found['grids'].values())} rows")


if __name__ == "__main__":
    main()
