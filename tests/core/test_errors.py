"""An error says where: the file, the field and the byte, each only if it is known, in the text and as attributes."""

from __future__ import annotations

from pathlib import Path

import pytest

from miniquant import FormatError
from miniquant.core.errors import WriteError


@pytest.mark.parametrize("path, field, offset, text", [
    (None, None, None, "found 7"),
    (None, None, 0, "byte 0: found 7"),
    (None, "magic", None, "magic: found 7"),
    (None, "magic", 4, "magic at byte 4: found 7"),
    ("a.gguf", None, None, "a.gguf: found 7"),
    ("a.gguf", None, 4, "a.gguf: byte 4: found 7"),
    ("a.gguf", "magic", None, "a.gguf: magic: found 7"),
    ("a.gguf", "magic", 0, "a.gguf: magic at byte 0: found 7"),
])  # fmt: skip
def test_the_text_names_what_is_known_of_the_place(path, field, offset, text):
    error = FormatError("found 7", path=path, field=field, offset=offset)
    assert str(error) == text
    assert (error.path, error.field, error.offset) == (path, field, offset)


def test_a_path_may_be_text_bytes_or_a_path_and_is_kept_as_text():
    for path in ("a/b", b"a/b", Path("a/b")):
        assert FormatError("x", path=path).path == "a/b"


def test_every_error_can_be_caught_as_a_value_error():
    assert isinstance(FormatError("x"), ValueError)
    assert isinstance(WriteError("x"), ValueError) and isinstance(WriteError("x"), OSError)


def test_a_format_error_without_a_message_says_that_the_file_is_malformed():
    with pytest.raises(FormatError, match="the file is malformed"):
        raise FormatError
    assert str(FormatError(offset=4)) == "byte 4: the file is malformed"
