"""Run by both Pythons: the verdict on every reference, starter and catalogued mistake, as one JSON line each.

python tools/live_verdicts.py > native.jsonl
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from miniquant.lab import Exercise, evaluate, exercises


def verdicts(names: list[str] | None = None) -> Iterator[dict[str, object]]:
    """One entry each: exercise, answer, and what the report says; an exercise that needs a library says which."""
    for name in names or list(exercises()):
        try:
            spec = exercises()[name]
            answers = [("reference", spec.reference), ("starter", _starter(spec))]
            answers += [(mistake.name, mistake.wrong) for mistake in spec.mistakes]
        except ModuleNotFoundError as error:
            yield {"exercise": name, "needs": error.name}
            continue
        for answer, function in answers:
            try:
                report = evaluate(spec, function, search=False)
            except ModuleNotFoundError as error:
                yield {"exercise": name, "needs": error.name}
                break
            said = (report.status, report.what, report.mistake, report.cause, report.cure, repr(report.shown))
            yield {"exercise": name, "answer": answer, "said": said}


def _starter(spec: Exercise) -> Callable[..., Any]:
    """The stub that a student is given."""
    scope: dict[str, Any] = {}
    names = ", ".join(inspect.signature(spec.reference).parameters)
    exec(f"def {spec.name}({names}):\n    raise NotImplementedError", scope)
    found: Callable[..., Any] = scope[spec.name]
    return found


if __name__ == "__main__":
    for entry in verdicts(sys.argv[1:]):
        print(json.dumps(entry), flush=True)
