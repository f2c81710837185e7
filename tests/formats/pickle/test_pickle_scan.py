"""The scanner of pickles: plain data passes, every other import is named, and nothing is ever run.

The referee is Python's own unpickler, with a ``find_class`` that writes down what it is asked for.
"""

from __future__ import annotations

import codecs
import contextlib
import datetime
import fractions
import io
import pickle
import pickletools
import sys
import tarfile
import zipfile
from collections import OrderedDict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried

from miniquant.core.errors import FormatError, PickleSecurityRisk
from miniquant.formats.pickle import scan
from miniquant.formats.pickle.opcodes import CALLS, MEANINGS, kind_of
from miniquant.formats.pickle.scan import STATE_DICT, imports, off_list, refuse_unlisted, scan_file, steps
from miniquant.inspect.pickle_view import pickleview
from miniquant.lessons.pickle.toys import evasions
from miniquant.models.minigpt import random_model
from miniquant.models.pretrained import load_pretrained

many = settings(max_examples=tried(20, 80), deadline=None, derandomize=True)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary())
data = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text(), inner, max_size=5), st.tuples(inner, inner)
    ),
    max_leaves=15,
)


class Stub:
    """Stands for whatever a pickle imports; takes any call and any state."""

    def __new__(cls, *_, **__):
        return object.__new__(cls)

    def __init__(self, *_, **__):
        pass

    def __call__(self, *_, **__):
        return Stub()

    def __setstate__(self, state):
        pass

    def __setitem__(self, key, value):
        pass

    __hash__ = object.__hash__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_: None


def asked_for(program):
    """What the real unpickler asks for; it gets stubs, so nothing is imported or called."""
    asked = []

    class Recorder(pickle._Unpickler):  # the one in Python: the one in C insists on real classes for NEWOBJ
        def find_class(self, module, name):
            asked.append((module, name))
            return type("Named", (Stub,), {})

    Recorder(io.BytesIO(program)).load()
    return asked


@many
@given(data, st.integers(0, 5))
def test_plain_data_imports_nothing_but_what_old_protocols_need_for_bytes(value, protocol):
    found = {(i.module, i.name) for i in imports(pickle.dumps(value, protocol))}
    assert found <= ({("_codecs", "encode"), ("__builtin__", "bytes")} if protocol < 3 else set())


@many
@given(st.lists(st.one_of(data, st.sampled_from([OrderedDict(a=1), {3}, datetime.date(2023, 8, 21), len])), max_size=4))
@pytest.mark.parametrize("protocol", range(6))
def test_the_unpickler_asks_for_the_names_that_were_found_in_this_order(protocol, value):
    value = [*value, fractions.Fraction(1, 3)]
    program = pickle.dumps(value, protocol)
    assert [(i.module, i.name) for i in imports(program)] == asked_for(program)


@many
@given(data, st.integers(0, 5))
def test_steps_end_where_pickletools_ends_and_cover_every_byte(value, protocol):
    program = pickle.dumps(value, protocol)
    walked = list(steps(program + b"behind the end"))
    assert [(s.opcode, s.offset) for s in walked] == [(op.name, at) for op, _, at in pickletools.genops(program)]
    assert [s.end for s in walked] == [*(s.offset for s in walked[1:]), len(program)]
    assert walked[-1].stack == ()


@pytest.mark.parametrize("name", evasions())
def test_every_evasion_is_found_at_its_byte(name):
    program = evasions()[name]
    bad = off_list(imports(program))
    assert bad, name
    for wanted in bad:
        assert program[wanted.offset : wanted.offset + 1] in (b"c", b"i", b"\x93", b"\x82")
    if name not in ("a computed name", "an extension code"):
        assert [(i.module, i.name) for i in bad] == [("builtins", "print")] == asked_for(program)


def test_a_name_that_only_a_running_pickle_would_know_is_unknown_and_on_no_list():
    found = imports(evasions()["a computed name"])
    assert [(i.module, i.name) for i in found] == [("operator", "add"), ("builtins", "?")]


def test_a_module_with_a_space_in_its_name_is_not_cut_at_it():
    assert [i[2:] for i in imports(b"cmy module\nmy name\n.")] == [("my module", "my name")]


@pytest.mark.parametrize(
    ("program", "offset", "what"),
    [
        (b"", 0, "pickle exhausted"),
        (b"\xff.", 0, "opcode"),
        (b"\x80\x04K\x01R.", 4, ": the stack is empty; this is no pickle"),
        (b"h\x07.", 0, "the memo has no entry 7"),
        (b"I1\nt.", 3, ": the stack is empty; this is no pickle"),
        (b"X\xff\xff\xff\x7fabc.", 0, "expected"),
        (b"I1\n", 0, "exhausted"),
        (b"Vnever ended", 0, "newline"),
    ],
)
def test_what_is_no_pickle_is_refused_where_it_stops_being_one(program, offset, what):
    with pytest.raises(FormatError, match=what) as caught:
        imports(program)
    assert caught.value.offset == offset


@settings(max_examples=tried(37, 150), deadline=None, derandomize=True)
@given(st.binary(max_size=60), st.booleans())
def test_random_bytes_are_a_pickle_or_a_format_error(raw, head):
    with contextlib.suppress(FormatError):
        list(steps(b"\x80\x04" + raw if head else raw))


class Watch:
    """What Python itself reports while it is on: names that an unpickler fetches, imports, code, files, processes."""

    PARTS = ("pickle.", "import", "exec", "compile", "open", "os.", "subprocess.", "socket.", "ctypes.", "marshal.")

    def __init__(self):
        self.on, self.seen = False, []
        codecs.lookup("raw_unicode_escape")  # Python itself imports a codec when it is used for the first time
        sys.addaudithook(self._hook)  # a hook stays for good: this one looks away while it is off

    def _hook(self, event, arguments):
        if self.on and event.startswith(self.PARTS):
            self.seen.append((event, arguments[:2]))

    def scan(self, program):
        """What happens while a pickle is scanned."""
        self.on, self.seen = True, []
        try:
            scan.imports(program)
        except FormatError:
            pass
        finally:
            self.on = False
        return self.seen


@pytest.fixture(scope="module")
def watch():
    return Watch()


@settings(max_examples=tried(20, 80), deadline=None, derandomize=True)
@given(st.data())
def test_a_flipped_byte_gives_a_result_or_a_format_error_and_runs_nothing(watch, draw):
    program = bytearray(evasions()[draw.draw(st.sampled_from(list(evasions())))])
    program[draw.draw(st.integers(0, len(program) - 1))] = draw.draw(st.integers(0, 255))
    assert watch.scan(bytes(program)) == []


@pytest.mark.parametrize("name", evasions())
def test_a_scan_runs_nothing(watch, name):
    assert watch.scan(evasions()[name]) == []


@pytest.mark.parametrize("load", [pickle.loads, lambda program: pickle._Unpickler(io.BytesIO(program)).load()])
def test_a_scanner_that_loads_the_pickle_is_noticed(watch, load, monkeypatch, capsys):
    monkeypatch.setattr(scan, "imports", load)
    events = [event for event, _ in watch.scan(evasions()["GLOBAL"])]
    assert "pickle.find_class" in events
    assert capsys.readouterr().out == "hello\n"


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False])
def test_a_state_dict_passes_in_both_of_torchs_formats(tmp_path, zipped):
    torch.save(load_pretrained().state_dict(), tmp_path / "m.pt", _use_new_zipfile_serialization=zipped)
    found = scan_file(tmp_path / "m.pt")
    assert len(found) == (1 if zipped else 5)
    assert {i[2:] for entries in found.values() for i in entries} <= STATE_DICT
    refuse_unlisted(tmp_path / "m.pt")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_and_parameters_of_other_types_pass(tmp_path, dtype):
    w = torch.ones(3).to(dtype)
    parameter = torch.nn.Parameter(w, requires_grad=False)
    torch.save(OrderedDict(a=w, b=w.view(-1), c=parameter), tmp_path / "m.pt")
    refuse_unlisted(tmp_path / "m.pt")


def test_a_pickled_model_is_refused_by_the_name_of_its_class(tmp_path):
    torch.save(random_model(), tmp_path / "m.pt")
    with pytest.raises(
        PickleSecurityRisk, match=r"data\.pkl: loading would import miniquant\.models\.minigpt\.MiniGPT \(GLOBAL"
    ):
        refuse_unlisted(tmp_path / "m.pt")


def test_a_call_in_the_second_pickle_of_a_zip_is_found_too(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        archive.writestr("m/data.pkl", pickle.dumps([1], 2))
        archive.writestr("m/extra.pkl", b"cos\ngetcwd\n)R.")
    with pytest.raises(PickleSecurityRisk, match=r"m/extra\.pkl: loading would import os\.getcwd"):
        refuse_unlisted(tmp_path / "m.pt")


def test_what_is_refused_here_is_refused_by_torch_and_the_other_way_round(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "good.pt")
    assert torch.load(tmp_path / "good.pt", weights_only=True)["w"].tolist() == [1, 1]
    with zipfile.ZipFile(tmp_path / "good.pt") as old, zipfile.ZipFile(tmp_path / "bad.pt", "w") as new:
        for entry in old.infolist():
            program = entry.filename.endswith("/data.pkl")
            new.writestr(entry, b"\x80\x02cmath\nsqrt\n0" + old.read(entry)[2:] if program else old.read(entry))
    with pytest.raises(pickle.UnpicklingError, match="sqrt"):
        torch.load(tmp_path / "bad.pt", weights_only=True)
    with pytest.raises(PickleSecurityRisk, match=r"math\.sqrt \(GLOBAL at byte 2\)"):
        refuse_unlisted(tmp_path / "bad.pt")


@pytest.mark.parametrize("content", [b"", b"no pickle", b"PK\x03\x04 no zip"])
def test_a_file_that_is_neither_is_a_format_error_with_its_path(tmp_path, content):
    (tmp_path / "m.pt").write_bytes(content)
    with pytest.raises(FormatError, match=r"m\.pt"):
        scan_file(tmp_path / "m.pt")


def test_an_archive_without_a_pickle_and_a_damaged_one_are_format_errors(tmp_path):
    with zipfile.ZipFile(tmp_path / "empty.pt", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(FormatError, match="without an entry"):
        scan_file(tmp_path / "empty.pt")
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        archive.writestr("m/data.pkl", pickle.dumps("a recognisable text"))
    damaged = (tmp_path / "m.pt").read_bytes().replace(b"recognisable", b"RECOGNISABLE")
    (tmp_path / "m.pt").write_bytes(damaged)
    with pytest.raises(FormatError, match="CRC"):
        scan_file(tmp_path / "m.pt")


def test_a_pickle_with_an_archive_behind_it_is_judged_by_its_beginning_as_torch_does(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "good.pt")
    hostile = b"\x80\x02cmath\nsqrt\n."
    (tmp_path / "m.pt").write_bytes(hostile + (tmp_path / "good.pt").read_bytes())
    assert zipfile.is_zipfile(tmp_path / "m.pt"), "whoever looks at the end sees the honest archive"
    with pytest.raises(FormatError, match="bytes follow the pickle's end"):
        refuse_unlisted(tmp_path / "m.pt")
    (tmp_path / "m.pt").write_bytes(hostile)
    with pytest.raises(PickleSecurityRisk, match=r"math\.sqrt"):
        refuse_unlisted(tmp_path / "m.pt")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused_because_readers_differ(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        archive.writestr("m/data.pkl", b"cmath\nsqrt\n.")
        archive.writestr("m/data.pkl", pickle.dumps([1], 2))
    with pytest.raises(FormatError, match="the same name"):
        refuse_unlisted(tmp_path / "m.pt")


def test_a_tar_archive_whose_name_is_a_harmless_pickle_is_refused(tmp_path):
    (tmp_path / "content").write_bytes(b"cmath\nsqrt\n.")
    with tarfile.open(tmp_path / "m.pt", "w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(tmp_path / "content", arcname="I1\n.")
    assert imports((tmp_path / "m.pt").read_bytes()) == [], "its first bytes alone look harmless"
    with pytest.raises(FormatError, match="a tar archive"):
        refuse_unlisted(tmp_path / "m.pt")


# ---- the picture -----------------------------------------------------------------------------------------------------


def test_the_picture_shows_each_opcode_with_its_byte_and_the_stack():
    view = pickleview(b"cbuiltins\nprint\n(S'hello'\ntR.")
    text, lines = repr(view), repr(view).splitlines()
    assert lines[0] == "a pickle of 29 bytes, 6 opcodes"
    assert [line.split()[0] for line in lines[2:]] == ["0", "16", "17", "26", "27", "28"]
    assert "builtins.print | MARK | 'hello'" in text and "builtins.print(…)" in text
    for part in ("REDUCE", "builtins.print(…)", "calls a function", "63 62 75"):
        assert part in view._repr_html_()


def test_html_in_a_pickle_stays_text():
    html = pickleview(pickle.dumps("<script>alert(1)</script>", 2))._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_a_broken_pickle_is_shown_as_far_as_it_goes():
    view = pickleview(b"\x80\x04K\x01R.")
    assert "BININT1" in repr(view) and "A reader stops here: pickle at byte 4" in repr(view)
    assert "A reader stops here" in view._repr_html_()
    assert "A reader stops here" in repr(pickleview(b""))


def test_a_part_of_a_long_pickle_says_which_part_it_is():
    program = pickle.dumps(list(range(100)), 2)
    assert "number 5 to 9" in repr(pickleview(program, 5, 5)).splitlines()[0]
    assert "none from number 900 on" in repr(pickleview(program, 900))


def test_every_opcode_has_a_kind_and_what_is_explained_exists():
    names = {opcode.name for opcode in pickletools.opcodes}
    assert set(MEANINGS) <= names
    importing = {name for name in names if kind_of(name) == "import"}
    assert importing == {"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"}
    calling = {name for name in names if kind_of(name) == "call"}
    assert calling == {"REDUCE", "BUILD", "OBJ", "NEWOBJ", "NEWOBJ_EX", "PERSID", "BINPERSID"}
    assert importing | calling <= set(MEANINGS)


def test_what_follows_a_pickle_is_an_error_that_names_its_place(tmp_path):
    path = tmp_path / "row.pkl"
    path.write_bytes(b"I5\n.ab")
    with pytest.raises(FormatError) as caught:
        scan_file(path)
    assert str(caught.value) == str(
        FormatError(str(FormatError("2 bytes follow the pickle's end", field="pickle", offset=4)), path=path)
    )


def test_a_list_is_called_a_list_and_a_text_of_any_length_is_known():
    long = b"\x8d" + (3).to_bytes(8, "little") + b"abc"  # BINUNICODE8, made for texts beyond 4 GiB
    stacks = [step.stack for step in steps(b"\x80\x04]" + long + b"a.")]
    assert [[value.shown for value in stack] for stack in stacks] == [[], ["list"], ["list", "'abc'"], ["list"], []]
    assert stacks[2][1].text == "abc"


def test_the_words_for_an_opcode_that_runs_code_begin_with_what_it_does():
    assert {MEANINGS[name].split()[0] for name in CALLS} == {"calls", "hands", "makes", "asks"}
