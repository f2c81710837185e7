"""What is looked at while a function runs on a toy model. It runs beside the student's function: no oracle is here."""

from __future__ import annotations

import copy

from ...lab.compare import equal
from ...lab.spec import Finding
from .toys import settled, toy


def with_model(function, case):
    """Build the model that the case describes; look at what the function left on it, then at the outputs."""
    description, _, more = case[0].partition(", in training mode")
    stage = _Stage(toy(description).train(bool(more)))
    try:
        outputs = function(stage.model, case[1])
    finally:
        gradients = _gradients_on()
        stage.look_for_hooks()
    stage.look()
    if stage.passes and not stage.passes[0]:
        mode = "evaluation" if more else "training"
        raise Finding(f"the model ran in {mode} mode; your function changed that for the pass", f"a pass in {mode} mode")
    if not gradients:
        raise Finding("gradients are switched off after your function has ended", "torch.is_grad_enabled() is False")
    if len(stage.passes) > 1:
        raise Finding(f"the model ran {len(stage.passes)} times; one pass fills all hooks", f"{len(stage.passes)} passes")
    if stage.inside and not stage.passes:
        raise Finding("a hook of somebody else on the model did not run; call `model(tokens)`", "a pass without that hook")
    if isinstance(outputs, dict) and any(getattr(w, "requires_grad", False) for w in outputs.values()):
        raise Finding("some of the tensors that you return still track gradients", "tensors with requires_grad=True")
    return settled(outputs)


def with_models(function, case):
    """Build both models; look at what the function left on them, then at the errors."""
    first = toy(case[0]).train()
    first.block.fc2.eval()  # as one who trains a part of a model keeps the rest
    stages = [_Stage(first), _Stage(toy(case[1]))]
    models = [stage.model for stage in stages]
    try:
        function(*models, case[2][:, :1])  # of other tokens nothing may be left in the next call
        for name, stage in zip(("expected", "found"), stages, strict=True):
            stage.look_at_weights(name)
        errors = function(*models, case[2])
    finally:
        gradients = _gradients_on()
    for stage in stages:
        stage.look_for_hooks()
        stage.look()
    if not gradients:
        raise Finding("gradients are switched off after your function has ended", "torch.is_grad_enabled() is False")
    return settled(errors)


def _gradients_on():
    """Whether gradients are on; afterwards they are."""
    import torch

    found = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return found


class _Stage:
    """A model with hooks of somebody else, and how it was before the function ran."""

    def __init__(self, model):
        self.model, self.modes = model, [module.training for module in model.modules()]
        self.passes, self.inside = [], []  # of each pass: was it in the mode of before; a note of each layer that ran
        hooks = [model.register_forward_pre_hook(lambda *_: self.passes.append(self._mode_kept()))]  # it must stay
        hooks += [module.register_forward_hook(lambda *_: self.inside.append(1)) for module in model.block.children()]  # must stay, too
        self.ours = {hook.id for hook in hooks}
        self.weights = copy.deepcopy(dict(model.state_dict()))
        self.tracked = [weight.requires_grad for weight in model.parameters()]

    def _mode_kept(self):
        return [module.training for module in self.model.modules()] == self.modes

    def _hooks(self):
        return {hook for m in self.model.modules() for hook in (*m._forward_hooks, *m._forward_pre_hooks)}

    def look_for_hooks(self):
        """Whether hooks of the function are still there."""
        if self._hooks() - self.ours:
            raise Finding("after your function has ended, its hooks are still on the model", "hooks that nobody removed")

    def look_at_weights(self, name):
        """Whether the weights are what they were; if not, another call would see other ones."""
        if not equal(self.weights, dict(self.model.state_dict())):
            raise Finding(f"your function changes the weights of `{name}`; work on a copy", "other weights than before")

    def look(self):
        """What else is not as it was."""
        if (left := self._hooks()) != self.ours:
            raise Finding("a hook of somebody else is gone from the model", f"{len(left)} of {len(self.ours)} hooks of others")
        if [weight.requires_grad for weight in self.model.parameters()] != self.tracked:
            raise Finding("your function changed which parameters of the model track gradients", "another `requires_grad`")
        if any(m.forward != type(m).forward.__get__(m) for m in self.model.modules()):
            raise Finding("your function replaced `forward` of a module, and left it so", "a module with another `forward`")
        for (name, module), training in zip(self.model.named_modules(), self.modes, strict=True):
            if module.training != training:
                mode, whose = "training" if training else "evaluation", f"`{name}`, a part of the model," if name else "the model"
                raise Finding(f"{whose} was in {mode} mode, and your function changed that", "the other mode")
