"""The command line. GGUF-lite, GGUF and bump alike: inspect, list, hexdump, export, verify, perplexity; convert for
Hugging Face folders, quantize for those and any GGUF file, imatrix; progress, board and assemble for students; grade,
key and questions for instructors.

Exit codes: 0 done, 1 a file is wrong or a limit was broken, 2 the call itself was wrong. An error is one line on
stderr. Every command imports what it needs when it runs, so that ``inspect`` answers at once.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import MiniquantError
from ..core.text import visible
from ..inspect.output import binary_size, late_bar, open_streams, print_json, print_table
from . import any_gguf, course, grading
from .options import AS_JSON, FILE, FileType, TensorType, say_converted

if TYPE_CHECKING:
    from ..formats.describe import Description
    from ..formats.registry import Format
    from ..formats.tensor import TensorInfo


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="miniquant")
def main() -> None:
    """Look into quantized model files, write them, and prove them right."""


@main.command()
@click.argument("file", type=FILE)
@AS_JSON
def inspect(file: Path, as_json: bool) -> None:
    """What FILE is: version, architecture, types with their bytes, metadata, key tensors."""
    from ..formats.describe import describe

    found = describe(file)
    if as_json:
        types = {kind: {"tensors": count, "bytes": size} for kind, (count, size) in found.by_type().items()}
        head = {"format": found.format, "version": found.version, "arch": found.architecture, "bytes": found.n_bytes}
        counts = {"tensors": len(found.tensors), "kv": len(found.metadata), "alignment": found.alignment}
        return print_json({**head, **counts, "overhead": found.overhead, "types": types, "metadata": found.metadata})
    _print_description(found)


def _print_description(found: Description) -> None:
    from ..formats.gguf_lite.sizes import human

    tag = f"[{found.format}]"
    click.echo(
        f"{tag} version={found.version} arch={visible(found.architecture)} tensors={len(found.tensors)} "
        f"kv={len(found.metadata)} alignment={found.alignment}"
    )
    click.echo(f"{tag} tensor types:")
    for kind, (count, size) in found.by_type().items():
        click.echo(f"  - {kind:>10}: {count:5} tensors, bytes={binary_size(size)}")
    click.echo(f"{tag} key tensors:")
    for info in _key_tensors(found):
        place = f"dims={info.shape[::-1]}" if found.format == "gguf" else f"shape={info.shape}"  # ggml's order, or ours
        click.echo(f"  - {visible(info.name)}: {info.dtype.name} {place}")
    click.echo(f"{tag} file: {human(found.n_bytes)}, of which {human(found.overhead)} are not tensors")
    click.echo(f"{tag} metadata:")
    for key, value in found.metadata.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = visible(text[:91])  # cut before it grows: a text may have gigabytes
        click.echo(f"  - {visible(key)} = {text if len(text) <= 90 else text[:89] + '…'}")


def _key_tensors(found: Description) -> list[TensorInfo[Any]]:
    """The embeddings, the head, and the matrices of the first layer; of a file without any, the first tensors."""
    first = [r for r in found.tensors if r.name.startswith(("blk.0.", "layers.0.")) and len(r.shape) == 2]
    ends = [r for r in found.tensors if "emb" in r.name or r.name in ("output.weight", "output")]
    return ends + first or found.tensors[:3]


@main.command(name="list")
@click.argument("file", type=FILE)
@AS_JSON
def list_tensors(file: Path, as_json: bool) -> None:
    """Every tensor of FILE: name, type, shape, place, bytes."""
    from ..formats.describe import describe

    found = describe(file)
    if as_json:
        return print_json([_row(found, info) for info in found.tensors])
    rows = []
    for info in found.tensors:
        shape = "×".join(map(str, info.shape)) or "scalar"
        rows.append((info.name, info.dtype.name, shape, str(found.start(info)), str(info.n_bytes)))
    print_table(("name", "type", "shape", "offset", "bytes"), rows)


def _row(found: Description, info: TensorInfo[Any]) -> dict[str, Any]:
    """A tensor for programs; its offset counts from the start of the file."""
    place = {"offset": found.start(info), "n_bytes": info.n_bytes}
    return {"name": info.name, "type": info.dtype.name, "shape": info.shape, **place}


@main.command()
@click.argument("file", type=FILE)
@click.option("--start", default=0, help="First byte; a negative one counts from the end.")
@click.option("--length", default=256, show_default=True, help="How many bytes.")
@click.option("--tensor", help="Begin at the data of this tensor.")
def hexdump(file: Path, start: int, length: int, tensor: str | None) -> None:
    """The bytes of FILE, each with the name of its field."""
    from ..formats.describe import describe
    from ..inspect.hexview import hexview

    if tensor is not None:
        found = describe(file)
        places = {info.name: found.start(info) for info in found.tensors}
        if tensor not in places:
            raise MiniquantError(f"no tensor {tensor!r} in {file}; miniquant list {file} shows the names")
        start += places[tensor]
    click.echo(repr(hexview(file, start, length)))


@main.command()
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--model", "source", type=FILE, help="A GGUF-lite or GGUF file of a MiniGPT; else the trained one.")
@click.option("--preset", default="int4-small-embeddings", show_default=True, help="For .gguf-lite files.")
@click.option("--type", "kind", default="q8_0", show_default=True, type=TensorType(), cls=FileType)
@click.option("--card", is_flag=True, help="Write a model card beside OUTPUT, too, as README.md.")
def export(output: Path, source: Path | None, preset: str, kind: str, card: bool) -> None:
    """Write a MiniGPT to OUTPUT: .gguf-lite, .gguf (runs in llama.cpp), .safetensors or .apr."""
    from ..formats.gguf_lite.sizes import human
    from ..formats.registry import format_of_name
    from ..models.card import card_path, write_card
    from ..models.export import Exporter, ExportFormat, ModelWeights
    from ..models.load import load_any

    format, known = format_of_name(output), ExportFormat.from_path(output)
    if format is None or (known is None and format.name != "gguf-lite"):
        raise click.BadParameter(
            f"the extension of {output} names no format that export writes; use .gguf-lite, .gguf, .safetensors or "
            ".apr (for .bump, export a .gguf and give it to miniquant to-bump)",
            param_hint="OUTPUT",
        )
    _refuse_useless(output, format, {"kind": ("--type", "gguf"), "preset": ("--preset", "gguf-lite")})
    if card:
        card_path(output)  # before anything is written
    if source:
        model = load_any(source)
    else:
        from ..models.pretrained import load_pretrained

        model = load_pretrained()
    if format.name == "gguf-lite":
        from ..formats.gguf_lite.write import write_gguf_lite
        from ..quantization.schemes import preset as schemes

        write_gguf_lite(output, model, schemes(preset, model))
    elif format.name == "gguf":
        from ..models.corpus import load_tokenizer
        from ..models.to_gguf import write_minigpt

        write_minigpt(output, model, load_tokenizer(), kind)
    elif known is not None:
        Exporter(output.parent).export(ModelWeights.from_model(model, "MiniGPT"), known, output.name)
    click.echo(f"wrote {output}, {human(output.stat().st_size)}")
    if card:
        said = {"gguf": kind, "gguf-lite": preset}.get(format.name, "F32")
        write_card(output, ModelWeights.from_model(model, "MiniGPT"), said)
        click.echo(f"wrote {card_path(output)}")


def _refuse_useless(output: Path, format: Format, options: dict[str, tuple[str, str]]) -> None:
    """Raises ``click.BadParameter`` for an option that was given, and that the output's format has no use for."""
    for name, (option, needed) in options.items():
        given = click.get_current_context().get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        if given and format.name != needed:
            raise click.BadParameter(
                f"it is for .{needed} files, and {output} is to be {format.title}; leave it out, or give a name that "
                f"ends in .{needed}",
                param_hint=option,
            )


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The .gguf file.")
@click.option("--type", "kind", default="q8_0", show_default=True, type=TensorType(), cls=FileType)
def convert(folder: Path, output: Path, kind: str) -> None:
    """Convert a Hugging Face FOLDER (Llama, Qwen2 or GPT-2, in safetensors) to a GGUF file that llama.cpp runs."""
    from ..models.huggingface.convert import convert_folder

    if output.suffix != ".gguf":
        raise click.BadParameter(f"{output} is to be a GGUF file; give a name that ends in .gguf", param_hint="-o")
    with late_bar("converting", "weights") as advance:
        converted = convert_folder(folder, output, kind, advance)
    say_converted(output, converted)


@main.command(name="to-bump")
@click.argument("file", type=FILE)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("weights.bump"),
    show_default=True,
    help="The .bump file.",
)
@click.option(
    "--layout",
    type=click.Choice(["aligned", "ckernel"]),
    default="aligned",
    show_default=True,
    help="How the tensors lie in the file.",
)
def to_bump(file: Path, output: Path, layout: str) -> None:
    """Write the model of the GGUF FILE as one allocation, its blocks as they are; config.json goes beside it.

    Its tokenizer goes beside it as well, as tokenizer.json. The layout "ckernel" is that of C-Kernel-Engine.
    """
    from ..formats.bump.config import config_path, read_config
    from ..formats.bump.tokenizer import tokenizer_path
    from ..formats.bump.write import left_behind, write_bump
    from ..formats.gguf_lite.sizes import human

    config = write_bump(file, output, layout)
    stay, reason = left_behind(file)
    click.echo(
        f"wrote {output}, {human(output.stat().st_size)}: {config.architecture}, {config.layers} layers, "
        f"{config.heads} heads, {config.kv_heads} of keys and values"
    )
    click.echo(f"wrote {config_path(output)}")
    if read_config(output).tokenizer is not None:
        click.echo(f"wrote {tokenizer_path(output)}")
    else:
        missing = visible(reason) or f"{file} holds no tokenizer"
        click.echo(f"there is no tokenizer.json beside it, which miniquant run needs: {missing}")
    if stay:
        click.echo(f"these keys have no place in a bump file and stay in {file}: {visible(', '.join(stay))}")


@main.command(name="run")
@click.argument("file", type=FILE)
@click.argument("prompt")
@click.option("-n", "length", default=50, show_default=True, type=click.IntRange(0), help="How many tokens at most.")
@click.option(
    "--temperature",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0),
    help="0 takes the most likely token each time; above 0, tokens are drawn.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Repeats a drawing.")
def run_bump(file: Path, prompt: str, length: int, temperature: float, seed: int) -> None:
    """Let the model in the bump FILE continue the text PROMPT, until the model ends it or -n tokens are there.

    `miniquant to-bump` makes such a file of a GGUF file. The tokenizer.json beside it is needed, too.
    """
    from ..runtime.speak import speak

    if not math.isfinite(temperature):
        raise click.BadParameter(f"{temperature} is no temperature; 0.8, for example, is", param_hint="--temperature")
    if any("\ud800" <= c <= "\udfff" for c in prompt):  # what the shell passes on for bytes that are no text
        raise click.BadParameter("it is no UTF-8 text", param_hint="PROMPT")
    with file.open("rb") as opened:
        if opened.read(4) == b"GGUF":
            raise MiniquantError(f"{file} is a GGUF file; miniquant to-bump {file} makes the bump file that run takes")
    begun = False
    try:
        for piece in speak(file, prompt, length, temperature, seed):
            shown = "".join(
                c if c in "\n\t" else visible(c) for c in piece
            )  # a model may have learned to write anything
            click.echo(shown if begun else prompt + shown, nl=False)
            begun = True
    finally:
        if begun:
            click.echo()


@main.command()
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option("--limit", default=1e-6, show_default=True, help="The largest error allowed.")
@AS_JSON
def verify(a: Path, b: Path, limit: float, as_json: bool) -> None:
    """Compare the decoded tensors of A and B; exit with 1 if one differs by more than the limit."""
    from ..evaluate.differences import over_limit, tensor_errors
    from ..models.load import weights_of

    errors = tensor_errors(weights_of(a), weights_of(b))
    wrong = over_limit(errors, limit)
    if as_json:
        print_json({"limit": limit, "beyond": wrong, "errors": errors})
    else:
        print_table(
            ("tensor", "max abs error", ""),
            [(n, f"{e:.3g}", "too large" if n in wrong else "") for n, e in errors.items()],
        )
        click.echo(f"{len(errors) - len(wrong)} of {len(errors)} tensors within {limit:g}")
    sys.exit(bool(wrong))


for command in (
    any_gguf.quantize,
    any_gguf.imatrix,
    any_gguf.perplexity,
    course.progress,
    course.board,
    course.assemble,
    grading.grade,
    grading.key,
    grading.questions,
    course.lab,
):
    main.add_command(command)


def run() -> None:
    """The entry point: a known error is one line and exit code 1, never a traceback."""
    open_streams()
    try:
        main()
    except (MiniquantError, OSError) as error:
        click.echo(f"miniquant: {visible(str(error))}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        extra = {"numba": "run", "tokenizers": "run"}.get(str(error.name), "labs")
        wanted = f"the package {error.name}; pip install 'miniquant[{extra}]' brings it"
        click.echo(f"miniquant: this needs {wanted}", err=True)
        sys.exit(1)
