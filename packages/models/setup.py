"""Copy the models from the library's assets, where a checkout has them; a source archive has them already.

Each file must be the one that ``SHA256SUMS`` says, so that a version of this package is always the same models.
"""

import hashlib
import shutil
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]

for line in (HERE / "SHA256SUMS").read_text("utf-8").splitlines():
    expected, name = line.split()
    source, target = CHECKOUT / "src" / "miniquant" / "assets" / name, HERE / "src" / "miniquant_models" / name
    if source.is_file():
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, target)
    if hashlib.sha256(target.read_bytes()).hexdigest() != expected:
        raise SystemExit(f"{name} is not the file of SHA256SUMS; write its new sum there, and raise the version")
if (CHECKOUT / "_config.yml").is_file():
    shutil.copyfile(CHECKOUT / "LICENSE", HERE / "LICENSE")

setup()
