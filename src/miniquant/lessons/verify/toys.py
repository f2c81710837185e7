"""A model small enough to compute by hand: embed -> block (fc1, relu in place, fc2) -> head. Weights are eighths.

A case of a check names a model by its description, so that a report can show it; ``toy`` builds it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arrays import is_torch

if TYPE_CHECKING:
    from torch import Tensor, nn

WIDTH, VOCABULARY = 2, 4
NAN = float("nan")


def array(*rows: Any) -> np.ndarray:
    """Numbers as float32."""
    return np.array(rows, np.float32)


def tokens_of(*rows: list[int]) -> Tensor:
    """A batch of tokens."""
    import torch

    return torch.tensor(rows)


# description -> (number of the weights, {layer: the amount added to its first weight})
TOYS: dict[str, tuple[int, dict[str, float]]] = {
    "toy 1: embed, block (fc1, relu, fc2), head": (1, {}),
    "toy 2: embed, block (fc1, relu, fc2), head": (2, {}),
    "toy 1 with a weight of block.fc1 changed": (1, {"block.fc1": 0.25}),
    "toy 1 with a weight of block.fc2 changed": (1, {"block.fc2": -0.5}),
    "toy 1 with a NaN in head": (1, {"head": NAN}),
}
LAYERS = {"embed": VOCABULARY, "block.fc1": WIDTH, "block.fc2": WIDTH, "head": VOCABULARY}  # name -> rows


def weights(description: str) -> dict[str, list[list[float]]]:
    """The weights of every layer by name, row by row: eighths between -1 and 1, so that all sums are exact."""
    number, changes = TOYS[description]
    found = {}
    for index, (name, rows) in enumerate(LAYERS.items()):
        start = 7 * number + 3 * index
        found[name] = [[((start + 5 * (WIDTH * r + c)) % 17 - 8) / 8 for c in range(WIDTH)] for r in range(rows)]
        found[name][0][0] += changes.get(name, 0.0)
    return found


@functools.cache
def _class() -> type[nn.Module]:
    """Made on first use: the other labs do without torch."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = nn.Linear(WIDTH, WIDTH, bias=False)
            self.relu = nn.ReLU(inplace=True)  # writes over the output of fc1
            self.fc2 = nn.Linear(WIDTH, WIDTH, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc2(self.relu(self.fc1(x)))

    class Toy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.block = Block()
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.block(self.embed(tokens)))

    return Toy


def toy(description: str) -> nn.Module:
    """The model of that description, in evaluation mode; its parameters track gradients, as a trained model's do."""
    import torch

    model = _class()()
    model.load_state_dict({f"{name}.weight": torch.tensor(rows) for name, rows in weights(description).items()})
    model.by_hand = weights(description)
    return model.eval()


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
            steps["block.fc1"] = linear("block.fc1", steps["embed"])
            steps["block.relu"] = [x if x > 0 else 0.0 for x in steps["block.fc1"]]
            steps["block.fc2"] = linear("block.fc2", steps["block.relu"])
            steps["block"] = steps["block.fc2"]
            steps["head"] = linear("head", steps["block"])
            steps["logits"] = steps["head"]
            for name, x in steps.items():
                found.setdefault(name, []).append(x)
    return {name: torch.tensor(x).reshape(*tokens.shape, -1) for name, x in found.items()}


def settled(value: Any) -> Any:
    """``value`` with every tensor in it cut off from the gradients, so that it can be copied and compared."""
    if isinstance(value, dict):
        return {key: settled(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(settled(part) for part in value)
    return value.detach() if is_torch(value) else value
