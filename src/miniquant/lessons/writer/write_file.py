"""The four parts joined: a whole file."""

import struct
import tempfile
from pathlib import Path

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from ...lab.compare import kind
from ...lab.spec import Finding
from ..shared.gguf_lite_by_hand import descriptor_oracle, header_oracle
from .choose_dtypes import choose_dtypes
from .choose_dtypes import oracle as dtypes_oracle
from .descriptor_bytes import descriptor_bytes
from .descriptor_bytes import fields as descriptor_fields
from .encode_q4 import encode_q4
from .encode_q4 import oracle as q4_oracle
from .encode_q8 import encode_q8
from .encode_q8 import oracle as q8_oracle
from .header_bytes import fields as header_fields
from .header_bytes import header_bytes
from .metadata_bytes import fields as metadata_fields
from .metadata_bytes import metadata_bytes
from .metadata_bytes import oracle as metadata_oracle
from .tensor_offsets import oracle as offsets_oracle
from .tensor_offsets import tensor_offsets

OLD = b"what an earlier run wrote here, longer than some of the new files"


def encode_tensor(w, dtype):
    """The bytes of one tensor, by its dtype code."""
    if dtype == 0:
        return w.astype("<f4").tobytes()
    if dtype == 1:
        return w.astype("<f2").tobytes()
    return encode_q8(w) if dtype == 2 else encode_q4(w)


def write_file(path, state, schemes, metadata):
    """Write a GGUF-lite file.

    path: where; state: name -> float32 array; schemes: name -> scheme, for some names; metadata: dict

    Raises ValueError for what cannot be stored, before the file at path is touched. Returns nothing.
    """
    dtypes = choose_dtypes(state, schemes)
    shapes = {name: tuple(w.shape) for name, w in state.items()}
    offsets = tensor_offsets(shapes, dtypes)
    block = metadata_bytes(metadata)
    with open(path, "wb") as file:
        file.write(header_bytes(len(state), len(block)))  # 1. header
        file.write(block)  # 2. metadata
        for name in state:  # 3. descriptors
            file.write(descriptor_bytes(name, shapes[name], dtypes[name], offsets[name]))
        for name, w in state.items():  # 4. data
            file.write(encode_tensor(w, dtypes[name]))


def oracle(path, state, schemes, metadata):
    """The bytes that the file must hold, from the other exercises' oracles; ``path`` is not touched."""
    dtypes = dtypes_oracle(state, schemes)
    offsets = offsets_oracle({name: w.shape for name, w in state.items()}, dtypes)
    block = metadata_oracle(metadata)
    out = header_oracle(len(state), len(block)) + block
    for name, w in state.items():
        out += descriptor_oracle(name, w.shape, dtypes[name], offsets[name])
    for name, w in state.items():
        if dtypes[name] < 2:
            out += struct.pack(f"<{w.size}{'fe'[dtypes[name]]}", *w.reshape(-1).tolist())
        else:
            out += q8_oracle(w) if dtypes[name] == 2 else q4_oracle(w)
    return out


def fields(path, state, schemes, metadata):
    """The fields of the right file, the data of each tensor as one."""
    dtypes = dtypes_oracle(state, schemes)
    offsets = offsets_oracle({name: w.shape for name, w in state.items()}, dtypes)
    found = header_fields(0, 0)

    def add(parts, at, prefix):
        found.extend((prefix + name, at + start, at + end) for name, start, end in parts)

    add(metadata_fields(metadata), 16, "metadata: ")
    at = 16 + len(metadata_oracle(metadata))
    for name, w in state.items():
        parts = descriptor_fields(name, w.shape, dtypes[name], offsets[name])
        add(parts, at, f"descriptor of {name!r}: ")
        at += parts[-1][2]
    kinds = ("float32", "float16", "scales then int8 values", "scales then nibbles")
    for (name, start), end in zip(offsets.items(), [*list(offsets.values())[1:], 1 << 62]):
        add([(f"data of {name!r}: {kinds[dtypes[name]]}", start, end)], at, "")
    return found


def observe(function, case):
    """Call the function with a path in a temporary folder; the result is the file that is there afterwards.

    A path that begins with ``old`` holds a file already, which a call that is refused must leave as it was.
    """
    name, *rest = case
    if function is oracle:
        return function(*case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        before = OLD if name.startswith("old") else None
        if before:
            path.write_bytes(before)
        try:
            result = function(path, *rest)
        except ValueError as error:
            after = path.read_bytes() if path.exists() else None
            if after == before:
                raise
            did = "leaves a file where none was" if before is None else "changes the old file"
            got = "a refusal, and no file" if after is None else f"a refusal, and a file of {len(after)} bytes"
            raise Finding(f"your function refuses the call, and {did}", got) from error
        if not path.exists():
            raise Finding("there is no file at the path after the call", f"your function returned {kind(result)}")
        return path.read_bytes()


def cases(random):
    """Small models of every dtype, an old file to replace, no tensors at all, calls that must be refused."""

    def f32(*shape):
        return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    ramp = np.tile(np.arange(-7, 9), 4).clip(-7, 7).astype(np.float32)  # 64 weights whose scale is 1
    layer = {"fc.weight": np.stack([ramp, 2 * ramp]), "fc.bias": f32(2)}
    toy = {
        "emb.weight": f32(3, 4) - 6,
        "ln.weight": 1 + f32(4) / 8,
        "fc.weight": np.stack([ramp, -3 * ramp]),
        "scale": np.float32(0.5).reshape(()),
    }
    every = {"ln.weight": "f16", "fc.weight": "q4_per_group_64", "emb.weight": "q8_per_channel"}
    drawn = {f"t{i}.weight": random.normal(0, 0.02, (4, 128)).astype(np.float32) for i in range(4)}
    schemes = ("q4_per_group_64", "f16", "q8_per_channel")
    text = {"dims_order": "out,in", "name": "café"}
    return [
        ("toy.gguf-lite", {"w": f32(2, 3)}, {}, {"a": "b"}),
        ("toy.gguf-lite", layer, {"fc.weight": "q4_per_group_64"}, text),
        ("toy.gguf-lite", toy, every, {"group_size": 64}),
        ("old.gguf-lite", {"b": f32(3)}, {}, {}),
        ("empty.gguf-lite", {}, {}, {}),
        ("refused.gguf-lite", layer, {"fc.wieght": "q8_per_channel"}, {}),
        ("old-refused.gguf-lite", layer, {"fc.bias": "q4_per_group_64"}, {}),
        ("refused.gguf-lite", {"w": f32(1, 2)}, {}, {"note": "two\nlines"}),
        ("toy.gguf-lite", drawn, {f"t{i}.weight": scheme for i, scheme in enumerate(schemes)}, {"layers": 4}),
    ]


EXERCISE = Exercise(
    goal="Join your functions into the whole writer: plan everything, then write the four parts in their order.",
    reference=write_file, oracle=oracle, cases=cases, minutes=6, difficulty="stretch", fields=fields,
    observe=observe,
    hints=(
        "First make the plan: `choose_dtypes`, the shapes, `tensor_offsets`, `metadata_bytes`. Open the file only when nothing can be refused any more.",
        'Inside `with open(path, "wb") as file:` come four steps: `header_bytes(len(state), len(block))`, the block, one loop that writes descriptors, and a second loop that writes `encode_tensor(w, dtypes[name])`.',
    ),
    why="this is a model file, complete: any program that knows the four parts can run your model from it.",
    mistakes=(
        Mistake("offsets from the start of the file", edit(
                "    with open",
                "    start = 16 + len(block) + sum(len(descriptor_bytes(name, shapes[name], 0, 0)) for name in state)\n    with open",
            ).edit("offsets[name]", "offsets[name] + start"),
            cause="The place where the data section begins was added to each offset, and the reader adds it again.",
            cure="Store what `tensor_offsets` returns, unchanged.",
            see="the first offset not 0, and everything else right"),
        Mistake("offsets fixed too early", edit("offsets[name]", "offsets[name] + 16 + len(block)"),
            cause="The count began after the metadata, before any descriptor was written, and each one moves the data.",
            cure="Store what `tensor_offsets` returns: it counts from the start of the data section, which is 0.",
            see="the first offset 16 or a little more, and everything else right"),
        Mistake("dims reversed", edit("shapes[name]", "shapes[name][::-1]"),
            cause="The dims were turned around, as for real GGUF, and this format keeps PyTorch's order: out, then in.",
            cure="Pass `tuple(w.shape)` as it is.", see="dims[0] and dims[1] exchanged in the descriptors"),
        Mistake("a text file", edit('"wb"', '"w"'),
            cause='Mode "w" opens a file for text, and bytes are not text.',
            cure='Open the file with mode "wb".', see="`write() argument must be str, not bytes`"),
        Mistake("each descriptor before its own data", omit("for name, w in state.items():").edit(
                "offsets[name]))",
                "offsets[name]))\n            file.write(encode_tensor(state[name], dtypes[name]))",
            ),
            cause="Descriptor and data alternate, so the reader takes weights for the second descriptor.",
            cure="Use two loops: all descriptors first, then all data.", see="right for one tensor, wrong for two"),
        Mistake("data before descriptors", omit("for name, w in state.items():").edit(
                "for name in state:",
                "for name in state:\n            file.write(encode_tensor(state[name], dtypes[name]))\n        for name in state:",
            ),
            cause="The data comes where the first descriptor belongs.",
            cure="Write the descriptors first, and the data last.", see="weights right after the metadata"),
        Mistake("metadata_len counts characters", edit("len(block)", "len(block.decode())"),
            cause="The length was taken from the text, and é takes two bytes in UTF-8.",
            cure="Take `len` of the encoded block.", see="right for ASCII, one too small for `café`"),
        Mistake("metadata_len counts lines", edit("len(block)", "len(metadata)"),
            cause="The header holds the number of entries, and a reader needs the number of bytes.",
            cure="Take `len(metadata_bytes(metadata))`.", see="a small number in header.metadata_len"),
        Mistake("n_tensors counts schemes", edit("len(state)", "len(schemes)"),
            cause="The header counts the tensors that schemes names, and the file holds all of the model.",
            cure="Take `len(state)`.", see="header.n_tensors too small"),
        Mistake("nothing quantized", edit("encode_tensor(w, dtypes[name])", "w.tobytes()"),
            cause="The descriptor promises Q8 or Q4, and the data is float32.",
            cure="Write each tensor with the encoder of its dtype: `encode_tensor(w, dtypes[name])`.",
            see="descriptors right, and the file too long"),
        Mistake("opened before the plan was made",
            edit("dtypes = choose", 'open(path, "wb").close()\n    dtypes = choose'),
            cause="Opening with `wb` empties the file at once; if a scheme is refused after that, the old file is gone.",
            cure="Make the whole plan first, and open the file last.", see="the call refused, and a file left behind"),
        Mistake("appended", edit('"wb"', '"ab"'),
            cause="The new file was written after the old one.",
            cure='Open the file with mode "wb".', see="old bytes in front of the magic when you write a second time"),
        Mistake("returned instead of written", edit('with open(path, "wb")', "import io\n    with io.BytesIO()").edit(
                "file.write(encode_tensor(w, dtypes[name]))",
                "file.write(encode_tensor(w, dtypes[name]))\n        return file.getvalue()",
            ),
            cause="The bytes are right, and they were returned rather than written.",
            cure="Open the path and write them.", see="no file at the path"),
    ),
)
