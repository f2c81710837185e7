"""What is looked at while a function runs on a toy model. It runs beside the student's function: no oracle is here."""

from __future__ import annotations

from ...lab.spec import Finding
from .toys import settled, toy


def with_model(function, case):
    """Build the model that the case describes; look at what the function left on it, then at the outputs."""
    import torch

    description, _, more = case[0].partition(", in training mode")
    model, passes = toy(description).train(bool(more)), []
    others = [model.register_forward_pre_hook(lambda *_: passes.append(model.training))]  # counts, and must stay
    others += [module.register_forward_hook(lambda *_: None) for module in model.block.children()]  # must stay, too
    ours, before = {handle.id for handle in others}, [weight.requires_grad for weight in model.parameters()]
    try:
        outputs = function(model, case[1])
    finally:
        hooks = {h for m in model.modules() for h in (*m._forward_hooks, *m._forward_pre_hooks)}
        gradients = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        if hooks - ours:
            raise Finding("after your function has ended, its hooks are still on the model", "hooks that nobody removed")
    if hooks != ours:
        raise Finding("a hook of somebody else is gone from the model", f"{len(hooks)} of {len(ours)} hooks of others")
    if [weight.requires_grad for weight in model.parameters()] != before:
        raise Finding("your function changed which parameters of the model track gradients", "another `requires_grad`")
    if any(m.forward != type(m).forward.__get__(m) for m in model.modules()):
        raise Finding("your function replaced `forward` of a module, and left it so", "a module with another `forward`")
    if model.training != bool(more) or any(m.training != bool(more) for m in model.modules()):
        mode = "training" if more else "evaluation"
        raise Finding(f"the model was in {mode} mode, and your function changed that", "the other mode")
    if passes and passes[0] != bool(more):
        mode = "evaluation" if more else "training"
        raise Finding(f"the model ran in {mode} mode; your function changed that for the pass", f"a pass in {mode} mode")
    if not gradients:
        raise Finding("gradients are switched off after your function has ended", "torch.is_grad_enabled() is False")
    if len(passes) > 1:
        raise Finding(f"the model ran {len(passes)} times; one pass fills all hooks", f"{len(passes)} passes")
    if isinstance(outputs, dict) and any(getattr(w, "requires_grad", False) for w in outputs.values()):
        raise Finding("some of the tensors that you return still track gradients", "tensors with requires_grad=True")
    return settled(outputs)


def with_models(function, case):
    """Build both models; look at what the function left on them, then at the errors."""
    models = [toy(case[0]).train(), toy(case[1])]
    errors = function(*models, case[2])
    if any(m._forward_hooks or m._forward_pre_hooks for model in models for m in model.modules()):
        raise Finding("after your function has ended, its hooks are still on a model", "hooks that nobody removed")
    if [model.training for model in models] != [True, False]:
        raise Finding("your function changed the mode of a model", "another mode than before")
    return settled(errors)
