"""The command imatrix, and quantize with what it wrote: for a file that holds a MiniGPT, and for a folder."""

from __future__ import annotations

import numpy as np
import pytest
from cli_calls import call

from miniquant.calibrate.imatrix import collect_importance, text_chunks
from miniquant.formats.gguf import encode, read_gguf
from miniquant.formats.gguf.imatrix import read_imatrix
from miniquant.models import minillama
from miniquant.models.corpus import load_tokenizer
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import write_minigpt

TEXT = "The import statement finds a module and loads it. A list may hold strings and numbers.\n" * 20


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A MiniGPT as F32, a text, and the importance matrices of that model and of MiniLlama."""
    folder = tmp_path_factory.mktemp("imatrix")
    write_minigpt(folder / "f32.gguf", load_pretrained(), load_tokenizer(), "F32")
    (folder / "text.txt").write_text(TEXT)
    for model, name in ((folder / "f32.gguf", "gpt"), (minillama.folder(), "llama")):
        done = call("imatrix", model, "--text", folder / "text.txt", "-o", folder / f"{name}.gguf", "--context", 64)
        assert done.exit_code == 0, done.output
        (folder / f"{name}.said").write_text(done.output)
    return folder


def test_imatrix_writes_what_the_model_meets_on_the_text_and_says_so(place):
    tokens = text_chunks(TEXT, load_tokenizer(), 64)
    expected, found = collect_importance(load_pretrained(), tokens, progress=False), read_imatrix(place / "gpt.gguf")
    assert found[1:] == (("text.txt",), len(tokens), 64)
    assert found.squares.keys() == expected.squares.keys()
    assert all(np.array_equal(found.squares[n].sums, expected.squares[n].sums) for n in found.squares)
    said = f"wrote {place / 'gpt.gguf'}: {len(found.squares)} matrices, {len(tokens)} chunks of 64 tokens\n"
    assert (place / "gpt.said").read_text() == said


def test_the_number_of_chunks_can_be_limited_and_a_chunk_is_as_long_as_the_model_allows(place, tmp_path):
    for name in ("f32.gguf",):
        done = call("imatrix", place / name, "--text", place / "text.txt", "-o", tmp_path / "i.gguf", "--chunks", 1)
        assert done.exit_code == 0, done.output
    assert read_imatrix(tmp_path / "i.gguf")[2:] == (1, load_pretrained().config.context)


def test_quantize_weighs_the_columns_by_it_and_says_which_matrices_were_left_out(place, tmp_path):
    out = tmp_path / "q.gguf"
    done = call("quantize", place / "f32.gguf", out, "--type", "q4_0", "--imatrix", place / "gpt.gguf")
    assert done.exit_code == 0, done.output
    squares = read_imatrix(place / "gpt.gguf").squares
    last = done.output.splitlines()[-1]
    assert last == (
        f"the importance matrix was used for {len(squares)} of {len(squares) + 1} matrices; "
        "in the others every column counts the same: token_embd.weight"
    )
    with read_gguf(place / "f32.gguf") as source, read_gguf(out) as file:
        assert file.metadata["quantize.imatrix.entries_count"] == len(squares)
        assert file.metadata["quantize.imatrix.file"] == str(place / "gpt.gguf")[:127]
        for name, met in squares.items():
            blocks = encode(source.tensor(name), file.tensors[name].dtype, met.sums[0] / met.counts[0])
            assert np.array_equal(file.raw(name), blocks.reshape(-1)), name


def test_a_folder_is_quantized_with_it_as_its_file_is(place, tmp_path):
    folder, given = minillama.folder(), ("--imatrix", place / "llama.gguf")
    assert call("convert", folder, "-o", tmp_path / "f32.gguf", "--type", "f32").exit_code == 0
    for source, name in ((folder, "a"), (tmp_path / "f32.gguf", "b")):
        done = call("quantize", source, tmp_path / f"{name}.gguf", "--type", "q4_k_m", *given)
        assert done.exit_code == 0, done.output
        assert "the importance matrix was used for " in done.output
    assert call("quantize", folder, tmp_path / "plain.gguf", "--type", "q4_k_m").exit_code == 0
    with (
        read_gguf(tmp_path / "a.gguf") as one,
        read_gguf(tmp_path / "b.gguf") as two,
        read_gguf(tmp_path / "plain.gguf") as plain,
    ):
        assert {n: one.raw(n).tobytes() for n in one.tensors} == {n: two.raw(n).tobytes() for n in two.tensors}
        name = "blk.0.ffn_up.weight"
        assert one.raw(name).tobytes() != plain.raw(name).tobytes()
        keys = [key for key in one.metadata if key.startswith("quantize.imatrix.")]
        assert keys == [key for key in two.metadata if key.startswith("quantize.imatrix.")] and len(keys) == 4
        assert not any(key.startswith("quantize.imatrix.") for key in plain.metadata)


def test_what_is_no_importance_matrix_or_of_another_model_is_refused(place, tmp_path):
    for given, said in (("f32.gguf", "is no importance matrix: it holds a model ('gpt2')"), ("llama.gguf", "made for")):
        refused = call(
            "quantize", place / "f32.gguf", tmp_path / "q.gguf", "--type", "q4_0", "--imatrix", place / given
        )
        assert refused.exit_code == 1 and said in str(refused.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_call_of_imatrix_says_what_to_do(place, tmp_path):
    (tmp_path / "short.txt").write_text("a")
    text = ("--text", place / "text.txt")
    wrong = call("imatrix", place / "f32.gguf", *text, "-o", tmp_path / "i.dat")
    assert wrong.exit_code == 2 and "ends in .gguf" in " ".join(wrong.output.split())
    for arguments, said in (
        (("--text", tmp_path / "short.txt"), "the text has 1 token in this vocabulary, and one chunk needs 256"),
        ((*text, "--context", 257), "the windows have 257 tokens"),
    ):
        refused = call("imatrix", place / "f32.gguf", *arguments, "-o", tmp_path / "i.gguf")
        assert refused.exit_code == 1 and said in str(refused.exception), refused.exception
    assert not (tmp_path / "i.gguf").exists()
