"""The text: held-out words are never trained on, and no byte of it gets lost on the way to tokens."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from miniquant.models import corpus

SOURCES = ("topics", "docstrings")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def normal(paragraph: str) -> str:
    return " ".join(paragraph.split())


def long_paragraphs(documents) -> list[str]:
    """All paragraphs of 40 characters or more, white space apart, by the plainest of splits."""
    found, lines = [], []
    for document in documents:
        for line in [*document.split("\n"), ""]:
            if line.strip():
                lines.append(line)
            elif lines:
                found.append("\n".join(lines))
                lines = []
    return [normal(p) for p in found if len(p) >= 40]


@pytest.fixture(scope="module")
def training():
    return corpus.training_documents()


@pytest.fixture(scope="module")
def trained_on(training):
    return long_paragraphs(training)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("fresh", [False, True])
def test_no_held_out_paragraph_stands_in_the_training_text(source, fresh, trained_on):
    held_out = long_paragraphs(corpus.held_out_documents(source, fresh=fresh))
    assert len(held_out) > 100
    assert not set(held_out) & set(trained_on)


def test_no_long_paragraph_stands_twice_in_a_part(trained_on):
    for found in (trained_on, *(long_paragraphs(corpus.held_out_documents(source)) for source in SOURCES)):
        assert len(found) == len(set(found))


def test_a_document_is_wholly_held_out_or_wholly_training(training):
    for source in SOURCES:
        names = [*corpus.documents(source, True), *corpus.documents(source, False)]
        part = sum(map(corpus.is_held_out, names)) / len(names)
        assert 0.08 < part < 0.18
    assert corpus.is_held_out("lambda") == (hash_part("lambda") < 0.13)


def hash_part(name: str) -> float:
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 16**8


@given(st.text(max_size=30).filter(lambda s: s.isprintable()))
def test_a_name_alone_decides_what_is_held_out(name):
    assert corpus.is_held_out(name) == (hash_part(name) < corpus.HELD_OUT_PART)


def test_the_text_is_large_enough_to_learn_from_and_to_measure_on(training):
    assert sum(map(len, training)) > 1_000_000
    assert sum(map(len, corpus.held_out_documents("topics"))) > 30_000
    assert sum(map(len, corpus.held_out_documents("docstrings"))) > 80_000


# ---- another Python version has another text -------------------------------------------------------------------------

A = "The first paragraph, which is comfortably longer than forty characters."
B = "The second paragraph, which is also longer than forty characters by a bit."
C = "The third paragraph; like the others, it is longer than forty characters."
SHORT = "See also:"


def other_python(monkeypatch, topics: dict[str, str], docstrings: dict[str, str], trained_on: list[str]) -> None:
    """An interpreter with these documents, and a committed model that was trained on these paragraphs."""
    held_out = {"held"}
    documents = {"topics": topics, "docstrings": docstrings}

    def some(source, wanted=None):
        return {name: text for name, text in documents[source].items() if wanted in (None, name in held_out)}

    monkeypatch.setattr(corpus, "documents", some)
    monkeypatch.setattr(corpus, "is_held_out", lambda name: name in held_out)
    monkeypatch.setattr(corpus, "_trained_on", lambda: {corpus.paragraph_hash(p) for p in trained_on})


held_out_documents = corpus.held_out_documents.__wrapped__  # without the cache
training_documents = corpus.training_documents.__wrapped__


def test_a_paragraph_that_moved_from_training_to_held_out_is_dropped_from_held_out(monkeypatch):
    other_python(monkeypatch, {"held": f"{A}\n\n{SHORT}\n\n{B}"}, {}, trained_on=[A])
    assert held_out_documents("topics") == [f"{SHORT}\n\n{B}"]
    assert held_out_documents("topics", fresh=True) == [f"{A}\n\n{SHORT}\n\n{B}"]


def test_white_space_does_not_hide_a_paragraph_that_was_trained_on(monkeypatch):
    moved = A.replace(" ", "\n    ", 3)
    other_python(monkeypatch, {"held": f"{moved}\n\n{B}"}, {}, trained_on=[A])
    assert held_out_documents("topics") == [B]


def test_a_document_of_which_nothing_new_is_left_disappears(monkeypatch):
    other_python(monkeypatch, {"held": A}, {}, trained_on=[A])
    assert held_out_documents("topics") == []


def test_a_paragraph_in_both_parts_is_held_out_whichever_source_it_is_in(monkeypatch):
    other_python(
        monkeypatch,
        {"held": A, "one": f"{A}\n\n{B}\n\n{SHORT}", "two": f"{SHORT}\n\n{B}"},
        {"held": C, "three": f"{C}\n\n{A}\n\n{SHORT}"},
        trained_on=[],
    )
    assert held_out_documents("topics") == [A]
    assert held_out_documents("docstrings") == [C]
    assert training_documents() == [f"{B}\n\n{SHORT}", SHORT, SHORT]


def test_nothing_held_out_on_this_python_was_seen_by_the_committed_model():
    trained_on = corpus._trained_on()
    assert len(trained_on) > 5000
    for source in SOURCES:
        for document in corpus.held_out_documents(source):
            for paragraph in corpus.paragraphs(document):
                assert len(paragraph) < 40 or corpus.paragraph_hash(paragraph) not in trained_on


def test_paragraphs_are_what_stands_between_blank_lines():
    assert corpus.paragraphs("a\nb\n\n  c\n \t\n\n\nd\n") == ["a\nb", "  c", "d"]
    assert corpus.paragraphs("") == corpus.paragraphs(" \n\n \n") == []


def test_a_paragraphs_hash_is_64_bits_of_blake2_of_its_words():
    digest = hashlib.blake2b(b"two words", digest_size=8).digest()
    assert corpus.paragraph_hash(" two\n\twords ") == int.from_bytes(digest, "little")


def test_docstrings_are_parsed_and_nothing_is_imported(tmp_path):
    (tmp_path / "test").mkdir()
    for name in ("good.py", "test/left_out.py"):
        (tmp_path / name).write_text(f'"""{A} {B}"""\nraise SystemExit\n')
    (tmp_path / "short.py").write_text('"""Too short."""\n')
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "latin.py").write_bytes(b'"""\xff"""')
    assert corpus._docstrings(tmp_path) == {"good": f"{A} {B}"}


def test_an_unknown_source_says_which_there_are():
    with pytest.raises(ValueError, match="'topics' and 'docstrings'"):
        corpus.documents("novels")


def test_the_texts_hash_tells_texts_apart():
    assert corpus.text_hash(["a", "b"]) == hashlib.sha256(b"a\0b").hexdigest()[:12]
    assert corpus.text_hash(["a", "b"]) != corpus.text_hash(["ab"])


# ---- tokens ----------------------------------------------------------------------------------------------------------


@given(texts)
@example(" \n\n\t leading and trailing \u00a0 ")
@example("\0\x7f\ufffd\U0010ffff é e\u0301 漢字 🙂")
@example("<|endoftext|> in a text")
def test_the_tokenizer_gives_back_any_text(text):
    tokenizer = corpus.load_tokenizer()
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


@given(texts)
def test_the_bytes_of_the_tokens_add_up_to_those_of_the_text(text):
    tokenizer = corpus.load_tokenizer()
    assert corpus.token_bytes(tokenizer)[tokenizer.encode(text).ids].sum() == len(text.encode())


def test_there_is_a_token_for_every_byte_and_one_for_the_end_of_a_text():
    tokenizer = corpus.load_tokenizer()
    sizes = corpus.token_bytes(tokenizer)
    assert tokenizer.get_vocab_size() == len(sizes) == 1024
    assert tokenizer.id_to_token(0) == corpus.END_OF_TEXT
    assert sizes[0] == 0
    assert (sizes == 1).sum() == 256
    assert (sizes[1:] >= 1).all()


def test_documents_are_joined_behind_an_end_of_text_token_each():
    tokenizer = corpus.load_tokenizer()
    ids = corpus.encode_documents(tokenizer, ["import os", "", "x"])
    assert ids.dtype == np.int64
    assert ids.tolist() == [0, *tokenizer.encode("import os").ids, 0, 0, *tokenizer.encode("x").ids]


@pytest.mark.parametrize("length", [256, 64])
def test_windows_cover_the_held_out_text_once_without_overlap(length):
    windows = corpus.held_out_windows("topics", length)
    ids = corpus.encode_documents(corpus.load_tokenizer(), corpus.held_out_documents("topics"))
    assert windows.shape == ((len(ids) - 1) // length, length + 1)
    assert np.array_equal(windows[:, :-1].reshape(-1), ids[: len(windows) * length])
    assert np.array_equal(windows[:-1, -1], windows[1:, 0])  # the last column is predicted only
    assert windows[-1, -1] == ids[len(windows) * length]
    assert np.array_equal(corpus.held_out_windows("topics", length, limit=3), windows[:3])
