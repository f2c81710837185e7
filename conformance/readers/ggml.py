"""llama.cpp's reader of GGUF, ``gguf_init_from_file``: ``python conformance/readers/ggml.py FILE``.

Its library comes with the package ``xllamacpp``; the functions are called by ``ctypes``, in this process, so that an
abort of llama.cpp is seen as one.
"""

from __future__ import annotations

import ctypes as c
import hashlib
import importlib.util
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

SCALARS = {  # ggml's number of a type: its name, C's type, and the end of its function's name
    **{0: ("UINT8", c.c_uint8, "u8"), 1: ("INT8", c.c_int8, "i8"), 2: ("UINT16", c.c_uint16, "u16")},
    **{3: ("INT16", c.c_int16, "i16"), 4: ("UINT32", c.c_uint32, "u32"), 5: ("INT32", c.c_int32, "i32")},
    **{6: ("FLOAT32", c.c_float, "f32"), 7: ("BOOL", c.c_bool, "bool"), 10: ("UINT64", c.c_uint64, "u64")},
    **{11: ("INT64", c.c_int64, "i64"), 12: ("FLOAT64", c.c_double, "f64")},
}
STRING, ARRAY = 8, 9


class Parameters(c.Structure):
    """``gguf_init_params``."""

    _fields_ = [("no_alloc", c.c_bool), ("tensors", c.POINTER(c.c_void_p))]


class Tensor(c.Structure):
    """The first fields of ``ggml_tensor``."""

    _fields_ = [("type", c.c_int), ("buffer", c.c_void_p), ("ne", c.c_int64 * 4), ("nb", c.c_size_t * 4)]


class Traits(c.Structure):
    """The first fields of ``ggml_type_traits``."""

    _fields_ = [
        *(("name", c.c_char_p), ("block", c.c_int64), ("interleave", c.c_int64), ("size", c.c_size_t)),
        *(("quantized", c.c_bool), ("to_float", c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_int64))),
    ]


def library() -> c.CDLL:
    """llama.cpp, with the results of its functions declared."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(3)
    lib = c.CDLL(str(next(Path(next(iter(spec.submodule_search_locations))).glob("xllamacpp*.so"))))
    results = {
        **dict.fromkeys(("gguf_get_n_kv", "gguf_get_n_tensors"), c.c_int64),
        **dict.fromkeys(("gguf_get_key", "gguf_get_arr_str", "gguf_get_val_str", "gguf_get_tensor_name"), c.c_char_p),
        **dict.fromkeys(("gguf_get_tensor_offset", "gguf_get_tensor_size", "gguf_get_arr_n"), c.c_size_t),
        **dict.fromkeys(("gguf_get_arr_data", "gguf_init_from_file", "ggml_get_data"), c.c_void_p),
        **{f"gguf_get_val_{end}": kind for _, kind, end in SCALARS.values()},
        "ggml_get_tensor": c.POINTER(Tensor),
        "ggml_get_type_traits": c.POINTER(Traits),
        "ggml_type_name": c.c_char_p,
    }
    for name, result in results.items():
        getattr(lib, name).restype = result
    return lib


def plain(value: Any) -> Any:
    """A value as JSON has it; text that is not UTF-8 keeps its bytes as escapes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return value


def read(path: str) -> dict[str, Any] | None:
    """What is in a GGUF file, or ``None`` if llama.cpp refuses it."""
    lib, tensors = library(), c.c_void_p()
    opened = lib.gguf_init_from_file(os.fsencode(path), Parameters(False, c.pointer(tensors)))
    if not opened:
        return None
    file, said = c.c_void_p(opened), {"metadata": {}, "types": {}, "tensors": {}}
    for i in map(c.c_int64, range(lib.gguf_get_n_kv(file))):
        key, kind = plain(lib.gguf_get_key(file, i)), lib.gguf_get_kv_type(file, i)
        if kind == ARRAY:
            of, n = lib.gguf_get_arr_type(file, i), lib.gguf_get_arr_n(file, i)
            if of == STRING:
                value = [plain(lib.gguf_get_arr_str(file, i, c.c_size_t(j))) for j in range(n)]
            else:
                at = lib.gguf_get_arr_data(file, i) if n else None
                value = [plain(x) for x in (SCALARS[of][1] * n).from_address(at)] if n else []
            said["types"][key] = f"ARRAY of {'STRING' if of == STRING else SCALARS[of][0]}"
        else:
            end = "str" if kind == STRING else SCALARS[kind][2]
            value, said["types"][key] = (
                plain(getattr(lib, f"gguf_get_val_{end}")(file, i)),
                "STRING" if kind == STRING else SCALARS[kind][0],
            )
        said["metadata"][key] = value
    for i in map(c.c_int64, range(lib.gguf_get_n_tensors(file))):
        name, kind, size = (
            lib.gguf_get_tensor_name(file, i),
            lib.gguf_get_tensor_type(file, i),
            lib.gguf_get_tensor_size(file, i),
        )
        tensor = lib.ggml_get_tensor(tensors, name)
        data, count = lib.ggml_get_data(tensor), math.prod(tensor.contents.ne)
        about = {"type": lib.ggml_type_name(c.c_int(kind)).decode().upper(), "dims": list(tensor.contents.ne)}
        about |= {"offset": lib.gguf_get_tensor_offset(file, i), "bytes": size}
        about["sha256"] = hashlib.sha256(c.string_at(data, size) if size else b"").hexdigest()
        traits = lib.ggml_get_type_traits(c.c_int(kind)).contents
        floats = (c.c_float * count)()
        if kind == 0:
            c.memmove(floats, data, size)
        elif traits.to_float and count and kind != 28:
            traits.to_float(data, c.addressof(floats), count)
        if kind == 0 or traits.to_float:
            about["values"] = [plain(x) for x in floats]
        said["tensors"][plain(name)] = about
    return said


if __name__ == "__main__":
    found = read(sys.argv[1])
    if found is None:
        sys.exit(1)  # it has said why
    print(json.dumps(found))
