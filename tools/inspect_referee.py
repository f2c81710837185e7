"""The inspector's tables against those of others: @huggingface/gguf on valid files, and Python here on all of them.

Every GGUF file that the tests write is read by the JavaScript library of Hugging Face: keys, values, types, shapes and
offsets must agree. Every file of the tests, malformed ones too, is read by the page's Python: it must say what Python
says here, word for word.

    python tools/inspect_referee.py _build/html/_live

Needs node and npm; ends with 3 if npm cannot fetch the library.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from miniquant.formats.gguf import GGMLType, read_gguf
from miniquant.formats.registry import format_of_bytes
from miniquant.inspect.inspector import Inspector

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("@huggingface/gguf@0.4.6", "@huggingface/tasks@0.21.54")  # MIT, both
MODULES = ROOT / "_build" / "referee"
COUNTS = ("version", "tensor_count", "kv_count")  # the referee puts the header's among the metadata
Entry = dict[str, Any]


def write(folder: Path) -> None:
    """The files of the tests, numbered, each named by what it is; ``.valid.gguf`` are for the referee."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "formats")]
    import written_files
    from test_fields_unchanged import samples

    from conformance import gguf_files, gguf_lite_files

    number = 0

    def put(data: bytes, kind: str, beside: dict[str, bytes]) -> None:
        nonlocal number
        number += 1
        (folder / f"{number:04}.{kind}").write_bytes(data)
        for text in beside.values():
            (folder / f"{number:04}.{kind}.config.json").write_bytes(text)

    with tempfile.TemporaryDirectory() as name:
        for index, make in enumerate(written_files.FILES.values()):
            own = Path(name) / str(index)
            own.mkdir()
            data = make(own)
            found = format_of_bytes(data[:16])
            if found is not None and found.name == "gguf":
                put(data, "valid.gguf", {})
    put(gguf_files.VALID, "valid.gguf", {})
    for _, data, beside in samples():
        put(data, "any", beside)
    for corpus in (gguf_files.CORPUS, gguf_lite_files.CORPUS):
        for bad in corpus.values():
            put(bad.data, "any", {})


def said_by_others(live: Path, folder: Path) -> Iterator[Entry]:
    """What the referee and the page's Python say, file by file."""
    command = ["node", str(Path(__file__).with_suffix(".mjs")), str(live), str(folder), str(MODULES / "node_modules")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, done.stdout.splitlines())


def disagreement(path: Path, theirs: Entry) -> str:
    """The first thing of a GGUF file in which the referee differs, or nothing."""
    if "error" in theirs:
        return f"the referee stops: {theirs['error']}"
    with read_gguf(path) as file:
        keys = {
            key: value
            for key, value in theirs["metadata"].items()
            if key not in ("version", "tensor_count", "kv_count")
        }
        counts = [str(theirs["metadata"][key]) for key in ("version", "tensor_count", "kv_count")]
        if counts != [str(file.version), str(len(file.tensors)), str(len(file.metadata))]:
            return f"counts {counts}"
        if keys.keys() != file.metadata.keys():
            return f"keys {sorted(keys.keys() ^ file.metadata.keys())}"
        for key, value in file.metadata.items():
            if not same(value, keys[key]):
                return f"{key} is {keys[key]!r:.80}, here {value!r:.80}"
        if int(theirs["tensorDataOffset"]) != file.data_start:
            return f"data from byte {theirs['tensorDataOffset']}, here {file.data_start}"
        rows = Inspector(path.read_bytes()).summary()["tensors"]
        infos = theirs["tensorInfos"]
        for info, row in zip(infos, rows, strict=True):
            shape = [int(dim) for dim in reversed(info["shape"])]
            told = (info["name"], GGMLType(info["dtype"]).name, shape, int(info["offset"]))
            if told != (row["name"], row["type"], row["shape"], row["offset"]):
                return f"a tensor {told}, here {row}"
            if row["start"] != file.data_start + row["offset"]:
                return f"{row['name']} starts at {row['start']}"
    return ""


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are equal; whole numbers of 64 bits and those that are not finite come as text."""
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, bool | np.bool_):
        return bool(ours) is theirs
    if isinstance(ours, float | np.floating):
        number = float(theirs)
        return math.isnan(number) if np.isnan(ours) else float(ours) == number
    if isinstance(ours, int | np.integer):
        return int(ours) == int(theirs)
    return bool(ours == theirs)


def compare(live: Path) -> int:
    """Everything; 1 if anything differs."""
    MODULES.mkdir(parents=True, exist_ok=True)
    options = ["--silent", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix", str(MODULES)]
    if not (MODULES / "node_modules" / "@huggingface" / "gguf").exists():
        done = subprocess.run(["npm", "install", *options, *PACKAGES], capture_output=True, text=True)
        if done.returncode:
            print(f"npm cannot fetch the referee: {done.stderr.strip()[-300:]}")
            return 3
    lines, counts = [], {"huggingface": 0, "page": 0}
    tensors = keys = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        for entry in said_by_others(live, folder):
            path = folder / entry["name"]
            counts[entry["by"]] += 1
            if entry["by"] == "huggingface":
                wrong = disagreement(path, entry)
                tensors += len(entry.get("tensorInfos", ()))
                keys += len(entry.get("metadata", ()))
            else:
                config = folder / f"{entry['name']}.config.json"
                beside = {"config.json": config.read_bytes()} if config.exists() else {}
                here = json.loads(json.dumps(Inspector(path.read_bytes(), beside).summary())) | {"name": entry["name"]}
                differing = [key for key in here if here[key] != entry["summary"][key]]
                wrong = f"{differing} differ in the page: {entry['summary'][differing[0]]!r:.200}" if differing else ""
            if wrong:
                lines.append(f"{entry['by']}, {entry['name']}: {wrong}")
    print(f"@huggingface/gguf on {counts['huggingface']} GGUF files, {keys} keys, {tensors} tensors")
    print(f"the page's Python on {counts['page']} files, valid and malformed")
    print("\n".join(lines[:20]) or "all say the same")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(compare(Path(sys.argv[1])))
