"""The exercise of lab 03 on legacy GGML: numbers without names."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from ...formats.ggml_legacy.file import HPARAMS, MAGIC
from ...lab.spec import Case, Exercise, Mistake
from ..shared.by_hand import by_digits


def ggml_hparams(data: bytes) -> dict[str, int]:
    """The reference: the first 28 bytes of a file -> its six numbers by name, ftype split in two."""
    return _hparams(data)


def hparams_oracle(data: bytes) -> dict[str, int]:
    """Digit by digit, name by name."""

    def at(place: int) -> int:
        number = sum(data[place + k] * 256**k for k in range(4))
        return number - 2**32 if number >= 2**31 else number

    if len(data) < 28 or data[:4] != b"lmgg":
        raise ValueError("no GGML")
    ftype = at(24)
    return {
        "n_vocab": at(4),
        "n_ctx": at(8),
        "n_embd": at(12),
        "n_head": at(16),
        "n_layer": at(20),
        "ftype": ftype % 1000,
        "quantization_version": ftype // 1000,
    }


def _cases(random: np.random.Generator) -> list[Case]:
    def file(*numbers: int) -> bytes:
        return b"lmgg" + b"".join(by_digits(n, 4) for n in numbers)

    drawn = [file(*map(int, random.integers(1, 70000, 5)), int(random.integers(0, 3000))) for _ in range(3)]
    good = [
        file(1, 2, 3, 4, 5, 0),
        file(1024, 256, 256, 4, 4, 1),
        file(50257, 1024, 768, 12, 12, 2007) + b"tokens",
        *drawn,
    ]
    bad = [b"ggml" + good[0][4:], b"GGUF" + good[0][4:], good[0][:27], b""]
    return [(data,) for data in [*good, *bad]]


def _hparams(
    data: bytes,
    *,
    form: str = "<6i",
    skip: int = 4,
    names: tuple[str, ...] = HPARAMS,
    split: bool = True,
    magic: int | None = MAGIC,
    struct_error: bool = False,
) -> dict[str, int]:
    if len(data) < 28 and not struct_error:
        raise ValueError("a GGML file begins with 28 bytes")
    if magic is not None and len(data) >= 4 and struct.unpack("<I", data[:4])[0] != magic:
        raise ValueError("the magic is not GGML's")
    found = dict(zip(names, struct.unpack(form, data[skip : skip + struct.calcsize(form)])))
    found = {name: found[name] for name in HPARAMS}
    if split:
        found["quantization_version"], found["ftype"] = divmod(found["ftype"], 1000)
    else:
        found["quantization_version"] = 0
    return found


SWAPPED = ("n_vocab", "n_ctx", "n_embd", "n_layer", "n_head", "ftype")

GGML_HPARAMS = Exercise(
    name="ggml_hparams",
    lab="03",
    goal="Read the first 28 bytes of a legacy GGML file: the magic, and six numbers that have no names in the file.",
    minutes=6,
    difficulty="core",
    reference=ggml_hparams,
    oracle=hparams_oracle,
    cases=_cases,
    hints=(
        "The magic is the number 0x67676d6c, stored little-endian. Six signed integers of four bytes follow; `zip` "
        "gives them "
        "their names.",
        '`struct.unpack("<I6i", data[:28])`; then `divmod(ftype, 1000)` is (version of the quantization, ftype).',
    ),
    why="that the fourth number counts heads stands in no file: it stood in the source of the reader.",
    mistakes=(
        Mistake(
            "heads and layers exchanged",
            partial(_hparams, names=SWAPPED),
            "n_head comes before n_layer. Nothing in the file could have told you; for a model with as many heads as "
            "layers "
            "nobody would notice.",
            "Keep to the order of the table.",
            "5 heads and 4 layers where 4 heads and 5 layers are expected",
        ),
        Mistake(
            "big-endian",
            partial(_hparams, form=">6i"),
            "The most significant byte was taken first.",
            "Begin the format with `<`.",
            "16777216 where 1 is expected",
        ),
        Mistake(
            "the magic read as a number of the model",
            partial(_hparams, skip=0),
            "The first four bytes are the magic; the numbers begin at byte 4.",
            "Skip four bytes.",
            "a vocabulary of more than a thousand million tokens",
        ),
        Mistake(
            "the magic not checked",
            partial(_hparams, magic=None),
            "Any file of 28 bytes is read as a model, a GGUF file, too.",
            "Compare the first four bytes, and raise a ValueError.",
            "a result for a file that begins with GGUF",
        ),
        Mistake(
            "the magic as letters",
            partial(_hparams, magic=0x6C6D6767),
            "The magic is a number, and its letters g g m l lie on disk in reverse.",
            'Compare with 0x67676d6c, unpacked as `"<I"`, or with the bytes `b"lmgg"`.',
            "every good file refused",
        ),
        Mistake(
            "ftype not split",
            partial(_hparams, split=False),
            "The thousands of ftype are the version of the quantization, hidden there because the list could not grow.",
            "Use `divmod(ftype, 1000)`.",
            "2007 where 7 is expected",
        ),
        Mistake(
            "struct's own error",
            partial(_hparams, struct_error=True),
            "For a short file `struct.unpack` raises `struct.error`, which is no ValueError.",
            "Look at `len(data)` first.",
            "a struct.error where a ValueError is expected",
        ),
    ),
)
