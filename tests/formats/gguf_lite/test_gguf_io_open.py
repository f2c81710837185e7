"""GGUF-lite, the reader: files that it must accept, what an open file gives, and what that costs."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest
import torch
from toy_lite import S4, S8, TOY, TOY_BYTES, TOY_READ, TOY_SCHEMES, write_toy

from conformance.gguf_lite_files import F32, Q4, Q8, SIZE, assemble, descriptor, one
from miniquant import FormatError, SchemeError, open_gguf_lite, read_gguf_lite, write_gguf_lite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gguf-lite"


# ---- what a reader must accept ---------------------------------------------------------------------------------------


def read_bytes(path, data: bytes) -> dict[str, list]:
    path.write_bytes(data)
    return {name: w.tolist() for name, w in read_gguf_lite(path).items()}


def test_tensors_may_lie_in_any_order_with_padding_before_between_and_after(path):
    pad = b"\xee" * 7
    data = pad + struct.pack("<2f", 3, 4) + pad + struct.pack("<f", 9) + pad + struct.pack("<2f", 1, 2) + pad
    parts = [descriptor(b"a", (2,), F32, 33), descriptor(b"b", (2,), F32, 7), descriptor(b"c", (), F32, 22)]
    assert read_bytes(path, assemble(parts, data)) == {"a": [1.0, 2.0], "b": [3.0, 4.0], "c": 9.0}


def test_empty_tensors_may_lie_anywhere_in_the_file_even_inside_others(path):
    parts = [descriptor(b"a", (4,)), *(descriptor(bytes([98 + i]), (0, 3), F32, o) for i, o in enumerate((0, 5, 16)))]
    assert read_bytes(path, assemble(parts, bytes(16))) == {"a": [0.0] * 4, "b": [], "c": [], "d": []}


def test_metadata_may_be_empty_and_may_end_in_a_newline(path):
    for text, expected in {
        b"": {},
        b"a=1": {"a": "1"},
        b"a=1\n": {"a": "1"},
        b"a=\nb==c=\n": {"a": "", "b": "=c="},
        b" a = 1 \r\nb=\0": {" a ": " 1 \r", "b": "\0"},
        "ключ=значение\u2028x".encode(): {"ключ": "значение\u2028x"},
    }.items():
        path.write_bytes(assemble([descriptor()], bytes(SIZE), text))
        assert open_gguf_lite(path).metadata == expected


def test_the_nibble_minus_eight_is_read_though_it_is_never_written(path):
    data = struct.pack("<2e", 1.0, 0.5) + bytes([0x88]) * 32 + bytes([0x78]) * 32
    weights = read_bytes(path, one(data, dims=(2, 64), dtype=Q4))["w"]
    assert weights == [[-8.0] * 64, [-4.0, 3.5] * 32]


def test_the_integer_minus_128_a_negative_scale_and_a_subnormal_scale_are_read(path):
    data = struct.pack("<3e", -0.5, 2.0**-24, 0.0) + struct.pack("<6b", -128, 127, -128, 1, 5, -5)
    weights = read_bytes(path, one(data, dims=(3, 2), dtype=Q8))["w"]
    assert weights == [[64.0, -63.5], [-(2.0**-17), 2.0**-24], [0.0, -0.0]]


def test_a_data_section_at_an_odd_byte_is_read(path):
    for length in range(1, 9):
        data = struct.pack("<2d", 1.5, -2.25)  # any 16 bytes: read as four float32
        weights = read_bytes(path, assemble([descriptor(b"n" * length, (4,))], data, b""))["n" * length]
        assert weights == list(struct.unpack("<4f", data))


def test_large_dims_beside_a_zero_are_read_as_an_empty_tensor(path):
    weights = read_gguf_lite(write(path, one(b"", dims=(4_000_000_000, 0))))["w"]
    assert weights.shape == (4_000_000_000, 0)
    weights = read_gguf_lite(write(path, one(b"", dims=(4_000_000_000, 0), dtype=Q4)))["w"]
    assert weights.shape == (4_000_000_000, 0)


def write(path, data: bytes):
    path.write_bytes(data)
    return path


# ---- the open file ---------------------------------------------------------------------------------------------------


def test_raw_gives_the_bytes_of_the_file_and_cannot_change_them(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        for name, info in file.tensors.items():
            start = file.data_start + info.offset
            assert file.raw(name).tobytes() == TOY_BYTES[start : start + info.n_bytes]
            with pytest.raises(ValueError, match="read-only"):
                file.raw(name)[...] = 0


def test_quantized_gives_integers_and_scales(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        values, scale = file.quantized("eight")
        assert (values.dtype, scale.dtype) == (np.int8, np.float16)
        assert values.tolist() == [[127, -127, 0, 2], [0, 0, 0, 0], [127, -42, 0, 42]]
        assert scale.tolist() == [1.0, 0.0, S8]
        values, scale = file.quantized("four")
        assert scale.tolist() == [[1.0, S4]]
        assert values[0, :15].tolist() == list(range(-7, 8))
        assert values.shape == (1, 128)
        for name in ("bias", "half"):
            with pytest.raises(SchemeError, match="no integers"):
                file.quantized(name)


def test_a_tensor_that_was_read_is_a_fresh_array_that_outlives_the_file(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        first, second = file.tensor("bias"), file.tensor("bias")
        first[...] = 7
    assert second.tolist() == TOY_READ["bias"]
    weights = read_gguf_lite(path)
    weights["eight"].zero_()
    assert path.read_bytes() == TOY_BYTES


def test_spans_say_where_each_descriptor_stands(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        for name, (start, end) in file.spans.items():
            assert TOY_BYTES[start + 2 : end].startswith(name.encode())
        assert [end - start for start, end in file.spans.values()] == [20, 24, 25, 24, 15]
        assert max(end for _, end in file.spans.values()) == file.data_start


def test_an_unknown_tensor_and_a_closed_file_say_so(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        with pytest.raises(KeyError, match="no tensor 'bais'"):
            file.tensor("bais")
        with pytest.raises(KeyError):
            file.raw("")
    for read in (file.tensor, file.raw, file.quantized):
        with pytest.raises(ValueError, match="is closed"):
            read("bias")
    assert list(file.tensors) == list(TOY)  # the descriptors are still known


def test_a_path_may_be_text_or_a_path(path):
    for kind in (str, lambda p: p):
        write_gguf_lite(kind(path), TOY, TOY_SCHEMES, {"name": "toy é"})
        assert path.read_bytes() == TOY_BYTES
        assert read_gguf_lite(kind(path))["one"] == -1.5


def test_a_file_can_be_replaced_while_it_is_open(path):
    write_toy(path)
    with open_gguf_lite(path) as file:
        write_gguf_lite(path, {"other": np.ones(2, np.float32)}, {})
        assert file.tensor("bias").tolist() == TOY_READ["bias"]
    assert list(read_gguf_lite(path)) == ["other"]


def test_the_writer_refuses_what_the_reader_would_refuse(path):
    for shape in ((0, 2**31, 2**29), (2**30, 2**30, 0)):
        with pytest.raises(SchemeError, match="has shape"):
            write_gguf_lite(path, {"w": torch.empty(shape)}, {})
    assert not path.exists()


# ---- memory ----------------------------------------------------------------------------------------------------------


def peak_of(action) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("scheme", ["f32", "f16", "q8_per_channel", "q4_per_group_64"])
@pytest.mark.parametrize("order", ["contiguous", "transposed"])
def test_writing_takes_at_most_three_times_the_largest_tensor(scheme, order, path):
    big = np.full((512, 2048), 0.25, np.float32)  # 4 MB
    state = {f"w{i}": big if order == "contiguous" else big.T for i in range(6)}  # 24 MB in the file
    peak = peak_of(lambda: write_gguf_lite(path, state, dict.fromkeys(state, scheme)))
    assert peak <= 3 * big.nbytes


def test_opening_takes_next_to_nothing_and_reads_no_tensor(path):
    """A file of 4 GB, nearly all of it a hole: opening it and reading one small tensor must not touch the rest."""
    parts = [descriptor(b"huge", (1 << 10, 1 << 20), F32, 16), descriptor(b"small", (4,), F32, 0)]
    start = assemble(parts, struct.pack("<4f", 1, 2, 3, 4))
    path.write_bytes(start)
    os.truncate(path, len(start) + (1 << 32))

    def read():
        with open_gguf_lite(path) as file:
            assert file.tensors["huge"].n_bytes == file.raw("huge").size == 1 << 32
            assert file.tensor("small").tolist() == [1.0, 2.0, 3.0, 4.0]

    assert peak_of(read) < 50_000


def test_opening_a_model_costs_its_descriptors_not_its_weights(path, trained):
    write_gguf_lite(path, trained, {})
    assert path.stat().st_size > 13_000_000
    assert peak_of(lambda: open_gguf_lite(path)) < 100_000


@pytest.mark.parametrize("scheme", ["f32", "f16", "q8_per_channel", "q4_per_group_64"])
def test_reading_one_tensor_takes_little_more_than_its_float32_weights(scheme, path):
    w = np.full((1024, 2048), 0.25, np.float32)
    write_gguf_lite(path, {"a": w, "b": w}, {"a": scheme, "b": scheme})
    with open_gguf_lite(path) as file:
        assert peak_of(lambda: file.tensor("a")) < 1.6 * w.nbytes


def test_core_paths_do_not_import_torch(tmp_path):
    program = """
    import sys
    import numpy as np
    from miniquant import fake_quantize_state, open_gguf_lite, write_gguf_lite
    w = np.linspace(-1, 1, 256, dtype=np.float32).reshape(2, 128)
    write_gguf_lite("a.gguf-lite", {"w": w}, {"w": "q4_per_group_64"})
    with open_gguf_lite("a.gguf-lite") as file:
        assert np.array_equal(file.tensor("w"), fake_quantize_state({"w": w}, {"w": "q4_per_group_64"})["w"])
    assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, check=True)


@pytest.mark.parametrize("line", ["dims_order=in,out", "group_size=32"])
def test_a_file_whose_metadata_mean_other_weights_is_refused_where_the_line_begins(line, path):
    write_toy(path)
    key = line.partition("=")[0]
    lines = path.read_bytes()[16:].split(b"\n")
    (old,) = [part for part in lines if part.startswith(key.encode() + b"=")]
    data = path.read_bytes().replace(old, line.encode())  # as long as before
    assert len(data) == path.stat().st_size
    with pytest.raises(FormatError, match=f"found {key}=.*this reader knows {key}=") as caught:
        open_gguf_lite(data)
    assert (caught.value.field, caught.value.offset) == ("metadata", data.index(line.encode()))


def test_a_file_that_says_nothing_of_dims_order_and_group_size_is_read(path):
    write_toy(path)
    data = path.read_bytes().replace(b"dims_order=out", b"dims_orders=ut")
    data = data.replace(b"group_size=64", b"group_sizes=4")
    with open_gguf_lite(data) as file:
        assert not {"dims_order", "group_size"} & file.metadata.keys()
        assert list(file.tensors) == list(TOY)
