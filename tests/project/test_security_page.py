"""The book's page on security: what it names exists, and its sources are in the bibliography."""

from __future__ import annotations

import re

import gguf_malformations
import malformations
from places import ROOT

BOOK = ROOT / "book"
PAGE = (BOOK / "security.md").read_text("utf-8")
LAB = (BOOK.parent / "solutions" / "23-hostile-files.ipynb").read_text("utf-8")


def test_the_malformed_files_that_the_page_names_are_in_the_corpus():
    named = re.findall(r"“([^”]+)”", PAGE)
    assert len(named) > 15
    assert set(named) <= {*malformations.CORPUS, *gguf_malformations.CORPUS}


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
