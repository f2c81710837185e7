"""``python tools/lowest.py``: print the lowest versions that pyproject.toml declares, for ``make lowest``.

The library's own dependencies get their lower bound, the programs that test it the version of constraints.txt. What
those need in turn is left to pip: a low version may need a low one of its own.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
REFEREES = ("gguf", "xllamacpp")  # those that `make quick` asks
OURS = ("miniquant", "miniquant-models")  # built from this checkout


def name_of(requirement: str) -> str:
    """The name in a requirement, as indexes spell it.

    >>> name_of("huggingface_hub>=1,<2")
    'huggingface-hub'
    """
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def own() -> list[str]:
    """The requirements of the library and its extras, other than our own packages and extras."""
    project = PYPROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return [each for found in lists for each in found if name_of(each) not in OURS]


def pins() -> dict[str, str]:
    """Name -> ``name==version`` for every line of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return {name_of(line): line for line in lines if line and not line.startswith("#")}


def lowest(requirement: str) -> str:
    """The lowest version that a requirement allows. Raises ``ValueError`` if it does not say.

    >>> lowest("numpy>=2.2")
    'numpy==2.2'
    """
    found = re.fullmatch(r"([\w.-]+)[>=]=([\w.]+)(,.*)?", requirement)
    if not found:
        raise ValueError(f"{requirement!r} names no lowest version; write NAME>=VERSION")
    return f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    testers = [name_of(each) for each in PYPROJECT["dependency-groups"]["test"]]
    print("\n".join([*map(lowest, own()), *(pins()[name] for name in (*testers, *REFEREES))]))
