"""The course in Spanish: every sentence has a translation that keeps its code, and a changed sentence is noticed."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import spanish
from babel.messages.catalog import Catalog
from thorough import tried

from miniquant.core.language import FOLDER, read_po, residue, speaking
from miniquant.lab import evaluate, exercises, find

ROOT = Path(__file__).resolve().parents[2]
CATALOGUES = sorted([*(ROOT / "es" / "locale").rglob("*.po"), *(FOLDER / "es").rglob("*.po")])
NOTEBOOKS = sorted((ROOT / "es" / "notebooks").glob("*.ipynb"))


def kept(text):
    """What a translation must keep: fields, code, and the addresses of links."""
    plain = re.sub(r"\{(term|download)\}`[^`]*`", "", text)
    code = re.findall(r"`[^`\n]+`", plain) if plain.count("`") % 2 == 0 and "```" not in plain else []
    return Counter((*re.findall(r"\{\w*\}", re.sub(r"`[^`]*`", "", plain)), *code, *re.findall(r"\]\(([^)]*)\)", text)))


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_a_translation_keeps_fields_code_and_addresses(path):
    fragments = path.stem in ("engine", "site")  # their backticks may belong to another part of the sentence
    for message, translation in read_po(path).items():
        if fragments:
            assert Counter(re.findall(r"\{\w*\}", message)) == Counter(re.findall(r"\{\w*\}", translation)), message
        else:
            assert kept(message) == kept(translation), message


def test_a_changed_sentence_has_no_translation_until_somebody_writes_it(tmp_path):
    path = tmp_path / "page.po"
    catalog = Catalog(locale="es", fuzzy=False)
    catalog.add("A weight takes four bytes in memory.", "Un peso ocupa cuatro bytes en memoria.")
    spanish.write(path, catalog)
    assert read_po(path) == {"A weight takes four bytes in memory.": "Un peso ocupa cuatro bytes en memoria."}
    spanish.write(path, spanish.updated(path, [("A weight takes four bytes in a file.", "")]))
    assert read_po(path) == {}
    assert "Un peso ocupa" in path.read_text("utf-8")  # the old one is kept for the translator, marked as fuzzy


def test_a_sentence_that_is_gone_leaves_the_catalogue(tmp_path):
    path = tmp_path / "page.po"
    spanish.write(path, spanish.updated(path, [("One.", ""), ("Two.", "")]))
    spanish.write(path, spanish.updated(path, [("Two.", "")]))
    assert "One." not in path.read_text("utf-8")


def test_every_sentence_of_parts_0_to_3_is_translated_and_the_stored_files_are_what_that_gives():
    assert spanish.differences([path for path in spanish.chosen() if path.name[:2] in spanish.LABS]) == []


def test_a_notebook_or_page_that_its_sources_do_not_give_is_noticed(monkeypatch):
    (lab,), page, given = spanish.chosen(["00"]), spanish.PAGES[0], spanish.in_spanish

    def in_spanish(path):
        notebook = given(path)
        notebook.cells[-1].source += " changed"
        return notebook

    monkeypatch.setattr(spanish, "untranslated", lambda labs: [])
    monkeypatch.setattr(spanish, "in_spanish", in_spanish)
    monkeypatch.setattr(spanish, "page_in_spanish", lambda name, given=spanish.page_in_spanish: given(name) + "changed")
    monkeypatch.setattr(spanish, "PAGES", (page,))
    assert spanish.differences([lab]) == [
        f"es/{changed} differs from its regeneration; run python tools/spanish.py"
        for changed in (f"notebooks/{lab.name}", f"book/{page}.md")
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_spanish_notebook_has_the_cells_of_the_english_one(path):
    one, other = (json.loads(p.read_text("utf-8"))["cells"] for p in (path, ROOT / "notebooks" / path.name))
    assert [(cell["id"], cell["cell_type"]) for cell in one] == [(cell["id"], cell["cell_type"]) for cell in other]
    for mine, english in zip(one, other):
        if mine["metadata"].get("miniquant", {}).get("part") == "check":
            assert mine["source"] == english["source"]


def mistakes():
    """Every catalogued mistake of parts 0 to III; a few of them on ordinary days."""
    names = [name for name in exercises() if exercises().lab_of(name) in spanish.LABS]
    return [(name, number) for name in names for number in range(len(find(name).mistakes))][:: tried(250, 1)]


def texts():
    """What the reports of these mistakes say, part by part; values and tracebacks are what they are."""
    for name, number in mistakes():
        wrong = find(name).mistakes[number].wrong
        report = evaluate(find(name), getattr(wrong, "function", wrong))
        assert not report.passed
        with speaking("es"):
            assert "✗ todavía no es correcto" in repr(report)
        values = ("smallest case", "smallest case of this kind", "expected", "got", "traceback")
        yield from (text for label, text in report.lines() if label not in values)
        yield report.what


def test_nineteen_of_twenty_texts_of_reports_are_in_spanish_to_the_last_word():
    """The rest are sentences that no catalogue covers whole; they stay English, each as a whole."""
    found = list(texts())
    left = [text for text in found if residue(text, "es")]
    assert len(left) <= len(found) / 20, left


def test_a_report_has_its_labels_in_spanish():
    name, number = mistakes()[0]
    wrong = find(name).mistakes[number].wrong
    with speaking("es"):
        shown = repr(evaluate(find(name), getattr(wrong, "function", wrong)))
    for label in ("el menor caso", "se espera", "se obtuvo"):
        assert f"\n  {label}: " in shown
