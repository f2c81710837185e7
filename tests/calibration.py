"""Shared by the tests of calibration."""

from miniquant.calibrate.inputs import walk_groups


def walk_linear_layers(model, tokens):
    """Every linear layer of the blocks in the order of the forward pass: name, layer, what reaches it."""
    for group in walk_groups(model, tokens):
        for name, linear in group.layers.items():
            yield name, linear, group.seen
