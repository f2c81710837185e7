"""Lab 22: its product of integers is llama.cpp's, and llama.cpp maps the GGUF file and computes from its blocks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from miniquant.evaluate.llamacpp import LlamaCpp
from miniquant.formats.gguf import read_gguf
from miniquant.lab import exercises
from miniquant.models.corpus import load_tokenizer
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import write_minigpt

PROMPT = "An exception is raised when"


@pytest.fixture(scope="module")
def gguf(tmp_path_factory):
    path = tmp_path_factory.mktemp("lab22") / "minigpt.gguf"
    write_minigpt(path, load_pretrained(), load_tokenizer(), "Q8_0")
    return path


def test_the_product_of_integers_gives_llama_cpp_s_own_logits_and_the_one_of_floats_does_not(gguf):
    functions = exercises()
    with read_gguf(gguf) as file:
        rows = file.raw("token_embd.weight").reshape(-1, 8, 34)[::16].copy()
    with LlamaCpp(gguf) as llama:
        steps = llama.steps(load_tokenizer().encode(PROMPT).ids, ["result_norm", "result_output"])
    x = steps["result_norm"][-1]
    blocks = np.frombuffer(functions["encode_q8_0"].reference(x.reshape(-1, 32)), np.uint8).reshape(-1, 34)
    theirs = steps["result_output"][-1][::16]
    for name, right, least, most in (("q8_q8_dot", blocks, 0, 1e-6), ("q8_dot", x, 1e-4, 1e-2)):
        mine = np.array([functions[name].reference(row, right) for row in rows])
        assert least <= np.abs(mine - theirs).max() / np.abs(theirs).max() <= most, name


def test_llama_cpp_maps_the_gguf_file(gguf):
    with LlamaCpp(gguf) as llama:
        assert llama.tokenize(PROMPT)
        if sys.platform != "linux":  # which lists the files that a process has mapped
            return
        mapped = Path(f"/proc/{llama._process.pid}/maps").read_text()
    (line,) = [line for line in mapped.splitlines() if str(gguf) in line]
    start, end = (int(number, 16) for number in re.match(r"(\w+)-(\w+)", line).groups())
    assert end - start >= 0.99 * gguf.stat().st_size - 2**15  # all but the pages of the metadata, which it lets go
