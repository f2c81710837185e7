"""Sentences in another language: looked up whole, by template, sentence by sentence; what is unknown stays."""

from __future__ import annotations

from functools import cache

import pytest

from miniquant.core import language
from miniquant.core.language import Catalogue, read_po, speaking, translated


@cache
def known() -> Catalogue:
    return Catalogue(MESSAGES)


MESSAGES = {
    "a row": "una fila",
    "{0} of {1} results are wrong": "{0} de {1} resultados están mal",
    "{0} where `{1}` is {2}": "{0} donde `{1}` es {2}",
    "; the rest is right": "; el resto está bien",
    "the first is {0}, the second {1}": "{1} es el segundo, {0} el primero",
    "Compute in {}.": "Calcula en {}.",
    "long": "largo",
    "the last is {0}": "el último es {0}",
}


def say(text):
    return known().look_up(text)


def test_a_message_is_looked_up_whole():
    assert say("a row") == ("una fila", 0)


def test_fields_are_put_into_the_place_that_the_translation_gives_them():
    assert say("3 of 4 results are wrong") == ("3 de 4 resultados están mal", 0)
    assert say("the first is 1, the second 2") == ("2 es el segundo, 1 el primero", 0)


def test_what_a_field_holds_is_translated_and_code_is_not():
    assert say("a row where `long` is long") == ("una fila donde `long` es largo", 0)


def test_sentences_one_after_another_are_translated_each():
    text, missing = say("3 of 4 results are wrong; the rest is right. Compute in float64.")
    assert text == "3 de 4 resultados están mal; el resto está bien. Calcula en float64."
    assert missing == 0


def test_a_sentence_that_begins_with_a_capital_is_the_message_that_does_not():
    assert say("A row") == ("Una fila", 0)
    assert say("The last is 1") == ("El último es 1", 0)
    assert say("The first is 1, the second 2") == ("2 es el segundo, 1 el primero", 0)


def test_parts_between_commas_are_translated_together_or_not_at_all():
    assert say("a row, long, the last is 1") == ("una fila, largo, el último es 1", 0)
    assert say("a row, unheard of, long")[0] == "a row, unheard of, long"


def test_code_counts_as_no_word():
    for text in ("`pack_int4`", "NaN", "a ValueError"):
        assert say(text) == (text, 0)


def test_a_field_without_a_number_is_a_field():
    assert say("Compute in a row.")[0] == "Calcula en una fila."


def test_what_no_catalogue_has_stays_and_is_counted():
    assert say("nobody knows this") == ("nobody knows this", 3)


def test_space_around_a_message_stays():
    assert say("  a row\n") == ("  una fila\n", 0)


def test_a_catalogue_leaves_out_what_is_fuzzy_or_empty(tmp_path):
    path = tmp_path / "a.po"
    path.write_text(
        '#. a remark\nmsgid "one"\nmsgstr "uno"\n\n#, fuzzy\nmsgid "two"\nmsgstr "dos"\n\nmsgid "three"\nmsgstr ""\n\n'
        'msgid ""\n"four\\n"\n"\\"five\\""\nmsgstr ""\n"cuatro\\n"\n"«cinco»"\n',
        "utf-8",
    )
    assert read_po(path) == {"one": "uno", 'four\n"five"': "cuatro\n«cinco»"}


def test_the_environment_chooses_a_language_that_has_catalogues(monkeypatch):
    for value, expected in (("", "en"), ("es", "es"), ("es_PE.UTF-8", "es"), ("xx", "en"), ("..", "en")):
        monkeypatch.setenv(language.VARIABLE, value)
        assert language.language() == expected


def test_a_language_is_chosen_for_a_block_alone(monkeypatch):
    monkeypatch.setenv(language.VARIABLE, "en")
    with speaking("es"):
        assert translated("not attempted") != "not attempted"
    assert translated("not attempted") == "not attempted"


@pytest.mark.parametrize("text", ["", "`code`", "12"])
def test_what_has_no_words_stays(text):
    with speaking("es"):
        assert translated(text) == text
