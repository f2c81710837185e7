"""The outputs of the toys' layers, computed by hand: what the student's numbers are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .toys import toy

if TYPE_CHECKING:
    from torch import Tensor, nn


def toy_outputs(model: nn.Module, tokens: Tensor) -> dict[str, Tensor]:
    """The oracle: every layer's output, with plain lists."""
    import torch

    w = model.by_hand

    def linear(name: str, x: list[float]) -> list[float]:
        return [sum(a * b for a, b in zip(row, x)) for row in w[name]]

    found: dict[str, list] = {}
    for row in tokens.tolist():
        for token in row:
            steps = {"embed": w["embed"][token]}
            if hasattr(model, "drop"):
                steps["drop.0"] = steps["drop"] = steps["embed"]
            steps["block.fc1"] = linear("block.fc1", steps["embed"])
            steps["block.relu"] = [x if x > 0 else 0.0 for x in steps["block.fc1"]]
            steps["block.fc2"] = linear("block.fc2", steps["block.relu"])
            steps["block"] = steps["block.fc2"]
            steps["head"] = linear("head", steps["block"])
            steps["logits"] = [x / 2 for x in steps["head"]] if model.halved else steps["head"]
            for name, x in steps.items():
                found.setdefault(name, []).append(x)
    dtype = model.embed.weight.dtype
    return {name: torch.tensor(x, dtype=dtype).reshape(*tokens.shape, -1) for name, x in found.items()}


def toy_inputs(description: str, tokens: Tensor) -> dict[str, Any]:
    """What goes into every module of a toy, by hand."""
    outputs = toy_outputs(toy(description), tokens)
    before = {"embed": tokens, "block.fc1": outputs["embed"], "block.relu": outputs["block.fc1"]}
    if "drop" in outputs:
        before["drop.0"] = before["drop"] = outputs["embed"]
    before |= {"block.fc2": outputs["block.relu"], "block": outputs["embed"], "head": outputs["block"]}
    return {**before, "logits": tokens}
