"""A pytest plugin: ``-p tools.longest_first`` orders the files that take longest first, and says which stay together.

Copies that take whole files (``tools/in_copies.py``) end together only if no long file is left for the end, when one of
them has nothing more to do.

The student labs come after the solved ones, whose results they share (``tools/remembered.py``).

Files that look at every exercise of the course need what its solution and all its mistakes give on its cases. A process
computes that once, which takes a minute; so one copy gets these files, one after the other.
"""

from __future__ import annotations

import pytest

# seconds of processor time each, the most first; `--durations=0` says which tests take long
LONGEST = (
    "tests/lessons/test_lab_exercises.py",
    "tests/lab/test_sentences_are_true.py",
    "tests/lab/test_strange_results.py",
    "tests/evaluate/test_llamacpp.py",
    "tests/evaluate/test_llamacpp_steps.py",
    "tests/lab/test_example_class.py",
    "tests/lab/test_grade.py",
    "tests/project/test_table.py",
    "tests/test_cli.py",
    "tests/lab/test_true_reports.py",
    "tests/calibrate/test_calibrate_gptq.py",
    "tests/calibrate/test_calibrate.py",
    "tests/formats/gguf/test_gguf_malformed.py",
    "tests/models/test_claims.py",
    "tests/runtime/test_bump_runtime.py",
    "tests/project/test_fuzz.py",
    "tests/lab/test_assembly.py",
    "tests/lab/test_cheats.py",
    "tests/lab/test_nbgrader.py",
    "tests/lessons/test_lab_importance_matrix.py",
    "tests/models/test_to_gguf.py",
    "tests/models/huggingface/test_huggingface.py",
    "tests/evaluate/test_mixed.py",
    "tests/formats/gguf/codecs/test_codecs_that_decode.py",
    "tests/lessons/test_hostile_files.py",
    "tests/formats/gguf/test_kquants_llamacpp.py",
    "tests/lab/test_near.py",
    "tests/models/test_bridge.py",
    "tests/project/test_package.py",
    "tests/lab/test_authoring.py",
    "tests/project/test_benchmark.py",
    "tests/lab/test_lab_engine.py",
    "tests/project/test_spanish.py",
    "tests/project/test_experiment.py",
    "tests/evaluate/test_llamacpp_steps_llama.py",
    "tests/formats/test_bytes_unchanged.py",
    "tests/lab/test_grade_class.py",
    "tests/formats/gguf/test_gguf_open.py",
    "tests/models/huggingface/test_huggingface_folder.py",
    "solutions/29-mixed-precision.ipynb",
    "solutions/16-claims.ipynb",
    "solutions/26-kv-cache.ipynb",
    "solutions/27-rotation.ipynb",
    "solutions/24-importance-matrix.ipynb",
    "solutions/18-awq.ipynb",
    "solutions/20-smoothquant.ipynb",
    "solutions/13-deliverable.ipynb",
    "solutions/19-gptq.ipynb",
    "solutions/30-quantization-aware-training.ipynb",
    "solutions/07-int4.ipynb",
    "solutions/21-k-quants.ipynb",
    "solutions/25-four-bit-floats.ipynb",
    "solutions/22-bump.ipynb",
    "solutions/23-hostile-files.ipynb",
    "solutions/17-q4_1-bridge.ipynb",
    "solutions/28-integer-products.ipynb",
    "notebooks/16-claims.ipynb",
    "notebooks/20-smoothquant.ipynb",
    "notebooks/18-awq.ipynb",
    "notebooks/27-rotation.ipynb",
    "notebooks/24-importance-matrix.ipynb",
    "notebooks/30-quantization-aware-training.ipynb",
    "notebooks/19-gptq.ipynb",
    "notebooks/29-mixed-precision.ipynb",
    "notebooks/26-kv-cache.ipynb",
    "notebooks/13-deliverable.ipynb",
    "notebooks/22-bump.ipynb",
)
TOGETHER = LONGEST[:3]
RANKS = {file: rank for rank, file in enumerate(LONGEST)}


def scope_of(test: str) -> str:
    """The unit that is handed out as a whole: the file of a test, or the first of the files that stay together."""
    file = test.partition("::")[0]
    return TOGETHER[0] if file in TOGETHER else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the same rank stay as they were collected."""
    items.sort(key=lambda item: _rank(item.nodeid.partition("::")[0]))


def _rank(file: str) -> tuple[bool, int]:
    return file.startswith("notebooks/"), RANKS.get(file, len(RANKS))
