"""What a reader says about a tensor: its bytes follow from type and shape, or the file says how many there are."""

from miniquant.formats.gguf_lite.types import DType
from miniquant.formats.safetensors.types import MAX_HEADER, SafetensorsType
from miniquant.formats.tensor import TensorInfo


def test_a_safetensors_type_is_described_by_what_its_numbers_are_and_not_by_how_they_are_read():
    assert SafetensorsType.BF16.description == "the weights, bfloat16"
    assert SafetensorsType.F16.description == "the weights, float16"


def test_the_limit_of_a_safetensors_header_is_that_of_the_library():
    assert MAX_HEADER == 100_000_000


def test_the_bytes_of_a_tensor_follow_from_its_type_and_its_shape_where_the_file_does_not_say():
    assert TensorInfo("w", (2, 3), DType.F32, 0).n_bytes == 24
    assert TensorInfo("w", (2, 3), DType.F32, 0, length=17).n_bytes == 17
    assert TensorInfo("w", (2, 3), DType.F32, 0, length=0).n_bytes == 0
