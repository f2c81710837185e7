"""A header read without trust."""

import json
import struct

from ...lab import Exercise, Mistake, edit, omit
from ..shared.by_hand import number
from .tensor_entries import tensor_entries


def read_safetensors_head(data):
    """The header of a safetensors file.

    data: bytes, a whole file
    ->   (header as a dict, where the data begins, counted from the start of
         the file)

    Raises ValueError if the file has fewer than 8 bytes or is too short for
    its header, if the header's first byte is not {, if the header is not
    UTF-8 or not JSON, and if any object in it, also an inner one, has a
    duplicate key. Check nothing else here: the length of the header is
    limited later, outside this function. (NaN and Infinity are no JSON, but
    json.loads reads them; you may accept or refuse them.)
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
    try:
        return _parsed(data)
    except ValueError as error:
        raise ValueError(str(error)) from None  # any ValueError will do


def _parsed(data):
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
        _file('{"a":1,"A":2,"a ":3}'),
        _file(f'{{"a":{entry}}}', b"\0\0\x80?"),
        _file('{"__metadata__":{"format":"pt"},"é":1}', b"{more}"),
        _file(f'{{"dtype":{entry},"a":{{"a":"a","b":"a"}},"":0}}', b"\0\0\x80?"),
        _file('{"a":{"b":[1,2]}, "text":"{\\"a\\":1,\\"a\\":2}}"}\n'),
        _file(json.dumps(drawn)),
        _file('{"a":1,"A":2," a":3}\r\n\t '),
        _file('{"é":1,"e\u0301":2,"🥐":null,"\\u00ea\\\\":1e2}'),
        _file('{"line\u2028one":"x\u2028y\x85z\xa0"}'),  # ends of lines in Unicode, and not in JSON
        _file(json.dumps({"w" * 70_000: 1}), b"data"),
        b"",
        b"\x02\0\0\0\0\0\0",
        b"\x02\0\0\0\0\0\0\0",
        bytes(8),
        _file("{}", length=3),
        _file("{}", length=0),
        _file("{}", length=2**32 + 2),
        _file("{}", length=2**63 + 2),
        _file('{"a":1}', b"xx", length=2**64 - 10),
        _file("", b"{}"),
        _file(' {"a":1}'),
        _file("\ufeff{}"),
        _file("[]"),
        _file('"{}"'),
        _file('{"a":'),
        _file('{"a":1}{"b":2}'),
        _file('{"a":1,}'),
        _file('{"a":1}\x0c'),  # white space in Python, and not in JSON
        _file('{"a":1}\xa0'),
        _file('{"a":1}//x'),
        _file("{'a':1}"),
        _file('{"a":"x\ny"}'),
        _file('{"a":1,"a":2}'),
        _file('{"a":1,"a":1}'),
        _file('{"a":1,"\\u0061":2}'),
        _file('{"":null,"":0}'),
        _file('{"b":0,"a":1,"c":2,"a":3,"d":4}'),
        _file('{"a":{"b":{"c":{"d":1,"d":2}}}}'),
        _file('{"a":{"shape":[1],"shape":[2]}}'),
        _file(f'{{"a":{entry},"b":{entry},"a":{entry}}}', bytes(8)),
        _file('{"__metadata__":{"x":"1","x":"2"}}'),
        _file('{"a":[{"b":[{"c":1,"c":1}]}]}'),
        _file(b'{"\xff":1}'),
        _file(b'{"\xed\xa0\x80":1}'),
        _file('{"a":1}'.encode("utf-16-le")),
        _file('{"a":1}\0'),
    ]
    return [(data,) for data in files]


def sorted_keys(value):
    """JSON with its keys in alphabetical order: their order does not matter."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return [sorted_keys(item) for item in value] if isinstance(value, list) else value


def observed(function, case):
    """The header, its keys in alphabetical order, and where the data begins."""
    result = function(*case)
    return (sorted_keys(result[0]), *result[1:]) if isinstance(result, tuple) and result else result


class _Object(list):
    """An object of a JSON: its pairs, also those whose key is there twice."""


def _json(text, strict=True):
    """A JSON, its objects as ``_Object``; None if it is none, as with NaN in it, which ``int`` refuses."""
    try:
        return json.loads(text, object_pairs_hook=_Object, parse_constant=int, strict=strict)
    except ValueError:
        return None


def _objects(value, in_list=False):
    """Every object in a JSON, and whether it is an item of a list."""
    if isinstance(value, _Object):
        yield value, in_list
        for _, inner in value:
            yield from _objects(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item, True)


def _twice(pairs, same=None):
    """Whether a key is in an object twice: with any values, or only with the same ones, or only with others."""
    values = {}
    for key, value in pairs:
        values.setdefault(key, []).append(json.dumps(value))
    if same is None:
        return any(len(found) > 1 for found in values.values())
    if same:
        return any(len(set(found)) < len(found) for found in values.values())
    return any(len(set(found)) > 1 for found in values.values())


def _goes_on(text):
    """Whether a text is a JSON and then something that is no white space of JSON."""
    text = text.lstrip(" \t\r\n")
    try:
        end = json.JSONDecoder(parse_constant=int).raw_decode(text)[1]
    except ValueError:
        return False
    return bool(text[end:].strip(" \t\r\n"))


def traits(data):
    """What is wrong with a file, or special about it."""
    length = int.from_bytes(data[:8], "little")
    raw = data[8 : 8 + length]
    whole = len(data) >= 8 and length <= len(data) - 8
    try:
        text = raw.decode("utf-8") if whole else None
    except ValueError:
        text = None
    header = None if text is None else _json(text)
    is_json = text is not None and (header is not None or text.strip(" \t\r\n") == "null")
    objects = [*_objects(header)]
    outer = header if isinstance(header, _Object) else []
    inner = [pairs for pairs, _ in objects if pairs is not outer]
    keys = [{key for key, _ in pairs} for pairs, _ in objects]
    return {
        "the file is empty": not data,
        "the file has fewer than 8 bytes": len(data) < 8,
        "the file has exactly 8 bytes": len(data) == 8,
        "the header ends after the file": len(data) >= 8 and not whole,
        "the length of the header is 2**32 or more": len(data) >= 8 and length >= 2**32,
        "the length of the header is 0": len(data) >= 8 and length == 0,
        "the length of the header is 0, and the file has nothing after it": data == bytes(8),
        "the whole header is there, and it is not UTF-8": whole and text is None,
        "the whole header is there, and it begins with something else than a brace": whole and length > 0 and raw[:1] != b"{",
        "the whole header is there, and it begins with a space": whole and raw[:1] == b" ",
        "the whole header is there, is UTF-8 and begins with a brace, and it is no JSON": text is not None and text[:1] == "{" and not is_json,
        "the header is JSON and then white space that JSON does not have": text is not None and not is_json and _json(text.strip()) is not None and text[:1] == text.strip()[:1],
        "the header is JSON but for a control character, such as a newline, in a text": text is not None and not is_json and _json(text, strict=False) is not None,
        "the whole header is there, and it has 65,536 bytes or more": whole and length > 65535,
        "the header is JSON and then something that is no white space of JSON": text is not None and _goes_on(text),
        "the header is JSON, and the outer object has a key twice": _twice(outer),
        "the header is JSON, and an inner object has a key twice, the outer one not": any(map(_twice, inner)) and not _twice(outer),
        "the header is JSON, and an object has a key twice, with other values": any(_twice(pairs, same=False) for pairs, _ in objects),
        "the header is JSON, and an object has a key twice, with the same value": any(_twice(pairs, same=True) for pairs, _ in objects),
        "the header is JSON, and an object that is an item of a list has a key twice": any(_twice(pairs) for pairs, in_list in objects if in_list),
        "the header is JSON, and an object has a key twice": any(_twice(pairs) for pairs, _ in objects),
        "the header is JSON, and the outer object has the key `__metadata__`": any(key == "__metadata__" for key, _ in outer),
        "the header is JSON, and two keys of an object differ only in capitals or spaces": any(len({key.replace(" ", "").lower() for key in found}) < len(found) for found in keys),
        "the header is JSON, and two objects have the same key": sum(map(len, keys)) > len(set().union(*keys)),
        "the header is JSON and ends in white space": is_json and text != text.rstrip(),
        "the header is JSON and has characters outside ASCII": is_json and not text.isascii(),
        "bytes follow the header": whole and len(data) > 8 + length,
        "the file ends where the header ends": whole and len(data) == 8 + length,
    }


EXERCISE = Exercise(
    traits=traits,
    goal="Read the header of a safetensors file, say where the data begins, and refuse a malformed header.",
    reference=read_safetensors_head, oracle=oracle, cases=cases, minutes=14, difficulty="core", observe=observed,
    hints=(
        "Check before you use: eight bytes for the length, a length that fits the file, the first byte of the header. A parser of JSON checks the JSON, but says nothing about a duplicate key.",
        "`bytes.decode` and `json.loads` raise a ValueError by themselves. Give `json.loads` an `object_pairs_hook`: it gets the pairs of an object before they become a dict.",
    ),
    why="if two readers choose differently between two equal keys, one file is two models.",
    mistakes=(
        Mistake("the last of two equal keys wins", edit(", object_pairs_hook=unique", ""),
            cause="`json.loads` keeps the last of two equal keys, and says nothing about the other.",
            cure="Give it an `object_pairs_hook` that compares lengths.",
            see="a header where a ValueError is expected, because of a duplicate name"),
        Mistake("only the outer object looked at",
            edit('json.loads(data[8 : 8 + length].decode("utf-8"), object_pairs_hook=unique)',
                'unique(json.loads(data[8 : 8 + length].decode("utf-8"), object_pairs_hook=lambda pairs: pairs))'),
            cause="Only the keys of the outer object were compared; an inner one can have a duplicate key as well.",
            cure="Use one `object_pairs_hook` for all objects: it compares, and returns a dict.",
            see="lists of pairs where inner dicts are expected"),
        Mistake("the JSON parser guesses the encoding", edit('.decode("utf-8")', ""),
            cause="A header in little-endian UTF-16 is accepted. Python's `json.loads` guesses the encoding of bytes.",
            cure="Decode the bytes as UTF-8 first.", see="a result for a header in UTF-16"),
        Mistake("the length believed", omit("if length > len(data)"),
            cause="A length that is larger than the file was believed. A slice beyond the end is no error in Python; it is only shorter.",
            cure="Compare the length with what the file has left.",
            see="a header read from a file that says it is longer than it is"),
        Mistake("struct's own error", omit("if len(data) < 8"),
            cause="For a file of fewer than eight bytes `struct.unpack` raises `struct.error`, which is no ValueError.",
            cure="Check `len(data)` first.", see="a struct.error where a ValueError is expected"),
        Mistake("the first byte not checked", omit("if data[8:9]"),
            cause="The header must begin with `{`: a space before it, or a list, is malformed.",
            cure="Check the first byte.", see="a result for a header that begins with a space"),
        Mistake("32-bit length", edit('"<Q", data[:8]', '"<I", data[:4]'),
            cause="Only four of the eight bytes of the length were read; the others were ignored.",
            cure="Unpack eight bytes, as `Q`.", see="a header read from a file whose length is enormous"),
        Mistake("big-endian", edit("<Q", ">Q"),
            cause="Read with the most significant byte first, a length of 2 is more than a hundred thousand terabytes.",
            cure="Unpack with `<Q`.", see="every good file refused as too short"),
        Mistake("the eight bytes of the length forgotten", edit("unique), 8 + length", "unique), length"),
            cause="The data begins after the header *and* after the eight bytes before it.",
            cure="Return 8 + length.", see="2 where 10 is expected"),
        Mistake("the padding taken for data",
            edit("unique), 8 + length", "unique), 8 + len(data[8 : 8 + length].rstrip())"),
            cause="The spaces at the end belong to the header, because its length counts them.",
            cure="Add the length that the file gives.", see="too small a number where the header is padded"),
        Mistake("Latin-1 instead of UTF-8", edit("utf-8", "latin-1"),
            cause="Every byte was taken for a character, so é became two characters, and bytes that are no UTF-8 were accepted.",
            cure='Decode with "utf-8".', see="`Ã©` where `é` is expected"),
        Mistake("wrong bytes ignored", edit('decode("utf-8")', 'decode("utf-8", "ignore")'),
            cause="Bytes that are no UTF-8 were left out, and the rest was read.",
            cure="Decode strictly; then Python raises the error for you.", see="a result for a header that is not UTF-8"),
        Mistake("wrong bytes replaced", edit('decode("utf-8")', 'decode("utf-8", "replace")'),
            cause="Bytes that are no UTF-8 were replaced, and the rest was read.",
            cure="Decode strictly; then Python raises the error for you.", see="a question mark in a name"),
        Mistake("a space before the brace", edit('data[8:9] != b"{"', 'data[8 : 8 + length].lstrip()[:1] != b"{"'),
            cause="White space before the brace was accepted. The first byte of the header must be the brace.",
            cure="Look at the first byte itself.", see="a result for a header that begins with a space"),
        Mistake("zeros at the end", edit("data[8 : 8 + length].decode", 'data[8 : 8 + length].rstrip(b"\\0").decode'),
            cause="Zero bytes at the end of the header were taken off. They are no white space in JSON.",
            cure="Give the header to the parser as it is.", see="a result for a header that ends in a zero byte"),
        Mistake("one byte too strict", edit("length > len(data) - 8", "length >= len(data) - 8"),
            cause="A header that ends where the file ends was refused. A file without data is legal.",
            cure="The header may use all that is left.", see="a good file without data refused"),
        Mistake("one length too lax", edit("length > len(data) - 8", "length > len(data)"),
            cause="The length was compared with the whole file. Eight bytes of it belong to the length itself.",
            cure="Compare with what is left after the eight bytes.", see="a result for a header that is cut off"),
        Mistake("what follows the JSON ignored",
            edit('json.loads(data[8 : 8 + length].decode("utf-8"), object_pairs_hook=unique)',
                'json.JSONDecoder(object_pairs_hook=unique).raw_decode(data[8 : 8 + length].decode("utf-8"))[0]'),
            cause="What follows the first object in the header is not checked to be white space.",
            cure="`json.loads` refuses what follows the object.", see="a result for two objects, or for an object and a zero byte"),
        Mistake("a list in place of a pair", edit("return json.loads", "return [json.loads").edit("unique), 8 + length", "unique), 8 + length]"),
            cause="You return a list; the header and the number are to be a tuple.",
            cure="Separate the two by a comma, without brackets.", see="a list where a tuple is expected"),
        Mistake("Python in place of JSON",
            edit('json.loads(data[8 : 8 + length].decode("utf-8"), object_pairs_hook=unique)', 'eval(data[8 : 8 + length].decode("utf-8"))'),
            cause="`eval` runs the header as Python. It can do anything, and it is not a parser of JSON.",
            cure="Parse with `json.loads`.", see="a SyntaxError where a ValueError is expected"),
        Mistake("a signed length", edit("<Q", "<q"),
            cause="The length was read with a sign, so a large one is negative, and passes the comparison.",
            cure="A u64 is the letter `Q`.", see="a header read from a file whose length is enormous"),
    ),
)
