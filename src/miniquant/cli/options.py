"""What several commands share: arguments, options, and what they say of a file that they wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.text import visible

if TYPE_CHECKING:
    from ..models.huggingface.convert import Converted

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help='Print JSON, with the texts "NaN", "Infinity" and "-Infinity".'
)


class FileType(click.Option):
    """An option whose help names every type, and imports them when somebody asks."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """As click asks for it, when it prints the help."""
        assert isinstance(self.type, TensorType)
        self.help = f"{self.type.meaning} {' '.join(self.type.names())}."
        return super().get_help_record(ctx)


class TensorType(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click alone
    """What a whole file is stored in, for converting and exporting."""

    name = "type"
    known = "FILE_TYPES"
    meaning = "For .gguf files, in what the weights are stored:"

    def names(self) -> list[str]:
        """All of them."""
        from ..models import file_types

        return list(getattr(file_types, self.known))

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> str:
        """A name in capitals; click reports one that there is not, and exits with 2."""
        if value.upper() not in self.names():
            self.fail(f"there is no type {value!r}; there are {', '.join(self.names()).lower()}", param, context)
        return value.upper()


class Preset(TensorType):
    """What llama.cpp's quantizer makes under a name."""

    known = "PRESETS"
    meaning = "What llama.cpp calls the file to make:"


def say_written(output: Path, types: Iterable[str]) -> None:
    """Print what a file holds, by the types of its tensors."""
    from collections import Counter

    from ..formats.gguf_lite.sizes import human

    counts = Counter(types)
    of_each = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    click.echo(f"wrote {output}, {human(output.stat().st_size)}: {counts.total()} tensors ({of_each})")


def say_converted(output: Path, converted: Converted) -> None:
    """Print what became of a Hugging Face folder: the file, what was left out of it, and what else is to know."""
    say_written(output, converted.types.values())
    for name, reason in converted.skipped.items():
        click.echo(f"left out {visible(name)}: {reason}")
    for note in converted.notes:
        click.echo(f"note: {note}")


def say_weighed(weighed: Collection[str], changed: Collection[str]) -> None:
    """Print for how many of the tensors that were to be quantized an importance matrix was used, and for which not."""
    rest = ", ".join(visible(name) for name in changed if name not in weighed)
    more = f"; in the others every column counts the same: {rest}" if rest else ""
    click.echo(f"the importance matrix was used for {len(weighed)} of {len(changed)} matrices{more}")
