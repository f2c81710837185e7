"""Files that come with the library or with the package of the trained models."""

from __future__ import annotations

import sys

import pytest

from miniquant.core.assets import asset
from miniquant.core.errors import ModelMissing


def test_a_file_that_the_library_lacks_is_looked_for_in_the_package_of_the_models(tmp_path, monkeypatch):
    package = tmp_path / "miniquant_models"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "of the models.bin").write_bytes(b"weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "miniquant_models", raising=False)
    try:
        assert asset("of the models.bin").read_bytes() == b"weights"
    finally:
        sys.modules.pop("miniquant_models", None)


def test_a_file_that_nobody_has_is_an_error_that_says_what_to_install():
    with pytest.raises(ModelMissing, match=r"no such\.bin is one of their files; pip install 'miniquant\[models\]'"):
        asset("no such.bin")
