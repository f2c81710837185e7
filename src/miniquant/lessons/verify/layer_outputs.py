"""Every module's output during one forward pass."""

from ...lab import Exercise, Mistake, edit
from .stage import with_model
from .toys import HALVED, TOYS, VOCABULARY, WIDE, tokens_of, toy
from .toys_by_hand import toy_inputs
from .toys_by_hand import toy_outputs as oracle


def layer_outputs(model, tokens):
    """The output of every module during one forward pass, in the order of
    computation.

    model: an nn.Module; each of its modules runs once in a pass, and
        returns a tensor; tokens: (batch, time) int64
    -> dict, module name -> tensor (a detached copy), in the order in which
       the modules return, so a block comes after its parts; then "logits"
       -> what model(tokens) returns, detached, a copy or not

    The model itself, whose name is empty, is left out. The model runs once
    and is then as it was: none of your hooks stays on it, even if the pass
    raises an error (which you let through); hooks of others stay. It runs
    in the mode that it has, training or not.
    """
    outputs = {}

    def hook_for(name):
        def hook(module, inputs, output):
            outputs[name] = output.detach().clone()

        return hook

    handles = [module.register_forward_hook(hook_for(name)) for name, module in model.named_modules() if name]
    try:
        logits = model(tokens).detach()
    finally:
        for handle in handles:
            handle.remove()
    return {**outputs, "logits": logits}


def cases(random):
    """One token, two, other toys, a model in training mode, one whose pass raises an error, then a batch."""
    first, second, *_ = TOYS
    return [
        (first, tokens_of([0])),
        (first, tokens_of([1, 2])),
        (WIDE, tokens_of([3, 0])),
        (HALVED, tokens_of([1, 3])),
        (f"{second}, in training mode, with a hook of somebody else", tokens_of([2, 1])),
        (first, tokens_of([1, VOCABULARY])),  # no such token: the pass raises an IndexError
        (second, tokens_of(*random.integers(0, 4, (2, 3)).tolist())),
        (first, tokens_of([2, 1, 0], [1, 3, 3])),
    ]


def quantities(model, tokens):
    """What goes into the modules, and parts of what comes out."""
    description = model.partition(", in training mode")[0]
    outputs = oracle(toy(description), tokens)
    return {
        "what goes into the module": toy_inputs(description, tokens),
        "the output for the first row of `tokens` alone": {name: x[:1] for name, x in outputs.items()},
        "the output for the last row of `tokens` alone": {name: x[-1:] for name, x in outputs.items()},
        "the output for the last token alone": {name: x[:, -1] for name, x in outputs.items()},
        "the output, rounded to float16": {name: x.half().to(x.dtype) for name, x in outputs.items()},
        "there is more than one row in `tokens`": len(tokens) > 1,
        "there is one token": tokens.numel() == 1,
        "the model is in training mode": "training mode" in model,
    }


EXERCISE = Exercise(
    goal="Capture the output of every module during one forward pass with forward hooks, and leave no hook behind.",
    reference=layer_outputs, oracle=oracle, cases=cases, minutes=12, difficulty="core", ordered=True, observe=with_model,
    quantities=quantities,
    hints=(
        "Every module gets a hook of its own that knows the module's name; so make the hooks in a small function that takes the name.",
        "`model.named_modules()` gives names and modules, `register_forward_hook` gives a handle, `detach` and `clone` make the copy, and `finally` runs `remove` whatever happens.",
    ),
    why="you can now look inside any PyTorch model without changing a line of it, and it is the same afterwards.",
    mistakes=(
        Mistake("changed by a later layer", edit("output.detach().clone()", "output.detach()"),
            cause="What is stored of `block.fc1` is what a later layer, which works in place, made of it.",
            cure="Store `output.detach().clone()`.", see="zeros in `block.fc1` where negative numbers are expected"),
        Mistake("not detached", edit("output.detach().clone()", "output.clone()"),
            cause="A tensor in the result is not detached: it keeps its graph for the backward pass alive, and `.numpy()` refuses it.",
            cure="Detach every output, and what `model(tokens)` returns too; or run the model under `torch.no_grad()`.",
            see="`some of the tensors that you return still track gradients`"),
        Mistake("hooks left on the model", edit("            handle.remove()", "            pass"),
            cause="Hooks are still registered after your function, and every later pass of this model runs them again.",
            cure="Keep the handles, and call `.remove()` on each of them in a `finally`.",
            see="`after your function has ended, its hooks are still on the model`, on every case"),
        Mistake("hooks left when the model raises", edit(
                "    try:\n        logits = model(tokens).detach()\n    finally:\n        for handle in handles:\n            handle.remove()",
                "    logits = model(tokens).detach()\n    for handle in handles:\n        handle.remove()",
            ),
            cause="Where the pass raises an error such as this one, hooks stay on the model.",
            cure="Run the model in a `try`, and remove the hooks in its `finally`.",
            see="`after your function has ended, its hooks are still on the model`, on the case that raises an error"),
        Mistake("the model set to evaluation mode", edit("    handles = ", "    model.eval()\n    handles = "),
            cause="A model in training mode is in evaluation mode after your function.",
            cure="Leave the mode alone: whoever calls you has chosen it.",
            see="`the model was in training mode, and your function changed that`"),
        Mistake("everybody's hooks removed", edit(
                "        for handle in handles:\n            handle.remove()",
                "        for module in model.modules():\n            module._forward_hooks.clear()\n            module._forward_pre_hooks.clear()",
            ),
            cause="A hook that was on the model before your function is gone, and it was not yours.",
            cure="Call `.remove()` on the handles that you were given.",
            see="`a hook of somebody else is gone from the model`"),
        Mistake("inputs instead of outputs", edit("output.detach().clone()", "inputs[0].detach().clone()"),
            cause="What was stored is the input of each module (where a module works in place, with its output written over it).",
            cure="A forward hook receives `(module, inputs, output)`: store the third.",
            see="token numbers in the first layer"),
        Mistake("only the children", edit("model.named_modules()", "model.named_children()"),
            cause="Only the modules of the first level are there; the layers inside a block are missing.",
            cure="Use `model.named_modules()`, which goes all the way down.",
            see="`the keys differ`, and no name with a dot in it"),
        Mistake("the smallest modules only", edit("named_modules() if name]", "named_modules() if name and not list(module.children())]"),
            cause="Modules that have parts of their own are missing, and a block has an output, too.",
            cure="Register a hook on every module but the model itself.", see="`the keys differ`, with `block` missing"),
        Mistake("the error of the model hidden", edit("    finally:", "    except Exception:\n        return {}\n    finally:"),
            cause="The pass raised an error, and your function caught it and returned something.",
            cure="Use `try` and `finally` without `except`: the hooks are removed, and the error goes on to the caller.",
            see="`this input must be refused with an IndexError`"),
        Mistake("the model run twice", edit("        logits = model(tokens).detach()", "        model(tokens)\n        logits = model(tokens).detach()"),
            cause="One pass fills all the hooks and returns the logits; two take twice the time, and run the hooks of others twice.",
            cure="Keep what the first call returns.", see="`the model ran 2 times`"),
        Mistake("only the last name", edit("    handles = ", "    last = [name for name, _ in model.named_modules()][-1]\n    handles = ").edit(
                "hook_for(name))", "hook_for(last))"
            ),
            cause="Only the last module's name and `logits` are there, as from hooks that look up `name` when the loop over the modules is over.",
            cure="Make the hook inside a function that takes `name` as its argument.",
            see="two keys only: the last module's name and `logits`"),
        Mistake("the model itself under an empty name", edit(" if name]", "]"),
            cause="The model itself is there under its empty name; `named_modules` begins with it.",
            cure="Skip the pair whose name is empty, and store its output as `logits`.",
            see="a key `''` among the names"),
        Mistake("no logits", edit('{**outputs, "logits": logits}', "outputs"),
            cause="`logits`, what the model returns, is missing; in MiniGPT the tied head is no module, so no module that has a name returns the logits.",
            cure="Store the result of `model(tokens)` under `logits`, last.",
            see="`the keys differ`, with `logits` missing"),
    ),
)
