"""The error of every layer's output."""

from ...lab import Exercise, Mistake, body, edit
from .layer_outputs import layer_outputs
from .max_abs_error import oracle as worst_by_hand
from .stage import with_models
from .tensor_errors import tensor_errors
from .toys import HALVED, TOYS, tokens_of, toy
from .toys_by_hand import toy_outputs


def layer_errors(expected, found, tokens):
    """The largest absolute error of every module's output, and of the
    logits.

    expected, found: two models of one architecture, which may run in
        either order; tokens: (batch, time) int64
    -> dict, name -> float, in the order of computation; the logits come
       last, under the name "logits". Both models are then as they were.
    """
    return tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))


def oracle(expected, found, tokens):
    """Both models by hand, compared by hand."""
    one, two = toy_outputs(expected, tokens), toy_outputs(found, tokens)
    return {name: worst_by_hand(one[name].numpy(), two[name].numpy()) for name in one}


def cases(random):
    """A toy against itself and against each changed one, then two toys on random tokens."""
    first, second, *changed, _, _, halved = TOYS
    made = [(first, name, tokens_of([1, 2])) for name in (first, *changed)]
    made += [(first, second, tokens_of([1, 0], [3, 2])), (first, changed[0], tokens_of([0, 2], [2, 1]))]
    made += [(second, first, tokens_of([3, 1, 2])), (first, changed[1], tokens_of([2], [0], [1]))]
    made += [(HALVED, halved, tokens_of([1, 2]))]
    longer = [(first, name, tokens_of([1, 2], [3, 0])) for name in changed]
    return [*made, *longer, (first, second, tokens_of(*random.integers(0, 4, (2, 2)).tolist()))]


def quantities(expected, found, tokens):
    """The outputs that are compared."""
    one, two = (toy_outputs(toy(name), tokens) for name in (expected, found))
    return {
        "the output of `expected`": one,
        "the output of `found`": two,
        "an output has NaN": "NaN" in found,
        "there is more than one row in `tokens`": len(tokens) > 1,
        "there is more than one token": tokens.numel() > 1,
        "the two models are the same": expected == found,
    }


EXERCISE = Exercise(
    goal="Run two models on the same tokens and return the largest absolute error of every layer's output, by name.",
    reference=layer_errors, oracle=oracle, cases=cases, minutes=3, difficulty="core", ordered=True, observe=with_models,
    quantities=quantities,
    hints=(
        "You have built both halves of this already; make sure that their checks pass first.",
        "`layer_outputs` gives one dict for each model, and `tensor_errors` compares two dicts.",
    ),
    why="the first layer whose error is not 0 is the place where the damage begins.",
    mistakes=(
        Mistake("the logits only", body("""
                errors = tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))
                return {"logits": errors["logits"]}
            """),
            cause="Only the logits are there, so the result cannot say where an error begins.",
            cure="Compare every output that `layer_outputs` gives you.",
            see="`the keys differ`, with `logits` alone on your side"),
        Mistake("no logits", body("""
                errors = tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))
                return {name: error for name, error in errors.items() if name != "logits"}
            """),
            cause="The logits, which the model returns, are missing.",
            cure="Keep every name that `layer_outputs` gives you.", see="`the keys differ`, with `logits` missing"),
        Mistake("no absolute value", body("""
                a, b = layer_outputs(expected, tokens), layer_outputs(found, tokens)
                return {name: float((a[name] - b[name]).double().max()) for name in a}
            """),
            cause="The largest signed difference is taken, so a negative one counts less than any positive one.",
            cure="Call your `tensor_errors`, which takes the absolute value.", see="negative numbers, or errors that are too small"),
        Mistake("one model twice", edit("layer_outputs(found, tokens)", "layer_outputs(expected, tokens)"),
            cause="The errors are those of `expected` against itself: 0, or NaN where its output has NaN or infinity.",
            cure="Give the second pass `found`.", see="zeros everywhere, even where a weight was changed"),
        Mistake("one number for the whole model", edit(
                "tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens))",
                "max(tensor_errors(layer_outputs(expected, tokens), layer_outputs(found, tokens)).values())",
            ),
            cause="The result is one number for all layers, and it cannot say where the damage begins.",
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
            cause="The names are in the order that `sorted` gives them, and the order of computation is lost.",
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
            cause="The errors are means, and a mean spreads one bad activation over all the good ones.",
            cure="Use the maximum, as in `max_abs_error`.", see="errors that are too small by a simple factor"),
        Mistake("NaN ignored", body("""
                a, b = layer_outputs(expected, tokens), layer_outputs(found, tokens)
                return {name: float((a[name] - b[name]).double().abs().nan_to_num(0.0).max()) for name in a}
            """),
            cause="A layer whose output has NaN has a number as its error.",
            cure="Let `.max()` hand the NaN on.", see="a number where `nan` is expected"),
    ),
)
