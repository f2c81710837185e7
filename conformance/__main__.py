"""``python -m conformance``: make the files, and try a reader of GGUF, GGUF-lite, bump or safetensors on them.

    python -m conformance unpack FOLDER
    python -m conformance run --reader "COMMAND" --format gguf
    python -m conformance record

It needs Python and nothing else; ``record`` needs the readers that it records.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from . import suite
from .run import GOOD, SECONDS, ask, command_of, report, try_all


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 1 if a reader has got a file wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("make", help="generate manifest.json and files.zip again")
    unpack = actions.add_parser("unpack", help="put the files into a folder, to look at them")
    unpack.add_argument("folder", type=Path)
    run = actions.add_parser("run", help="try a reader on the files")
    run.add_argument("--reader", required=True, metavar="COMMAND", help="it is given a path; see conformance/README.md")
    run.add_argument("--format", action="append", choices=list(suite.ENDINGS), help="again for more; default: all")
    run.add_argument("--seconds", type=float, default=SECONDS, help="the time limit for a file (default: %(default)g)")
    run.add_argument("--json", type=Path, metavar="FILE", help="keep the outcome of each file")
    record = actions.add_parser("record", help="try the readers of conformance/readers, and keep results.json")
    record.add_argument("--only", action="append", metavar="NAME", help="a reader; again for more; default: all")
    options = parser.parse_args(arguments)
    if options.action == "make":
        print(f"{len(suite.write())} cases in {suite.MANIFEST.name} and {suite.ARCHIVE.name}")
        return 0
    if options.action == "unpack":
        suite.unpack(options.folder)
        return 0
    if options.action == "record":
        from .record import record_all

        return record_all(options.only)
    entries = [entry for entry in suite.load() if entry["format"] in (options.format or suite.ENDINGS)]
    command = command_of(options.reader)
    with tempfile.TemporaryDirectory() as folder:
        suite.unpack(Path(folder))
        found = try_all(entries, lambda path: ask(command, Path(folder) / path, options.seconds))
    print("\n".join(report(entries, found)))
    if options.json:
        options.json.write_text(json.dumps({p: o._asdict() for p, o in found.items()}, indent=1) + "\n", "utf-8")
    return int(any(outcome.outcome not in GOOD for outcome in found.values()))


if __name__ == "__main__":
    sys.exit(main())
