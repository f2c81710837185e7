"""The error of every layer's output."""

from ...lab import Exercise, Mistake, body, edit
from .layer_outputs import layer_outputs
from .max_abs_error import oracle as worst_by_hand
from .tensor_errors import tensor_errors
from .toys import TOYS, settled, tokens_of, toy, toy_outputs


def layer_errors(expected, found, tokens):
    """The largest absolute error of every layer's output.

    expected, found: two models of one architecture; tokens: (batch, time) int64   ->   dict, name -> float
    """
    return tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))


def oracle(expected, found, tokens):
    """Both models by hand, compared by hand."""
    one, two = toy_outputs(expected, tokens), toy_outputs(found, tokens)
    return {name: worst_by_hand(one[name].numpy(), two[name].numpy()) for name in one}


def cases(random):
    """A toy against itself and against each changed one, then two toys on random tokens."""
    first, second, *changed = TOYS
    made = [(first, name, tokens_of([1, 2])) for name in (first, *changed)]
    return [*made, (first, second, tokens_of(*random.integers(0, 4, (2, 2)).tolist()))]


def _with_models(function, case):
    return settled(function(toy(case[0]), toy(case[1]), case[2]))


EXERCISE = Exercise(
    goal="Run two models on the same tokens and return the largest absolute error of every layer's output, by name.",
    reference=layer_errors, oracle=oracle, cases=cases, minutes=5, difficulty="core", observe=_with_models,
    hints=(
        "You have both halves already: `layer_outputs` for each model, and `tensor_errors` for two dicts; their checks come first.",
        "If an error comes out as a tensor instead of a float, your `max_abs_error` needs `np.asarray` on both sides.",
    ),
    why="the first layer beyond the limit is where the damage begins, and every layer after it only passes it on.",
    mistakes=(
        Mistake("the logits only", body("""
                errors = tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))
                return {"logits": errors["logits"]}
            """),
            cause="Only the last output was compared, so the result cannot say where an error began.",
            cure="Compare every output that `layer_outputs` gives you.",
            see="`the keys differ`, with `logits` alone on your side"),
        Mistake("one model twice", edit("layer_outputs(found, tokens)", "layer_outputs(expected, tokens)"),
            cause="Both passes ran the same model, and a model always agrees with itself.",
            cure="Give the second pass `found`.", see="zeros everywhere, even where a weight was changed"),
        Mistake("one number for the whole model", edit(
                "tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))",
                "max(tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens)).values())",
            ),
            cause="The largest error of all layers was returned, and it cannot say where the damage begins.",
            cure="Return a dict with one error for each layer.", see="`the type differs`, with a number on your side"),
        Mistake("tensors instead of floats", body("""
                a, b = layer_outputs(expected, tokens), layer_outputs(found, tokens)
                return {name: (a[name] - b[name]).abs().max() for name in a}
            """),
            cause="The maximum of a torch tensor is a tensor again, with one number in it.",
            cure="Wrap it in `float(...)`, or convert both sides with `np.asarray(x, np.float64)` in `max_abs_error`.",
            see="`torch tensor of shape ()` where a float is expected"),
        Mistake("layers in another order", edit(
                "tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))",
                "dict(sorted(tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens)).items()))",
            ),
            cause="The names went through `sorted` or a set, and the order of computation is lost.",
            cure="Go over the dict that `layer_outputs` returns, in `tensor_errors` too; its order is that of the computation.",
            see="`the order of the keys differs`"),
        Mistake("layers without an error left out", body("""
                errors = tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))
                return {name: error for name, error in errors.items() if not error <= 0}
            """),
            cause="Layers with an error of 0 are missing, and nobody can tell whether they were compared.",
            cure="Keep every name; a 0 is a result.", see="`the keys differ`, with fewer names on your side"),
        Mistake("mean instead of maximum", body("""
                a, b = layer_outputs(expected, tokens), layer_outputs(found, tokens)
                return {name: float((a[name] - b[name]).double().abs().mean()) for name in a}
            """),
            cause="A mean spreads one bad activation over all the good ones.",
            cure="Use the maximum, as in `max_abs_error`.", see="errors that are too small by a simple factor"),
        Mistake("NaN ignored", body("""
                a, b = layer_outputs(expected, tokens), layer_outputs(found, tokens)
                return {name: float((a[name] - b[name]).double().abs().nan_to_num(0.0).max()) for name in a}
            """),
            cause="`np.nanmax`, or a comparison that NaN fails, stepped over the broken layer.",
            cure="Let `.max()` hand the NaN on.", see="a number where `nan` is expected"),
    ),
)
