"""The drawing of the forward pass has the model's own tensors, in the order in which the model uses them."""

import math
import xml.etree.ElementTree as ET

import pytest
import torch

from miniquant.inspect.forward import forward_pass, stage_table, stages
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.models.pretrained import load_pretrained

SMALL = MiniGPTConfig(vocab_size=40, context=16, d_model=64, n_layers=3, n_heads=2, d_mlp=128)


def names(model):
    """The tensors of all stages in the order of the drawing, block by block."""
    found = stages(model)
    blocks = [
        name.replace("layers.N.", f"layers.{n}.")
        for n in range(model.config.n_layers)
        for stage in found
        if stage.repeated
        for name in stage.tensors
    ]
    first = next(i for i, stage in enumerate(found) if stage.repeated)
    before = [name for stage in found[:first] for name in stage.tensors]
    after = [name for stage in found[first:] if not stage.repeated for name in stage.tensors]
    return [*before, *blocks, *after]


@pytest.mark.parametrize("model", [load_pretrained(), random_model(config=SMALL)], ids=["trained", "small"])
def test_the_stages_are_the_modules_that_a_forward_pass_calls_in_their_order(model):
    called = []
    leaves = [(name, module) for name, module in model.named_modules() if not list(module.children())]
    for name, module in leaves:
        module.register_forward_hook(lambda *_, name=name: called.append(name))
    with torch.no_grad():
        model(torch.arange(5)[None])
    drawn = list(dict.fromkeys(name.rpartition(".")[0] for name in names(model)))
    assert [name for name in drawn if name != "pos_emb"] == called  # that one is looked up without a call
    assert drawn[:2] == ["tok_emb", "pos_emb"] and names(model)[-1] == "tok_emb.weight"


@pytest.mark.parametrize("model", [load_pretrained(), random_model(config=SMALL)], ids=["trained", "small"])
def test_the_table_counts_every_parameter_once(model):
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert set(names(model)) == shapes.keys()
    rows = [row.split() for row in repr(stage_table(model)).split("\n")[2:]]
    total = sum(math.prod(shape) for shape in shapes.values())
    assert rows[-1] == ["together", str(len(shapes)), f"{total:,}", "100.0", "%"]
    counts = [int(row[-3].replace(",", "")) for row in rows[:-3]]
    assert sum(counts) == total


def test_a_model_with_another_tensor_is_not_drawn_without_it():
    model = random_model(config=SMALL)
    model.register_parameter("extra", torch.nn.Parameter(torch.zeros(3)))
    with pytest.raises(ValueError, match="'extra' belongs to no stage"):
        forward_pass(model)
    with pytest.raises(ValueError, match=r"no tensor 'tok_emb\.weight'"):
        forward_pass(Empty())


class Empty:
    """Something that has a config and no tensors."""

    config = SMALL

    def state_dict(self):
        return {}


def test_the_drawing_says_the_same_as_its_text_and_every_line_fits_its_box():
    picture = forward_pass(load_pretrained())
    svg = ET.fromstring(picture.html).find(".//svg")
    assert "residual stream" in svg.get("aria-label") and "loss" in svg.get("aria-label")
    lines = [node.text for node in svg.iter("text")]
    for stage in stages(load_pretrained()):
        assert stage.what in lines and stage.what in repr(picture)
        for name, shape in stage.tensors.items():
            assert f"{name} {list(shape)}" in lines and f"{name} {list(shape)}" in repr(picture)
    room = float(svg.get("viewBox").split()[2]) - 48 - 12 - 20
    for node in svg.iter("text"):
        width = 6.7 if node.get("class") == "mq-tensor" else 6.0
        assert len(node.text) * width < room, node.text
