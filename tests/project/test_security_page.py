"""The book's page on security: what it names exists, and its sources are in the bibliography."""

from __future__ import annotations

import re

from places import ROOT

from conformance import gguf_files, gguf_lite_files

BOOK = ROOT / "book"
PAGE = (BOOK / "security.md").read_text("utf-8")
LAB = (BOOK.parent / "solutions" / "23-hostile-files.ipynb").read_text("utf-8")


def test_every_check_of_the_lab_s_reader_is_told_on_the_page():
    story = PAGE[PAGE.index("## What happened") : PAGE.index("## What a refusal costs")]
    for told in ("A count", "A text's length", "An array's length", "Five dims", "A product", "An offset", "A name"):
        assert f"**{told}.**" in story
    for part in ("safe_string", "read_dims", "data_start"):
        assert f"given.{part}" in story and f"| `{part}` |" in LAB


def test_the_malformed_files_that_the_page_names_are_in_the_corpus():
    named = re.findall(r"“([^”]+)”", PAGE)
    assert len(named) > 15
    assert set(named) <= {*gguf_lite_files.CORPUS, *gguf_files.CORPUS}


def test_every_vulnerability_has_a_record_in_the_bibliography():
    cited = set(re.findall(r"\{cite\}`cve-([\d-]+)`", PAGE))
    entries = (BOOK / "references.bib").read_text("utf-8")
    recorded = set(re.findall(r"@misc\{cve-([\d-]+),", entries))
    assert cited == recorded
    assert all(f"url = {{https://www.cve.org/CVERecord?id=CVE-{number}}}" in entries for number in recorded)


def test_every_vulnerability_that_the_lab_tells_of_is_on_the_page():
    told = set(re.findall(r"CVE-(\d{4}-\d+)", LAB))
    assert len(told) >= 14
    assert told <= set(re.findall(r"\{cite\}`cve-([\d-]+)`", PAGE))
