"""Write the repository's address, which stands in ``_config.yml``, into the metadata of packages and citation.

    python tools/address.py [--check]

Where ``_config.yml`` has no address they have none. With ``--check`` only compare.
"""

from __future__ import annotations

import argparse
import re
import sys

from colab import ROOT, repository

NAMES = {"Repository": "", "Issues": "/issues", "Changelog": "/blob/main/CHANGELOG.md"}
PACKAGES = ("pyproject.toml", "packages/models/pyproject.toml")


def with_urls(text: str, address: str) -> str:
    """A pyproject.toml with the table of the addresses before its first table of setuptools, or without it.

    >>> with_urls("[project]\\n\\n[tool.setuptools]\\n", "https://a.b/c").splitlines()[2:4]
    ['[project.urls]', 'Repository = "https://a.b/c"']
    """
    text = re.sub(r"^\[project\.urls\]\n(?:.+\n)*\n", "", text, flags=re.M)
    if not address:
        return text
    lines = "".join(f'{name} = "{address}{rest}"\n' for name, rest in NAMES.items())
    return text.replace("[tool.setuptools]\n", f"[project.urls]\n{lines}\n[tool.setuptools]\n", 1)


def with_code(text: str, address: str) -> str:
    """A CITATION.cff with the address as its last line, or without it."""
    text = re.sub(r"^repository-code: .*\n", "", text, flags=re.M)
    return text + (f'repository-code: "{address}"\n' if address else "")


def main() -> int:
    """The command line: 1 if ``--check`` finds a file that says something else."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    options = parser.parse_args()
    old = []
    for name in (*PACKAGES, "CITATION.cff"):
        text = (ROOT / name).read_text("utf-8")
        new = (with_code if name.endswith(".cff") else with_urls)(text, repository())
        old += [name] * (new != text)
        if not options.check:
            (ROOT / name).write_text(new, "utf-8")
    if options.check and old:
        print(f"{', '.join(old)}: not the address of _config.yml; run tools/address.py")
    return bool(options.check and old)


if __name__ == "__main__":
    sys.exit(main())
