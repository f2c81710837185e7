"""The exercises of lab 08: verify the round trip (the assignment's Block C). Their mistakes have their own modules."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...evaluate import verify
from ...lab.spec import Case, Exercise, Finding
from ..shared import observed
from ..shared.by_hand import nearest16
from . import (
    layer_mistakes as lab08_layer_mistakes,
)
from . import (
    mistakes as lab08_mistakes,
)
from . import (
    rounding_mistakes as lab08_rounding_mistakes,
)
from .toys import TOYS, settled, toy, toy_outputs

if TYPE_CHECKING:
    from torch import Tensor, nn

NAN = float("nan")


def _array(*rows: Any) -> np.ndarray:
    return np.array(rows, np.float32)


# ---- max_abs_error ---------------------------------------------------------------------------------------------------


def max_abs_error(expected: np.ndarray, found: np.ndarray) -> float:
    """The reference: two arrays of one shape -> the largest absolute difference; NaN if any difference is NaN."""
    return float(np.abs(np.asarray(expected, np.float64) - np.asarray(found, np.float64)).max())


def _max_abs_oracle(expected: np.ndarray, found: np.ndarray) -> float:
    worst = 0.0
    for a, b in zip(expected.ravel().tolist(), found.ravel().tolist()):
        gap = float(a - b if a > b else b - a)
        if gap != gap:
            return NAN
        worst = gap if gap > worst else worst
    return worst


def _max_abs_cases(random: np.random.Generator) -> list[Case]:
    eighths = [(random.integers(-80, 80, (4, 8)) / 8).astype(np.float32) for _ in range(2)]
    return [
        (_array(1, 2, 3, 4), _array(1, 2, 5, 4)),
        (_array(4, 1), _array(1, 2)),
        (_array(0, 0), _array(0, -0.5)),
        (_array(1, 2), _array(3, 6)),
        (_array(1, NAN), _array(1, 2)),
        (_array(1, 2), _array(NAN, 4)),
        (_array([1, 2], [3, 4]), _array([1, 2], [3, 4])),
        (np.array([100, 0], np.int8), np.array([-100, 1], np.int8)),
        (eighths[0], eighths[1]),
    ]


MAX_ABS_ERROR = Exercise(
    name="max_abs_error",
    lab="08",
    goal="Return the largest absolute difference between two arrays, as one float that is NaN if any difference is.",
    minutes=5,
    difficulty="warm-up",
    reference=max_abs_error,
    oracle=_max_abs_oracle,
    cases=_max_abs_cases,
    hints=(
        "Three steps, in this order: subtract, take the absolute value of every element, take the maximum.",
        "`np.asarray(x, np.float64)` on both sides first: integers then cannot overflow, and tensors become arrays.",
    ),
    why="one number now stands for a whole tensor, and neither a NaN nor one bad weight in a million can hide in it.",
    mistakes=lab08_mistakes.MAX_ABS_ERROR,
    tolerance=1e-9,
    observe=observed.values,
)


# ---- tensor_errors ---------------------------------------------------------------------------------------------------


def tensor_errors(expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> dict[str, float]:
    """The reference: name -> largest absolute error; ``ValueError`` if names or shapes differ."""
    return verify.tensor_errors(expected, found)


def _tensor_errors_oracle(expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> dict[str, float]:
    for name in sorted({*expected, *found}):
        if name not in expected or name not in found:
            raise ValueError(f"{name!r} stands on one side only")
    errors = {}
    for name in expected:
        if expected[name].shape != found[name].shape:
            raise ValueError(f"{name!r} has two shapes: {expected[name].shape} and {found[name].shape}")
        errors[name] = _max_abs_oracle(expected[name], found[name])
    return errors


def _tensor_errors_cases(random: np.random.Generator) -> list[Case]:
    a, b, c = _array(1, 2, 3, 4), _array([1, 2], [3, 4]), _array(0, 0.5)
    names = ["tok_emb.weight", "ln_f.weight", "ln_f.bias"]
    one, two = ({n: (random.integers(-80, 80, (4, 8)) / 8).astype(np.float32) for n in names} for _ in range(2))
    return [
        ({"a": a}, {"a": a + c.max()}),
        ({"a": a, "b": b}, {"a": a, "b": b - 2}),
        ({"b": b, "a": b * 2}, {"a": b * 2, "b": b}),
        ({"a": a, "b": b}, {"a": a}),
        ({"a": a}, {"a": a, "b": b}),
        ({"a": a}, {}),
        ({"a": b}, {"a": b[:1]}),
        ({"a": a[None, :]}, {"a": a[:, None]}),
        ({"a": a, "b": c}, {"a": a, "b": _array(0, NAN)}),
        (one, two),
    ]


TENSOR_ERRORS = Exercise(
    name="tensor_errors",
    lab="08",
    goal="Compare two dicts of arrays name by name, and refuse with a ValueError if a name or a shape differs.",
    minutes=8,
    difficulty="core",
    reference=tensor_errors,
    oracle=_tensor_errors_oracle,
    cases=_tensor_errors_cases,
    hints=(
        "Before any arithmetic, compare `expected.keys()` with `found.keys()`: `!=` works on keys as on sets.",
        "For each name, compare the two `.shape`s and `raise ValueError(...)` if they differ; then call your "
        "`max_abs_error`.",
    ),
    why="a tensor that nobody compared is a tensor that nobody verified: a lost name must be loud.",
    mistakes=lab08_mistakes.TENSOR_ERRORS,
    observe=observed.values,
)


# ---- beyond_limit ----------------------------------------------------------------------------------------------------


def beyond_limit(errors: dict[str, float], limit: float) -> list[str]:
    """The reference: the names whose error is not within the limit, in their order."""
    return verify.over_limit(errors, limit)


def _beyond_oracle(errors: dict[str, float], limit: float) -> list[str]:
    failing = []
    for name, error in errors.items():
        if error != error or error > limit:
            failing.append(name)
    return failing


def _beyond_cases(random: np.random.Generator) -> list[Case]:
    drawn = {f"layer {i}": float(error) for i, error in enumerate(10 ** random.uniform(-6, 0, 12))}
    return [
        ({"a": 0.0, "b": 2e-3, "c": 5e-4}, 1e-3),
        ({"a": 1e-3, "b": 1.0}, 1e-3),
        ({"a": NAN, "b": 0.0}, 1e-3),
        ({"z": 3.0, "a": 2.0, "m": float("inf")}, 1.0),
        ({"a": 0.0, "b": 0.0}, 0.0),
        (drawn, 1e-3),
    ]


BEYOND_LIMIT = Exercise(
    name="beyond_limit",
    lab="08",
    goal="List the names whose error is not within the limit; an error equal to the limit is within it, NaN is not.",
    minutes=5,
    difficulty="warm-up",
    reference=beyond_limit,
    oracle=_beyond_oracle,
    cases=_beyond_cases,
    hints=(
        "NaN compares false with everything, so ask the question to which false is the right answer for NaN.",
        "Keep a name when `not error <= limit`, in a list comprehension over `errors.items()`.",
    ),
    why="a limit that NaN passes is no limit: this one line decides whether a broken model is called verified.",
    mistakes=lab08_mistakes.BEYOND_LIMIT,
)


# ---- layer_outputs ---------------------------------------------------------------------------------------------------


def layer_outputs(model: nn.Module, tokens: Tensor) -> dict[str, Tensor]:
    """The reference: every module's output during one forward pass, in the order of computation; logits last."""
    return verify.layer_outputs(model, tokens)


def _tokens(*rows: list[int]) -> Tensor:
    import torch

    return torch.tensor(rows)


def _layer_outputs_cases(random: np.random.Generator) -> list[Case]:
    first, second, *_ = TOYS
    return [
        (first, _tokens([0])),
        (first, _tokens([1, 2])),
        (second, _tokens([3, 0])),
        (second, _tokens(*random.integers(0, 4, (2, 3)).tolist())),
    ]


def _with_model(function: Callable[..., Any], case: Case) -> Any:
    """Build the model that the case describes; look at what the function left behind, then at the outputs."""
    model = toy(case[0])
    outputs = function(model, case[1])
    if any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()):
        raise Finding("after your function has returned, its hooks are still on the model", "hooks that nobody removed")
    if isinstance(outputs, dict) and any(getattr(w, "requires_grad", False) for w in outputs.values()):
        raise Finding("some of the tensors that you return still track gradients", "tensors with requires_grad=True")
    return settled(outputs)


LAYER_OUTPUTS = Exercise(
    name="layer_outputs",
    lab="08",
    goal="Capture the output of every module during one forward pass with forward hooks, and leave no hook behind.",
    minutes=12,
    difficulty="core",
    reference=layer_outputs,
    oracle=toy_outputs,
    cases=_layer_outputs_cases,
    hints=(
        "`module.register_forward_hook(hook)` calls `hook(module, inputs, output)` after that module has run, and "
        "returns a handle; go over `model.named_modules()` and skip the empty name, which is the model itself.",
        "Make each hook in a small function that receives `name`, store `output.detach().clone()`, set "
        '`outputs["logits"] = model(tokens).detach()` after that, and call `handle.remove()` on every handle.',
    ),
    why="you can now look inside any PyTorch model without changing a line of it, and it is the same afterwards.",
    mistakes=lab08_layer_mistakes.LAYER_OUTPUTS,
    observe=_with_model,
)


# ---- layer_errors ----------------------------------------------------------------------------------------------------


def layer_errors(expected: nn.Module, found: nn.Module, tokens: Tensor) -> dict[str, float]:
    """The reference: every module's largest absolute error on the same tokens."""
    return verify.layer_errors(expected, found, tokens)


def _layer_errors_oracle(expected: nn.Module, found: nn.Module, tokens: Tensor) -> dict[str, float]:
    one, two = toy_outputs(expected, tokens), toy_outputs(found, tokens)
    return {name: _max_abs_oracle(one[name].numpy(), two[name].numpy()) for name in one}


def _layer_errors_cases(random: np.random.Generator) -> list[Case]:
    first, second, *changed = TOYS
    made = [(first, name, _tokens([1, 2])) for name in (first, *changed)]
    return [*made, (first, second, _tokens(*random.integers(0, 4, (2, 2)).tolist()))]


def _with_models(function: Callable[..., Any], case: Case) -> Any:
    return settled(function(toy(case[0]), toy(case[1]), case[2]))


LAYER_ERRORS = Exercise(
    name="layer_errors",
    lab="08",
    goal="Run two models on the same tokens and return the largest absolute error of every layer's output, by name.",
    minutes=5,
    difficulty="core",
    reference=layer_errors,
    oracle=_layer_errors_oracle,
    cases=_layer_errors_cases,
    hints=(
        "You have both halves already: `layer_outputs` for each model, and `tensor_errors` for two dicts; their "
        "checks come first.",
        "If an error comes out as a tensor instead of a float, your `max_abs_error` needs `np.asarray` on both sides.",
    ),
    why="the first layer beyond the limit is where the damage begins, and every layer after it only passes it on.",
    mistakes=lab08_layer_mistakes.LAYER_ERRORS,
    observe=_with_models,
)


# ---- late_rounding_error ---------------------------------------------------------------------------------------------


def late_rounding_error(values: np.ndarray, scale: np.ndarray) -> float:
    """The reference: values (out, in) int8, scale (out,) float32 -> max abs of values * (scale - float16(scale))."""
    wide = values.astype(np.float64)
    stored = scale.astype(np.float16).astype(np.float64)
    return float(np.abs(wide * scale.astype(np.float64)[:, None] - wide * stored[:, None]).max())


def _late_oracle(values: np.ndarray, scale: np.ndarray) -> float:
    worst = 0.0
    for row, exact in zip(values.tolist(), scale.tolist()):
        (as_float32,) = struct.unpack("<f", struct.pack("<f", exact))
        for value in row:
            worst = max(worst, abs(value * as_float32 - value * nearest16(as_float32)))
    return worst


def _late_cases(random: np.random.Generator) -> list[Case]:
    """Scales near 1e-3, as trained weights have them; the last row's worst error is on a negative weight."""
    square = random.integers(-127, 128, (8, 8)).astype(np.int8)
    wide = random.integers(-127, 128, (4, 16)).astype(np.int8)
    return [
        (np.array([[1, 127]], np.int8), _array(1e-3)),
        (np.array([[-127, 5]], np.int8), _array(1.1e-3)),
        (np.array([[-127, 5]], np.int8), _array(1e-3)),
        (np.array([[3, 1], [2, 127]], np.int8), _array(1.7e-3, 0.6e-3)),
        (np.array([[64, 127]], np.int8), _array(2.0**-10)),
        (square, random.uniform(2e-4, 1.5e-3, 8).astype(np.float32)),
        (wide, random.uniform(2e-4, 1.5e-3, 4).astype(np.float32)),
    ]


LATE_ROUNDING_ERROR = Exercise(
    name="late_rounding_error",
    lab="08",
    goal="Measure what goes wrong if the model computes with the float32 scale and the file stores it as float16.",
    minutes=8,
    difficulty="stretch",
    reference=late_rounding_error,
    oracle=_late_oracle,
    cases=_late_cases,
    hints=(
        "Compute the weights twice from the same integers: once with `scale`, once with `scale` rounded to float16.",
        "`scale.astype(np.float16).astype(np.float64)[:, None]` is what the file gives back, as a column, one number a "
        "row; multiply `values.astype(np.float64)` by it, and do the same with the unrounded scale.",
    ),
    why="this is the whole gap between 'verified to the bit' and 'fails both limits', and two lines in order close it.",
    mistakes=lab08_rounding_mistakes.LATE_ROUNDING_ERROR,
    tolerance=1e-8,
)

EXERCISES = [MAX_ABS_ERROR, TENSOR_ERRORS, BEYOND_LIMIT, LAYER_OUTPUTS, LAYER_ERRORS, LATE_ROUNDING_ERROR]
