"""Every module's output during one forward pass."""

from ...lab import Exercise, Mistake, edit
from ...lab.spec import Finding
from .toys import TOYS, settled, tokens_of, toy
from .toys import toy_outputs as oracle


def layer_outputs(model, tokens):
    """The output of every module during one forward pass, in the order of computation.

    model: any nn.Module; tokens: (batch, time) int64
    -> dict, module name -> tensor (a detached copy), then "logits" -> what model(tokens) returns

    The model itself, whose name is empty, is left out. No hook stays on the model.
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
    """One token, two, another toy, then a batch."""
    first, second, *_ = TOYS
    return [
        (first, tokens_of([0])),
        (first, tokens_of([1, 2])),
        (second, tokens_of([3, 0])),
        (second, tokens_of(*random.integers(0, 4, (2, 3)).tolist())),
    ]


def _with_model(function, case):
    """Build the model that the case describes; look at what the function left behind, then at the outputs."""
    model = toy(case[0])
    outputs = function(model, case[1])
    if any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()):
        raise Finding("after your function has returned, its hooks are still on the model", "hooks that nobody removed")
    if isinstance(outputs, dict) and any(getattr(w, "requires_grad", False) for w in outputs.values()):
        raise Finding("some of the tensors that you return still track gradients", "tensors with requires_grad=True")
    return settled(outputs)


EXERCISE = Exercise(
    goal="Capture the output of every module during one forward pass with forward hooks, and leave no hook behind.",
    reference=layer_outputs, oracle=oracle, cases=cases, minutes=12, difficulty="core", observe=_with_model,
    hints=(
        "`module.register_forward_hook(hook)` calls `hook(module, inputs, output)` after that module has run, and returns a handle; go over `model.named_modules()` and skip the empty name, which is the model itself.",
        'Make each hook in a small function that receives `name`, store `output.detach().clone()`, set `outputs["logits"] = model(tokens).detach()` after that, and call `handle.remove()` on every handle.',
    ),
    why="you can now look inside any PyTorch model without changing a line of it, and it is the same afterwards.",
    mistakes=(
        Mistake("not cloned", edit("output.detach().clone()", "output.detach()"),
            cause="The stored output shares its memory with the model's, and a later layer that works in place wrote over it.",
            cure="Store `output.detach().clone()`.", see="zeros in `block.fc1` where negative numbers are expected"),
        Mistake("not detached", edit("output.detach().clone()", "output.clone()"),
            cause="The stored outputs keep the whole graph for the backward pass alive, and `.numpy()` refuses them.",
            cure="Detach every output, and what `model(tokens)` returns too; or run the model under `torch.no_grad()`.",
            see="`some of the tensors that you return still track gradients`"),
        Mistake("hooks left on the model", edit("            handle.remove()", "            pass"),
            cause="The hooks are still registered, and every later pass of this model runs them again and fills your old dict.",
            cure="Keep the handles and call `.remove()` on each; in a `finally`, so that an error does not leave them behind.",
            see="`after your function has returned, its hooks are still on the model`"),
        Mistake("inputs instead of outputs", edit("output.detach().clone()", "inputs[0].detach().clone()"),
            cause="What was stored went into the module, not out of it.",
            cure="A forward hook receives `(module, inputs, output)`: store the third.",
            see="token numbers in the first layer"),
        Mistake("only the children", edit("model.named_modules()", "model.named_children()"),
            cause="`named_children` stops at the first level, so the layers inside a block are not captured.",
            cure="Use `model.named_modules()`, which goes all the way down.",
            see="`the keys differ`, and no name with a dot in it"),
        Mistake("every hook has the last name", edit("    handles = ", "    last = [name for name, _ in model.named_modules()][-1]\n    handles = ").edit(
                "hook_for(name))", "hook_for(last))"
            ),
            cause="A function that is made in a loop looks its variables up when it is called, and by then the loop is over.",
            cure="Make the hook inside a function that takes `name` as its argument.",
            see="two keys only: the last module's name and `logits`"),
        Mistake("the model itself under an empty name", edit(" if name]", "]"),
            cause="`named_modules` begins with the model itself, whose name is empty.",
            cure="Skip the pair whose name is empty, and store its output as `logits`.",
            see="a key `''` among the names"),
        Mistake("no logits", edit('{**outputs, "logits": logits}', "outputs"),
            cause="What the model returns was thrown away; in MiniGPT the tied head is no module, so no hook sees the logits.",
            cure="Store the result of `model(tokens)` under `logits`, last.",
            see="`the keys differ`, with `logits` missing"),
    ),
)
