"""Quantization-aware training: train with rounded weights, and let each gradient pass the rounding as if it were none.

Rounding is a staircase: its derivative is 0 nearly everywhere, so nothing would be learned through it. The
straight-through estimator takes the derivative of the line under the staircase instead, which is 1. The float weights
are kept and trained; what the model computes with, and what a file stores, is always what their grid gives back.

Source: the estimator is that of Bengio, Léonard, Courville, https://arxiv.org/abs/1308.3432; that the float model is
the teacher, and a trained model the start, LLM-QAT, https://arxiv.org/abs/2305.17888; the scale of ternary weights,
BitNet b1.58, https://arxiv.org/abs/2402.17764.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call
from tqdm import tqdm

from ..core.errors import QuantizationError
from ..models import corpus
from ..models.language import context_of, logits_of
from ..models.minigpt import MiniGPT
from ..models.train import Recipe, learning_rate, make_optimizer
from ..quantization.grids import Grid, GridRule, check_finite, round_to_float16, split_into_groups
from .blocks import blocks_of
from .inputs import Model
from .rounding import fake_quantize_nearest, quantize_nearest, rule_named, with_quantized_layers

RECIPE = Recipe(steps=300, batch=2, warm_up=20, learning_rate=3e-4, weight_decay=0.0, precision="float32")


@dataclass(frozen=True)
class Ternary:
    """Levels of -1, 0 and 1, ``scale = float16(mean of the sizes)``: what TQ1_0 and TQ2_0 store without any change.

    >>> Ternary().fit(np.full((1, 256), -0.5, np.float32)).scale.tolist()
    [[0.5]]
    """

    name: str = "ternary_g256"
    group_size: int = 256

    def fit(self, w: np.ndarray) -> Grid:
        """w: (out, in) float32   ->   the grid of every group."""
        check_finite(w)
        size = np.abs(split_into_groups(w, self.group_size)).mean(axis=2)  # (out, groups)
        return Grid.symmetric(round_to_float16(size, "scale"), -1, 1)


def straight_through(w: Tensor, rule: GridRule) -> Tensor:
    """The weights that a grid gives back, with the gradient of ``w`` itself: (out, in)   ->   the same shape.

    >>> from miniquant.quantization.grids import GRID_RULES
    >>> w = torch.linspace(-1, 1, 64)[None].requires_grad_()
    >>> straight_through(w, GRID_RULES["int2_g64"]).sum().backward()
    >>> w.grad.unique().tolist()
    [1.0]
    """
    rounded = torch.from_numpy(fake_quantize_nearest(w.detach().numpy(), rule))
    return w + (rounded - w).detach()


class Training:
    """A run of quantization-aware training that can be stopped after any step and continued.

    The student is a copy of ``model`` whose linear layers of the blocks are rounded at every step; its embeddings and
    head stay as they are. The teacher is ``model`` itself: the loss is KL(teacher || student) of a token, in nats.

    model: a MiniGPT, a Llama or a Qwen2. ids: (n,) int64, text in its own tokens, longer than its context.

    Raises ``QuantizationError`` for another model, a rule that there is not, and too short a text.
    """

    def __init__(self, model: Any, ids: np.ndarray, rule: str | GridRule, recipe: Recipe = RECIPE) -> None:
        self.rule, self.recipe, self.step = rule_named(rule), recipe, 0
        self.teacher, self.student = copy.deepcopy(model).eval().float(), copy.deepcopy(model).float()
        self.layers = [name for half in blocks_of(self.student).halves for name in (*half.entering, half.leaving[0])]
        self.data, self.context = torch.from_numpy(ids), context_of(model)
        if len(ids) < self.context + 2:
            raise QuantizationError(
                f"the text has {len(ids)} tokens; a window of {self.context + 1} and one more are needed"
            )
        for part in self.student.modules():
            if isinstance(part, torch.nn.Embedding):
                part.weight.requires_grad_(False)
        self.optimizer = make_optimizer(self.student, recipe)

    def advance(self, steps: int) -> list[float]:
        """Take so many steps, or those that the recipe has left: the loss of each."""
        losses = []
        for _ in range(min(steps, self.recipe.steps - self.step)):
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate(self.step, self.recipe)
            tokens = self._tokens()
            with torch.no_grad():
                wanted = F.log_softmax(logits_of(self.teacher, tokens), dim=-1)
            found = F.log_softmax(self._logits(tokens), dim=-1)
            loss = F.kl_div(found.flatten(0, 1), wanted.flatten(0, 1), log_target=True, reduction="batchmean")
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
            torch.nn.utils.clip_grad_norm_(self.student.parameters(), self.recipe.clip)
            self.optimizer.step()
            self.step += 1
            losses.append(loss.item())
        return losses

    def _tokens(self) -> Tensor:
        """The windows of a step: (batch, context) int64. They depend on seed and step alone, so a run can go on."""
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + self.step)
        starts = torch.randint(len(self.data) - self.context, (self.recipe.batch, 1), generator=generator)
        return self.data[starts + torch.arange(self.context)]

    def _logits(self, tokens: Tensor) -> Tensor:
        parameters = dict(self.student.named_parameters())
        rounded = {f"{name}.weight": straight_through(parameters[f"{name}.weight"], self.rule) for name in self.layers}
        found = functional_call(self.student, rounded, (tokens,))
        logits: Tensor = getattr(found, "logits", found)
        return logits

    def state_dict(self) -> dict[str, Any]:
        """What continues the run: weights, the optimizer's state, and how many steps were taken."""
        return {"student": self.student.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of a run with the same model, text, rule and recipe."""
        self.student.load_state_dict(state["student"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = int(state["step"])

    def frozen(self) -> Any:
        """The student as a file would hold it: a frozen copy whose layers have their integers on the rule's grid."""
        weights = {name: self.student.get_submodule(name).weight.detach().numpy() for name in self.layers}
        chosen = {name: quantize_nearest(w, self.rule) for name, w in weights.items()}
        return with_quantized_layers(self.student, chosen, self.rule)


def qat(
    model: Model,
    ids: np.ndarray | None = None,
    rule: str | GridRule = "int3_g64",
    recipe: Recipe = RECIPE,
    *,
    progress: bool | None = None,
) -> Model:
    """A frozen copy with every linear layer of the blocks on a grid, after training with the rounded weights.

    ids: (n,) int64, the whole training text by default; for a model of transformers there is no default. Two minutes
    for MiniGPT on two cores with the default recipe. ``progress=None`` shows a bar on a terminal only.

    Raises ``QuantizationError`` as ``Training`` does, and if there is no text for a model that does not read as MiniGPT
    does.
    """
    if ids is None and not isinstance(model, MiniGPT):
        raise QuantizationError(
            f"the training text is token ids of the model's own tokenizer, and {type(model).__name__} has no default; "
            "pass ids"
        )
    ids = corpus.encode_documents(corpus.load_tokenizer(), corpus.training_documents()) if ids is None else ids
    training = Training(model, ids, rule, recipe)
    off = None if progress is None else not progress
    with tqdm(total=recipe.steps, desc="training", unit="step", disable=off) as bar:
        while losses := training.advance(1):
            bar.update()
            bar.set_postfix(kl=f"{losses[-1]:.3f}")
    frozen: Model = training.frozen()
    return frozen
