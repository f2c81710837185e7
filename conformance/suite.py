"""All files of the suite with what is expected of a reader, the manifest that lists them, and the folder of both."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from . import bump_files, gguf_files, gguf_lite_files, safetensors_files, valid

HERE = Path(__file__).parent
MANIFEST, ARCHIVE = HERE / "manifest.json", HERE / "files.zip"
ENDINGS = {"gguf": "gguf", "gguf-lite": "gguf-lite", "safetensors": "safetensors", "bump": "bump"}
READ, REFUSE, EITHER = "read", "refuse", "either"

# Files that one may refuse and another may read, and why.
OPTIONAL = {
    ("gguf", "big-endian"): "GGUF allows big-endian files, and a reader may leave them out",
}
RULES = [  # what a field's file breaks; the first pattern that fits
    (r"header$|config\.json$", "the file is cut, missing, or not the kind of text that it must be"),
    (r"header\.magic", "a file begins with the magic of its format"),
    (r"header\.version", "a reader refuses a version that it does not know"),
    (r"header\.(n_tensors|n_kv|metadata_len|length)", "a count or length fits into the bytes that are left"),
    (r"header\.(checksum)|config_sha256", "a checksum is that of the bytes it belongs to"),
    (r"header\.", "the fields of the header agree with each other, and with config.json"),
    (r"general\.alignment", "the alignment is a UINT32 and a power of two"),
    (r"metadata '.*: element type|metadata '.*: type", "a value has one of the types that there are"),
    (r"(metadata '.*|key \d+|name): length", "a length fits into the bytes that are left, and into its limit"),
    (r"metadata '|bos_token_id|n_embd", "a value is one that its type or its key allows"),
    (r"key \d+$", "a key is UTF-8, and no key occurs twice"),
    (r"^metadata$", "metadata is UTF-8 in lines of key=value, no key occurs twice, and known keys have known values"),
    (r"name_len|name$", "a name is UTF-8, fits into the file, and no name occurs twice"),
    (r"n_dims", "a tensor has no more dims than the format allows, and as many as its type needs"),
    (r"dims", "the product of the dims does not overflow, and rows are whole blocks"),
    (r"data_offsets|offset$", "a tensor lies inside the file, at a multiple of the alignment, and over no other one"),
    (r"dtype|type$", "a tensor has one of the types that there are"),
    (r"scales", "a scale is finite"),
    (r"padding|^end$|^data$", "nothing is hidden after the tensors or between them"),
    (r"tensor", "an entry is complete, and its numbers are whole and not negative"),
]  # fmt: skip


class Case(NamedTuple):
    """One file: where it is in the folder, what is in it and beside it, and what a reader must do with it."""

    path: str
    format: str
    name: str
    verdict: str  # READ, REFUSE or EITHER
    data: bytes
    beside: dict[str, bytes] = {}  # noqa: RUF012 it is never changed
    expected: dict[str, Any] | None = None
    field: str | None = None
    offset: int | None = None
    reason: str = ""

    def entry(self) -> dict[str, Any]:
        """What the manifest says of it."""
        said: dict[str, Any] = {"path": self.path, "format": self.format, "name": self.name, "verdict": self.verdict}
        said |= {"bytes": len(self.data), "sha256": hashlib.sha256(self.data).hexdigest()}
        folder = self.path.rpartition("/")[0]
        if self.format == "bump":
            said["beside"] = {f"{folder}/{k}": hashlib.sha256(v).hexdigest() for k, v in self.beside.items()}
        if self.verdict != READ:
            said |= {"reason": self.reason, "field": self.field, "offset": self.offset}
        if self.expected is not None:
            said["expected"] = self.expected
        return said


def slug(name: str) -> str:
    """A name for a file: letters, digits and hyphens. A minus sign is said, so that -1 and 1 differ."""
    said = re.sub(r"(?<!\w)-1", "minus 1", name.lower()).replace("^", " to the ")
    return re.sub(r"[^a-z0-9]+", "-", said).strip("-")


def rule(name: str, field: str | None) -> str:
    """What a file of this name breaks, whose fault lies in this field."""
    if re.match(
        "truncated|cut in|.*without its last byte|.*(empty file|no data at all|half of the data|is cut)$", name
    ):
        return "nothing is missing from the file"
    for pattern, said in RULES:
        if re.search(pattern, field or "data"):
            return said
    raise ValueError(f"no rule is told for the field {field!r}")


def _path(kind: str, verdict: str, name: str) -> str:
    stem = f"{kind}/{'valid' if verdict == READ else 'malformed'}/{slug(name)}"
    return f"{stem}/weights.bump" if kind == "bump" else f"{stem}.{ENDINGS[kind]}"


def cases() -> list[Case]:
    """Every file, the valid ones of a format first."""
    found: list[Case] = []
    good = {
        "gguf": valid.gguf_valid(),
        "gguf-lite": valid.lite_valid(),
        "bump": valid.bump_valid(),
        "safetensors": valid.safetensors_valid(),
    }
    bad: dict[str, dict[str, Any]] = {
        "gguf": gguf_files.CORPUS,
        "gguf-lite": gguf_lite_files.CORPUS,
        "bump": dict(bump_files.malformations(*bump_files.bump(bump_files.LLAMA, 1, 3)[:2])),
        "safetensors": safetensors_files.CORPUS,
    }
    for kind, files in good.items():
        for name, made in files.items():
            found.append(Case(_path(kind, READ, name), kind, name, READ, made.data, made.beside, made.expected))
        for name, fault in bad[kind].items():
            may = OPTIONAL.get((kind, name))
            if kind == "safetensors" and fault.limit:
                may = "the file is valid, and a reader may know fewer types and dims than safetensors has"
            data, beside = getattr(fault, "data", b""), {}
            if kind == "bump":
                data, beside = fault.weights, {} if fault.config is None else {"config.json": fault.config}
            verdict = REFUSE if may is None else EITHER
            told = (fault.field, fault.offset, may or rule(name, fault.field))
            found.append(Case(_path(kind, verdict, name), kind, name, verdict, data, beside, None, *told))
    if len({case.path for case in found}) != len(found):
        raise ValueError("two files of the suite have the same path")
    return found


def manifest(found: list[Case]) -> str:
    """The manifest: JSON, one file a line."""
    lines = ",\n".join(json.dumps(case.entry(), ensure_ascii=False) for case in found)
    return f'{{"protocol": 1, "files": [\n{lines}\n]}}\n'


def files(found: list[Case]) -> dict[str, bytes]:
    """Path -> bytes, with what is beside the cases."""
    made = {}
    for case in found:
        made[case.path] = case.data
        made |= {f"{case.path.rpartition('/')[0]}/{name}": data for name, data in case.beside.items()}
    return made


def write() -> list[Case]:
    """Write ``manifest.json`` and ``files.zip``, the same bytes each time."""
    found = cases()
    MANIFEST.write_text(manifest(found), "utf-8", newline="\n")
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files(found).items():
            info = zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0))
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, data)
    return found


def unpack(folder: Path) -> None:
    """Put the files into a folder."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)


def load() -> list[dict[str, Any]]:
    """The entries of the manifest."""
    entries: list[dict[str, Any]] = json.loads(MANIFEST.read_text("utf-8"))["files"]
    return entries
