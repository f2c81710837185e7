"""A header read without trust."""

import json
import struct

from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import number
from .tensor_entries import tensor_entries


def read_safetensors_head(data):
    """The header of a file, if it is one.

    data: bytes, a whole file   ->   (header as a dict, where the data begins, counted from the start of the file)

    Raises ValueError if the file is too short for its header, if the header does not begin with {, if it is not UTF-8
    or not JSON, and if any object in it has a key twice.
    """

    def unique(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a duplicate key")
        return found

    if len(data) < 8:
        raise ValueError("too short for the length of a header")
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise ValueError("the header is longer than the file")
    if data[8:9] != b"{":
        raise ValueError("a header begins with {")
    return json.loads(data[8 : 8 + length].decode("utf-8"), object_pairs_hook=unique), 8 + length


def oracle(data):
    """The length by its digits; the JSON by the decoder's own pieces, duplicates found by counting."""
    if len(data) < 8:
        raise ValueError("too short")
    length = number(data[:8])
    raw = data[8 : 8 + length]
    if len(raw) != length or raw[:1] != b"{":
        raise ValueError("no header")
    text = raw.decode("utf-8").rstrip(" \t\r\n")
    pairs = []
    header, end = json.JSONDecoder(object_pairs_hook=lambda found: pairs.append(found) or dict(found)).raw_decode(text)
    if end != len(text) or any(len({key for key, _ in found}) != len(found) for found in pairs):
        raise ValueError("not one object, or a key twice")
    return header, 8 + length


def _file(header, data=b"", length=None):
    raw = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def cases(random):
    """Good files: empty, padded, with metadata, random; then every way to be malformed."""
    entry = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    drawn = tensor_entries({f"w{i}": ("F32", (n,)) for i, n in enumerate(random.integers(1, 99, 5).tolist())})
    files = [
        _file("{}"),
        _file('{"a":1}   ', b"data"),
        _file(f'{{"a":{entry}}}', b"\0\0\x80?"),
        _file('{"__metadata__":{"format":"pt"},"é":1}', b"{more}"),
        _file(json.dumps(drawn)),
        b"",
        b"\x02\0\0\0\0\0\0",
        _file("{}", length=3),
        _file("{}", length=0),
        _file("{}", length=2**63 + 2),
        _file(' {"a":1}'),
        _file("[]"),
        _file('{"a":'),
        _file('{"a":1,"a":2}'),
        _file(f'{{"a":{entry},"b":{entry},"a":{entry}}}', bytes(8)),
        _file('{"__metadata__":{"x":"1","x":"2"}}'),
        _file(b'{"\xff":1}'),
        _file('{"a":1}\0'),
    ]
    return [(data,) for data in files]


EXERCISE = Exercise(
    goal="Read the header of a safetensors file, say where the data begins, and refuse whatever is not right.",
    reference=read_safetensors_head, oracle=oracle, cases=cases, minutes=10, difficulty="core",
    hints=(
        "Check before you use: eight bytes for the length, a length that fits the file, a `{` at the start. `json.loads` raises a ValueError by itself for what is no JSON, and says nothing about a duplicate key.",
        "`json.loads(text, object_pairs_hook=f)` hands every object to `f` as a list of pairs: raise a ValueError if `dict(pairs)` is shorter than `pairs`, else return it.",
    ),
    why="two readers that disagree about which of two equal keys counts see two models in one file.",
    mistakes=(
        Mistake("the last of two equal keys wins", edit(", object_pairs_hook=unique", ""),
            cause="`json.loads` keeps the last of two equal keys and forgets the other without a word.",
            cure="Give it an `object_pairs_hook` that compares lengths.",
            see="a header where a ValueError is expected, because of a duplicate name"),
        Mistake("the length believed", omit("if length > len(data)"),
            cause="A slice beyond the end of the file is no error in Python: it is just shorter.",
            cure="Compare the length with what the file has left.",
            see="a header read from a file that says it is longer than it is"),
        Mistake("struct's own error", omit("if len(data) < 8"),
            cause="For a file of fewer than eight bytes `struct.unpack` raises `struct.error`, which is no ValueError.",
            cure="Look at `len(data)` first.", see="a struct.error where a ValueError is expected"),
        Mistake("any beginning accepted", omit("if data[8:9]"),
            cause="The header must begin with `{`: a space before it, or a list, is malformed.",
            cure="Check the first byte.", see="a result for a header that begins with a space"),
        Mistake("32-bit length", edit('"<Q", data[:8]', '"<I", data[:4]'),
            cause="Four of the eight bytes of the length were read; what stands in the others was overlooked.",
            cure="Unpack eight bytes, as `Q`.", see="a header read from a file whose length is enormous"),
        Mistake("big-endian", edit("<Q", ">Q"),
            cause="Read with the most significant byte first, a length of 2 is more than a million terabytes.",
            cure="Unpack with `<Q`.", see="every good file refused as too short"),
        Mistake("the eight bytes of the length forgotten", edit("unique), 8 + length", "unique), length"),
            cause="The data begins after the header *and* after the eight bytes before it.",
            cure="Return 8 + length.", see="2 where 10 is expected"),
        Mistake("the padding taken for data",
            edit("unique), 8 + length", "unique), 8 + len(data[8 : 8 + length].rstrip())"),
            cause="The spaces at the end belong to the header: its length counts them.",
            cure="Add the length as it stands in the file.", see="too small a number where the header is padded"),
        Mistake("Latin-1 instead of UTF-8", edit("utf-8", "latin-1"),
            cause="Every byte was taken for a character, so é became two, and what is no UTF-8 was accepted.",
            cure='Decode with "utf-8".', see="`Ã©` where `é` is expected"),
    ),
)
