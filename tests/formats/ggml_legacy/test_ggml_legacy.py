"""Legacy GGML: a file of a few tensors by hand, read and written, and every lie of a length refused by its field."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from miniquant.core.errors import FormatError
from miniquant.formats.describe import describe
from miniquant.formats.ggml_legacy.read import open_ggml, read_ggml
from miniquant.formats.ggml_legacy.types import HPARAMS, LegacyType
from miniquant.formats.ggml_legacy.write import ggml_bytes, ggml_name

NUMBERS = dict(zip(HPARAMS, (3, 8, 4, 2, 1, 1)))
TOKENS = [b"a", b"", b"\xff\x00"]
TENSORS = {
    "model/wte": np.arange(6, dtype=np.float32).reshape(2, 3),
    "model/ln_f/b": np.array([1.5, -2], np.float32),
}
BY_HAND = (
    b"lmgg"
    + struct.pack("<6i", 3, 8, 4, 2, 1, 1)
    + struct.pack("<i", 3)
    + b"\x01\0\0\0a"
    + b"\0\0\0\0"
    + b"\x02\0\0\0\xff\0"
    + struct.pack("<3i2i", 2, 9, 1, 3, 2)
    + b"model/wte"
    + np.arange(6, dtype="<f2").tobytes()
    + struct.pack("<3i1i", 1, 12, 0, 2)
    + b"model/ln_f/b"
    + struct.pack("<2f", 1.5, -2)
)
MATRIX = BY_HAND.index(b"model/wte") - 20  # its header
WHERE = {"matrix": MATRIX + 29, "vector": len(BY_HAND) - 8}
LEFT = len(BY_HAND) - WHERE["matrix"]


def test_the_bytes_are_those_that_the_layout_says():
    assert ggml_bytes(NUMBERS, TOKENS, TENSORS) == BY_HAND


def test_numbers_of_a_later_version_stand_before_ftype():
    data = ggml_bytes(NUMBERS | {"ftype": 2001}, TOKENS, {}, (7, 9))
    assert struct.unpack_from("<8i", data, 4) == (3, 8, 4, 2, 1, 7, 9, 2001)


def test_the_type_of_matrices_is_ftype_without_its_thousands():
    for ftype, type_of_matrix in ((0, 0), (1, 1), (2001, 1), (2000, 0)):
        data = ggml_bytes(NUMBERS | {"ftype": ftype}, [], TENSORS)
        at = data.index(b"model/wte") - 12
        assert struct.unpack_from("<i", data, at) == (type_of_matrix,)


def test_a_file_is_read_by_position():
    found = read_ggml(BY_HAND)
    assert (found.hparams, found.vocabulary) == (NUMBERS, TOKENS)
    assert list(found.tensors) == list(TENSORS)
    assert [(w.dtype, w.shape) for w in found.tensors.values()] == [(np.dtype("<f2"), (2, 3)), (np.dtype("<f4"), (2,))]
    for name, w in TENSORS.items():
        assert (found.tensors[name] == w).all()


def test_an_open_file_says_where_each_tensor_lies_and_decodes_it_afresh():
    with open_ggml(BY_HAND) as file:
        assert (file.data_start, file.version, file.alignment, file.architecture) == (0, None, 1, "unknown")
        assert file.metadata == NUMBERS
        infos = {name: (i.name, i.shape, i.dtype, i.offset, i.n_bytes) for name, i in file.tensors.items()}
        assert infos == {
            "model/wte": ("model/wte", (2, 3), LegacyType.F16, WHERE["matrix"], 12),
            "model/ln_f/b": ("model/ln_f/b", (2,), LegacyType.F32, WHERE["vector"], 8),
        }
        w = file.tensor("model/wte")
        assert w.dtype == np.float32 and w.tolist() == TENSORS["model/wte"].tolist()
        w += 1
        assert file.tensor("model/wte").tolist() == TENSORS["model/wte"].tolist()
        assert not file.stored("model/wte").flags.writeable
    about = describe(BY_HAND)
    assert (about.format, about.overhead) == ("ggml", len(BY_HAND) - 20)


def test_a_path_is_read_as_bytes_are(tmp_path):
    (tmp_path / "m.ggml").write_bytes(BY_HAND)
    with open_ggml(tmp_path / "m.ggml") as file:
        assert list(file.tensors) == list(TENSORS)


def test_names_that_are_no_utf8_are_replaced_and_tensors_may_have_no_dims():
    data = ggml_bytes(NUMBERS, [], {"n": np.array(5, np.float32)}).replace(b"n\0\0\xa0@", b"\xff\0\0\xa0@")
    ((name, w),) = read_ggml(data).tensors.items()
    assert (name, w.shape, float(w)) == ("\ufffd", (), 5.0)


def changed(at: int, value: int) -> bytes:
    return BY_HAND[:at] + struct.pack("<i", value) + BY_HAND[at + 4 :]


@pytest.mark.parametrize(
    ("data", "field", "offset", "message"),
    [
        (b"lm", "header", 0, "2"),
        (b"GGUF" + BY_HAND[4:], "magic", 0, "found 0x46554747, expected 0x67676d6c"),
        (BY_HAND[:4], "hyperparameters", 4, "24 bytes are wanted, 0 are left"),
        (BY_HAND[:20], "hyperparameters", 4, "24 bytes are wanted, 16 are left"),
        (BY_HAND[:30], "number of tokens", 28, "4 bytes are wanted, 2 are left"),
        (changed(32, -1), "token 0", 36, f"-1 bytes are wanted, {len(BY_HAND) - 36} are left"),
        (changed(32, 1000), "token 0", 36, f"1000 bytes are wanted, {len(BY_HAND) - 36} are left"),
        (BY_HAND[:34], "token 0: length", 32, "4 bytes are wanted, 2 are left"),
        (changed(MATRIX, 5), "tensor header", MATRIX, "5 dims of type 1; known are types 0 and 1"),
        (changed(MATRIX, -1), "tensor header", MATRIX, "-1 dims of type 1; known are types 0 and 1"),
        (changed(MATRIX + 8, 2), "tensor header", MATRIX, "2 dims of type 2; known are types 0 and 1"),
        (
            changed(MATRIX + 4, -1),
            "tensor name",
            MATRIX + 20,
            f"-1 bytes are wanted, {len(BY_HAND) - MATRIX - 20} are left",
        ),
        (changed(MATRIX + 12, 3000), "tensor 'model/wte'", WHERE["matrix"], f"12000 bytes are wanted, {LEFT} are left"),
        (changed(MATRIX + 12, -3), "tensor 'model/wte'", WHERE["matrix"], f"-12 bytes are wanted, {LEFT} are left"),
        (BY_HAND[:-1], "tensor 'model/ln_f/b'", WHERE["vector"], "8 bytes are wanted, 7 are left"),
        (BY_HAND + b"\0", "tensor header", len(BY_HAND), "12 bytes are wanted, 1 are left"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field_its_byte_and_what_was_found(data, field, offset, message):
    with pytest.raises(FormatError) as caught:
        read_ggml(data)
    assert (caught.value.field, caught.value.offset) == (field, offset)
    assert message in str(caught.value)


def test_the_types_are_as_wide_as_numpy_s():
    assert [(t.numpy.str, t.block, t.description, t.bytes_of((3, 2))) for t in LegacyType] == [
        ("<f4", 1, "the weights, float32", 24),
        ("<f2", 1, "the weights, float16", 12),
    ]


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("tok_emb.weight", "model/wte"),
        ("pos_emb.weight", "model/wpe"),
        ("ln_f.weight", "model/ln_f/g"),
        ("ln_f.bias", "model/ln_f/b"),
        ("layers.7.ln1.weight", "model/h7/ln_1/g"),
        ("layers.0.ln2.bias", "model/h0/ln_2/b"),
        ("layers.0.attn.qkv.weight", "model/h0/attn/c_attn/w"),
        ("layers.0.attn.proj.bias", "model/h0/attn/c_proj/b"),
        ("layers.0.mlp.fc1.weight", "model/h0/mlp/c_fc/w"),
        ("layers.0.mlp.fc2.weight", "model/h0/mlp/c_proj/w"),
    ],
)
def test_every_parameter_has_the_name_that_ggml_gave_it(name, old):
    assert ggml_name(name) == old
