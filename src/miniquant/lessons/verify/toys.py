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


def as_tensors(*pairs: tuple[np.ndarray, np.ndarray]) -> list[tuple[Any, Any]]:
    """The same pairs as torch tensors; none where there is no torch, as in the browser."""
    try:
        import torch
    except ImportError:
        return []
    return [(torch.from_numpy(a.copy()), torch.from_numpy(b.copy())) for a, b in pairs]


def tokens_of(*rows: list[int]) -> Tensor:
    """A batch of tokens."""
    import torch

    return torch.tensor(rows)


WIDE = "toy 2 in float64: embed, drop (a Sequential that changes nothing), block (fc1, relu, fc2), head"
HALVED = "toy 3: embed, block (fc1, relu, fc2), head; the logits are half of what head gives"
# description -> (number of the weights, {layer: the amount added to its first weight})
TOYS: dict[str, tuple[int, dict[str, float]]] = {
    "toy 1: embed, block (fc1, relu, fc2), head": (1, {}),
    "toy 2: embed, block (fc1, relu, fc2), head": (2, {}),
    "toy 1 with a weight of block.fc1 changed": (1, {"block.fc1": 0.25 + 2.0**-12}),
    "toy 1 with a weight of block.fc2 changed": (1, {"block.fc2": -0.5}),
    "toy 1 with a NaN in head": (1, {"head": NAN}),
    HALVED: (3, {}),
    WIDE: (2, {}),
    "toy 3 with a weight of block.fc2 changed": (3, {"block.fc2": -(2.0**-18)}),  # errors that a limit would let pass
}
LAYERS = {"embed": VOCABULARY, "block.fc1": WIDTH, "block.fc2": WIDTH, "head": VOCABULARY}  # name -> rows


def weights(description: str) -> dict[str, list[list[float]]]:
    """The weights of every layer by name, row by row: eighths between -1 and 1, so that all sums are exact.

    A change may be finer than float16 tells; the sums are still exact in float32.
    """
    number, changes = TOYS[description]
    found = {}
    for index, (name, rows) in enumerate(LAYERS.items()):
        start = 7 * number + 3 * index
        found[name] = [[((start + 5 * (WIDTH * r + c)) % 17 - 8) / 8 for c in range(WIDTH)] for r in range(rows)]
        change = changes.get(name, 0.0)
        found[name][-1 if change != change else 0][0] += change  # a NaN that comes first Python's max would find
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
        def __init__(self, halved: bool, wide: bool) -> None:
            super().__init__()
            self.halved = halved
            parts = {
                "embed": nn.Embedding(VOCABULARY, WIDTH),
                "block": Block(),
                "head": nn.Linear(WIDTH, VOCABULARY, bias=False),
            }
            for name in reversed(parts) if halved else parts:  # the order of the computation is the same
                self.add_module(name, parts[name])
            if wide:
                self.drop = nn.Sequential(nn.Identity())  # names that the other toys lack

        def forward(self, tokens: Tensor) -> Tensor:
            embedded = self.embed(tokens)
            inside = self.block(self.drop(embedded) if hasattr(self, "drop") else embedded)
            scores = self.head(inside)
            if self.halved:  # in place, so that an output that was not copied is another one afterwards
                for output in (embedded, inside, scores):
                    output.div_(2)
            return scores

    return Toy


def toy(description: str) -> nn.Module:
    """The model of that description, in evaluation mode; its parameters track gradients, as a trained model's do."""
    import torch

    model = _class()(halved(description), description == WIDE)
    model.load_state_dict({f"{name}.weight": torch.tensor(rows) for name, rows in weights(description).items()})
    model.by_hand = weights(description)
    return (model.double() if description == WIDE else model).eval()


def halved(description: str) -> bool:
    """Whether that toy returns half of what its last module gives."""
    return TOYS[description][0] == 3


def settled(value: Any) -> Any:
    """``value`` with every tensor in it cut off from the gradients, so that it can be copied and compared."""
    if isinstance(value, dict):
        return {key: settled(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(settled(part) for part in value)
    return value.detach() if is_torch(value) else value
