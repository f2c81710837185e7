"""The labs on eight and on four bits: what they print is true, and what their checks accept and refuse."""

from __future__ import annotations

import copy
import hashlib
import re
import textwrap

import nbformat
import numpy as np
import pytest
import torch
from places import ROOT

import miniquant as mq
from miniquant.evaluate.speech import PROMPT, one_line
from miniquant.lab import evaluate, find
from miniquant.models import corpus

FOLDERS = ("solutions", "notebooks")


def cells(folder: str, name: str) -> dict[str, nbformat.NotebookNode]:
    notebook = nbformat.read(ROOT / folder / name, as_version=4)
    return {cell.id: cell for cell in notebook.cells}


def printed(cell: nbformat.NotebookNode) -> str:
    outputs = cell.get("outputs", [])
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def digest(quantized: dict[str, mq.Quantized]) -> str:
    hashed = hashlib.sha256()
    for name, (values, scale) in quantized.items():
        hashed.update(name.encode() + values.tobytes() + scale.astype("<f2").tobytes())
    return hashed.hexdigest()[:16]


@pytest.fixture(scope="module")
def matrices(trained):
    return {name: w.numpy() for name, w in trained.state_dict().items() if w.ndim == 2}


# ---- what the labs print ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_hashes_are_those_of_the_integers_and_scales_of_all_matrices(folder, matrices):
    rows = {name: mq.quantize_per_channel(w, 8) for name, w in matrices.items()}
    groups = {name: mq.quantize_per_group(w, 4, 64) for name, w in matrices.items()}
    for name, cell, expected in (("06-int8", "lab04-060", rows), ("07-int4", "lab05-069", groups)):
        said = re.findall(r"(yours|reference): +(\w{16})", printed(cells(folder, f"{name}.ipynb")[cell]))
        assert said == [("yours", digest(expected)), ("reference", digest(expected))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_the_exact_scale_in_memory_leaves_a_gap_and_the_error_is_the_same(folder):
    said = printed(cells(folder, "07-int4.ipynb")["lab05-061"])
    rows = re.findall(r"^(\d)\. .* file (\S+) +mean squared error (\S+)$", said, re.M)
    assert [number for number, _, _ in rows] == ["1", "2", "3"]
    gaps, errors = [float(gap) for _, gap, _ in rows], {error for *_, error in rows}
    assert 1e-6 < gaps[0] < 1e-3
    assert gaps[1:] == [0, 0]
    assert len(errors) == 1
    assert "measured: 0.04 %" in said


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_plot_of_bits_has_all_sizes_of_groups_and_int8(folder):
    found = cells(folder, "07-int4.ipynb")
    said = printed(found["lab05-057"])
    listed = [f"INT4, groups of {size}" for size in (16, 32, 64, 128, 256)] + ["INT8, a scale a row"]
    assert all(f"{name} " in said for name in listed)
    assert "plots.bits_against_kl(points, guess=guess" in found["lab05-058"].source


@pytest.mark.parametrize("folder", FOLDERS)
def test_both_labs_end_with_a_model_that_speaks_from_the_students_functions(folder):
    for name, own in (
        ("06-int8", '"8 bits, a scale a row": with_weights({n: fake_per_channel(w)'),
        ("07-int4", 'ladder["4 bits"] = with_weights({name: restored[name] for name in blocks})'),
    ):
        found = list(cells(folder, f"{name}.ipynb").values())
        code = [cell for cell in found if cell.cell_type == "code"]
        speaking = [cell for cell in code[-2:] if "speak(" in cell.source]
        assert speaking
        assert all("list of strings." in printed(cell) for cell in speaking)
        assert any("".join(own.split()) in "".join(cell.source.split()) for cell in code)


def test_the_ladder_of_the_lab_on_four_bits_has_a_perplexity_for_each_number_of_bits():
    said = printed(cells("notebooks", "07-int4.ipynb")["lab05-075"])
    names = ["float32", "8 bits", "4 bits", "3 bits", "2 bits", "4 bits, nibbles swapped"]
    rows = [re.match(rf"{name} +([\d,.]+)  ", line) for name, line in zip(names, said.split("\n")[1:])]
    found = [float(row[1].replace(",", "")) for row in rows if row]
    assert len(found) == len(names)
    assert found == sorted(found)


@torch.no_grad()
def test_no_next_word_of_the_lab_on_eight_bits_is_nearly_a_tie(trained, matrices):
    """Otherwise another machine could write another text."""

    def pitfalls(w):
        scale = (w.max(axis=1) / np.float32(127))[:, None]
        return np.rint(w / scale).astype(np.int16).astype(np.int8) * scale

    models = {
        "8 bits, one scale": lambda w: mq.fake_quantize(w, 8, per="tensor"),
        "8 bits, a scale a row": lambda w: mq.fake_quantize(w, 8, per="channel"),
        "8 bits, two pitfalls": pitfalls,
        "4 bits, a scale a row": lambda w: mq.fake_quantize(w, 4, per="channel"),
    }
    tokenizer = corpus.load_tokenizer()
    words, said = tokenizer.encode(PROMPT).ids, printed(cells("solutions", "06-int8.ipynb")["lab06-speak"])
    for name, change in models.items():
        model = copy.deepcopy(trained)
        state = {key: torch.from_numpy(change(w)) for key, w in matrices.items()}
        model.load_state_dict({**trained.state_dict(), **state})
        written = model.greedy(words, 24)
        first, second = model(torch.tensor([words + written]))[0, len(words) - 1 : -1].topk(2).values.T
        assert float((first - second).min()) > 1e-3
        assert re.search(rf"^{re.escape(name)} .*{re.escape(one_line(tokenizer.decode(written)))}$", said, re.M)


# ---- what the checks accept and refuse -------------------------------------------------------------------------------

ROUND_AND_CLIP = "np.clip(np.round({}), -127, 127).astype(np.int8), s"
RIGHT = [
    ("absmax_scale(w)", "return max(w.max(), -w.min()) / 127"),
    ("absmax_scale(w)", "return np.float32(max(abs(float(x)) for x in np.ravel(w)) / 127)"),
    ("round_scale(scale)", "return np.float32(np.float16(scale))"),
    (
        "quantize_per_tensor(w)",
        f"""
        s = round_scale(absmax_scale(w))
        return {ROUND_AND_CLIP.format("w.astype(np.float64) / (float(s) or 1.0)")}
        """,
    ),
    ("channel_scales(w)", "return np.array([round_scale(absmax_scale(row)) for row in w])"),
    ("quantize_per_channel(w, scale)", "return np.rint(w.T / np.where(scale, scale, 1)).clip(-127, 127).astype('b').T"),
    ("dequantize_per_channel(q, scale)", "return (q.astype(float) * scale[:, None]).astype(np.float32)"),
    (
        "quantize_per_group(w, group_size)",
        """
        s = group_scales(w, group_size)
        wide = np.repeat(np.where(s == 0, 1, s), group_size, axis=1)
        return np.clip(np.around(w / wide), -7, 7).astype(np.int8), s
        """,
    ),
    ("dequantize_per_group(q, scale)", "return q * np.repeat(scale, q.shape[1] // scale.shape[1], axis=1)"),
]
WRONG = [
    ("absmax_scale(w)", "return float(np.abs(w).max()) / 127", "np.float32 is expected"),  # has no astype
    ("absmax_scale(w)", "return np.abs(w).max() / 127 + np.float32(1e-12)", "never zero"),
    (
        "round_scale(scale)",
        """
        m, e = np.frexp(scale)
        return np.ldexp(np.rint(m * 2048) / np.float32(2048), e).astype(np.float32)
        """,
        "eleven digits for small numbers too",
    ),
    ("round_scale(scale)", "return np.array([np.float32(np.float16(x)) for x in scale])", "raised an error"),
    (
        "quantize_per_tensor(w)",
        f"s = round_scale(absmax_scale(w))\n        return {ROUND_AND_CLIP.format('w * (1 / (s or np.float32(1)))')}",
        "multiplied by the inverse",
    ),
    (
        "quantize_per_tensor(w)",
        "s = round_scale(absmax_scale(w))\n        return np.round(w / (s or np.float32(1))).astype(np.int8), s",
        "not clipped before the cast",
    ),
    (
        "quantize_per_tensor(w)",
        f"s = round_scale(absmax_scale(w))\n        return {ROUND_AND_CLIP.format('np.floor(w / (s or 1) + 0.5)')}",
        "half rounded up",
    ),
    (
        "quantize_per_tensor(w)",
        f"s = absmax_scale(w)\n        return {ROUND_AND_CLIP.format('w / (s or 1)')[:-1]}round_scale(s)",
        "scale rounded late",
    ),
    ("channel_scales(w)", "return round_scale(np.abs(w).max(axis=1)) / np.float32(127)", "rounded before the division"),
    (
        "quantize_per_channel(w, scale)",
        "return np.clip(np.rint(w * (1 / np.where(scale, scale, 1)[:, None])), -127, 127).astype(np.int8)",
        "values are off by up to 1",
    ),
    ("dequantize_per_channel(q, scale)", "return q * scale.max()", "one scale for all rows"),
    (
        "group_reshape(w, group_size)",
        "n = w.shape[1] // group_size\n        return w[:, : n * group_size].reshape(len(w), n, -1)",
        "refused",
    ),
    ("ungroup(groups)", "return groups.reshape(len(groups), -1).astype(np.float32)", "the dtype differs"),
    ("bits_per_weight(bits, group_size)", "return int(bits + 16 / group_size)", "The fraction is lost"),
    (
        "quantize_per_group(w, group_size)",
        """
        s = group_scales(w, group_size)
        wide = np.repeat(np.where(s == 0, 1, s), group_size, axis=1)
        return np.clip(np.around(w / wide), -127, 127).astype(np.int8), s
        """,
        "not clipped to 7",
    ),
    (
        "dequantize_per_group(q, scale)",
        "return ungroup(group_reshape(q, scale.shape[1]) * scale[..., None])",
        "number of groups as their size",
    ),
]


def report(head: str, body: str):
    """The check's report on an answer that uses the lab's other functions."""
    name = head.partition("(")[0]
    others = ("absmax_scale", "round_scale", "group_reshape", "ungroup", "group_scales")
    scope = {"np": np, **{other: find(other).reference for other in others}}
    code = textwrap.indent(textwrap.dedent(body if body.startswith("\n") else f"        {body}").strip(), "    ")
    exec(f"def {head}:\n{code}\n", scope)
    return evaluate(find(name), scope[name], search=False)


@pytest.mark.parametrize(("head", "body"), RIGHT)
def test_a_right_answer_in_another_style_is_accepted(head, body):
    found = report(head, body)
    assert found.passed, found


@pytest.mark.parametrize(("head", "body", "said"), WRONG)
def test_a_wrong_answer_that_looks_right_is_refused_and_named(head, body, said):
    found = report(head, body)
    assert found.status == "failed"
    assert said in repr(found)
