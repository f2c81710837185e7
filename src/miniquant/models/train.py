"""How the committed models were made: ``python -m miniquant.models.train`` writes MiniGPT, ``… train llama`` MiniLlama.

The recipe is GPT-2's with today's schedule: AdamW, one cosine after a warm-up, bf16 autocast, no dropout. The same
seed on the same number of threads gives the same weights on one machine; another machine gives a model as good.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from tqdm import tqdm

from . import corpus, minillama
from .language import context_of, logits_of
from .minigpt import MiniGPT, MiniGPTConfig


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result, besides the text."""

    seed: int = 0
    steps: int = 4000
    batch: int = 8  # windows of `context` tokens
    warm_up: int = 100
    learning_rate: float = 1.5e-3
    final_rate: float = 0.02  # of learning_rate
    weight_decay: float = 0.1  # on matrices and embeddings
    clip: float = 1.0
    precision: str = (
        "bfloat16"  # of the products on the way forward; "float32" is faster where a processor has no bfloat16
    )


RECIPES = {"gpt": Recipe(), "llama": Recipe(steps=1200, batch=4, learning_rate=2e-3, precision="float32")}


def train_tokenizer(documents: list[str], vocab_size: int = 1024) -> Tokenizer:
    """A byte-level BPE tokenizer; every byte is a token, so it encodes any text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[corpus.END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    return tokenizer


def learning_rate(step: int, recipe: Recipe) -> float:
    """Linear warm-up, then one cosine down to ``final_rate``.

    >>> learning_rate(0, Recipe(warm_up=10)) == Recipe.learning_rate / 10
    True
    """
    if step < recipe.warm_up:
        return recipe.learning_rate * (step + 1) / recipe.warm_up
    done = (step - recipe.warm_up) / max(1, recipe.steps - recipe.warm_up)
    return recipe.learning_rate * (recipe.final_rate + (1 - recipe.final_rate) * (1 + math.cos(math.pi * done)) / 2)


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; norms and biases do not decay."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.95))


def train(model: nn.Module, ids: np.ndarray, recipe: Recipe) -> None:
    """Train in place on ``ids`` ((n,) int64) with random windows; a progress bar shows the loss in nats."""
    context = context_of(model)
    data = torch.from_numpy(ids)
    generator = torch.Generator().manual_seed(recipe.seed)
    optimizer = make_optimizer(model, recipe)
    model.train()
    smooth = None
    bar = tqdm(range(recipe.steps), desc="training", unit="step", mininterval=2)
    for step in bar:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, recipe)
        starts = torch.randint(len(data) - context - 1, (recipe.batch, 1), generator=generator)
        windows = data[starts + torch.arange(context + 1)]  # (batch, context + 1)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            logits = logits_of(model, windows[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()
        bar.set_postfix(loss=f"{smooth:.3f}")
    model.eval()


def main(arguments: list[str] | None = None) -> None:
    """The command line: ``python -m miniquant.models.train [gpt|llama] --out FOLDER``."""
    parser = argparse.ArgumentParser(prog="python -m miniquant.models.train", description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", choices=RECIPES, default="gpt")
    parser.add_argument("--out", type=Path, default=Path("trained"), help="folder for what is written")
    for name, value in asdict(Recipe()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), help="(default: that of the model)")
    options = vars(parser.parse_args(arguments))
    name, out = options.pop("model"), options.pop("out")
    recipe = replace(RECIPES[name], **{key: value for key, value in options.items() if value is not None})
    out.mkdir(parents=True, exist_ok=True)

    print("reading the text of this Python", platform.python_version())
    documents = corpus.training_documents()
    minutes = {"gpt": _gpt, "llama": _llama}[name](documents, recipe, out)
    print(f"wrote {', '.join(sorted(path.name for path in out.iterdir()))} into {out} in {minutes} minutes")


def _gpt(documents: list[str], recipe: Recipe, out: Path) -> float:
    tokenizer = train_tokenizer(documents)
    tokenizer.save(str(out / "tokenizer.json"))
    hashes = {
        corpus.paragraph_hash(p)
        for text in documents
        for p in corpus.paragraphs(text)
        if len(p) >= corpus.SHORTEST_DUPLICATE
    }
    (out / "trained_on.bin").write_bytes(np.array(sorted(hashes), "<u8").tobytes())
    torch.manual_seed(recipe.seed)
    model = MiniGPT(MiniGPTConfig(vocab_size=tokenizer.get_vocab_size()))
    made = _trained(model, corpus.encode_documents(tokenizer, documents), documents, recipe)
    config = model.config.to_dict()
    metadata = {"config": json.dumps(config), "made": json.dumps(made | {"config": config})}
    save_file(model.state_dict(), out / "minigpt.safetensors", metadata=metadata)
    return float(made["minutes"])


def _llama(documents: list[str], recipe: Recipe, out: Path) -> float:
    from transformers import LlamaConfig, LlamaForCausalLM

    sentencepiece = minillama.train_sentencepiece(documents, minillama.SHAPE["vocab_size"])
    tokenizer = minillama.to_tokenizer(sentencepiece)
    torch.manual_seed(recipe.seed)
    model = LlamaForCausalLM(LlamaConfig(**minillama.SHAPE))
    made = _trained(model, corpus.encode_documents(tokenizer, documents), documents, recipe)
    minillama.save_folder(out, model, sentencepiece, made)
    return float(made["minutes"])


def _trained(model: nn.Module, ids: np.ndarray, documents: list[str], recipe: Recipe) -> dict[str, Any]:
    """Train in place; what is then said of how it was made."""
    text = corpus.text_hash(documents)
    print(f"{len(documents)} documents, {len(ids):,} tokens, text {text}")
    start = time.perf_counter()
    train(model, ids, recipe)
    return {
        "recipe": asdict(recipe),
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "threads": torch.get_num_threads(),
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "training_text": text,
        "training_tokens": len(ids),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
