"""Links that start a lab on a machine of Binder or Colab; there are none until the repository has an address."""

from __future__ import annotations

import re

GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
COLAB_BRANCH = "colab"  # the labs with a first cell that installs, as tools/colab.py writes them


def links(address: str, branch: str, file: str) -> list[tuple[str, str]]:
    """(what the link says, where it leads) for a lab; none without an address on GitHub, which both services read.

    >>> links("", "main", "00-five-minutes.ipynb")
    []
    >>> links("https://github.com/a/b", "main", "00.ipynb")[1]
    ('Open in Colab', 'https://colab.research.google.com/github/a/b/blob/colab/00.ipynb')
    """
    match = GITHUB.fullmatch(address)
    if not match:
        return []
    return [
        ("Open in Binder", f"https://mybinder.org/v2/gh/{match[1]}/{branch}?urlpath=lab/tree/notebooks/{file}"),
        ("Open in Colab", f"https://colab.research.google.com/github/{match[1]}/blob/{COLAB_BRANCH}/{file}"),
    ]
