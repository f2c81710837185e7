"""Names that are imported when they are asked for."""

from __future__ import annotations

import pytest

from miniquant.core import text
from miniquant.core.lazy import lazily


def test_a_listed_name_comes_from_its_module_and_another_is_no_attribute():
    get = lazily("miniquant.core", {"visible": "text", "gone": "text"})
    assert get("visible") is text.visible
    with pytest.raises(AttributeError, match=r"module 'miniquant\.core' has no attribute 'other'"):
        get("other")
    with pytest.raises(AttributeError, match="gone"):
        get("gone")
