"""The exercise of lab 03 on checkpoints: an optimizer's state as named arrays and a little JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from ...lab.compare import kind, short
from ...lab.spec import Case, Exercise, Finding, Mistake

State = dict[str, Any]


def flatten_optimizer(state: State) -> tuple[dict[str, torch.Tensor], str]:
    """The reference: an optimizer's state dict -> its tensors by name, and its settings as JSON."""
    return _flatten(state)


def flatten_oracle(state: State) -> tuple[dict[str, torch.Tensor], str]:
    """Pair by pair, the JSON laid out in lines."""
    tensors = {}
    for number in state["state"]:
        for key in state["state"][number]:
            tensors["optimizer." + format(number, "d") + "." + key] = state["state"][number][key]
    return tensors, json.dumps(state["param_groups"], indent=1)


def observed(function: Callable[..., Any], case: Case) -> tuple[dict[str, torch.Tensor], Any]:
    """The tensors, and the settings as a JSON parser reads them."""
    result = function(*case)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], str):
        raise Finding("a pair is expected: tensors by name, and a text", f"{kind(result)}: {short(result)}"[:300])
    try:
        return result[0], json.loads(result[1])
    except json.JSONDecodeError:
        raise Finding("the second part is no JSON", short(result[1])) from None


def trained(kind: str, shapes: list[tuple[int, ...]], steps: int, **options: Any) -> State:
    """The state dict of a fresh optimizer after some steps on ones and twos; for cases."""
    parameters = [torch.nn.Parameter(torch.ones(shape)) for shape in shapes]
    optimizer = getattr(torch.optim, kind)(parameters, lr=0.5, **options)
    for step in range(steps):
        for number, parameter in enumerate(parameters):
            parameter.grad = torch.full_like(parameter, 1.0 + number + step)
        optimizer.step()
    return optimizer.state_dict()


def _cases(random: np.random.Generator) -> list[Case]:
    by_hand: State = {
        "state": {0: {"seen": torch.tensor([1.0, 2.0])}, 1: {"seen": torch.tensor([3.0])}},
        "param_groups": [{"lr": 0.1, "params": [0, 1]}],
    }
    states = [
        by_hand,
        {"state": {}, "param_groups": [{"lr": 0.5, "nesterov": False, "foreach": None, "params": [0]}]},
        trained("AdamW", [(2, 3)], 2),
        trained("SGD", [(3,), (2, 2)], 1, momentum=0.9),
        trained("Adam", [(4,), (1,), (2, 2)], 3, betas=(0.5, 0.9)),
    ]
    return [(state,) for state in states]


def _flatten(
    state: State,
    *,
    name: Callable[[int, str], str] = lambda number, key: f"optimizer.{number}.{key}",
    keep: Callable[[torch.Tensor], bool] = lambda tensor: True,
    text: Callable[[State], str] = lambda state: json.dumps(state["param_groups"]),
) -> tuple[dict[str, torch.Tensor], str]:
    parts = [(number, key, value) for number, entry in state["state"].items() for key, value in entry.items()]
    return {name(number, key): value for number, key, value in parts if keep(value)}, text(state)


FLATTEN_OPTIMIZER = Exercise(
    name="flatten_optimizer",
    lab="03",
    goal="Take an optimizer's state apart: its tensors under flat names, its settings as JSON.",
    minutes=8,
    difficulty="core",
    reference=flatten_optimizer,
    oracle=flatten_oracle,
    cases=_cases,
    observe=observed,
    hints=(
        'A state is {"state": {number of the parameter: {key: tensor}}, "param_groups": [settings]}. Two loops, one '
        "inside "
        "the other, give every tensor a name of its own.",
        '`f"optimizer.{number}.{key}"` for the names, and `json.dumps(state["param_groups"])` for the rest.',
    ),
    why="what fits into arrays and JSON needs no pickle, and a whole training run does.",
    mistakes=(
        Mistake(
            "the parameter's number left out",
            partial(_flatten, name=lambda number, key: f"optimizer.{key}"),
            "All parameters share the same keys, so each overwrites the one before.",
            "Put the number into the name.",
            "one tensor for each key, of the last parameter",
        ),
        Mistake(
            "no prefix",
            partial(_flatten, name=lambda number, key: f"{number}.{key}"),
            "The names do not say that they belong to the optimizer, and in one file with the model's they must.",
            'Begin every name with "optimizer.".',
            "'0.seen' where 'optimizer.0.seen' is expected",
        ),
        Mistake(
            "the key before the number",
            partial(_flatten, name=lambda number, key: f"optimizer.{key}.{number}"),
            "Number and key changed places, and the way back reads them in the other order.",
            "The number first: `optimizer.0.exp_avg`.",
            "'optimizer.seen.0' where 'optimizer.0.seen' is expected",
        ),
        Mistake(
            "the step count left out",
            partial(_flatten, keep=lambda tensor: tensor.ndim > 0),
            "Adam counts its steps in a tensor without dims, and corrects its averages by it; without it, it begins "
            "at 1 again.",
            "Keep every tensor, single numbers too.",
            "'optimizer.0.step' missing",
        ),
        Mistake(
            "Python's text in place of JSON",
            partial(_flatten, text=lambda state: str(state["param_groups"])),
            "`str` writes Python: single quotes, None and False, which no JSON parser reads.",
            "Use `json.dumps`.",
            "a text with single quotes in it",
        ),
        Mistake(
            "settings left out",
            partial(_flatten, text=lambda state: "[]"),
            "Learning rate, betas and weight decay are in param_groups, and they are missing.",
            'Write `json.dumps(state["param_groups"])`.',
            "an empty list of groups",
        ),
        Mistake(
            "only the first group",
            partial(_flatten, text=lambda state: json.dumps(state["param_groups"][0])),
            "An optimizer has a list of groups, and one was written without the list around it.",
            "Write the whole list.",
            "a dict where a list is expected",
        ),
    ),
)
