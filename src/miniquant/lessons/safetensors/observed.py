"""What is compared of a layout: the order of empty tensors at one byte does not matter."""

import itertools


def names_in_order(function, case):
    """The names; empty tensors at one byte in alphabetical order, because their own order does not matter."""
    offsets = {name: tuple(entry["data_offsets"]) for name, entry in case[0].items()}  # the call may change its argument
    names = function(*case)
    if not isinstance(names, list) or not all(isinstance(name, str) and name in offsets for name in names):
        return names

    def place(name):
        begin, end = offsets[name]
        return begin if begin == end else name

    return [name for _, run in itertools.groupby(names, place) for name in sorted(run)]
