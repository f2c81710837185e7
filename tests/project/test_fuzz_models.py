"""Damaged files of whole models: what opens them by any name gives a model, a description, or a known error."""

from __future__ import annotations

import contextlib
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import tried

from fuzz.mutate import INJURIES
from fuzz.seeds import Seed, numbers_of, written
from miniquant import FormatError, MiniquantError, write_gguf_lite
from miniquant.formats.describe import describe
from miniquant.models.corpus import load_tokenizer
from miniquant.models.load import load_any, weights_of
from miniquant.models.minigpt import MiniGPT, MiniGPTConfig
from miniquant.models.to_gguf import write_minigpt


def models() -> list[Seed]:
    """A MiniGPT of one narrow layer in each format."""
    torch.manual_seed(0)
    model = MiniGPT(MiniGPTConfig(d_model=32, n_layers=1, n_heads=2, d_mlp=64, context=8))
    files = [
        written(lambda path: write_gguf_lite(path, model, {})),
        written(lambda path: write_minigpt(path, model, load_tokenizer(), "F32")),
    ]
    return [Seed(data, numbers_of(data), {}) for data in files]


SEEDS = models()


def damaged(number: int) -> bytes:
    draw, seed = random.Random(number), SEEDS[number % len(SEEDS)]
    data = bytearray(seed.data)
    front = Seed(seed.data, seed.numbers[:400], {})  # the tokens are thousands of numbers, and all alike
    for _ in range(1 + draw.getrandbits(1)):
        draw.choice(INJURIES)(draw, data, front, SEEDS)
    return bytes(data)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "damaged"


def test_the_undamaged_models_load(path):
    for seed in SEEDS:
        path.write_bytes(seed.data)
        assert isinstance(load_any(path), MiniGPT)


@given(st.integers(0, 2**32))
@settings(max_examples=tried(37, 150))
def test_a_damaged_model_is_loaded_described_and_decoded_or_refused(path, number):
    path.unlink(missing_ok=True)
    path.write_bytes(damaged(number))
    for use, errors in ((describe, FormatError), (weights_of, MiniquantError), (load_any, MiniquantError)):
        with contextlib.suppress(errors):
            assert use(path) is not None
