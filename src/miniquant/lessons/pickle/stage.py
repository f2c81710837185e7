"""What is looked at while a pickle is loaded. It runs beside the student's function: no oracle is here."""

from __future__ import annotations

import pickle
import sys

from ...lab.spec import Finding

BYSTANDER = f"{__package__}.bystander"  # a module that nothing has imported


def loaded(function, case):
    """What the function returns or raises; a Finding if it raised too late, when the import was already made."""
    sys.modules.pop(BYSTANDER, None)
    try:
        result = function(*case)
        if isinstance(result, pickle.Unpickler):
            raise Finding("nothing is loaded yet: call the method `load` of your unpickler", "the unpickler itself")
        return "the function of a module off the list" if getattr(result, "__module__", "") == BYSTANDER else result
    except pickle.UnpicklingError:
        if BYSTANDER in sys.modules:
            done = "called" if sys.modules[BYSTANDER].CALLS else "imported"
            what = f"the refusal comes too late: a function that is not allowed was {done} before UnpicklingError"
            raise Finding(what, f"{BYSTANDER}.called was {done}") from None
        raise
