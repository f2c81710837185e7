"""``python -m miniquant.course`` in a fresh checkout, before anything is installed: src/miniquant/course.py, started.

This folder is no package: where the library is installed, Python takes that one, and this file has no part in it.
"""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).resolve().parents[1] / "src" / "miniquant" / "course.py"), run_name="__main__")
