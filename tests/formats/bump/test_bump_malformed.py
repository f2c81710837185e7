"""Malformed bump files: every flipped bit and every lie is a FormatError with its field and byte, cheaply."""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc

import numpy as np
import pytest
from bump_models import SMALL, TINY, write_llama
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import THOROUGH, tried

from conformance.bump_files import LLAMA, belonging, bump, malformations, rehashed, resigned
from miniquant import FormatError, MiniquantError
from miniquant.formats.bump import open_bump, write_bump
from miniquant.formats.gguf import write_gguf


def tiny_gpt2(path):
    """A gpt2 of one layer, 4 wide."""
    random = np.random.default_rng(0)
    shapes = {"token_embd.weight": (3, 4), "position_embd.weight": (5, 4)}
    shapes |= {"output_norm.weight": (4,), "output_norm.bias": (4,)}
    for name, shape in {"attn_qkv": (12, 4), "attn_output": (4, 4), "ffn_up": (3, 4), "ffn_down": (4, 3)}.items():
        shapes |= {f"blk.0.{name}.weight": shape, f"blk.0.{name}.bias": shape[:1]}
    for name in ("attn_norm", "ffn_norm"):
        shapes |= {f"blk.0.{name}.weight": (4,), f"blk.0.{name}.bias": (4,)}
    metadata = {"general.architecture": "gpt2", "gpt2.context_length": 5, "gpt2.embedding_length": 4}
    metadata |= {"gpt2.block_count": 1, "gpt2.feed_forward_length": 3, "gpt2.attention.head_count": 2}
    metadata |= {"gpt2.attention.layer_norm_epsilon": 1e-5}
    write_gguf(path, {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}, metadata)


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def valid(request, tmp_path_factory):
    """A folder with a small bump file of each architecture."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "llama":
        write_llama(folder / "m.gguf", TINY)
    else:
        tiny_gpt2(folder / "m.gguf")
    write_bump(folder / "m.gguf", folder / "weights.bump")
    open_bump(folder / "weights.bump")
    return folder


@pytest.fixture
def copy(valid, tmp_path):
    """The same, to be damaged."""
    for name in ("weights.bump", "config.json"):
        (tmp_path / name).write_bytes((valid / name).read_bytes())
    return tmp_path


def refused(folder) -> FormatError:
    with pytest.raises(FormatError) as caught:
        open_bump(folder / "weights.bump")
    error = caught.value
    assert error.field and error.offset is not None
    assert error.path in (str(folder / "weights.bump"), str(folder / "config.json"))
    assert str(error).startswith(f"{error.path}: {error.field} at byte {error.offset}: ")
    return error


def dishonest(folder, change) -> FormatError:
    """Change the weights, and mend both checksums, so that only the structure can tell."""
    data = rehashed(change((folder / "weights.bump").read_bytes()))
    (folder / "weights.bump").write_bytes(data)
    (folder / "config.json").write_bytes(belonging((folder / "config.json").read_bytes(), data))
    return refused(folder)


def in_config(folder, key, value) -> FormatError:
    """Say something else in config.json, under its own valid checksum."""
    found = json.loads((folder / "config.json").read_text())
    found[key] = value
    (folder / "config.json").write_bytes(resigned(json.dumps(found, indent=2).encode() + b"\n"))
    return refused(folder)


def test_a_config_longer_than_a_mebibyte_is_not_believed(copy):
    with open(copy / "config.json", "ab") as file:
        file.write(b" " * (2**20 + 1 - file.tell()))
    assert f"it has {2**20 + 1} bytes, and {2**20} at most" in str(refused(copy))


def test_a_layout_without_a_place_for_the_model_is_named_with_its_field(tmp_path):
    tiny_gpt2(tmp_path / "m.gguf")
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    own = json.loads((tmp_path / "config.json").read_text())["bump"]
    assert in_config(tmp_path, "bump", own | {"layout": "ckernel"}).field == "bump.layout"


def test_what_a_config_elsewhere_says_wrong_is_reported_under_its_own_path(copy):
    elsewhere = copy / "other.json"
    (copy / "config.json").rename(elsewhere)
    data = (copy / "weights.bump").read_bytes()
    at = len(data) - 1
    (copy / "weights.bump").write_bytes(rehashed(data[:at] + bytes([data[at] ^ 1])))
    with pytest.raises(FormatError) as caught:
        open_bump(copy / "weights.bump", elsewhere)
    assert str(elsewhere) in str(caught.value)


@pytest.mark.parametrize("name", ["weights.bump", "config.json"])
def test_a_flipped_bit_anywhere_is_noticed(name, copy):
    original = (copy / name).read_bytes()
    with open(copy / name, "r+b", buffering=0) as file:
        for at in range(len(original)):
            if name == "weights.bump" and at > 256 and at % tried(3, 1):  # no field stands there: of weights a third
                continue
            for bit in range(8) if THOROUGH else [at * 5 % 8]:  # of each byte one, and of neighbours not the same
                file.seek(at)
                file.write(bytes([original[at] ^ 1 << bit]))
                with pytest.raises(FormatError):
                    open_bump(copy / "weights.bump")
            file.seek(at)
            file.write(original[at : at + 1])
    open_bump(copy / "weights.bump")


def test_a_file_cut_anywhere_or_continued_is_refused(copy):
    data = (copy / "weights.bump").read_bytes()
    for length in [*range(0, 300), *range(300, len(data), 37), len(data) - 1, len(data) - 64]:
        (copy / "weights.bump").write_bytes(data[:length])
        refused(copy)
    for more in (b"\0", bytes(64)):
        (copy / "weights.bump").write_bytes(rehashed(data + more))
        refused(copy)


FAULTS = [name for name, _ in malformations(*bump(LLAMA, 1, 3)[:2])]


def test_every_malformation_is_refused_with_its_field_and_byte(copy):
    """The files of the conformance suite, made from what the library writes, for each architecture."""
    found = dict(malformations((copy / "weights.bump").read_bytes(), (copy / "config.json").read_bytes()))
    assert len(found) == len(FAULTS) > 40
    for name, fault in found.items():
        (copy / "weights.bump").write_bytes(fault.weights)
        (copy / "config.json").unlink(missing_ok=True)
        if fault.config is not None:
            (copy / "config.json").write_bytes(fault.config)
        error = refused(copy)
        assert fault.field in error.field, name
        assert fault.offset in (None, error.offset), name


@pytest.mark.parametrize(
    ("field", "at", "value"),
    [("num_layers", 16, 2), ("vocab_size", 20, 4), ("context_len", 28, 6), ("model_type", 12, None)],
)
def test_a_header_that_contradicts_config_json_is_refused(field, at, value, copy):
    def change(data):
        new = 3 - data[12] if value is None else value
        return data[:at] + struct.pack("<I", new) + data[at + 4 :]

    error = dishonest(copy, change)
    assert error.field in (f"header.{field}", "dtype table: count")


def test_a_norm_of_another_type_than_fp32_says_what_is_expected(copy):
    data = (copy / "weights.bump").read_bytes()
    last = 131 + struct.unpack_from("<I", data, 128)[0]
    assert "norms and biases are FP32" in str(dishonest(copy, lambda d: d[:last] + bytes([2]) + d[last + 1 :]))


def test_a_changed_payload_is_refused_even_if_only_the_checksum_can_tell(copy):
    data = bytearray((copy / "weights.bump").read_bytes())
    data[-64] ^= 1  # a weight of the last norm
    (copy / "weights.bump").write_bytes(data)
    error = refused(copy)
    assert (error.field, error.offset) == ("header.checksum", 64)
    assert hashlib.sha256(data[128:]).hexdigest()[:16] in str(error)


def test_a_missing_config_json_is_named(copy):
    (copy / "config.json").unlink()
    error = refused(copy)
    assert "a bump file needs the config.json that was written with it" in str(error)


def test_a_config_json_that_was_edited_is_refused_and_says_so(copy):
    text = (copy / "config.json").read_text()
    (copy / "config.json").write_text(text.replace("1e-05", "1e-06"))
    assert "not the one that was written; run to-bump again" in str(refused(copy))
    (copy / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert "written elsewhere" in str(refused(copy))


@pytest.mark.parametrize("value", [0, -1, 2**32, 10**30, 1.5, True, "4", None, [4], {}])
@pytest.mark.parametrize("key", ["vocab_size", "layers", "inner"])
def test_values_that_to_bump_would_not_write_are_refused(key, value, copy):
    llama = "rope_theta" in (copy / "config.json").read_text()
    names = {"layers": ("n_layer", "num_hidden_layers"), "inner": ("n_inner", "intermediate_size")}
    key = names.get(key, (key, key))[llama]
    error = in_config(copy, key, value)
    assert error.field == key
    text = (copy / "config.json").read_bytes()
    assert error.path.endswith("config.json") and text[error.offset :].startswith(f'"{key}"'.encode())


def test_other_lies_in_config_json_are_refused(copy):
    original, llama = (copy / "config.json").read_bytes(), "rope_theta" in (copy / "config.json").read_text()
    epsilon = "rms_norm_eps" if llama else "layer_norm_epsilon"
    for key, value in {
        epsilon: float("nan"),
        "model_type": "llama2",
        "architectures": ["Qwen2ForCausalLM"],
        "tie_word_embeddings": False,
        "bos_token_id": -1,
        "rope_scaling": {"type": "yarn"},
        "bump": {},
        ("num_key_value_heads" if llama else "n_head"): 3,
        ("intermediate_size" if llama else "n_inner"): 2**31,
    }.items():
        in_config(copy, key, value)
        (copy / "config.json").write_bytes(original)
    for text in (b"", b"[]", b"{" * 10**5, b"\xff" + original, original[:-3], original + original, original * 2000):
        for written in (text, resigned(text)):
            (copy / "config.json").write_bytes(written)
            refused(copy)
    double = resigned(original.replace(b'  "model_type"', b'  "model_type": "gpt2",\n  "model_type"'))
    (copy / "config.json").write_bytes(double)
    assert "a key stands twice" in str(refused(copy))


def test_a_bigger_lie_costs_no_more_memory(copy):
    data, original = (copy / "weights.bump").read_bytes(), (copy / "config.json").read_text()
    llama = "rope_theta" in original
    for power in range(3, 32):
        for at in (16, 20, 24, 28, 32, 128):
            (copy / "weights.bump").write_bytes(
                rehashed(data[:at] + struct.pack("<I", 1 << power | 7) + data[at + 4 :])
            )
            tracemalloc.start()
            with pytest.raises(FormatError):
                open_bump(copy / "weights.bump")
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 200_000
        (copy / "weights.bump").write_bytes(data)
        for key in ("intermediate_size", "vocab_size") if llama else ("n_inner", "n_positions"):
            in_config(copy, key, 1 << power)
        (copy / "config.json").write_text(original)


@settings(max_examples=tried(20, 80), deadline=None)
@given(st.data())
def test_random_damage_gives_nothing_but_format_errors(valid, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    weights, text = bytearray((valid / "weights.bump").read_bytes()), (valid / "config.json").read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(weights) - 1) | st.integers(0, 160))
        weights[at] = data.draw(st.sampled_from([0, 1, 2, 8, 127, 128, 255]))
    weights = rehashed(bytes(weights))
    (folder / "weights.bump").write_bytes(weights)
    (folder / "config.json").write_bytes(belonging(text, weights))
    try:
        with open_bump(folder / "weights.bump") as file:
            for name in file.tensors:
                file.tensor(name)
    except FormatError as error:
        assert error.field and error.offset is not None


def test_q4_0_blocks_in_a_small_file_are_covered_too(tmp_path):
    write_llama(tmp_path / "m.gguf", SMALL, {"": "Q4_0"})
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    original = (tmp_path / "weights.bump").read_bytes()
    random = np.random.default_rng(0)
    for at in random.integers(0, len(original), 50):
        damaged = bytearray(original)
        damaged[at] ^= 1 << random.integers(8)
        (tmp_path / "weights.bump").write_bytes(damaged)
        refused(tmp_path)


def test_heads_that_cannot_share_their_key_value_heads_are_refused_on_both_sides(tmp_path):
    sizes = dict(embed=12, heads=3, kv_heads=2, inner=3, vocab=3, context=5, layers=1)
    write_llama(tmp_path / "m.gguf", sizes)
    with pytest.raises(MiniquantError, match=r"attention\.head_count is 3, no multiple of head_count_kv, 2"):
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    write_llama(tmp_path / "m.gguf", sizes | {"kv_heads": 3})
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    text = (tmp_path / "config.json").read_bytes()
    (tmp_path / "config.json").write_bytes(
        resigned(text.replace(b'"num_key_value_heads": 3', b'"num_key_value_heads": 2'))
    )
    with pytest.raises(FormatError, match=r"header\.num_heads at byte .*: 3 heads cannot share 2 key-value heads"):
        open_bump(tmp_path / "weights.bump")


@pytest.mark.parametrize("value", [0.0, -1e-5, float("inf"), float("nan")])
@pytest.mark.parametrize("key", ["llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base"])
def test_an_epsilon_or_a_base_that_is_no_number_above_0_is_refused_on_both_sides(key, value, tmp_path):
    write_llama(tmp_path / "m.gguf", TINY, more={key: value})
    with pytest.raises(MiniquantError, match=f"the key {key} is .*, expected a number above 0"):
        write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    write_llama(tmp_path / "m.gguf", TINY)
    write_bump(tmp_path / "m.gguf", tmp_path / "weights.bump")
    theirs, before = ("rms_norm_eps", b"1e-05") if "epsilon" in key else ("rope_theta", b"10000.0")
    text = (tmp_path / "config.json").read_bytes()
    changed = text.replace(b": " + before, b": " + json.dumps(value).encode())
    assert changed != text
    (tmp_path / "config.json").write_bytes(resigned(changed))
    with pytest.raises(FormatError, match=f"{theirs} at byte .*expected a number with a point, above 0"):
        open_bump(tmp_path / "weights.bump")
