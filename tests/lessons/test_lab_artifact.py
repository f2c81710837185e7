"""The formats of labs 01 to 03 as the references build them, against programs that we did not write.

The referee of safetensors is the safetensors package; legacy GGML has none any more, so its bytes are spelled by hand
from the layout of ggml's GPT-2 converter; optimizers are PyTorch's.
"""

from __future__ import annotations

import json
import pickle
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.numpy import load as library_load
from safetensors.numpy import save as library_save

from miniquant.core.errors import FormatError
from miniquant.formats.ggml_legacy.read import read_ggml
from miniquant.formats.ggml_legacy.types import HPARAMS
from miniquant.formats.ggml_legacy.write import ggml_bytes, ggml_name
from miniquant.lessons.pickle.harmless_payload import harmless_payload
from miniquant.lessons.pickle.load_restricted import load_restricted
from miniquant.lessons.pickle.run_pickle import run_pickle
from miniquant.lessons.pickle.toys import operations
from miniquant.lessons.safetensors.check_layout import check_layout
from miniquant.lessons.safetensors.flatten_optimizer import flatten_optimizer
from miniquant.lessons.safetensors.ggml_hparams import ggml_hparams
from miniquant.lessons.safetensors.read_safetensors_head import read_safetensors_head
from miniquant.lessons.safetensors.safetensors_head import safetensors_head
from miniquant.lessons.safetensors.tensor_entries import ITEM, tensor_entries
from miniquant.lessons.what_a_model_is.gradient_descent import gradient_descent
from miniquant.lessons.what_a_model_is.gradients import gradients
from miniquant.lessons.what_a_model_is.rmse import rmse
from miniquant.lessons.what_a_model_is.toys import HOURS, JARS, START
from miniquant.models.corpus import load_tokenizer
from miniquant.models.pretrained import load_pretrained

NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
many = settings(max_examples=150, deadline=None, derandomize=True)
names = st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__")
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@st.composite
def arrays(draw):
    """Some arrays of every type, by names of any letters."""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    chosen = draw(st.dictionaries(names, st.tuples(st.sampled_from(list(NUMPY)), shapes), max_size=5))
    return {
        name: np.asarray(100 * random.normal(size=shape)).astype(NUMPY[kind]) for name, (kind, shape) in chosen.items()
    }


def save(tensors, metadata=None):
    """The lab's writer, of the references."""
    kinds = {np.dtype(code): name for name, code in NUMPY.items()}
    header = {"__metadata__": metadata} if metadata else {}
    header |= tensor_entries({name: (kinds[w.dtype], w.shape) for name, w in tensors.items()})
    head = safetensors_head(json.dumps(header, ensure_ascii=False))
    return head + b"".join(w.tobytes() for w in tensors.values())


def load(data):
    """The lab's reader, of the references."""
    header, start = read_safetensors_head(data)
    header.pop("__metadata__", None)
    check_layout(header, len(data) - start)
    found = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        found[name] = np.frombuffer(data[begin:end], NUMPY[entry["dtype"]]).reshape(entry["shape"])
    return found


def same(a, b):
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and a[name].shape == b[name].shape and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


# ---- safetensors -----------------------------------------------------------------------------------------------------


@many
@given(arrays(), st.dictionaries(st.text(max_size=5), st.text(max_size=5), min_size=1, max_size=3))
def test_the_library_reads_what_the_references_write(tensors, metadata):
    assert same(library_load(save(tensors, metadata)), tensors)


@many
@given(arrays())
def test_the_references_read_what_the_library_writes(tensors):
    assert same(load(library_save(tensors, {"format": "np"})), tensors)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(arrays(), st.data())
def test_whatever_the_library_refuses_the_references_refuse(tensors, data):
    """One changed byte, a cut, or bytes added; the references may be stricter, never laxer."""
    raw = bytearray(library_save(tensors, {"format": "np"}))
    at = data.draw(st.integers(0, len(raw) - 1))
    change = data.draw(st.sampled_from(["byte", "cut", "more"]))
    if change == "byte":
        raw[at] = data.draw(st.integers(0, 255))
    else:
        raw = raw[:at] if change == "cut" else raw + b"more"
    try:
        library_load(bytes(raw))
    except (SafetensorError, OverflowError, TypeError, KeyError, ValueError):
        with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
            load(bytes(raw))


@pytest.mark.parametrize(
    "header",
    [
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        ' {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    ],
)
def test_two_rules_of_the_specification_are_kept_here_and_not_by_the_library(header):
    data = struct.pack("<Q", len(header)) + header.encode() + bytes(4)
    assert library_load(data)["a"].shape == (1,)
    with pytest.raises(ValueError):
        load(data)


def test_the_elements_have_the_sizes_that_numpy_and_torch_give_them():
    assert {name: np.dtype(code).itemsize for name, code in NUMPY.items()} == {
        k: v for k, v in ITEM.items() if k != "BF16"
    }
    assert ITEM["BF16"] == torch.bfloat16.itemsize


# ---- checkpoints -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options"), [("AdamW", {}), ("Adam", {"amsgrad": True}), ("SGD", {"momentum": 0.9}), ("Adagrad", {})]
)
def test_an_optimizer_goes_on_from_its_flat_state_to_the_bit(kind, options):
    def run(optimizer, weights, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            ((weights - torch.tensor([1.0, -2.0, 0.3])) ** 4).sum().backward()
            optimizer.step()
        return weights.detach().clone()

    def fresh(start):
        weights = torch.nn.Parameter(start.clone())
        return getattr(torch.optim, kind)([weights], lr=0.01, **options), weights

    optimizer, weights = fresh(torch.zeros(3))
    middle = run(optimizer, weights, 5)
    tensors, text = flatten_optimizer(optimizer.state_dict())
    tensors = {name: torch.from_numpy(w.numpy().copy()) for name, w in tensors.items()}
    straight_on = run(optimizer, weights, 5)
    resumed, weights = fresh(middle)
    state = {}
    for name, tensor in tensors.items():
        _, number, key = name.split(".")
        state.setdefault(int(number), {})[key] = tensor
    resumed.load_state_dict({"state": state, "param_groups": json.loads(text)})
    assert torch.equal(run(resumed, weights, 5), straight_on)


# ---- legacy GGML -----------------------------------------------------------------------------------------------------


def test_a_small_ggml_file_has_the_bytes_of_the_layout():
    numbers = dict(zip(HPARAMS, (2, 8, 3, 1, 1, 1)))
    w, g = np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.array([0.5, 1, 2], np.float32)
    by_hand = (
        b"lmgg"
        + struct.pack("<6i", 2, 8, 3, 1, 1, 1)
        + struct.pack("<i", 2)
        + b"\x01\0\0\0a\x02\0\0\0bc"
        + struct.pack("<3i2i", 2, 9, 1, 3, 2)
        + b"model/wte"
        + struct.pack("<6e", 1, 2, 3, 4, 5, 6)
        + struct.pack("<3i1i", 1, 14, 0, 3)
        + b"model/h0/ln_1/"[:14]
        + struct.pack("<3f", 0.5, 1, 2)
    )
    assert ggml_bytes(numbers, [b"a", b"bc"], {"model/wte": w, "model/h0/ln_1/": g}) == by_hand
    found = read_ggml(by_hand)
    assert found.hparams == numbers and found.vocabulary == [b"a", b"bc"]
    assert same(found.tensors, {"model/wte": w.astype(np.float16), "model/h0/ln_1/": g})


def test_minigpt_goes_through_ggml_to_the_bit_and_every_parameter_has_a_name_of_its_own():
    model, tokenizer = load_pretrained(), load_tokenizer()
    tensors = {ggml_name(name): w.numpy() for name, w in model.state_dict().items()}
    assert len(tensors) == len(model.state_dict())
    numbers = dict(zip(HPARAMS, (1024, 256, 256, 4, 4, 0)))
    vocabulary = [tokenizer.id_to_token(i).encode() for i in range(1024)]
    data = ggml_bytes(numbers, vocabulary, tensors)
    found = read_ggml(data)
    assert same(found.tensors, tensors) and found.vocabulary == vocabulary and found.hparams == numbers
    assert ggml_hparams(data) == {**numbers, "quantization_version": 0}


def test_one_more_number_and_an_old_reader_takes_it_for_something_else():
    numbers = dict(zip(HPARAMS, (3, 8, 4, 2, 1, 0)))
    tensors = {"model/wte": np.ones((3, 4), np.float32)}
    old = ggml_bytes(numbers, [b"a", b"b", b"c"], tensors)
    new = ggml_bytes(numbers, [b"a", b"b", b"c"], tensors, more=[1024])
    assert len(new) == len(old) + 4 and new[:24] == old[:24]
    assert ggml_hparams(new) == {**numbers, "ftype": 24, "quantization_version": 1}
    with pytest.raises(FormatError):
        read_ggml(new)


@many
@given(st.data())
def test_a_damaged_ggml_file_is_read_or_a_format_error(data):
    raw = bytearray(
        ggml_bytes(dict(zip(HPARAMS, (2, 8, 2, 1, 1, 0))), [b"a", b"bc"], {"w": np.ones((2, 2), np.float32)})
    )
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_ggml(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    except FormatError:
        return


# ---- one neuron, and pickles -----------------------------------------------------------------------------------------


def test_the_slopes_are_those_of_autograd_and_the_steps_those_of_sgd():
    neuron = torch.nn.Linear(1, 1).double()
    with torch.no_grad():
        neuron.weight.fill_(START[0])
        neuron.bias.fill_(START[1])
    hours, jars = torch.tensor(HOURS)[:, None], torch.tensor(JARS)[:, None]
    optimizer = torch.optim.SGD(neuron.parameters(), lr=0.01)
    for step in range(20):
        loss = torch.nn.functional.mse_loss(neuron(hours), jars)
        assert rmse(neuron(hours).detach().numpy()[:, 0], JARS) == pytest.approx(loss.sqrt().item())
        optimizer.zero_grad()
        loss.backward()
        mine = gradients(neuron.weight.item(), neuron.bias.item(), HOURS, JARS)
        assert mine == pytest.approx((neuron.weight.grad.item(), neuron.bias.grad.item()))
        optimizer.step()
        expected = pytest.approx((neuron.weight.item(), neuron.bias.item()))
        assert gradient_descent(*START, HOURS, JARS, 0.01, step + 1) == expected


plain = st.recursive(
    st.one_of(st.integers(0, 255), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4), st.tuples(inner, inner)
    ),
    max_leaves=12,
)


@many
@given(plain)
def test_the_machine_of_the_lab_makes_what_pickle_makes(value):
    value = [value, value]  # so that the memo is used
    assert run_pickle(operations(pickle.dumps(value, 2))) == value


def test_the_payload_prints_when_it_is_loaded_and_the_machine_and_the_loader_refuse_it(capsys):
    payload = harmless_payload("printed by a pickle")
    with pytest.raises(ValueError):
        run_pickle(operations(payload))
    with pytest.raises(pickle.UnpicklingError):
        load_restricted(payload, {("collections", "OrderedDict")})
    assert capsys.readouterr().out == ""
    assert pickle.loads(payload) is None
    assert capsys.readouterr().out == "printed by a pickle\n"
