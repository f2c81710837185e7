"""The bank of questions: one choice is true, the same file every time, and a package that follows its schema.

The rules of QTI 2.1 are those of imsqti_v2p1.xsd and imscp_v1p1.xsd for the elements that are used: which attributes an
element must and may have, and which children in which order.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner

from miniquant.cli import main
from miniquant.lab import exercises
from miniquant.lab.attempt import cases_of, expected_of, outcomes_of
from miniquant.lab.authoring.qti import ITEM, MATCH_CORRECT, PACKAGE, RESOURCE, item, package
from miniquant.lab.authoring.questions import as_markdown, bank, said
from miniquant.lab.verdict import problem

LABS = ["07", "09"]
NCNAME = re.compile(r"[A-Za-z_][\w.\-]*")
INLINE = ("code",)
RULES = {  # element: (attributes that it must have, those that it may have, children in order as a pattern)
    "assessmentItem": (
        {"identifier", "title", "adaptive", "timeDependent"},
        {"label", "toolName", "toolVersion"},
        "(responseDeclaration )*(outcomeDeclaration )*(itemBody )?(responseProcessing )?(modalFeedback )*",
    ),
    "responseDeclaration": ({"identifier", "cardinality"}, {"baseType"}, "(defaultValue )?(correctResponse )?"),
    "correctResponse": (set(), {"interpretation"}, "(value )+"),
    "value": (set(), {"fieldIdentifier", "baseType"}, ""),
    "outcomeDeclaration": ({"identifier", "cardinality"}, {"baseType", "view", "interpretation"}, "(defaultValue )?"),
    "itemBody": (set(), {"id", "class", "label"}, "((p|pre|choiceInteraction) )*"),
    "p": (set(), {"id", "class", "label"}, "(code )*"),
    "pre": (set(), {"id", "class", "label"}, "(code )*"),
    "code": (set(), {"id", "class", "label"}, ""),
    "choiceInteraction": (
        {"responseIdentifier"},
        {"shuffle", "maxChoices", "minChoices", "orientation"},
        "(prompt )?(simpleChoice )+",
    ),
    "simpleChoice": ({"identifier"}, {"fixed", "templateIdentifier", "showHide"}, "(code )*"),
    "responseProcessing": (set(), {"template", "templateLocation"}, ""),
}
PACKAGE_RULES = {
    "manifest": ({"identifier"}, {"version"}, "(metadata )?organizations resources "),
    "metadata": (set(), set(), "(schema )?(schemaversion )?"),
    "schema": (set(), set(), ""),
    "schemaversion": (set(), set(), ""),
    "organizations": (set(), {"default"}, ""),
    "resources": (set(), set(), "(resource )*"),
    "resource": ({"identifier", "type"}, {"href"}, "(metadata )?(file )*"),
    "file": ({"href"}, set(), ""),
}


@pytest.fixture(scope="module")
def questions():
    return bank(LABS)


def follows(element, space, rules):
    name = element.tag.removeprefix(f"{{{space}}}")
    must, may, children = rules[name]
    assert must <= set(element.attrib) <= must | may, name
    found = "".join(child.tag.removeprefix(f"{{{space}}}") + " " for child in element)
    assert re.fullmatch(children, found), (name, found)
    for child in element:
        follows(child, space, rules)


def cases(spec, name):
    (mistake,) = (m for m in spec.mistakes if said(m) == name)
    calls = zip(cases_of(spec), outcomes_of(spec, mistake.wrong), expected_of(spec))
    return [problem(spec, case, outcome, expected) is not None for case, outcome, expected in calls]


def test_a_question_has_four_different_choices_and_the_cause_of_its_own_function_is_the_right_one(questions):
    for question in questions:
        spec = exercises()[question.exercise]
        (mistake,) = (m for m in spec.mistakes if m.name == question.mistake)
        assert len(set(question.choices)) == 4
        assert question.choices[question.right] == said(mistake)
        assert question.code == mistake.wrong.source.rstrip()
        assert question.cure == mistake.cure


def test_no_wrong_choice_explains_the_function_each_is_right_where_the_other_is_wrong(questions):
    for question in questions:
        spec = exercises()[question.exercise]
        own = cases(spec, question.choices[question.right])
        for number, choice in enumerate(question.choices):
            if number != question.right:
                pairs = set(zip(own, cases(spec, choice)))
                assert {(True, False), (False, True)} <= pairs, (question.exercise, question.mistake, choice)


def test_every_letter_is_the_answer_of_some_question(questions):
    letters = Counter(question.right for question in questions)
    assert len(questions) > 50
    assert min(letters[place] for place in range(4)) > len(questions) / 10


def test_the_same_labs_give_the_same_bytes(questions):
    assert package(questions) == package(bank(LABS))
    assert len({question.identifier for question in questions}) == len(questions)


def test_every_item_follows_the_schema_of_qti(questions):
    for question in questions:
        root = Xml.fromstring(item(question))
        follows(root, ITEM, RULES)
        space = {"q": ITEM}
        assert NCNAME.fullmatch(root.get("identifier"))
        assert root.get("adaptive") == root.get("timeDependent") == "false"
        (interaction,) = root.findall(".//q:choiceInteraction", space)
        (declared,) = root.findall("q:responseDeclaration", space)
        assert interaction.get("responseIdentifier") == declared.get("identifier") == "RESPONSE"
        assert (declared.get("cardinality"), declared.get("baseType")) == ("single", "identifier")
        (correct,) = declared.findall(".//q:value", space)
        choices = {c.get("identifier"): "".join(c.itertext()) for c in interaction.findall("q:simpleChoice", space)}
        assert choices[correct.text] == question.choices[question.right].replace("`", "")
        assert root.find("q:responseProcessing", space).get("template") == MATCH_CORRECT
        assert root.find("q:outcomeDeclaration", space).get("identifier") == "SCORE"


def test_no_title_and_no_name_of_a_file_tells_the_answer(questions):
    for question in questions:
        root = Xml.fromstring(item(question))
        assert root.get("title") == f"Lab {question.lab}, {question.exercise}"
        assert re.fullmatch(rf"lab\d\d_{question.exercise}_[0-9a-f]{{8}}", question.identifier)


def test_the_package_lists_each_of_its_files(questions):
    with zipfile.ZipFile(io.BytesIO(package(questions))) as archive:
        names = archive.namelist()
        root = Xml.fromstring(archive.read("imsmanifest.xml"))
    follows(root, PACKAGE, PACKAGE_RULES)
    entries = root.findall(f".//{{{PACKAGE}}}resource")
    assert {entry.get("type") for entry in entries} == {RESOURCE}
    assert all(entry.find(f"{{{PACKAGE}}}file").get("href") == entry.get("href") for entry in entries)
    assert [entry.get("href") for entry in entries] == names[1:]
    assert len({entry.get("identifier") for entry in entries}) == len(entries)


def test_the_markdown_has_the_answers_after_all_questions(questions):
    asked, answers = as_markdown(questions).split("# Answers\n")
    assert asked.count("\n## ") == len(re.findall(r"^\d+\. \*\*[ABCD]\*\*\. ", answers, re.M)) == len(questions)


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def test_the_command_writes_a_bank_in_both_forms_and_refuses_a_lab_that_is_none(tmp_path):
    done = run("questions", "7", "--each", "1", "--out", tmp_path / "q.md")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "q.md").read_text("utf-8")
    count = text.count("\n## ")
    assert f"{count} questions on {count} exercises" in done.output
    done = run("questions", "07", "--each", "1", "--form", "qti", "--out", tmp_path / "q.zip")
    assert done.exit_code == 0, done.output
    assert len(zipfile.ZipFile(tmp_path / "q.zip").namelist()) == count + 1
    assert "no lab has the number 99" in str(run("questions", "99").exception)
