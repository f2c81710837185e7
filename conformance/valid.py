"""Valid files, and what is in them: built with ``struct`` alone, beside the values that a reader must find."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any, NamedTuple

from . import bump_files, gguf_files, gguf_lite_files, safetensors_files

Expected = dict[str, Any]
MANY = 128  # weights: of a larger tensor the manifest has the SHA-256 of the bytes alone


class Valid(NamedTuple):
    """The file's bytes, what it says, and the files beside it."""

    data: bytes
    expected: Expected
    beside: dict[str, bytes] = {}  # noqa: RUF012 it is never changed


def plain(value: Any) -> Any:
    """A number as JSON has it: what is not finite becomes the text "NaN", "Infinity" or "-Infinity"."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def tensor(kind: str, dims: tuple[int, ...], offset: int, raw: bytes, values: list[float] | None = None) -> Expected:
    """What the manifest says of a tensor."""
    said: Expected = {"type": kind, "dims": list(dims), "offset": offset, "bytes": len(raw)}
    said["sha256"] = hashlib.sha256(raw).hexdigest()
    if values is not None and len(values) <= MANY:
        said["values"] = plain(values)
    return said


# ---- GGUF ------------------------------------------------------------------------------------------------------------

_CODES = "BbHhIif?"  # of the types 0 to 7; 10 to 12 follow below
_NUMBERS = {kind: code for kind, code in enumerate(_CODES)} | {10: "Q", 11: "q", 12: "d"}
_KINDS = [
    *("UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT32", "BOOL", "STRING", "ARRAY"),
    *("UINT64", "INT64", "FLOAT64"),
]  # fmt: skip
TYPES = {  # ggml's number, weights and bytes of a block
    **{"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22)},
    **{"Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110)},
    **{"Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "IQ4_NL": (20, 32, 18)},
    **{"IQ4_XS": (23, 256, 136), "I8": (24, 1, 1), "I16": (25, 1, 2), "I32": (26, 1, 4), "I64": (27, 1, 8)},
    **{"F64": (28, 1, 8), "BF16": (30, 1, 2), "MXFP4": (39, 32, 17)},
}


def _packed(kind: int, value: Any) -> bytes:
    return gguf_files.string(value.encode()) if kind == gguf_files.STRING else struct.pack(f"<{_NUMBERS[kind]}", value)


def gguf(
    pairs: dict[str, tuple[int, Any]],
    tensors: dict[str, tuple[str, tuple[int, ...], bytes, list[float] | None]],
    alignment: int = 32,
    version: int = 3,
) -> Valid:
    """A file of these keys and tensors. A value is (its type, itself); of an array, ((ARRAY, type of each), list)."""
    entries, said, types = [], {}, {}
    for key, (kind, value) in pairs.items():
        if isinstance(kind, tuple):
            of = kind[1]
            entry = gguf_files.array(of, len(value), b"".join(_packed(of, each) for each in value))
            entries.append(gguf_files.pair(key.encode(), gguf_files.ARRAY, entry))
            types[key] = f"ARRAY of {_KINDS[of]}"
        else:
            entries.append(gguf_files.pair(key.encode(), kind, _packed(kind, value)))
            types[key] = _KINDS[kind]
        said[key] = plain(value)
    infos, data, found = [], b"", {}
    for name, (kind, dims, raw, values) in tensors.items():
        data += bytes(-len(data) % alignment)
        infos.append(gguf_files.info(name.encode(), dims, TYPES[kind][0], len(data)))
        found[name] = tensor(kind, dims, len(data), raw, values)
        data += raw
    data += bytes(-len(data) % alignment)
    made = gguf_files.assemble(entries, infos, data, alignment=alignment, version=version)
    return Valid(made, {"metadata": said, "types": types, "tensors": found})


def _floats(code: str, values: list[float]) -> tuple[bytes, list[float]]:
    """Numbers in a type of struct, and what they are after rounding."""
    raw = struct.pack(f"<{len(values)}{code}", *values)
    return raw, [float(x) for x in struct.unpack(f"<{len(values)}{code}", raw)]


def _block(kind: str) -> tuple[bytes, list[float]]:
    """One block of 32 weights with levels that differ, and its weights by the format's own formula."""
    if kind == "Q8_0":
        levels = [(i * 37) % 255 - 127 for i in range(32)]
        return struct.pack("<e32b", 0.25, *levels), [0.25 * level for level in levels]
    levels = [(i * 7 + 3) % 16 for i in range(32)]
    nibbles = bytes(levels[i] | levels[i + 16] << 4 for i in range(16))
    if kind == "Q4_0":
        return struct.pack("<e", -0.5) + nibbles, [-0.5 * (level - 8) for level in levels]
    return struct.pack("<2e", 0.125, -1.0) + nibbles, [0.125 * level - 1 for level in levels]  # Q4_1


def _bytes(kind: str, index: int, blocks: int = 1) -> bytes:
    """Any bytes will do: finite halves and small numbers."""
    return bytes((index * 13 + i * 5) % 48 for i in range(TYPES[kind][2] * blocks))


def gguf_valid() -> dict[str, Valid]:
    """The valid GGUF files by name."""
    g = gguf_files
    extremes: dict[str, tuple[int, Any]] = {}
    for kind, code in _NUMBERS.items():
        size = 8 * struct.calcsize(code)
        if code in "fd":
            values: list[Any] = [0.5, -0.0, math.inf, -math.inf, math.nan, 2.0**100, -(2.0**-100)]
        elif code == "?":
            values = [False, True]
        else:
            values = [-(2 ** (size - 1)), 2 ** (size - 1) - 1] if code.islower() else [0, 2**size - 1]
        for i, value in enumerate(values):
            extremes[f"{_KINDS[kind].lower()}.{i}"] = (kind, value)
    arrays: dict[str, tuple[Any, Any]] = {}
    for kind, code in _NUMBERS.items():
        values = [True, False, True] if code == "?" else [1, 2, 3] if code not in "fd" else [0.5, 1.5, -2.0]
        arrays[f"{_KINDS[kind].lower()}.many"] = ((g.ARRAY, kind), values)
        arrays[f"{_KINDS[kind].lower()}.none"] = ((g.ARRAY, kind), [])
    texts = {
        "empty": "",
        "lines": "one\ntwo\n",
        "spanish": "¿qué?",
        "emoji": "👩‍👩‍👧 ✓",
        "long": "x" * 300,
    }
    strings: dict[str, tuple[Any, Any]] = {f"text.{name}": (g.STRING, text) for name, text in texts.items()}
    strings |= {"texts": ((g.ARRAY, g.STRING), list(texts.values())), "texts.none": ((g.ARRAY, g.STRING), [])}
    strings |= {"clave.ñ": (g.STRING, "a key of UTF-8"), "k" * 200: (g.UINT8, 1)}
    raw, halves = _floats("e", [0.0, -0.0, 1.0, -2.0, 65504.0, 2.0**-24, 1 / 3, math.inf])
    every = {
        kind.lower(): (kind, (block * 2 if block > 1 else 8, 3), _bytes(kind, index, 6 if block > 1 else 24), None)
        for index, (kind, (_, block, _)) in enumerate(TYPES.items())
    }
    numbers, floats = _floats("f", [1.0, -2.0, 0.1, math.nan, math.inf, -math.inf, 2.0**-149, 3.0e38])
    shapes = {
        "scalar": ("F32", (), *_floats("f", [2.5])),
        "one dim": ("F32", (3,), *_floats("f", [1.0, 2.0, 3.0])),
        "four dims": ("F32", (2, 1, 3, 2), *_floats("f", [float(i) for i in range(12)])),
        "no weights": ("F32", (32, 0), b"", []),
        "größe ✓": ("F32", (2, 2), *_floats("f", [1.0, 2.0, 3.0, 4.0])),
    }
    blocks = {kind.lower(): (kind, (32, 1), *_block(kind)) for kind in ("Q8_0", "Q4_0", "Q4_1")}
    bfloat = ("BF16", (3,), struct.pack("<3H", 0x3F80, 0xC040, 0x0001), [1.0, -3.0, 2.0**-133])
    small = {"w": ("F32", (8,), *_floats("f", [float(i) for i in range(8)])), "v": ("F16", (8,), raw, halves)}
    nan = struct.pack("<e", math.nan) + bytes(32)
    zeros = [0.0] * 128
    base = {"n": (g.UINT32, 7), "s": (g.STRING, "xyz"), "a": ((g.ARRAY, g.INT16), [-2, -1, 0, 1])}
    files = {
        "three keys and one tensor": gguf(base, {"w": ("F32", (64, 2), bytes(g.SIZE), zeros)}),
        "no keys and no tensors": gguf({}, {}),
        "keys and no tensors": gguf(base, {}),
        "version 2": gguf(base, small, version=2),
        "numbers of every type at their limits": gguf(extremes, {}),
        "arrays of every type": gguf(arrays, {}),
        "texts": gguf(strings, {}),
        "a text with a zero byte": gguf({"t": (g.STRING, "a\0b")}, {}),
        "an alignment of 8": gguf({"general.alignment": (g.UINT32, 8)}, small, 8),
        "an alignment of 64": gguf({"general.alignment": (g.UINT32, 64)}, small, 64),
        "an alignment of 4096": gguf({"general.alignment": (g.UINT32, 4096)}, {"w": small["w"]}, 4096),
        "tensors of every type": gguf({}, every),
        "tensors of every number of dims": gguf({}, shapes),
        "floats that are not finite": gguf({}, {"w": ("F32", (8,), numbers, floats), "v": ("F16", (8,), raw, halves)}),
        "blocks of 32 weights": gguf({}, blocks),
        "bfloat16": gguf({}, {"w": bfloat}),
        "a block whose scale is NaN": gguf({}, {"w": ("Q8_0", (32, 1), nan, [math.nan] * 32)}),
    }
    assert files["three keys and one tensor"].data == g.VALID

    def lenient(data: bytes, **tensors: tuple[tuple[int, ...], int]) -> Valid:
        """Zeros in F32: dims and offset of each."""
        said = {}
        for name, (dims, offset) in tensors.items():
            count = math.prod(dims)
            said[name] = tensor("F32", dims, offset, bytes(4 * count), [0.0] * count)
        return Valid(data, {"metadata": {}, "types": {}, "tensors": said})

    last = gguf(base, {"w" * 64: ("F32", (64, 2), bytes(g.SIZE), zeros)}).expected
    files |= {
        "a name of 64 bytes": Valid(g.LENIENT["a name of 64 bytes"], last),
        "tensors in another order": lenient(g.LENIENT["tensors in another order"], a=((8,), 32), b=((8,), 0)),
        "a gap between tensors": lenient(g.LENIENT["a gap between tensors"], a=((8,), 0), b=((8,), 64)),
        "a gap before the first tensor": lenient(g.LENIENT["a gap before the first tensor"], a=((8,), 32)),
        "no padding behind the last tensor": lenient(g.LENIENT["no padding behind the last tensor"], a=((7,), 0)),
        "a scalar that ends the file": lenient(g.LENIENT["a scalar that ends the file"], a=((), 0)),
    }
    return files


# ---- GGUF-lite -------------------------------------------------------------------------------------------------------


def lite_valid() -> dict[str, Valid]:
    """The valid GGUF-lite files by name."""
    g = gguf_lite_files
    names = ("F32", "F16", "Q8_PER_CHANNEL", "Q4_PER_GROUP_64")

    def lite(
        tensors: dict[str, tuple[int, tuple[int, ...], bytes, list[float]]], text: bytes = g.METADATA, gap: int = 0
    ) -> Valid:
        parts, data, said = [], b"", {}
        for name, (kind, dims, raw, values) in tensors.items():
            data += b"\xee" * gap
            parts.append(g.descriptor(name.encode(), dims, kind, len(data)))
            said[name] = tensor(names[kind], dims, len(data), raw, values)
            data += raw
        lines = text.decode().removesuffix("\n").split("\n") if text else []
        metadata = dict(line.split("=", 1) for line in lines)
        return Valid(g.assemble(parts, data, text), {"metadata": metadata, "tensors": said})

    f32 = (g.F32, (2, 3), *_floats("f", [1.0, -0.0, 0.1, math.nan, math.inf, 2.0**-149]))
    f16 = (g.F16, (5,), *_floats("e", [1.0, -1 / 3, 65504.0, 2.0**-24, -math.inf]))
    levels = [-128, 127, 0, 1, -1, 64]
    q8 = (
        g.Q8,
        (2, 3),
        struct.pack("<2e6b", 0.5, 0.25, *levels),
        [x * (0.5, 0.25)[i // 3] for i, x in enumerate(levels)],
    )
    low = [i % 16 - 8 for i in range(128)]
    packed = bytes(low[i] & 15 | (low[i + 1] & 15) << 4 for i in range(0, 128, 2))
    q4 = (g.Q4, (1, 128), struct.pack("<2e", 0.5, 2.0) + packed, [x * (0.5, 2.0)[i // 64] for i, x in enumerate(low)])
    scalar = (g.F32, (), *_floats("f", [-1.5]))
    none = (g.F16, (0, 3), b"", [])
    zeros = (g.F32, (2, 64), bytes(g.SIZE), [0.0] * 128)
    files = {
        "one tensor": lite({"w": zeros}),
        "no metadata and no tensors": lite({}, b""),
        "a tensor of each type": lite({"a": f32, "b": f16, "c": q8, "d": q4}),
        "a scalar and an empty tensor": lite({"s": scalar, "none": none}),
        "gaps between tensors": lite({"a": f16, "b": q8, "c": f32}, gap=3),
        "metadata with a final newline": lite({"w": scalar}, b"a=1\nb=2\n"),
        "metadata with a value of nothing and an equals sign": lite({"w": scalar}, "a=\nb=c=d\nclave=ñ ✓".encode()),
        "metadata that says what is so": lite({"d": q4}, b"dims_order=out,in\ngroup_size=64"),
        "a name of UTF-8": lite({"größe ✓ ": scalar, " ": scalar}),
        "dims of 64 ones": lite({"w": (g.F32, (1,) * 64, *_floats("f", [3.0]))}),
    }
    assert files["one tensor"].data == g.VALID
    return files


# ---- safetensors and bump --------------------------------------------------------------------------------------------


def safetensors_valid() -> dict[str, Valid]:
    """The valid safetensors files by name."""
    s = safetensors_files

    def made(
        tensors: dict[str, tuple[str, tuple[int, ...], bytes, list[float]]],
        metadata: dict[str, str] | None = None,
        spaces: int = 0,
    ) -> Valid:
        header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
        data, said = b"", {}
        for name, (kind, dims, raw, values) in tensors.items():
            header[name] = {"dtype": kind, "shape": dims, "data_offsets": (len(data), len(data) + len(raw))}
            said[name] = tensor(kind, dims, len(data), raw, values)
            data += raw
        text = s.json.dumps(header).encode() + b" " * spaces
        return Valid(s.built(text, data), {"metadata": metadata or {}, "tensors": said})

    f32 = ("F32", (2, 3), *_floats("f", [1.0, -0.0, 0.1, math.nan, math.inf, 2.0**-149]))
    f16 = ("F16", (4,), *_floats("e", [1.0, -1 / 3, 65504.0, 2.0**-24]))
    bf16 = ("BF16", (3,), struct.pack("<3H", 0x3F80, 0xC040, 0x0001), [1.0, -3.0, 2.0**-133])
    return {
        "no tensors": made({}),
        "a tensor of each type": made({"a": f32, "b": f16, "c": bf16}),
        "metadata": made({"a": f32}, {"format": "np", "clave": "ñ ✓"}),
        "spaces after the header": made({"a": f32}, spaces=9),
        "a scalar and an empty tensor": made(
            {"s": ("F32", (), *_floats("f", [2.5])), "none": ("F32", (0, 3), b"", [])}
        ),
        "a name of UTF-8": made({"größe ✓": f16}),
    }


def bump_valid() -> dict[str, Valid]:
    """The valid bump files by name, each with its config.json."""
    b = bump_files
    files = {}
    for name, (header, arguments) in {
        "a llama": (b.LLAMA, (1, 3)),
        "a gpt2": (b.GPT2, (2, 3)),
        "a llama in blocks of Q8_0": (b.WIDE, (1, 32, "Q8_0")),
        "a llama in blocks of Q4_0 with a head of its own": (b.WIDE, (1, 32, "Q4_0", False)),
    }.items():
        weights, config, tensors = b.bump(header, *arguments)
        said = {each.name: tensor(each.kind, each.shape, each.offset, each.raw, each.values) for each in tensors}
        files[name] = Valid(weights, {"metadata": {"version": 3, **header}, "tensors": said}, {"config.json": config})
    return files
