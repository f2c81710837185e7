"""A pytest plugin: ``-p tools.longest_first`` hands out the files that take longest first.

Two workers that take whole files (``-n 2 --dist loadfile``) end together only if no long file is left for the end, when
one of them has nothing more to do. pytest-xdist itself begins with the files that hold the most tests; one test may
take as long as hundreds of others.
"""

from __future__ import annotations

import pytest

# seconds of processor time each, the most first; `--durations=0` says which tests take long
LONGEST = (
    "tests/lessons/test_lab_exercises.py",
    "tests/lab/test_sentences_are_true.py",
    "tests/models/huggingface/test_huggingface.py",
    "tests/formats/gguf/codecs/test_codecs_that_round.py",
    "tests/lab/test_assembly.py",
    "tests/formats/gguf/codecs/test_codecs_that_search.py",
    "tests/models/huggingface/test_huggingface_folder.py",
    "tests/formats/bump/test_bump_malformed.py",
    "tests/lessons/test_labs_claims.py",
    "tests/lab/test_nbgrader.py",
    "tests/models/huggingface/test_huggingface_tokenizer.py",
    "tests/lab/test_grade.py",
    "tests/models/test_bridge.py",
    "tests/lab/test_authoring.py",
    "tests/lessons/test_hostile_files.py",
    "tests/formats/gguf/codecs/test_codecs_that_decode.py",
    "solutions/16-claims.ipynb",
    "notebooks/16-claims.ipynb",
    "solutions/27-rotation.ipynb",
    "notebooks/27-rotation.ipynb",
    "solutions/18-awq.ipynb",
    "notebooks/18-awq.ipynb",
    "solutions/19-gptq.ipynb",
    "notebooks/19-gptq.ipynb",
    "solutions/20-smoothquant.ipynb",
    "notebooks/20-smoothquant.ipynb",
    "solutions/13-deliverable.ipynb",
    "notebooks/13-deliverable.ipynb",
)
RANKS = {file: rank for rank, file in enumerate(LONGEST)}


def pytest_configure(config: pytest.Config) -> None:
    """The order below is the one that counts."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the same rank stay as they were collected."""
    items.sort(key=lambda item: RANKS.get(item.nodeid.partition("::")[0], len(RANKS)))
