"""The library writes the same bytes as it always did: SHA-256 of one file of every kind, from ``bytes.json``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import written_files

STORED = json.loads(Path(__file__).with_name("bytes.json").read_text("utf-8"))


@pytest.mark.parametrize("name", written_files.FILES)
def test_a_file_is_written_byte_for_byte_as_before(name, tmp_path):
    assert written_files.digest(name, tmp_path) == STORED[name]


def test_every_stored_hash_belongs_to_a_file_that_is_still_written():
    assert STORED.keys() == written_files.FILES.keys()
