"""APR files: their text by hand, what opening tells, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from miniquant.core.errors import FormatError, QuantizationError
from miniquant.formats.apr.read import open_apr
from miniquant.formats.apr.types import AprType
from miniquant.formats.apr.write import write_apr

W = {"b": np.array([[1, 0.1], [-2, 3]], np.float32), "a": np.array([], np.float32), "é": np.array(7, np.float32)}


@pytest.fixture
def path(tmp_path):
    write_apr(tmp_path / "m.apr", W, {"architecture": "toy", "n": 3})
    return tmp_path / "m.apr"


def test_the_text_is_an_object_of_version_metadata_and_tensors(path):
    text = path.read_text("utf-8")
    assert text.endswith("\n") and "é" in text
    assert json.loads(text) == {
        "metadata": {"architecture": "toy", "n": 3},
        "tensors": {
            "a": {"data": [], "dtype": "float32", "shape": [0]},
            "b": {"data": [1.0, 0.10000000149011612, -2.0, 3.0], "dtype": "float32", "shape": [2, 2]},
            "é": {"data": [7.0], "dtype": "float32", "shape": []},
        },
        "version": 1,
    }
    assert list(json.loads(text)) == ["metadata", "tensors", "version"]


def test_every_tensor_comes_back_bit_for_bit_and_is_a_fresh_array(path):
    with open_apr(path) as file:
        assert (file.version, file.data_start, file.architecture) == (1, 0, "toy")
        assert file.metadata == {"architecture": "toy", "n": 3}
        for name, w in W.items():
            found = file.tensor(name)
            assert (found.shape, found.dtype, found.tobytes()) == (w.shape, w.dtype, w.tobytes())
            found += 1
            assert file.tensor(name).tobytes() == w.tobytes()


def test_a_tensor_s_place_is_that_of_its_list_in_the_bytes(path):
    data = path.read_bytes()
    with open_apr(data) as file:
        for name, info in file.tensors.items():
            assert (info.name, info.shape, info.dtype) == (name, W[name].shape, AprType.F32)
            assert info.n_bytes == info.length
            found = json.loads(data[info.offset : info.offset + info.length])
            assert found == W[name].reshape(-1).tolist(), name


def test_names_that_do_not_come_in_their_alphabetical_order_have_the_places_of_the_file():
    tensors = '{"é": {"data": [2], "shape": []}, "a": {"data": [3, 4], "shape": [2]}}'
    data = f'{{"version": 1, "metadata": {{}}, "tensors": {tensors}}}'.encode()
    with open_apr(data) as file:
        found = {t.name: data[t.offset : t.offset + t.length] for t in file.tensors.values()}
    assert list(found.items()) == [("é", b"[2]"), ("a", b"[3, 4]")]


def test_bytes_that_are_no_text_are_refused_with_their_place():
    with pytest.raises(FormatError) as caught:
        open_apr(b'{"version": 1, "\xff')
    assert (caught.value.field, caught.value.offset) == ("file", 16)


def test_a_type_of_numbers_has_blocks_of_one_and_four_bytes_a_number_in_memory():
    assert (AprType("float32"), AprType.F32.block) == (AprType.F32, 1)
    assert [AprType.F32.bytes_of(shape) for shape in ((), (3,), (2, 5), (0, 7))] == [4, 12, 40, 0]
    assert AprType.F32.description == "a JSON list of the weights, float32 in decimal digits"


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_json_cannot_hold_is_refused_by_name_and_nothing_is_written(tmp_path, number):
    with pytest.raises(
        QuantizationError, match=r"^'w' holds a number that is not finite, and JSON has no word for it$"
    ):
        write_apr(tmp_path / "m.apr", {"w": np.array([1, number], np.float32)}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"metadata": {}, "tensors": {}, "version": 2}', "version.*found 2, expected 1"),
        ('{"metadata": {}, "tensors": {}}', "this is no APR file: KeyError: 'version'"),
        ('{"metadata": 1, "tensors": {}, "version": 1}', "this is no APR file: TypeError"),
        ('{"metadata": {}, "tensors": {"w": {"data": [1], "shape": [2]}}, "version": 1}', "no APR file: ValueError"),
        ("[1", "this is no APR file: JSONDecodeError"),
        ("x", "file.*2 bytes|1 byte"),
    ],
)  # fmt: skip
def test_a_malformed_text_is_refused_and_the_error_says_why(text, message):
    with pytest.raises(FormatError, match=message):
        open_apr(text.encode())


def test_an_unknown_architecture_is_called_so_and_an_unknown_tensor_is_an_error():
    file = open_apr(b' {"tensors": {}, "metadata": {}, "version": 1}')
    assert file.architecture == "unknown"
    with pytest.raises(KeyError, match="'w'"):
        file.tensor("w")


def test_white_space_and_the_order_of_keys_do_not_matter_and_the_last_of_two_equal_keys_counts():
    tensor = '{"shape":[1], "data":[5], "data" : [6] , "dtype":"float32"}'
    text = f'{{ "version" :1,\n"tensors": {{"w" : {tensor}}} ,"metadata":{{}} }}'
    file = open_apr(text.encode())
    info = file.tensors["w"]
    assert text[info.offset : info.offset + info.length] == "[6]"
    assert file.tensor("w").tolist() == [6]
