"""The command line, called as a function."""

from __future__ import annotations

from click.testing import CliRunner, Result

from miniquant.cli import main


def call(*arguments: object) -> Result:
    """What ``miniquant`` with these arguments gives: its exit code, its output, its error."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])
