"""A small model in place of a real one: matrices of whole numbers, types that round them, and a KL that is a sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

STEPS = {"halves": 0.5, "wholes": 1.0, "tens": 10.0}  # what the types round to
BYTES = {"halves": 4, "wholes": 2, "tens": 1}  # of a weight
Costs = Mapping[str, Mapping[str, tuple[int, float]]]


@dataclass(frozen=True)
class Store:
    """Rounds a matrix to multiples of the type's step.

    >>> Store()(np.float32([[0.7, 12.0]]), "wholes")
    (4, array([[ 1., 12.]], dtype=float32))
    """

    def __call__(self, w: np.ndarray, kind: str) -> tuple[int, np.ndarray]:
        """The bytes of a matrix in this type, and what a file gives back."""
        step = np.float32(STEPS[kind])
        return w.size * BYTES[kind], np.rint(w / step) * step

    def __repr__(self) -> str:
        return "store"


@dataclass(frozen=True, eq=False)
class Measure:
    """How far weights are from those of the float model: squares, summed up; every matrix must be there."""

    weights: Mapping[str, np.ndarray]

    def __call__(self, weights: Mapping[str, np.ndarray]) -> float:
        """The KL of the model with these weights."""
        moved = {name: float(np.square(weights[name] - w, dtype=np.float64).sum()) for name, w in self.weights.items()}
        return sum((1 + place) * change for place, change in enumerate(moved.values()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure) or list(self.weights) != list(other.weights):
            return False
        return all(np.array_equal(w, other.weights[name]) for name, w in self.weights.items())

    def __repr__(self) -> str:
        return "measure"


@dataclass(frozen=True, eq=False)
class SumAndMore:
    """The KL of a choice of types: nearly the sum of what each matrix costs alone."""

    costs: Costs

    def __call__(self, types: Mapping[str, str]) -> float:
        """The KL of the model with these types."""
        alone = [self.costs[name][kind][1] for name, kind in types.items()]
        return sum(alone) + 0.1 * min(alone, default=0.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SumAndMore) and self.costs == other.costs

    def __repr__(self) -> str:
        return "measure"


def every_choice(costs: Costs) -> list[tuple[int, float, dict[str, str]]]:
    """All choices of a type for each matrix: bytes, sum of the KLs, types.

    >>> every_choice({"a": {"Q4": (2, 0.5), "Q8": (4, 0.0)}})
    [(2, 0.5, {'a': 'Q4'}), (4, 0.0, {'a': 'Q8'})]
    """
    found = []
    for kinds in product(*costs.values()):
        alone = [costs[name][kind] for name, kind in zip(costs, kinds, strict=True)]
        n_bytes, kl = sum(size for size, _ in alone), sum(kl for _, kl in alone)
        found.append((n_bytes, kl, dict(zip(costs, kinds, strict=True))))
    return found
