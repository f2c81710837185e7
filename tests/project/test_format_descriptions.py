"""``formats/``: the tables of tensor types are those of the registry, and both languages describe the same fields.

What the descriptions read is tested by ``tools/kaitai.py``, which needs Kaitai's compiler.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from type_tables import FOLDER, TABLE, TYPES, with_tables

from miniquant.formats.bump.types import ARCHITECTURES
from miniquant.formats.gguf import ValueType
from miniquant.formats.gguf_lite.types import DType

STRUCT = re.compile(r"^struct (\w+)[^{\n]*\{$(.*?)^\};", re.M | re.S)
MEMBER = re.compile(r"(?:^|\): ) *([\w:]+)(?:<[^;]*>)?\s+(\w+)(?:\[.*\])?(?: @ [^;]+)?;", re.M)
ENUM = re.compile(r"^enum (\w+) : (\w+)", re.M)
NUMBERS = {f"{letter}{8 * n}": f"{letter}{n}" for letter in "us" for n in (1, 2, 4, 8)}  # ImHex's -> Kaitai's
ONLY_IMHEX = {"equals", "newline", "model"}  # Kaitai reads over the two letters, and a program asks for the model
Members = dict[str, str]  # the fields of a type, in their order -> the type of those that are one kind of number


def of_kaitai(path: Path) -> tuple[dict[str, Members], set[str]]:
    """The types of a description; and the fields that lie at a place of their own, in no order."""
    text = yaml.safe_load(path.read_text("utf-8"))
    found, placed = {}, set()
    for name, kind in {text["meta"]["id"]: text, **text["types"]}.items():
        fields = [field for field in kind.get("seq", ()) if field.get("size") != 0]
        others = [{"id": name, **field} for name, field in kind.get("instances", {}).items() if "pos" in field]
        found[name.replace("_", "")] = {field["id"]: str(field.get("type")) for field in fields + others}
        placed |= {field["id"] for field in others}
    return found, placed


def of_imhex(path: Path) -> dict[str, Members]:
    """The same of a pattern; an enum counts as its number."""
    text = re.sub(r"//.*", "", path.read_text("utf-8"))
    numbers = NUMBERS | {name: NUMBERS[base] for name, base in ENUM.findall(text)}
    return {
        name.lower(): {member: numbers.get(kind, kind) for kind, member in MEMBER.findall(body)}
        for name, body in STRUCT.findall(text)
    }


@pytest.mark.parametrize("file", [path.name for name in TYPES for path in sorted(FOLDER.glob(f"{name}.*"))])
def test_the_tables_of_tensor_types_are_those_of_the_registry(file):
    text, rows = (FOLDER / file).read_text("utf-8"), TYPES[file.partition(".")[0]]
    assert {match[3] for match in TABLE.finditer(text)} == ({"pattern"} if "hexpat" in file else {"sizes", "enum"})
    assert with_tables(text, rows) == text, "run tools/type_tables.py"


def test_a_type_that_is_missing_in_a_table_is_written_into_it():
    text = (FOLDER / "gguf.ksy").read_text("utf-8")
    shorter = with_tables(text, TYPES["gguf"][:5])
    assert "q4_k" in text and "q4_k" not in shorter
    assert with_tables(shorter, TYPES["gguf"]) == text


@pytest.mark.parametrize("name", ["gguf", "gguf_lite", "bump"])
def test_kaitai_and_imhex_describe_the_same_fields_in_the_same_order(name):
    (kaitai, placed), imhex = of_kaitai(FOLDER / f"{name}.ksy"), of_imhex(FOLDER / f"{name}.hexpat")
    assert kaitai.keys() - imhex.keys() <= {"truth", "dim", "lines"}  # one number each, and a list of lines
    for kind, members in imhex.items():
        ours = [member for member in members if member not in ONLY_IMHEX]
        assert set(ours) == kaitai[kind].keys()
        assert [each for each in ours if each not in placed] == [each for each in kaitai[kind] if each not in placed]
        for member, number in kaitai[kind].items():
            if number in NUMBERS.values():
                assert members[member] == number, (kind, member)


@pytest.mark.parametrize(
    ("name", "enum", "members"),
    [
        ("gguf", "ValueType", {kind.name: kind.value for kind in ValueType}),
        ("gguf_lite", "DType", {kind.name: kind.value for kind in DType}),
        ("bump", "Architecture", {name.upper(): code for code, name in ARCHITECTURES.items()}),
    ],
)
def test_the_other_numbers_of_a_pattern_are_ours(name, enum, members):
    text = (FOLDER / f"{name}.hexpat").read_text("utf-8")
    body = re.search(rf"^enum {enum} : .*?^\}};", text, re.M | re.S)
    assert body and {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", body[0])} == members
