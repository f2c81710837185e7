"""An optimizer's state as named arrays and a little JSON."""

import json

from ...lab import Exercise, Mistake, edit
from ...lab.compare import kind, short
from ...lab.spec import Finding


def flatten_optimizer(state):
    """An optimizer's state without nesting.

    state: {"state": {number: {key: tensor}}, "param_groups": [{...}]}
    ->   ({"optimizer.NUMBER.KEY": tensor}, the param_groups as JSON), such as "optimizer.0.exp_avg"
    """
    tensors = {}
    for number, entry in state["state"].items():
        for key, tensor in entry.items():
            tensors[f"optimizer.{number}.{key}"] = tensor
    return tensors, json.dumps(state["param_groups"])


def oracle(state):
    """Pair by pair, the JSON laid out in lines."""
    tensors = {}
    for number in state["state"]:
        for key in state["state"][number]:
            tensors["optimizer." + format(number, "d") + "." + key] = state["state"][number][key]
    return tensors, json.dumps(state["param_groups"], indent=1)


def observed(function, case):
    """The tensors, and the settings as a JSON parser reads them."""
    result = function(*case)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], str):
        raise Finding("a pair is expected: tensors by name, and a text", f"{kind(result)}: {short(result)}"[:300])
    try:
        return result[0], json.loads(result[1])
    except json.JSONDecodeError:
        raise Finding("the second part is no JSON", short(result[1])) from None


def trained(optimizer, shapes, steps, **options):
    """The state dict of a fresh optimizer after some steps on ones and twos."""
    import torch

    parameters = [torch.nn.Parameter(torch.ones(shape)) for shape in shapes]
    running = optimizer(parameters, lr=0.5, **options)
    for step in range(steps):
        for number, parameter in enumerate(parameters):
            parameter.grad = torch.full_like(parameter, 1.0 + number + step)
        running.step()
    return running.state_dict()


def cases(random):
    """A state by hand, one without tensors, and those of three optimizers."""
    import torch

    by_hand = {
        "state": {0: {"seen": torch.tensor([1.0, 2.0])}, 1: {"seen": torch.tensor([3.0])}},
        "param_groups": [{"lr": 0.1, "params": [0, 1]}],
    }
    states = [
        by_hand,
        {"state": {}, "param_groups": [{"lr": 0.5, "nesterov": False, "foreach": None, "params": [0]}]},
        trained(torch.optim.AdamW, [(2, 3)], 2),
        trained(torch.optim.SGD, [(3,), (2, 2)], 1, momentum=0.9),
        trained(torch.optim.Adam, [(4,), (1,), (2, 2)], 3, betas=(0.5, 0.9)),
    ]
    return [(state,) for state in states]


EXERCISE = Exercise(
    goal="Take an optimizer's state apart: its tensors under flat names, its settings as JSON.",
    reference=flatten_optimizer, oracle=oracle, cases=cases, minutes=8, difficulty="core", observe=observed,
    hints=(
        'A state is {"state": {number of the parameter: {key: tensor}}, "param_groups": [settings]}. Two loops, one inside the other, give every tensor a name of its own.',
        '`f"optimizer.{number}.{key}"` for the names, and `json.dumps(state["param_groups"])` for the rest.',
    ),
    why="what fits into arrays and JSON needs no pickle, and a whole training run does.",
    mistakes=(
        Mistake("the parameter's number left out", edit("{number}.", ""),
            cause="All parameters share the same keys, so each overwrites the one before.",
            cure="Put the number into the name.", see="one tensor for each key, of the last parameter"),
        Mistake("no prefix", edit("optimizer.", ""),
            cause="The names do not say that they belong to the optimizer, and in one file with the model's they must.",
            cure='Begin every name with "optimizer.".', see="'0.seen' where 'optimizer.0.seen' is expected"),
        Mistake("the key before the number", edit("{number}.{key}", "{key}.{number}"),
            cause="Number and key changed places, and the way back reads them in the other order.",
            cure="The number first: `optimizer.0.exp_avg`.",
            see="'optimizer.seen.0' where 'optimizer.0.seen' is expected"),
        Mistake("the step count left out", edit('tensors[f"', 'if tensor.ndim > 0:\n                tensors[f"'),
            cause="Adam counts its steps in a tensor without dims, and corrects its averages by it; without it, it begins at 1 again.",
            cure="Keep every tensor, single numbers too.", see="'optimizer.0.step' missing"),
        Mistake("Python's text in place of JSON", edit("json.dumps", "str"),
            cause="`str` writes Python: single quotes, None and False, which no JSON parser reads.",
            cure="Use `json.dumps`.", see="a text with single quotes in it"),
        Mistake("settings left out", edit('json.dumps(state["param_groups"])', '"[]"'),
            cause="Learning rate, betas and weight decay are in param_groups, and they are missing.",
            cure='Write `json.dumps(state["param_groups"])`.', see="an empty list of groups"),
        Mistake("only the first group", edit('["param_groups"]', '["param_groups"][0]'),
            cause="An optimizer has a list of groups, and one was written without the list around it.",
            cure="Write the whole list.", see="a dict where a list is expected"),
    ),
)
