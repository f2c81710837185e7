"""An optimizer's state as named arrays and a little JSON."""

import json

from ...lab import Exercise, Mistake, edit
from ...lab.compare import kind, short
from ...lab.spec import Finding


def flatten_optimizer(state):
    """An optimizer's state without nesting.

    state: {"state": {number: {key: tensor}}, "param_groups": [{...}, ...]},
        number an integer, key a str
    ->   a tuple of two: {"optimizer.NUMBER.KEY": tensor}, a dict of all
         tensors (the same ones, or copies of the same values, shape and
         dtype) under names such as "optimizer.0.exp_avg"; and the whole
         list of param_groups as JSON, one str, its white space as you like
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


def in_order(value):
    """A value whose dicts have their keys in alphabetical order: their order does not matter."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value


def observed(function, case):
    """The tensors, and the settings as a JSON parser reads them."""
    result = function(*case)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], str):
        raise Finding(
            "a pair is expected: tensors by name, and a text",
            f"{kind(result)}: {short(result)}"[:300],
            short(flatten_optimizer(*case)),
        )
    try:
        settings = json.loads(result[1])
    except json.JSONDecodeError:
        raise Finding("the second part is no JSON", short(result[1]), short(flatten_optimizer(*case)[1])) from None
    if not isinstance(settings, list):
        raise Finding("the JSON in the second part is no list", short(result[1]), short(flatten_optimizer(*case)[1]))
    return in_order(result[0]), in_order(settings)


def trained(optimizer, shapes, steps, **options):
    """The state dict of a fresh optimizer after some steps; from three parameters on, the last has a group of its own."""
    import torch

    parameters = [torch.nn.Parameter(torch.ones(shape)) for shape in shapes]
    groups = [{"params": parameters[:-1]}, {"params": parameters[-1:], "lr": 0.25}] if len(shapes) > 2 else parameters
    running = optimizer(groups, lr=0.5, **options)
    for step in range(steps):
        for number, parameter in enumerate(parameters):
            parameter.grad = torch.full_like(parameter, 1.0 + number + step)
        running.step()
    return running.state_dict()


def cases(random):
    """States by hand, with tensors of many types, and without any; those of four optimizers, one with two groups."""
    import torch

    by_hand = {
        "state": {0: {"seen": torch.tensor([1.0, 2.0])}, 1: {"seen": torch.tensor([3.0])}},
        "param_groups": [{"lr": 0.1, "params": [0, 1]}],
    }
    kinds = {
        "count": torch.tensor([2**40, -1]),
        "half": torch.tensor([[0.5]], dtype=torch.float16),
        "seen": torch.tensor([True, False]),
        "empty": torch.zeros(0, 3),
        "step": torch.tensor(7),
        "long": torch.tensor([0.1], dtype=torch.float64),
        "brain": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "zeros": torch.zeros(2),
        "no step": torch.tensor(0.0),
    }
    states = [
        by_hand,
        {"state": {1000: {" b é\n": torch.tensor(1.0)}, 2: kinds}, "param_groups": [{"name": " it's Größe 🥐\n", "lr": -2.5e-12, "steps": [300, 300, 2**40 + 1], "params": [2, 1000]}, {"params": []}]},
        {"state": {5: {}, 3: {"Exp.Avg": torch.tensor([1.5])}, 9: {"of no group": torch.tensor([2.5])}}, "param_groups": [{"params": [3, 1]}, {"params": [4, 0, 2]}]},
        {"state": {}, "param_groups": [{"lr": 0.5, "nesterov": False, "foreach": None, "params": [0]}]},
        trained(torch.optim.AdamW, [(2, 3)], 2),
        trained(torch.optim.SGD, [(3,), (2, 2)], 1, momentum=0.9),
        trained(torch.optim.Adam, [(2,)] * 12, 1),
        trained(torch.optim.Adam, [(4,), (1,), (2, 2)], 3, betas=(0.5, 0.9)),
    ]
    return [(state,) for state in states]


def traits(state):
    """What is special about a state."""
    entries = state["state"]
    tensors = [tensor for entry in entries.values() for tensor in entry.values()]
    return {
        "the dict of the states is empty": not entries,
        "the dict of the states is not empty": bool(entries),
        "more than one parameter is in the dict of the states": len(entries) > 1,
        "there is more than one group": len(state["param_groups"]) > 1,
        "the numbers in the dict of the states are not 0, 1, 2, …": list(entries) != list(range(len(entries))),
        "a parameter has more than one tensor": any(len(entry) > 1 for entry in entries.values()),
        "a tensor is not float32": any(str(tensor.dtype) != "torch.float32" for tensor in tensors),
        "a tensor is empty": any(tensor.numel() == 0 for tensor in tensors),
        "a tensor is not empty, and all its numbers are 0": any(tensor.numel() > 0 and not bool(tensor.any()) for tensor in tensors),
        "a tensor has no axes": any(tensor.ndim == 0 for tensor in tensors),
        "a tensor has an axis of length 1": any(1 in tensor.shape for tensor in tensors),
        "a tensor has one value": any(tensor.numel() == 1 for tensor in tensors),
        "a number in the dict of the states is 10 or more": any(number > 9 for number in entries),
        "the settings have characters outside ASCII": not json.dumps(state["param_groups"], ensure_ascii=False).isascii(),
        "a setting is None or False": any(value is None or value is False for group in state["param_groups"] for value in group.values()),
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Take an optimizer's state apart: its tensors under flat names, its settings as JSON.",
    reference=flatten_optimizer, oracle=oracle, cases=cases, minutes=8, difficulty="core", observe=observed,
    hints=(
        "Two dicts lie inside each other, so two loops give every tensor a name of its own: its parameter's number, then its key.",
        "An f-string makes the names; `json.dumps` makes a text of the list of groups.",
    ),
    why="arrays and JSON need no pickle, and a whole training run fits into them.",
    mistakes=(
        Mistake("the parameter's number left out", edit("{number}.", ""),
            cause="Parameters may have the same key, such as `exp_avg`. Then a later tensor overwrites an earlier one.",
            cure="Put the number into the name.", see="one tensor for each key, of the last parameter"),
        Mistake("no prefix", edit("optimizer.", ""),
            cause="The names do not say that they belong to the optimizer. In one file with the model they must.",
            cure='Begin every name with "optimizer.".', see="'0.seen' where 'optimizer.0.seen' is expected"),
        Mistake("the key before the number", edit("{number}.{key}", "{key}.{number}"),
            cause="Number and key are exchanged. The function that reads the file expects the number first.",
            cure="The number first: `optimizer.0.exp_avg`.",
            see="'optimizer.seen.0' where 'optimizer.0.seen' is expected"),
        Mistake("the step count left out", edit('tensors[f"', 'if tensor.ndim > 0:\n                tensors[f"'),
            cause="Adam counts its steps in a tensor without dims, and you left it out. Adam needs the count for its averages.",
            cure="Keep every tensor, also one with a single number.", see="'optimizer.0.step' missing"),
        Mistake("Python's text in place of JSON", edit("json.dumps", "str"),
            cause="The text is Python's, as `str` writes it: single quotes, None and False. A parser of JSON cannot read these.",
            cure="Use `json.dumps`.", see="a text with single quotes in it"),
        Mistake("the tensors as lists", edit("= tensor", "= tensor.tolist()"),
            cause="The tensors became Python's numbers and lists of them. In a file they are to be arrays with their own dtype.",
            cure="Store the tensor itself.", see="the type differs: a float32 torch tensor is expected"),
        Mistake("settings left out", edit('json.dumps(state["param_groups"])', '"[]"'),
            cause="The list of groups is empty. All settings, such as a learning rate, are missing.",
            cure="Make a text of the list of groups.", see="an empty list of groups"),
        Mistake("a group in place of the list", edit('["param_groups"]', '["param_groups"][0]'),
            cause="The text has a group by itself, and the list of all groups is asked for.",
            cure="Write the whole list.", see="a dict where a list is expected"),
        Mistake("the parameters counted", edit('for number, entry in state["state"].items()', 'for number, entry in enumerate(state["state"].values())'),
            cause="The names have the numbers 0, 1, 2, …. The number of a parameter is the key of its entry, and keys may have gaps.",
            cure="Use the keys.", see="'optimizer.0.b' where 'optimizer.10.b' is expected"),
        Mistake("every tensor a float32", edit("= tensor", "= tensor.float()"),
            cause="Every tensor is float32. A count of steps may be an integer, a mask a boolean.",
            cure="Store every tensor as it is.", see="float32 where int64 is expected"),
        Mistake("arrays in place of tensors", edit("= tensor", "= tensor.numpy()"),
            cause="The tensors became arrays of numpy, and one that numpy has no dtype for, such as bfloat16, is an error.",
            cure="Store every tensor as it is.", see="an array where a torch tensor is expected"),
        Mistake("numbers in place of tensors", edit("= tensor", "= tensor.item() if tensor.ndim == 0 else tensor"),
            cause="A tensor without dims became a Python number.",
            cure="Store every tensor as it is.", see="1.0 where a tensor is expected"),
        Mistake("every tensor flat", edit("= tensor", "= tensor.reshape(-1)"),
            cause="Every tensor has exactly one axis. Each must keep its own shape.",
            cure="Flat are the names; store every tensor as it is.", see="the shape differs"),
        Mistake("empty tensors left out", edit('tensors[f"', 'if tensor.numel():\n                tensors[f"'),
            cause="A tensor without elements was left out.",
            cure="Keep every tensor.", see="'optimizer.2.empty' missing"),
        Mistake("the settings as a list", edit('json.dumps(state["param_groups"])', 'state["param_groups"]'),
            cause="The settings are returned as they are; they are to be JSON, a text.",
            cure="Use `json.dumps`.", see="a list where a text is expected"),
        Mistake("JSON as bytes", edit('json.dumps(state["param_groups"])', 'json.dumps(state["param_groups"]).encode()'),
            cause="The JSON was encoded; the metadata of safetensors are texts.",
            cure="Leave it a str.", see="bytes where a text is expected"),
        Mistake("the groups in an object", edit('json.dumps(state["param_groups"])', 'json.dumps({"param_groups": state["param_groups"]})'),
            cause="The list of groups was put into an object.",
            cure="Write the list itself.", see="a dict where a list is expected"),
        Mistake("without the numbers of the parameters",
            edit('json.dumps(state["param_groups"])', 'json.dumps([{k: v for k, v in g.items() if k != "params"} for g in state["param_groups"]])'),
            cause="The key `params` says which parameters a group has, and you left it out.",
            cure="Keep all settings.", see="the key 'params' missing"),
        Mistake("the two exchanged", edit("return tensors, json.dumps(state[\"param_groups\"])", "return json.dumps(state[\"param_groups\"]), tensors"),
            cause="The text comes first; the tensors are to come first.",
            cure="Return the tensors, then the JSON.", see="a pair in the wrong order"),
        Mistake("other separators", edit("optimizer.{number}.{key}", "optimizer_{number}_{key}"),
            cause="The parts of the names are separated by `_`; a key such as `exp_avg` has that in it.",
            cure="Separate the parts by dots.", see="'optimizer_0_seen' where 'optimizer.0.seen' is expected"),
        Mistake("tensors without axes as float32", edit("] = tensor", "] = tensor if tensor.ndim else tensor.float()"),
            cause='Tensors without axes come back as float32; a count of steps may be an integer.',
            cure='Store every tensor as it is.', see='`float32` where `int64` is expected, for a count of steps'),
    ),
)
