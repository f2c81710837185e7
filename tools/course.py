"""Write the table of the labs into the README: ``python tools/course.py``; with ``--check`` only compare.

The site shows the same table by itself (book/_ext/course_table.py). Both read book/course.toml and the notebooks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from miniquant.lab.authoring.course import read_course, with_table

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    options = parser.parse_args()
    readme = ROOT / "README.md"
    old = readme.read_text("utf-8")
    new = with_table(old, read_course(ROOT))
    if options.check:
        print("the README has the table of the course" if new == old else "README.md is old; run tools/course.py")
        return new != old
    readme.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
