"""Every byte of a pickle has a name: the opcodes where pickletools finds them, the entries where zipfile does."""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile

import pytest
import torch

from miniquant.core.slices import as_slices
from miniquant.formats.fields import parse
from miniquant.formats.pickle.scan import scan_file


def covers(parts, size: int) -> bool:
    ends = [0, *(part.end for part in parts)]
    return ends[-1] == size and [part.start for part in parts] == ends[:-1]


@pytest.mark.parametrize("protocol", range(2, 6))
def test_the_opcodes_stand_where_pickletools_finds_them(protocol):
    data = pickle.dumps({"a": [1, 2.5, print], "b": (None, b"x" * 40)}, protocol)
    parts, error = parse(data)
    assert error is None and covers(parts, len(data))
    assert [(part.start, part.name.rpartition(" ")[2]) for part in parts] == [
        (at, opcode.name) for opcode, _, at in pickletools.genops(data)
    ]
    assert "print" in [part.value.split()[-1] for part in parts if part.category == "import"]
    assert parts[-1].text() == "'no argument'"


def saved(**options) -> bytes:
    out = io.BytesIO()
    torch.save({"w": torch.arange(6.0), "b": torch.ones(3)}, out, **options)
    return out.getvalue()


def test_the_entries_of_an_archive_are_those_of_zipfile_and_their_opcodes_are_named():
    data = saved()
    parts, error = parse(data)
    assert error is None and covers(parts, len(data))
    named = {part.name: part for part in parts}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            content = archive.read(entry)
            if entry.filename.endswith(".pkl"):
                inside = [p for p in parts if p.name.startswith(f"entry {entry.filename!r}: opcode")]
                assert b"".join(bytes(p.raw) for p in inside) == content
            elif content:
                assert bytes(named[f"entry {entry.filename!r}: data"].raw) == content
        assert named["directory"].start == archive.start_dir
    assert scan_file(as_slices(data)) == scan_file(data)


def test_the_older_format_is_five_pickles_and_the_storages():
    data = saved(_use_new_zipfile_serialization=False)
    parts, error = parse(data)
    assert error is None and covers(parts, len(data))
    stops = [part.name for part in parts if part.name.endswith(": STOP")]
    assert [name.partition(":")[0] for name in stops] == [f"pickle {i}" for i in range(5)]
    assert parts[-1].name == "storages"
    assert torch.ones(3).numpy().tobytes() in bytes(parts[-1].raw)


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_pickle_or_an_archive_that_is_cut_is_named_as_far_as_it_goes(cut):
    for data in (pickle.dumps(list(range(300)), 4), saved(), saved(_use_new_zipfile_serialization=False)):
        parts, error = parse(data[:-cut])
        assert covers(parts, len(data) - cut)
        assert error is not None or parts[-1].name == "storages"


def test_a_compressed_entry_is_one_field_and_says_so():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data.pkl", pickle.dumps(list(range(300))))
    parts, error = parse(out.getvalue())
    assert error is None
    (packed,) = [part for part in parts if part.name == "entry 'm/data.pkl': data"]
    assert packed.explanation.endswith("; compressed")
