"""Questions as a package of QTI 2.1, the form in which systems exchange questions.

Each question is a file with one ``assessmentItem``, which is scored by the template "match correct" of the standard;
``imsmanifest.xml`` lists them. The form: https://www.imsglobal.org/question/qtiv2p1/imsqti_infov2p1.html, and the
package: https://www.imsglobal.org/content/packaging/index.html.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from .questions import LETTERS, PROMPT, Question

ITEM = "http://www.imsglobal.org/xsd/imsqti_v2p1"
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"
MATCH_CORRECT = "http://www.imsglobal.org/question/qti_v2p1/rptemplates/match_correct"
RESOURCE = "imsqti_item_xmlv2p1"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip archive knows: the same questions are the same bytes


def item(question: Question) -> bytes:
    """One question as an ``assessmentItem``."""
    names = {"identifier": question.identifier, "title": f"Lab {question.lab}, {question.exercise}"}
    root = Xml.Element("assessmentItem", xmlns=ITEM, adaptive="false", timeDependent="false", attrib=names)
    response = Xml.SubElement(
        root, "responseDeclaration", identifier="RESPONSE", cardinality="single", baseType="identifier"
    )
    correct = Xml.SubElement(response, "correctResponse")
    Xml.SubElement(correct, "value").text = LETTERS[question.right]
    Xml.SubElement(root, "outcomeDeclaration", identifier="SCORE", cardinality="single", baseType="float")
    body = Xml.SubElement(root, "itemBody")
    Xml.SubElement(body, "p").text = PROMPT
    Xml.SubElement(body, "pre").text = question.code
    interaction = Xml.SubElement(
        body, "choiceInteraction", responseIdentifier="RESPONSE", shuffle="true", maxChoices="1"
    )
    for letter, choice in zip(LETTERS, question.choices):
        _with_code(Xml.SubElement(interaction, "simpleChoice", identifier=letter), choice)
    Xml.SubElement(root, "responseProcessing", template=MATCH_CORRECT)
    return _written(root)


def _with_code(element: Xml.Element, text: str) -> None:
    """Put a text into an element; what stands between backticks becomes ``code``."""
    first, *rest = re.split(r"`([^`]+)`", text)
    element.text = first
    for code, after in zip(rest[::2], rest[1::2]):
        part = Xml.SubElement(element, "code")
        part.text, part.tail = code, after


def manifest(questions: Iterable[Question]) -> bytes:
    """The list of the files of a package."""
    root = Xml.Element("manifest", xmlns=PACKAGE, identifier="miniquant_questions")
    metadata = Xml.SubElement(root, "metadata")
    Xml.SubElement(metadata, "schema").text = "QTIv2.1 Package"
    Xml.SubElement(metadata, "schemaversion").text = "1.0.0"
    Xml.SubElement(root, "organizations")
    resources = Xml.SubElement(root, "resources")
    for question in questions:
        file = f"{question.identifier}.xml"
        entry = Xml.SubElement(resources, "resource", identifier=f"r_{question.identifier}", type=RESOURCE, href=file)
        Xml.SubElement(entry, "file", href=file)
    return _written(root)


def package(questions: list[Question]) -> bytes:
    """A zip archive with the manifest and a file for each question; the same bytes for the same questions."""
    files = {"imsmanifest.xml": manifest(questions)}
    files |= {f"{question.identifier}.xml": item(question) for question in questions}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, data)
    return out.getvalue()


def _written(root: Xml.Element) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, "unicode")}\n'.encode()
