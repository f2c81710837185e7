"""How many bytes an element of each dtype of safetensors has."""

from types import MappingProxyType

FLOATS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
INTEGERS = {"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
ITEM = MappingProxyType({**FLOATS, **INTEGERS})  # bytes of an element; a student's function cannot change it
