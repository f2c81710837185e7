"""The commands for any GGUF file: quantize, from a file and from a folder, and perplexity on a text."""

from __future__ import annotations

import json

import pytest
from cli_calls import call
from hf_models import save_llama

from miniquant.evaluate.text_perplexity import text_perplexity
from miniquant.formats.gguf import read_gguf
from miniquant.models.corpus import load_tokenizer
from miniquant.models.file_types import FILE_TYPES, PRESETS
from miniquant.models.huggingface.convert import convert_folder
from miniquant.models.to_gguf import write_minigpt

TEXT = "The import statement finds a module and loads it.\n" * 9


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder of a small Llama, its F32 file, and a text."""
    folder = tmp_path_factory.mktemp("any")
    save_llama(folder / "hf")
    convert_folder(folder / "hf", folder / "f32.gguf", "F32")
    (folder / "text.txt").write_text(TEXT)
    return folder


def test_quantize_takes_a_file_or_a_folder_and_says_what_it_wrote(place, tmp_path):
    results = [
        call("quantize", place / name, tmp_path / f"{name}.gguf", "--type", "q5_0") for name in ("f32.gguf", "hf")
    ]
    assert [result.exit_code for result in results] == [0, 0], [result.output for result in results]
    for result, name in zip(results, ("f32.gguf", "hf")):
        assert result.output.startswith(f"wrote {tmp_path / f'{name}.gguf'}, ")
        assert result.output.strip().endswith(": 21 tensors (15 Q5_0, 5 F32, 1 Q8_0)")
    with read_gguf(tmp_path / "f32.gguf.gguf") as one, read_gguf(tmp_path / "hf.gguf") as two:
        assert {name: one.raw(name).tobytes() for name in one.tensors} == {n: two.raw(n).tobytes() for n in two.tensors}


def test_quantize_refuses_to_round_twice_unless_it_is_told_to_and_says_so_then(place, tmp_path):
    call("quantize", place / "f32.gguf", tmp_path / "q8.gguf", "--type", "q8_0")
    refused = call("quantize", tmp_path / "q8.gguf", tmp_path / "q4.gguf", "--type", "q4_0")
    assert "is Q8_0 already" in str(refused.exception) and "--requantize" in str(refused.exception)
    assert not (tmp_path / "q4.gguf").exists()
    done = call("quantize", tmp_path / "q8.gguf", tmp_path / "q4.gguf", "--type", "q4_0", "--requantize")
    assert done.exit_code == 0
    assert "15 tensors were Q8_0 already; their first rounding error is in the file, too" in done.output


@pytest.mark.parametrize(
    "output, kind, said", [("x.bin", "q4_0", "ends in .gguf"), ("x.gguf", "q4_k", "q4_k_s, q4_k_m")]
)
def test_a_wrong_output_or_type_is_a_wrong_call(place, tmp_path, output, kind, said):
    result = call("quantize", place / "f32.gguf", tmp_path / output, "--type", kind)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["f32.gguf", "hf"])
def test_single_tensors_get_another_type_by_their_names(source, place, tmp_path):
    options = ("--tensor-type", "blk.0.attn_v.weight=q8_0", "--tensor-type", "blk.1.attn_v.weight=f16")
    result = call("quantize", place / source, tmp_path / "out.gguf", "--type", "q5_0", *options)
    assert result.exit_code == 0, result.output
    assert result.output.strip().endswith(": 21 tensors (13 Q5_0, 5 F32, 2 Q8_0, 1 F16)")
    wrong = call("quantize", place / source, tmp_path / "no.gguf", "--type", "q5_0", "--tensor-type", "attn_v")
    assert wrong.exit_code == 2 and "NAME=TYPE" in wrong.output
    unknown = call("quantize", place / source, tmp_path / "no.gguf", "--type", "q5_0", "--tensor-type", "attn_v=q8_0")
    assert "there is no tensor of that name" in str(unknown.exception)
    assert not (tmp_path / "no.gguf").exists()


def test_a_file_is_not_quantized_into_itself(place):
    before = (place / "f32.gguf").read_bytes()
    result = call("quantize", place / "f32.gguf", place / "f32.gguf", "--type", "q4_0")
    assert result.exit_code == 2 and "is the file to read" in " ".join(result.output.split())
    assert (place / "f32.gguf").read_bytes() == before


def test_the_help_names_the_presets_of_quantize_and_the_types_of_convert():
    shown = {name: " ".join(call(name, "--help").output.split()) for name in ("quantize", "convert")}
    assert f"What llama.cpp calls the file to make: {' '.join(PRESETS)}." in shown["quantize"]
    assert f"For .gguf files, in what the weights are stored: {' '.join(FILE_TYPES)}." in shown["convert"]


def test_perplexity_of_a_text(place):
    expected = text_perplexity(place / "f32.gguf", TEXT, 32)
    asked = ("perplexity", place / "f32.gguf", "--text", place / "text.txt", "--context", "32")
    windows, scored = expected.nll.shape
    printed = f"perplexity {expected.perplexity}, over {windows} windows of 32 tokens, the last {scored} of each scored"
    assert call(*asked).output.strip() == printed
    found = json.loads(call(*asked, "--json", "--windows", "2").output)
    first = text_perplexity(place / "f32.gguf", TEXT, 32, windows=2)
    assert found == {
        "perplexity": {"mean": first.perplexity.mean, "standard_error": first.perplexity.error},
        **{"windows": 2, "context": 32, "scored": 30},
    }
    assert "over 1 window of 32 tokens" in call(*asked, "--windows", "1").output


@pytest.mark.parametrize("options", [(), ("--llamacpp",)])
def test_without_a_text_a_file_with_a_vocabulary_of_its_own_is_refused(place, options):
    result = call("perplexity", place / "f32.gguf", *options)
    assert result.exit_code == 1
    assert "f32.gguf has a vocabulary of its own, 520 tokens" in str(result.exception)
    assert "--text" in str(result.exception)


def test_as_many_tokens_are_not_the_same_tokens(trained, tmp_path):
    write_minigpt(tmp_path / "m.gguf", trained, load_tokenizer(), "Q8_0")
    assert call("perplexity", tmp_path / "m.gguf", "--llamacpp", "--windows", "1").exit_code == 0
    data = (tmp_path / "m.gguf").read_bytes()
    word = load_tokenizer().id_to_token(1023).encode()
    length = len(word).to_bytes(8, "little")
    assert data.count(length + word) == 1
    (tmp_path / "m.gguf").write_bytes(data.replace(length + word, length + b"\x01" * len(word)))
    refused = call("perplexity", tmp_path / "m.gguf", "--llamacpp", "--windows", "1")
    assert "has a vocabulary of its own, 1024 tokens" in str(refused.exception)


def test_a_text_that_is_too_short_and_a_context_without_a_text_are_refused(place, tmp_path):
    (tmp_path / "short.txt").write_text("import")
    result = call("perplexity", place / "f32.gguf", "--text", tmp_path / "short.txt")
    assert result.exit_code == 1 and "and one window needs 128" in str(result.exception)
    result = call("perplexity", place / "f32.gguf", "--context", "32")
    assert result.exit_code == 2 and "give one with --text" in " ".join(result.output.split())
