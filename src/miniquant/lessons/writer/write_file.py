"""The four parts joined: a whole file."""

import struct
import tempfile
from pathlib import Path

import numpy as np

from ...lab import Exercise, Mistake, edit, omit
from ...lab.compare import kind
from ...lab.spec import Finding
from ..container.descriptor_bytes import descriptor_bytes
from ..container.descriptor_bytes import fields as descriptor_fields
from ..container.header_bytes import fields as header_fields
from ..container.header_bytes import header_bytes
from ..container.metadata_bytes import fields as metadata_fields
from ..container.metadata_bytes import metadata_bytes
from ..container.metadata_bytes import oracle as metadata_oracle
from ..container.tensor_offsets import oracle as offsets_oracle
from ..container.tensor_offsets import tensor_offsets
from ..shared.gguf_lite_by_hand import descriptor_oracle, header_oracle
from .choose_dtypes import DTYPES, choose_dtypes
from .choose_dtypes import oracle as dtypes_oracle
from .encode_q4 import encode_q4
from .encode_q4 import oracle as q4_oracle
from .encode_q8 import encode_q8
from .encode_q8 import oracle as q8_oracle

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

    path: a pathlib.Path; state: name -> float32 array of any shape, also
        with a dim of 0 where the scheme is f32 or f16; schemes: name ->
        scheme, for some names; metadata: dict, written as it is given

    The file holds header, metadata, all descriptors, all data; tensors in
    the order of state. A file that is at path already is replaced; after
    the call, no other new file is in its folder. Returns None.

    Raises ValueError for what choose_dtypes or metadata_bytes refuses,
    before anything at path is changed. No other input is refused.
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


def quantities(path, state, schemes, metadata):
    """What students write in the place of an offset or of a count; of a refused call only what its arguments say."""
    text = "\n".join(f"{key}={value}" for key, value in metadata.items())
    block = text.encode()
    counts = [w.size for w in state.values()]
    given = {
        "the number of dims that are written": [w.ndim for w in state.values()],
        "the number of values in all tensors": sum(counts),
        "the number of metadata entries": len(metadata),
        "the length of the metadata in characters": len(text),
        "the length of the header and the metadata": 16 + len(block),
        "the length of the values of the metadata": sum(len(str(v).encode()) for v in metadata.values()),
        "the length of the keys of the metadata": sum(len(key.encode()) for key in metadata),
        "the length of the metadata without its newlines": len(block) - max(0, len(metadata) - 1),
        "the length of the metadata and one newline": len(block) + 1,
    }
    try:
        size_of_file = len(oracle(path, state, schemes, metadata))
    except ValueError:
        return given  # there is no file, and no place in it
    dtypes = dtypes_oracle(state, schemes)
    starts = list(offsets_oracle({name: w.shape for name, w in state.items()}, dtypes).values())
    sizes = [_size(w.size, len(w) if w.ndim else 1, dtypes[name]) for name, w in state.items()]
    data = size_of_file - sum(sizes)
    return {
        "the end of the tensor, not its beginning": [start + size for start, size in zip(starts, sizes)],
        "the size of the tensor": sizes,
        "the size of the tensor before it": [0, *sizes[:-1]],
        "the place that it would have if all tensors were F32": [4 * sum(counts[:i]) for i in range(len(counts))],
        "the number of values before it": [sum(counts[:i]) for i in range(len(counts))],
        "the number of the tensor, counted from 0": list(range(len(sizes))),
        "the number of the tensor, counted from 1": list(range(1, len(sizes) + 1)),
        "the place counted from the start of the file": [data + start for start in starts],
        "the place counted from the end of the header": [data - 16 + start for start in starts],
        "the offset of the tensor after it": [*starts[1:], sum(sizes)] if sizes else [],
        "the size of the data section": sum(sizes),
        "the place where the data begins": data,
        "the size of the file": size_of_file,
        **given,
    }


def _size(count, rows, dtype):
    return (4 * count, 2 * count, 2 * rows + count, count // 64 * 34)[dtype]


def observe(function, case):
    """Call the function with a path in a temporary folder; the result is the file that is there afterwards.

    A path that begins with ``old`` holds a file already, which a call that is refused must leave as it was. No other file
    may be left beside it.
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
            _no_other_file(path)
            after = path.read_bytes() if path.exists() else None
            if after == before or _is_good(case):
                raise
            did = "leaves a file where none was" if before is None else "changes the old file"
            got = "a refusal, and no file" if after is None else f"a refusal, and a file of {len(after)} bytes"
            raise Finding(f"your function refuses the call, and {did}", got) from error
        if not path.exists():
            raise Finding("there is no file at the path after the call", f"your function returned {kind(result)}")
        if result is not None:
            raise Finding("your function returns something, and nothing is asked for", kind(result))
        _no_other_file(path)
        return path.read_bytes()


def _is_good(case):
    """Whether a file must be written: then the error itself says more than what it left behind."""
    try:
        oracle(*case)
    except ValueError:
        return False
    return True


def _no_other_file(path):
    if others := sorted(other.name for other in path.parent.iterdir() if other != path):
        raise Finding("your function leaves another file in the folder", ", ".join(others))


def cases(random):
    """Small models of every dtype, an old file to replace, no tensors at all, calls that must be refused."""

    def f32(*shape):
        return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    ramp = np.tile(np.arange(-7, 9), 4).clip(-7, 7).astype(np.float32)  # 64 weights whose scale is 1
    layer = {"fc.weight": np.stack([ramp, 2 * ramp]), "fc.bias": f32(2)}
    toy = {
        "emb.weight": np.array([[190 * 2**-24, -190 * 2**-24, 0], [0, 0, 0], [127, 2.5, -0.5]], np.float32),
        "ln.weight": (1 + f32(2, 3) / 8).T,
        "fc.weight": np.stack([ramp, -3 * ramp, ramp / 7 * 10.4 * 2**-24, 0 * ramp]),
        "": np.float32(-np.inf).reshape(()),  # no name is refused here, and no weight
        "none": f32(0, 3),
        " größe é\n": f32(3, 2).T,
    }
    every = {"ln.weight": "f16", "fc.weight": "q4_per_group_64", "emb.weight": "q8_per_channel"}
    drawn = {f"t{i}.weight": random.normal(0, 0.02, (4, 128)).astype(np.float32) for i in range(4)}
    schemes = ("q4_per_group_64", "f16", "q8_per_channel")
    text = {"name": "café", "dims_order": "out,in"}
    return [
        ("toy.gguf-lite", {"w": f32(2, 3)}, {}, {"a": "b"}),
        ("toy.gguf-lite", layer, {"fc.weight": "q4_per_group_64"}, text),
        ("Toy 2.v1.bin", toy, every, {"group_size": 64}),  # any name will do
        ("old.gguf-lite", {}, {}, {}),
        ("refused.gguf-lite", layer, {"fc.weight": "q4"}, {}),
        ("refused.gguf-lite", layer, {"fc.wieght": "q8_per_channel"}, {}),
        ("old-refused.gguf-lite", layer, {"fc.bias": "q4_per_group_64"}, {}),
        ("refused.gguf-lite", {"w": f32(1, 2)}, {}, {"note": "two\nlines"}),
        ("old-refused.gguf-lite", {"w": f32(1, 2)}, {}, {"": "no key"}),
        ("old-refused.gguf-lite", {"a": f32(2, 64), "w": f32(2, 96)}, {"w": "q4_per_group_64"}, {}),
        ("toy", drawn, {f"t{i}.weight": scheme for i, scheme in enumerate(schemes)}, {"layers": 4}),
    ]


def traits(path, state, schemes, metadata):
    """What is special about a model, or must be refused."""
    asked = [scheme for name, scheme in schemes.items() if name in state]
    strange = any("\n" in f"{k}{v}" or not k or "=" in k for k, v in metadata.items())
    return {
        "a file is at the path already": path.startswith("old"),
        "metadata must be refused": strange,
        "schemes must be refused": path.startswith(("refused", "old-refused")) and not strange,
        "there are no tensors": not state,
        "there is more than one tensor": len(state) > 1,
        "there are more than two tensors": len(state) > 2,
        "there is no metadata": not metadata,
        "there is metadata": bool(metadata),
        "a tensor has no dims": any(w.ndim == 0 for w in state.values()),
        "a tensor has a dim of 0": any(0 in w.shape for w in state.values()),
        "a tensor of the model has the scheme f16": "f16" in asked,
        "a tensor of the model has the scheme q8_per_channel": "q8_per_channel" in asked,
        "metadata has more than one item": len(metadata) > 1,
        "the metadata has characters outside ASCII": not "".join(f"{k}{v}" for k, v in metadata.items()).isascii(),
        "a tensor of the model has the scheme q8_per_channel or q4_per_group_64": any(DTYPES.get(scheme, 0) >= 2 for scheme in asked),
        "a tensor of the model has another scheme than f32": any(scheme != "f32" for scheme in asked),
        "schemes is empty": not schemes,
        "the names are not in sorted order": list(state) != sorted(state),
        "a tensor has other than two dims": any(w.ndim != 2 for w in state.values()),
        "a matrix is not square": any(w.ndim == 2 and w.shape[0] != w.shape[1] for w in state.values()),
        "a tensor does not lie in memory row after row": any(not w.flags.c_contiguous for w in state.values()),
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Join your functions into the whole writer: plan everything, then write the four parts in their order.",
    reference=write_file, oracle=oracle, cases=cases, minutes=8, difficulty="stretch", fields=fields,
    observe=observe, quantities=quantities,
    hints=(
        "First the plan: dtypes, shapes, offsets, metadata. Some of these may refuse the call, so nothing may be opened before. Then the four parts, in their order.",
        'The mode `"wb"` of `open` writes bytes and replaces an old file. You need one loop for all descriptors, and a second one for all data.',
    ),
    why="this is a complete model file: any program that knows the four parts can read your weights from it.",
    mistakes=(
        Mistake("offsets from the start of the file", edit(
                "    with open",
                "    start = 16 + len(block) + sum(len(descriptor_bytes(name, shapes[name], 0, 0)) for name in state)\n    with open",
            ).edit("offsets[name]", "offsets[name] + start"),
            cause="Each offset counts from the start of the file, and the reader adds the start of the data section again.",
            cure="Store what `tensor_offsets` returns, unchanged.",
            see="the first offset not 0, and everything else right"),
        Mistake("offsets 16 + metadata_len too large", edit("offsets[name]", "offsets[name] + 16 + len(block)"),
            cause="Each offset is too large by 16 + metadata_len, as if it were counted from the start of a file without descriptors.",
            cure="Store what `tensor_offsets` returns: it counts from the start of the data section, which is 0.",
            see="the first offset 16 or a little more, and everything else right"),
        Mistake("dims reversed", edit("shapes[name]", "shapes[name][::-1]"),
            cause="The dims are reversed, as in real GGUF; this format keeps PyTorch's order: out, then in.",
            cure="Pass `tuple(w.shape)` as it is.", see="dims[0] and dims[1] exchanged in the descriptors"),
        Mistake("metadata after the descriptors", edit("        file.write(block)  # 2. metadata\n", "").edit("        for name, w in state.items():  # 4", "        file.write(block)\n        for name, w in state.items():  # 4"),
            cause='The metadata stands after the descriptors, and it must follow the header directly.',
            cure='Write header, metadata, descriptors, data.', see='a descriptor at byte 16'),
        Mistake("metadata missing", edit("        file.write(block)  # 2. metadata\n", ""),
            cause='The header announces metadata, and none is written.',
            cure='Write the block after the header.', see='a descriptor at byte 16, and the file too short'),
        Mistake("counts swapped", edit("len(state), len(block)", "len(block), len(state)"),
            cause='The number of tensors and the length of the metadata are exchanged in the header.',
            cure='Call `header_bytes(n_tensors, metadata_len)`.', see='header.n_tensors and header.metadata_len exchanged'),
        Mistake("every offset 0", edit("offsets[name]))", "0))"),
            cause='Every descriptor says that its data begins at byte 0.',
            cure='Write the offset that `tensor_offsets` gives for the name.', see='right for one tensor, wrong for the second'),
        Mistake("sorted by name", edit("for name in state:", "for name in sorted(state):").edit("for name, w in state.items():  # 4", "for name, w in sorted(state.items()):  # 4"),
            cause='The tensors are sorted by name, and they must keep the order of the model.',
            cure='Loop over `state` as it is.', see='the tensors in alphabetical order'),
        Mistake("refused for its metadata, with an empty file left", edit("    block = metadata_bytes(metadata)\n", "").edit("as file:\n", "as file:\n        block = metadata_bytes(metadata)\n"),
            cause="The call is refused for its metadata, and by then an empty file stands at path.",
            cure='Call it before you open the file.', see='the call refused, and the old file changed'),
        Mistake("a newline after the metadata", edit("file.write(block)", "file.write(block + b\"\\n\")"),
            cause='A newline follows the metadata, and the header does not count it.',
            cure='Write the block as it is.', see='every descriptor one byte too late'),
        Mistake("old bytes left at the end", edit("open(path, \"wb\")", "open(path, \"r+b\" if path.exists() else \"wb\")"),
            cause='The last bytes of the old, larger file are still there.',
            cure='Open the file with mode `wb`, which empties it first.', see='old bytes after the data when a file is replaced'),
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
            cause="The length counts characters, and é takes two bytes in UTF-8.",
            cure="Take `len` of the encoded block.", see="right for ASCII, one too small for `café`"),
        Mistake("metadata_len counts lines", edit("len(block)", "len(metadata)"),
            cause="The header holds the number of entries, and a reader needs the number of bytes.",
            cure="Take `len(metadata_bytes(metadata))`.", see="a small number in header.metadata_len"),
        Mistake("n_tensors counts schemes", edit("len(state)", "len(schemes)"),
            cause="The header counts the tensors that schemes names, and the file holds all of the model.",
            cure="Take `len(state)`.", see="header.n_tensors too small"),
        Mistake("nothing quantized", edit("encode_tensor(w, dtypes[name])", "w.tobytes()"),
            cause="Float32 is written for every tensor, also where the descriptor promises F16, Q8 or Q4.",
            cure="Write each tensor with the encoder of its dtype: `encode_tensor(w, dtypes[name])`.",
            see="descriptors right, and the file too large"),
        Mistake("opened before the plan was made",
            edit("dtypes = choose", 'open(path, "wb").close()\n    dtypes = choose'),
            cause="The call is refused, and by then an empty file stands at path, in place of an old one if there was one.",
            cure="Make the whole plan first, and open the file last.", see="the call refused, and a file left behind"),
        Mistake("appended", edit('"wb"', '"ab"'),
            cause="The new file was written after the old one.",
            cure='Open the file with mode "wb".', see="old bytes before the magic when you write a second time"),
        Mistake("returned instead of written", edit('with open(path, "wb")', "import io\n    with io.BytesIO()").edit(
                "file.write(encode_tensor(w, dtypes[name]))",
                "file.write(encode_tensor(w, dtypes[name]))\n        return file.getvalue()",
            ),
            cause="Bytes were returned, and nothing was written at path.",
            cure="Open the path and write them.", see="no file at the path"),
    ),
)
