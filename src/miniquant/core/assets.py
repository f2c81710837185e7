"""Files that come with the library, and those of the trained models, which are a package of their own."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

from .errors import ModelMissing


def asset(name: str) -> Traversable:
    """A file or folder of ``assets/``: in the library itself, as in a checkout, else in the package miniquant-models.

    Raises ``ModelMissing`` if neither has it.

    >>> asset("tokenizer.json").is_file()
    True
    """
    for package, folder in (("miniquant", "assets"), ("miniquant_models", ".")):
        try:
            found = resources.files(package).joinpath(folder, name)
        except ModuleNotFoundError:  # miniquant-models is not installed
            continue
        if found.is_file() or found.is_dir():
            return found
    raise ModelMissing(
        f"the trained models are not installed, and {name} is one of their files; pip install 'miniquant[models]' "
        "brings them, and so does pip install ./packages/models in a checkout of the course"
    )
