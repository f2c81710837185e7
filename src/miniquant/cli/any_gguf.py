"""The commands for GGUF files of any architecture: imatrix, quantize; perplexity on any text."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..inspect.output import late_bar, print_json
from .options import AS_JSON, FILE, FileType, Preset, say_converted, say_weighed, say_written


@click.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--type", "kind", required=True, type=Preset(), cls=FileType)
@click.option("--requantize", is_flag=True, help="Round tensors again that are quantized already: errors add up.")
@click.option(
    "--imatrix", type=FILE, help="An importance matrix: how much each column counts; miniquant imatrix makes one."
)
@click.option(
    "--tensor-type",
    "chosen",
    multiple=True,
    metavar="NAME=TYPE",
    help="Another type for the tensor of this name; may be given several times.",
)
def quantize(
    source: Path, output: Path, kind: str, requantize: bool, imatrix: Path | None, chosen: tuple[str, ...]
) -> None:
    """Quantize SOURCE, a GGUF file of any architecture or a Hugging Face folder, to OUTPUT by llama.cpp's rules."""
    from ..models.file_types import PRESETS

    if output.suffix != ".gguf":
        raise click.BadParameter(f"{output} is to be a GGUF file; give a name that ends in .gguf", param_hint="OUTPUT")
    types = PRESETS[kind].choosing(dict(map(_name_and_type, chosen)))
    if source.is_dir():
        from ..models.huggingface.convert import convert_folder

        with late_bar("quantizing", "weights") as advance:
            converted = convert_folder(source, output, types, advance, imatrix)
        say_converted(output, converted)
        return say_weighed(converted.weighed, converted.quantized) if imatrix else None
    from ..models.quantize_gguf import quantize_gguf

    if output.exists() and output.samefile(source):
        raise click.BadParameter(f"{output} is the file to read; give another name", param_hint="OUTPUT")
    with late_bar("quantizing", "weights") as advance:
        found = quantize_gguf(source, output, types, requantize, advance, imatrix)
    say_written(output, (dtype.name for dtype in found.after.values()))
    if imatrix is not None:
        say_weighed(found.weighed, found.changed)
    if found.twice:
        before = ", ".join(sorted({found.before[name].name for name in found.twice}))
        click.echo(f"{len(found.twice)} tensors were {before} already; their first rounding error is in the file, too")


def _name_and_type(text: str) -> tuple[str, str]:
    name, equals, dtype = text.partition("=")
    if not (name and equals and dtype):
        raise click.BadParameter(
            f"{text!r} is to be NAME=TYPE, as in blk.0.attn_v.weight=q6_k", param_hint="--tensor-type"
        )
    return name, dtype


@click.command()
@click.argument("model", type=click.Path(exists=True, path_type=Path))
@click.option("--text", required=True, type=FILE, help="The calibration text, UTF-8.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The .gguf file.")
@click.option("--context", type=click.IntRange(1), help="Tokens in a chunk; 512 by default, or the model's own.")
@click.option("--chunks", type=click.IntRange(1), help="How many chunks of the text; all by default.")
def imatrix(model: Path, text: Path, output: Path, context: int | None, chunks: int | None) -> None:
    """Write the importance matrix of MODEL on a text to a GGUF file, which quantize and llama.cpp's quantizer take.

    MODEL is a file that holds a MiniGPT, or a Hugging Face folder of a Llama or Qwen2.
    """
    from ..calibrate.imatrix import collect_importance, model_and_tokenizer, text_chunks
    from ..evaluate.text_perplexity import CONTEXT, text_of
    from ..formats.gguf.imatrix import write_imatrix
    from ..models.language import context_of

    if output.suffix != ".gguf":
        raise click.BadParameter(f"{output} is to be a GGUF file; give a name that ends in .gguf", param_hint="-o")
    loaded, tokenizer = model_and_tokenizer(model)
    length = min(CONTEXT, context_of(loaded)) if context is None else context
    found = collect_importance(loaded, text_chunks(text_of(text), tokenizer, length, chunks), text.name)
    write_imatrix(output, found)
    click.echo(f"wrote {output}: {len(found.squares)} matrices, {found.chunk_count} chunks of {length} tokens")


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--text", type=FILE, help="A text to measure on; the file's own tokenizer is used, and llama.cpp computes."
)
@click.option("--context", type=int, help="Tokens in a window of that text; 512 by default, or the model's own.")
@click.option("--windows", default=None, type=click.IntRange(1), help="How many windows of text; all by default.")
@click.option("--llamacpp", is_flag=True, help="Let llama.cpp compute it (GGUF files).")
@AS_JSON
def perplexity(
    file: Path, text: Path | None, context: int | None, windows: int | None, llamacpp: bool, as_json: bool
) -> None:
    """How well the model in FILE predicts a text, with a standard error.

    With --text: any GGUF file, on that text. Without: a file that holds a MiniGPT, on the course's held-out topics.
    """
    if text is not None:
        return _perplexity_of_text(file, text, context, windows, as_json)
    if context is not None:
        raise click.BadParameter("it is for a text of your own; give one with --text", param_hint="--context")
    from ..evaluate import quality as evaluate
    from ..formats.registry import format_of
    from ..models import corpus

    if format_of(file).name == "gguf":
        evaluate.refuse_another_vocabulary(file)
    held_out, bar = corpus.held_out_windows(limit=windows), sys.stderr.isatty() and not as_json
    if llamacpp:
        found = evaluate.evaluate_in_llamacpp(file, held_out, progress=bar)
    else:
        from ..models.load import load_any

        found = evaluate.evaluate(load_any(file), held_out, progress=bar)
    if as_json:
        figures = {"perplexity": found.perplexity, "bits_per_byte": found.bits_per_byte}
        return print_json({k: {"mean": v.mean, "standard_error": v.error} for k, v in figures.items()})
    over = f"{len(held_out)} window{'s' * (len(held_out) > 1)}"
    click.echo(f"perplexity {found.perplexity}, {found.bits_per_byte} bits per byte, over {over}")


def _perplexity_of_text(file: Path, text: Path, context: int | None, windows: int | None, as_json: bool) -> None:
    from ..evaluate.text_perplexity import text_of, text_perplexity

    with late_bar("measuring", "tokens") as advance:
        found = text_perplexity(file, text_of(text), context, windows, advance=advance)
    count, scored = found.nll.shape
    value = found.perplexity
    if as_json:
        figures = {"windows": count, "context": found.context, "scored": found.nll.size}
        return print_json({"perplexity": {"mean": value.mean, "standard_error": value.error}} | figures)
    over = f"{count} window{'s' * (count > 1)} of {found.context} tokens, the last {scored} of each scored"
    click.echo(f"perplexity {value}, over {over}")
