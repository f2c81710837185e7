"""What students write instead in lab 08 when they look inside a model, and what the checks then say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...lab.spec import Mistake
from .mistakes import _mean, _nanmax, _worst

if TYPE_CHECKING:
    from torch import Tensor, nn

# ---- layer_outputs ---------------------------------------------------------------------------------------------------

Keep = Callable[[dict, str, Any, Any], None]  # (outputs, name, inputs, output)


def _capture(
    model: nn.Module,
    tokens: Tensor,
    keep: Keep,
    *,
    modules: str = "named_modules",
    root: bool = False,
    remove: bool = True,
    logits: bool = True,
) -> dict[str, Tensor]:
    """The right function, with one thing at a time done wrong."""
    outputs: dict[str, Tensor] = {}

    def hook_for(name: str) -> Callable[..., None]:
        return lambda _module, inputs, output: keep(outputs, name, inputs, output)

    pairs = [(n, m) for n, m in getattr(model, modules)() if n or root]
    handles = [module.register_forward_hook(hook_for(name)) for name, module in pairs]
    result = model(tokens).detach()
    if logits:
        outputs["logits"] = result
    for handle in handles:
        if remove:
            handle.remove()
    return outputs


def _clone(outputs: dict, name: str, _inputs: Any, output: Any) -> None:
    outputs[name] = output.detach().clone()


def _detached(outputs: dict, name: str, _inputs: Any, output: Any) -> None:
    outputs[name] = output.detach()


def _tracked(outputs: dict, name: str, _inputs: Any, output: Any) -> None:
    outputs[name] = output.clone()


def _inputs(outputs: dict, name: str, inputs: Any, _output: Any) -> None:
    outputs[name] = inputs[0].detach().clone()


def _one_name(model: nn.Module, tokens: Tensor) -> dict[str, Tensor]:
    last = [name for name, _ in model.named_modules()][-1]
    return _capture(model, tokens, lambda outputs, _name, inputs, output: _clone(outputs, last, inputs, output))


LAYER_OUTPUTS = (
    Mistake(
        "not cloned",
        lambda model, tokens: _capture(model, tokens, _detached),
        "The stored output shares its memory with the model's, and a later layer that works in place wrote over it.",
        "Store `output.detach().clone()`.",
        "zeros in `block.fc1` where negative numbers are expected",
    ),
    Mistake(
        "not detached",
        lambda model, tokens: _capture(model, tokens, _tracked),
        "The stored outputs keep the whole graph for the backward pass alive, and `.numpy()` refuses them.",
        "Detach every output, and what `model(tokens)` returns too; or run the model under `torch.no_grad()`.",
        "`some of the tensors that you return still track gradients`",
    ),
    Mistake(
        "hooks left on the model",
        lambda model, tokens: _capture(model, tokens, _clone, remove=False),
        "The hooks are still registered, and every later pass of this model runs them again and fills your old dict.",
        "Keep the handles and call `.remove()` on each; in a `finally`, so that an error does not leave them behind.",
        "`after your function has returned, its hooks are still on the model`",
    ),
    Mistake(
        "inputs instead of outputs",
        lambda model, tokens: _capture(model, tokens, _inputs),
        "What was stored went into the module, not out of it.",
        "A forward hook receives `(module, inputs, output)`: store the third.",
        "token numbers in the first layer",
    ),
    Mistake(
        "only the children",
        lambda model, tokens: _capture(model, tokens, _clone, modules="named_children"),
        "`named_children` stops at the first level, so the layers inside a block are not captured.",
        "Use `model.named_modules()`, which goes all the way down.",
        "`the keys differ`, and no name with a dot in it",
    ),
    Mistake(
        "every hook has the last name",
        _one_name,
        "A function that is made in a loop looks its variables up when it is called, and by then the loop is over.",
        "Make the hook inside a function that takes `name` as its argument.",
        "two keys only: the last module's name and `logits`",
    ),
    Mistake(
        "the model itself under an empty name",
        lambda model, tokens: _capture(model, tokens, _clone, root=True),
        "`named_modules` begins with the model itself, whose name is empty.",
        "Skip the pair whose name is empty, and store its output as `logits`.",
        "a key `''` among the names",
    ),
    Mistake(
        "no logits",
        lambda model, tokens: _capture(model, tokens, _clone, logits=False),
        "What the model returns was thrown away; in MiniGPT the tied head is no module, so no hook sees the logits.",
        "Store the result of `model(tokens)` under `logits`, last.",
        "`the keys differ`, with `logits` missing",
    ),
)


# ---- layer_errors ----------------------------------------------------------------------------------------------------


def _by_layer(expected: nn.Module, found: nn.Module, tokens: Tensor, compare: Callable[..., float]) -> dict[str, float]:
    one, two = _capture(expected, tokens, _clone), _capture(found, tokens, _clone)
    return {name: compare(one[name].numpy(), two[name].numpy()) for name in one}


def _last_only(expected: nn.Module, found: nn.Module, tokens: Tensor) -> dict[str, float]:
    return {"logits": _by_layer(expected, found, tokens, _worst)["logits"]}


def _by_tensor(expected: nn.Module, found: nn.Module, tokens: Tensor) -> dict[str, Tensor]:
    one, two = _capture(expected, tokens, _clone), _capture(found, tokens, _clone)
    return {name: (one[name] - two[name]).abs().max() for name in one}


def _once_removed(expected: nn.Module, found: nn.Module, tokens: Tensor) -> dict[str, float]:
    errors = _by_layer(expected, found, tokens, _worst)
    return {name: error for name, error in errors.items() if not error <= 0}


LAYER_ERRORS = (
    Mistake(
        "the logits only",
        _last_only,
        "Only the last output was compared, so the result cannot say where an error began.",
        "Compare every output that `layer_outputs` gives you.",
        "`the keys differ`, with `logits` alone on your side",
    ),
    Mistake(
        "one model twice",
        lambda expected, found, tokens: _by_layer(expected, expected, tokens, _worst),
        "Both passes ran the same model, and a model always agrees with itself.",
        "Give the second pass `found`.",
        "zeros everywhere, even where a weight was changed",
    ),
    Mistake(
        "one number for the whole model",
        lambda expected, found, tokens: max(_by_layer(expected, found, tokens, _worst).values()),
        "The largest error of all layers was returned, and it cannot say where the damage begins.",
        "Return a dict with one error for each layer.",
        "`the type differs`, with a number on your side",
    ),
    Mistake(
        "tensors instead of floats",
        lambda expected, found, tokens: _by_tensor(expected, found, tokens),
        "The maximum of a torch tensor is a tensor again, with one number in it.",
        "Wrap it in `float(...)`, or convert both sides with `np.asarray(x, np.float64)` in `max_abs_error`.",
        "`torch tensor of shape ()` where a float is expected",
    ),
    Mistake(
        "layers in another order",
        lambda expected, found, tokens: dict(sorted(_by_layer(expected, found, tokens, _worst).items())),
        "The names went through `sorted` or a set, and the order of computation is lost.",
        "Go over the dict that `layer_outputs` returns, in `tensor_errors` too; its order is that of the computation.",
        "`the order of the keys differs`",
    ),
    Mistake(
        "layers without an error left out",
        _once_removed,
        "Layers with an error of 0 are missing, and nobody can tell whether they were compared.",
        "Keep every name; a 0 is a result.",
        "`the keys differ`, with fewer names on your side",
    ),
    Mistake(
        "mean instead of maximum",
        lambda expected, found, tokens: _by_layer(expected, found, tokens, _mean),
        "A mean spreads one bad activation over all the good ones.",
        "Use the maximum, as in `max_abs_error`.",
        "errors that are too small by a simple factor",
    ),
    Mistake(
        "NaN ignored",
        lambda expected, found, tokens: _by_layer(expected, found, tokens, _nanmax),
        "`np.nanmax`, or a comparison that NaN fails, stepped over the broken layer.",
        "Let `.max()` hand the NaN on.",
        "a number where `nan` is expected",
    ),
)
