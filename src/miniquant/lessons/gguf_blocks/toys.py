"""Blocks that show one thing, and the parts of blocks."""


def block_fields(w, values):
    """The scale and the values of each block."""
    fields = []
    for i in range(len(w)):
        at = i * (2 + values)
        fields += [(f"d of block {i}", at, at + 2), (f"the values of block {i}", at + 2, at + 2 + values)]
    return fields


def filled(*first):
    """A block that begins with some weights and ends with zeros."""
    return [*first, *[0.0] * (32 - len(first))]
