"""Answers to labs 03 to 05 that no catalogue lists: right ones in an unusual style pass, wrong ones do not."""

from __future__ import annotations

import io
import json
import math
import pickle
import struct

import pytest

from miniquant.lab import find
from miniquant.lab.checking import evaluate
from miniquant.lessons.pickle.toys import MARK, above_the_mark
from miniquant.lessons.safetensors.items import ITEM

GIVEN = {
    "io": io, "json": json, "math": math, "pickle": pickle, "struct": struct, "ITEM": ITEM, "MARK": MARK,
    "above_the_mark": above_the_mark,
}  # fmt: skip

RIGHT = {
    "positions in place of marks": """
def run_pickle(operations):
    stack, memo, marks = [], [None] * 256, []
    for op, arg in operations:
        if op == "PROTO": continue
        if op == "STOP": return stack[-1]
        if op in ("BININT1", "BINUNICODE"): stack.append(arg)
        elif op == "EMPTY_LIST": stack.append([])
        elif op == "EMPTY_DICT": stack.append({})
        elif op == "APPEND": v = stack.pop(); stack[-1].append(v)
        elif op == "SETITEM": v = stack.pop(); k = stack.pop(); stack[-1][k] = v
        elif op == "TUPLE2": stack[-2:] = [tuple(stack[-2:])]
        elif op == "MARK": marks.append(len(stack))
        elif op == "APPENDS": at = marks.pop(); stack[at - 1].extend(stack[at:]); del stack[at:]
        elif op == "SETITEMS":
            at = marks.pop(); items = iter(stack[at:]); stack[at - 1].update(zip(items, items)); del stack[at:]
        elif op == "BINPUT": memo[arg] = stack[-1]
        elif op == "BINGET": stack.append(memo[arg])
        else: raise ValueError(op)
""",
    "the bytes of a payload by hand": """
def harmless_payload(message):
    t = message.encode("utf-8")
    return b"\\x80\\x03cbuiltins\\nprint\\nX" + len(t).to_bytes(4, "little") + t + b"\\x85R."
""",
    "a table of classes": """
def harmless_payload(message):
    class P: pass
    f = io.BytesIO(); p = pickle.Pickler(f)
    p.dispatch_table = {P: lambda o: (print, (message,))}
    p.dump([P()])
    return f.getvalue()
""",
    "the unpickler in Python": """
def load_restricted(data, allowed):
    class U(pickle._Unpickler):
        def find_class(self, m, n):
            if not {(m, n)} <= allowed: raise pickle.UnpicklingError(m, n)
            return pickle._Unpickler.find_class(self, m, n)
    return U(io.BytesIO(data)).load()
""",
    "every error as a ValueError": """
def read_safetensors_head(data):
    try:
        n, = struct.unpack_from("<Q", data)
        raw = bytes(data[8:8 + n])
        assert len(raw) == n and raw[0] == 123
        def hook(ps):
            d = {}
            for k, v in ps:
                assert k not in d
                d[k] = v
            return d
        h = json.loads(str(raw, "utf-8"), object_pairs_hook=hook)
        return {k: h[k] for k in sorted(h)}, n + 8
    except Exception as e:
        raise ValueError("malformed") from e
""",
    "one tensor after another": """
def check_layout(entries, n_bytes):
    rest, at, out = dict(entries), 0, []
    while rest:
        here = sorted((e["data_offsets"][1], n) for n, e in rest.items() if e["data_offsets"][0] == at)
        if not here: raise ValueError("hole")
        end, n = here[0]; e = rest.pop(n)
        if math.prod(e["shape"]) * ITEM[e["dtype"]] != end - at: raise ValueError("size")
        at = end; out += [n]
    if at != n_bytes: raise ValueError("rest")
    return out
""",
    "keys in alphabetical order": """
def flatten_optimizer(state):
    s = state["state"]
    names = {f"optimizer.{i}.{k}": s[i][k].clone() for i in sorted(s, reverse=True) for k in sorted(s[i])}
    return names, json.dumps(state["param_groups"], sort_keys=True, indent=2, ensure_ascii=False)
""",
    "digit by digit": """
def ggml_hparams(data):
    if not (len(data) >= 28 and int.from_bytes(data[:4], "little") == 0x67676d6c): raise ValueError
    n = [int.from_bytes(data[i:i + 4], "little", signed=True) for i in range(4, 28, 4)]
    q, r = divmod(n.pop(), 1000)
    return {"quantization_version": q, "ftype": r} | dict(zip(["n_vocab", "n_ctx", "n_embd", "n_head", "n_layer"], n))
""",
}

LOADER = """
def load_restricted(data, allowed):
    class U(pickle.Unpickler):
        def find_class(self, module, name):
            if %s:
                raise pickle.UnpicklingError("no")
            return super().find_class(module, name)
    return U(io.BytesIO(data)).load()
"""
LAYOUT = """
def check_layout(entries, n_bytes):
    at = 0
    order = sorted(entries, key=lambda n: %s)
    for n in order:
        begin, end = entries[n]["data_offsets"]
        if %s or end - begin != ITEM[entries[n]["dtype"]] * math.prod(entries[n]["shape"]): raise ValueError(n)
        at = end
    if at != n_bytes: raise ValueError
    return order
"""
HEAD = """
def read_safetensors_head(data):
    def hook(pairs):
        if len(dict(pairs)) < len(pairs): raise ValueError
        return dict(pairs)
    if len(data) < 8: raise ValueError
    n = int.from_bytes(data[:8], "little")
    if n > len(data) - 8 or data[8:9] != b"{": raise ValueError
    return %s, 8 + n
"""
WRONG = {
    "a name of one pair with the module of another": LOADER
    % "module not in {m for m, _ in allowed} or name not in {n for _, n in allowed}",
    "the beginning of a dotted name": LOADER % "(module, name.split('.')[0]) not in allowed",
    "imported before the list is asked": LOADER
    % "not (super().find_class(module, name), (module, name) in allowed)[1]",
    "sorted by begin alone": LAYOUT % ('entries[n]["data_offsets"][0]', "begin != at"),
    "an empty tensor in the middle": LAYOUT % ('entries[n]["data_offsets"]', "begin != at and begin != end"),
    "UTF-16": HEAD % "json.loads(data[8:8 + n], object_pairs_hook=hook)",
    "duplicates in inner objects": HEAD % "hook(list(json.loads(data[8:8 + n].decode(), object_pairs_hook=list)) and "
    "[(k, v) for k, v in json.loads(data[8:8 + n].decode(), object_pairs_hook=lambda p: p)])",
    "one opcode for texts": """
def imports_of(operations):
    texts, found = [], []
    for offset, op, arg, stack in operations:
        if op == "SHORT_BINUNICODE": texts.append(arg)
        if op in ("GLOBAL", "INST"): found.append((offset, *arg))
        if op == "STACK_GLOBAL": found.append((offset, *(["?", "?"] + texts)[-2:]))
        if op.startswith("EXT"): found.append((offset, "copyreg extension", str(arg)))
    return found
""",
    "eval": """
def harmless_payload(message):
    class P:
        def __reduce__(self): return eval, (f"print({message!r})",)
    return pickle.dumps(P())
""",
    "unsigned numbers": """
def ggml_hparams(data):
    if len(data) < 28 or data[:4] != b"lmgg": raise ValueError
    *five, f = struct.unpack("<6I", data[4:28])
    names = ["n_vocab", "n_ctx", "n_embd", "n_head", "n_layer"]
    return dict(zip(names, five)) | {"ftype": f % 1000, "quantization_version": f // 1000}
""",
}


def report(source):
    scope = dict(GIVEN)
    exec(source, scope)
    name = next(name for name in scope if name not in GIVEN and not name.startswith("__"))
    return evaluate(find(name), scope[name], search=False)


@pytest.mark.parametrize("style", RIGHT)
def test_a_right_answer_in_an_unusual_style_passes(style):
    assert report(RIGHT[style]).passed, report(RIGHT[style])


@pytest.mark.parametrize("slip", WRONG)
def test_a_wrong_answer_that_is_nearly_right_is_refused(slip):
    assert report(WRONG[slip]).status == "failed"
