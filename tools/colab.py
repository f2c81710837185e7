"""Copies of the labs for Colab, each with a first cell that brings the course, installs what is missing and says so.

The labs themselves have no such cell: at home, in Binder and in the tests everything is there. The workflow of the site
puts the copies on a branch of their own, to which the launch links of the site lead.

    python tools/colab.py FOLDER [--repository https://github.com/OWNER/NAME]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CELL = """# Colab starts with an empty machine. This cell brings the course, installs what is missing, and says so.
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

course = Path("miniquant-course").resolve()
if not course.exists():
    subprocess.run(["git", "clone", "-q", "--depth", "1", "{repository}", str(course)], check=True)
    print("the course is in", course)
done = subprocess.run(
    [sys.executable, "miniquant/course.py", "setup", "--here"], cwd=course, capture_output=True, text=True
)
print(done.stdout, done.stderr, sep="")
sys.path.insert(0, str(course / "src"))
os.chdir(course / "notebooks")
loaded = [name for name in ("numpy", "torch") if name in sys.modules]
if any(sys.modules[name].__version__.split("+")[0] != version(name).split("+")[0] for name in loaded):
    print("A loaded library has a newer version now: choose Runtime, Restart session, and run this cell again.")"""


def repository() -> str:
    """The address that ``_config.yml`` says; empty if it says none."""
    match = re.search(r'^repository:.*\n\s+url:\s*"([^"]*)"', (ROOT / "_config.yml").read_text("utf-8"), re.M)
    return match[1] if match else ""


def for_colab(notebook: dict, address: str) -> dict:
    """The notebook with the cell in front; everything else is as it was."""
    cell = {"cell_type": "code", "execution_count": None, "id": "colab-setup", "metadata": {}, "outputs": []}
    source = CELL.replace("{repository}", address).splitlines(keepends=True)
    return {**notebook, "cells": [{**cell, "source": source}, *notebook["cells"]]}


def main(arguments: list[str] | None = None) -> int:
    """The command line: 2 without an address."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repository", default=repository(), help="where the course is cloned from")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[\w.:/@-]+", options.repository):  # it is written into code
        print("no address to clone from: set repository.url in _config.yml, or give --repository", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    labs = sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    for lab in labs:
        copy = for_colab(json.loads(lab.read_text("utf-8")), options.repository)
        (options.folder / lab.name).write_text(json.dumps(copy, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(f"{options.folder}: {len(labs)} labs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
