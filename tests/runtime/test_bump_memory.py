"""How memory is measured: what is counted, in the process itself and in one of its own."""

import mmap

import numpy as np
import pytest
from bump_models import SMALL, write_llama

from miniquant.formats.bump import BumpType, write_bump
from miniquant.runtime import memory
from miniquant.runtime.memory import WAYS, Memory, resident
from miniquant.runtime.runtime import Runtime


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    write_llama(folder / "m.gguf", SMALL)
    write_bump(folder / "m.gguf", folder / "weights.bump")
    return folder / "weights.bump"


def test_the_peak_is_the_most_after_any_token():
    assert Memory(1, 2, [3, 9, 4]).peak == 9


def test_what_a_process_holds_grows_by_what_it_fills():
    with mmap.mmap(-1, 64 << 20) as fresh:  # pages that nobody has had before
        before = resident()
        np.frombuffer(fresh, np.uint8)[:] = 1
        assert resident() - before >= 0.9 * len(fresh)


@pytest.mark.parametrize("way", WAYS)
def test_memory_is_looked_at_after_opening_and_after_each_token(way, small):
    found = memory._run(str(small), way, 3)
    assert (found.file, len(found.tokens)) == (small.stat().st_size, 4)
    with Runtime(small) as model:
        assert found.arena == model.plan.size


def test_no_more_tokens_are_generated_than_the_context_has(small):
    with Runtime(small) as model:
        context = model.context
    assert len(memory._run(str(small), WAYS[0], context + 5).tokens) <= context + 1


def test_dequantizing_first_leaves_the_logits_as_they_are_and_no_block_behind(small):
    with Runtime(small) as model:
        before = model.logits([1, 2, 3]).copy()
        memory._dequantize(model)
        assert np.abs(model.logits([1, 2, 3]) - before).max() <= 1e-4
        assert {kind for _, kind, _ in model._weights.values()} == {BumpType.FP32}
