"""The exercise of lab 06 that joins the others: a whole file."""

from __future__ import annotations

import os
import struct
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...core.files import atomic_write
from ...formats.gguf_lite import file as gguf_io
from ...lab.compare import Fields, kind
from ...lab.spec import Case, Exercise, Finding, Mistake
from ..shared.gguf_lite_by_hand import descriptor_oracle, header_oracle
from .container import header_bytes, header_fields, metadata_bytes, metadata_fields, metadata_oracle
from .descriptor import descriptor_bytes, descriptor_fields
from .plan import choose_dtypes, dtypes_oracle, offsets_oracle, tensor_offsets
from .q4 import encode_q4, q4_oracle
from .q8 import encode_q8, q8_oracle

OLD = b"what an earlier run wrote here, longer than some of the new files"


def encode_tensor(w: np.ndarray, dtype: int) -> bytes:
    """The bytes of one tensor: its encoder, chosen by its dtype code."""
    if dtype == gguf_io.DType.F32:
        return w.astype("<f4").tobytes()
    if dtype == gguf_io.DType.F16:
        return w.astype("<f2").tobytes()
    return encode_q8(w) if dtype == gguf_io.DType.Q8_PER_CHANNEL else encode_q4(w)


def write_file(path: str | os.PathLike[str], state: dict, schemes: dict, metadata: dict) -> None:
    """The reference: the four parts, planned first and written in order."""
    dtypes = choose_dtypes(state, schemes)
    shapes = {name: tuple(w.shape) for name, w in state.items()}
    offsets = tensor_offsets(shapes, dtypes)
    block = metadata_bytes(metadata)
    with atomic_write(path) as file:
        file.write(header_bytes(len(state), len(block)))
        file.write(block)
        for name in state:
            file.write(descriptor_bytes(name, shapes[name], dtypes[name], offsets[name]))
        for name, w in state.items():
            file.write(encode_tensor(w, dtypes[name]))


def file_oracle(path: object, state: dict, schemes: dict, metadata: dict) -> bytes:
    """The bytes that the file must hold, from the other exercises' oracles; ``path`` is not touched."""
    dtypes = dtypes_oracle(state, schemes)
    shapes = {name: w.shape for name, w in state.items()}
    offsets = offsets_oracle(shapes, dtypes)
    block = metadata_oracle(metadata)
    out = header_oracle(len(state), len(block)) + block
    for name in state:
        out += descriptor_oracle(name, shapes[name], dtypes[name], offsets[name])
    for name, w in state.items():
        flat = w.reshape(-1).tolist()
        plain = dtypes[name] < 2
        out += (
            struct.pack(f"<{len(flat)}{'fe'[dtypes[name]]}", *flat)
            if plain
            else (q8_oracle, q4_oracle)[dtypes[name] - 2](w)
        )
    return out


def file_fields(path: object, state: dict, schemes: dict, metadata: dict) -> Fields:
    """The fields of the right file, the data of each tensor as one."""
    dtypes = dtypes_oracle(state, schemes)
    shapes = {name: w.shape for name, w in state.items()}
    offsets = offsets_oracle(shapes, dtypes)
    fields = header_fields(0, 0) + _moved(metadata_fields(metadata), 16, "metadata: ")
    at = 16 + len(metadata_oracle(metadata))
    for name in state:
        parts = descriptor_fields(name, shapes[name], dtypes[name], offsets[name])
        fields += _moved(parts, at, f"descriptor of {name!r}: ")
        at += parts[-1][2]
    ends = [*list(offsets.values())[1:], 1 << 62]
    kinds = ("float32", "float16", "scales then int8 values", "scales then nibbles")
    for (name, start), end in zip(offsets.items(), ends):
        fields.append((f"data of {name!r}: {kinds[dtypes[name]]}", at + start, at + end))
    return fields


def _moved(fields: Fields, by: int, prefix: str) -> Fields:
    return [(prefix + name, a + by, b + by) for name, a, b in fields]


def observe(function: Any, case: Case) -> Any:
    """Call the function with a path in a temporary folder; what counts is the file that stands there afterwards.

    A path that begins with ``old`` holds a file already, which a call that is refused must leave as it was.
    """
    name, *rest = case
    if function is file_oracle:
        return function(*case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        before = OLD if name.startswith("old") else None
        if before:
            path.write_bytes(before)
        try:
            result = function(path, *rest)
        except ValueError as error:
            if path.exists() and path.read_bytes() != before:
                was = "in place of the old one" if before else "where none was"
                what = f"your function refuses the call, and leaves a file behind {was}"
                raise Finding(what, "a refusal, and a file") from error
            raise
        if not path.exists():
            raise Finding("no file stands at the path after the call", f"your function returned {kind(result)}")
        return path.read_bytes()


def _file_cases(random: np.random.Generator) -> list[Case]:
    def f32(*shape: int) -> np.ndarray:
        return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    ramp = np.tile(np.arange(-7, 9), 4).clip(-7, 7).astype(np.float32)  # 64 weights whose scale is 1
    layer = {"fc.weight": np.stack([ramp, 2 * ramp]), "fc.bias": f32(2)}
    toy = {
        "emb.weight": f32(3, 4) - 6,
        "ln.weight": 1 + f32(4) / 8,
        "fc.weight": np.stack([ramp, -3 * ramp]),
        "scale": np.float32(0.5).reshape(()),
    }
    drawn = {f"t{i}.weight": random.normal(0, 0.02, (4, 128)).astype(np.float32) for i in range(4)}
    schemes = ("q4_per_group_64", "f16", "q8_per_channel")
    return [
        ("toy.gguf-lite", {"w": f32(2, 3)}, {}, {"a": "b"}),
        ("toy.gguf-lite", layer, {"fc.weight": "q4_per_group_64"}, {"dims_order": "out,in", "name": "café"}),
        (
            "toy.gguf-lite",
            toy,
            {"ln.weight": "f16", "fc.weight": "q4_per_group_64", "emb.weight": "q8_per_channel"},
            {"group_size": 64},
        ),
        ("old.gguf-lite", {"b": f32(3)}, {}, {}),
        ("empty.gguf-lite", {}, {}, {}),
        ("refused.gguf-lite", layer, {"fc.wieght": "q8_per_channel"}, {}),
        ("old-refused.gguf-lite", layer, {"fc.bias": "q4_per_group_64"}, {}),
        ("refused.gguf-lite", {"w": f32(1, 2)}, {}, {"note": "two\nlines"}),
        ("toy.gguf-lite", drawn, {f"t{i}.weight": scheme for i, scheme in enumerate(schemes)}, {"layers": 4}),
    ]


def _written(
    path: Any,
    state: dict,
    schemes: dict,
    metadata: dict,
    *,
    mode: str = "wb",
    metadata_len: Any = len,
    n_tensors: Any = lambda state, schemes: len(state),
    absolute: bool = False,
    too_early: bool = False,
    turned: bool = False,
    interleaved: bool = False,
    quantized: bool = True,
    data_first: bool = False,
) -> None:
    """Right unless told otherwise; each switch is a mistake."""
    dtypes = choose_dtypes(state, schemes)
    shapes = {name: tuple(w.shape) for name, w in state.items()}
    offsets = tensor_offsets(shapes, dtypes)
    block = metadata_bytes(metadata)
    start = 16 + len(block) + sum(len(descriptor_bytes(name, shapes[name], 0, 0)) for name in state)
    start = 16 + len(block) if too_early else start if absolute else 0
    descriptors = [
        descriptor_bytes(name, shapes[name][:: -1 if turned else 1], dtypes[name], offsets[name] + start)
        for name in state
    ]
    data = [encode_tensor(w, dtypes[name] if quantized else 0) for name, w in state.items()]
    order = [part for pair in zip(descriptors, data) for part in pair] if interleaved else [*descriptors, *data]
    order = [*data, *descriptors] if data_first else order
    with open(path, mode) as file:
        file.write(b"".join([header_bytes(n_tensors(state, schemes), metadata_len(block)), block, *order]))


def _opened_first(path: Any, state: dict, schemes: dict, metadata: dict) -> None:
    with open(path, "wb"):
        _written(path, state, schemes, metadata)


def _only_returned(path: Any, state: dict, schemes: dict, metadata: dict) -> bytes:
    return file_oracle(path, state, schemes, metadata)


WRITE_FILE = Exercise(
    name="write_file",
    lab="06",
    goal="Join your functions into the whole writer: plan everything, then write the four parts in their order.",
    minutes=6,
    difficulty="stretch",
    reference=write_file,
    oracle=file_oracle,
    cases=_file_cases,
    fields=file_fields,
    observe=observe,
    hints=(
        "First make the plan: `choose_dtypes`, the shapes, `tensor_offsets`, `metadata_bytes`. Open the file only when "
        "nothing can be refused any more.",
        'Inside `with open(path, "wb") as file:` come four steps: `header_bytes(len(state), len(block))`, the block, '
        "one loop that writes descriptors, and a second loop that writes `encode_tensor(w, dtypes[name])`.",
    ),
    why="this is a model file, complete: any program that knows the four parts can run your model from it.",
    mistakes=(
        Mistake(
            "offsets from the start of the file",
            partial(_written, absolute=True),
            "The place where the data section begins was added to each offset, and the reader adds it again.",
            "Store what `tensor_offsets` returns, unchanged.",
            "the first offset not 0, and everything else right",
        ),
        Mistake(
            "offsets fixed too early",
            partial(_written, too_early=True),
            "The count began behind the metadata, before any descriptor was written, and each one moves the data.",
            "Store what `tensor_offsets` returns: it counts from the start of the data section, which is 0.",
            "the first offset 16 or a little more, and everything else right",
        ),
        Mistake(
            "dims reversed",
            partial(_written, turned=True),
            "The dims were turned around, as for real GGUF, and this format keeps PyTorch's order: out, then in.",
            "Pass `tuple(w.shape)` as it is.",
            "dims[0] and dims[1] exchanged in the descriptors",
        ),
        Mistake(
            "a text file",
            partial(_written, mode="w"),
            'Mode "w" opens a file for text, and bytes are not text.',
            'Open the file with mode "wb".',
            "`write() argument must be str, not bytes`",
        ),
        Mistake(
            "each descriptor before its own data",
            partial(_written, interleaved=True),
            "Descriptor and data alternate, so the reader takes weights for the second descriptor.",
            "Use two loops: all descriptors first, then all data.",
            "right for one tensor, wrong for two",
        ),
        Mistake(
            "data before descriptors",
            partial(_written, data_first=True),
            "The data stands where the first descriptor belongs.",
            "Write the descriptors first, and the data last.",
            "weights right behind the metadata",
        ),
        Mistake(
            "metadata_len counts characters",
            partial(_written, metadata_len=lambda block: len(block.decode())),
            "The length was taken from the text, and é takes two bytes in UTF-8.",
            "Take `len` of the encoded block.",
            "right for ASCII, one too small for `café`",
        ),
        Mistake(
            "metadata_len counts lines",
            partial(_written, metadata_len=lambda block: len(block.split(b"\n")) if block else 0),
            "The header holds the number of entries, and a reader needs the number of bytes.",
            "Take `len(metadata_bytes(metadata))`.",
            "a small number in header.metadata_len",
        ),
        Mistake(
            "n_tensors counts schemes",
            partial(_written, n_tensors=lambda state, schemes: len(schemes)),
            "The header counts the tensors that schemes names, and the file holds all of the model.",
            "Take `len(state)`.",
            "header.n_tensors too small",
        ),
        Mistake(
            "nothing quantized",
            partial(_written, quantized=False),
            "The descriptor promises Q8 or Q4, and the data is float32.",
            "Write each tensor with the encoder of its dtype: `encode_tensor(w, dtypes[name])`.",
            "descriptors right, and the file too long",
        ),
        Mistake(
            "opened before the plan was made",
            _opened_first,
            "Opening with `wb` empties the file at once, and if a scheme is refused after that, the old file is gone.",
            "Make the whole plan first, and open the file last.",
            "the call refused, and a file left behind",
        ),
        Mistake(
            "appended",
            partial(_written, mode="ab"),
            "The new file was written behind the old one.",
            'Open the file with mode "wb".',
            "old bytes in front of the magic when you write a second time",
        ),
        Mistake(
            "returned instead of written",
            _only_returned,
            "The bytes are right, and they were returned rather than written.",
            "Open the path and write them.",
            "no file stands at the path",
        ),
    ),
)
