"""One more token in a cache whose keys are quantized per channel."""

import numpy as np

from ...lab import Exercise, Mistake, body, edit
from .quantize_along import quantize_along
from .toys import quantized_by_hand


def append_key(groups, recent, key, size, bits):
    """One more key in a cache that quantizes ``size`` tokens at a time.

    groups: list of the groups that are quantized, the oldest first; each is
        (levels, scale, low) of ``quantize_along`` along axis 0 of an array
        (size, heads, dims); recent: (r, heads, dims) float32, the keys that
        came after them, empty or up to size - 1 keys; key: (heads, dims)
        float32, the new one; size: int, at least 1; bits: int
    ->   groups: list, the old groups as they are, and a new one if the
         recent keys and the new one are size keys;
         recent: (r, heads, dims) float32, the keys that are not quantized
    """
    recent = np.concatenate([recent, key[None]])  # (r + 1, heads, dims)
    if len(recent) < size:
        return list(groups), recent
    return [*groups, quantize_along(recent, 0, bits)], recent[:0]


def oracle(groups, recent, key, size, bits):
    """The keys one by one; a full group is quantized channel by channel, by hand."""
    keys = [*recent.tolist(), key.tolist()]
    if len(keys) == size:
        made = quantized_by_hand(np.array(keys, np.float32), 0, bits)
        return [*list(groups), made], np.zeros((0, *key.shape), np.float32)
    return list(groups), np.array(keys, np.float32)


def cases(random):
    """The first key, a second one, a group that becomes full, one after a full group, groups of one, then drawn keys."""

    def array(numbers):
        return np.array(numbers, np.float32)

    one = quantized_by_hand(array([[[0, 5]], [[15, 20]]]), 0, 4)
    drawn = (random.normal(0, [1, 9, 0.3], (13, 2, 3)) + np.array([0, 20, 1])).astype(np.float32)
    drawn[7], drawn[9] = 0, drawn[10]  # a key of zeros, and the same key twice
    groups = [quantized_by_hand(drawn[i : i + 4], 0, 3) for i in (0, 4)]
    empty = np.zeros((0, 1, 2), np.float32)
    return [
        ([], empty, array([[1, 2]]), 3, 4),
        ([], array([[[1, 2]]]), array([[3, 4]]), 3, 4),
        ([], array([[[0, 5]]]), array([[15, 20]]), 2, 4),
        ([one], empty, array([[7, 8]]), 2, 4),
        ([one], array([[[7, 8]]]), array([[37, 4]]), 2, 4),
        ([], empty, array([[2, -3]]), 1, 4),
        (groups, drawn[8:10], drawn[10], 4, 3),
        (groups, drawn[8:11], drawn[11], 4, 3),
        (groups[:1], drawn[4:7], drawn[7], 4, 2),
    ]


def traits(groups, recent, key, size, bits):
    """What the new key does to the cache."""
    return {
        "the new key makes a group full": len(recent) + 1 == size,
        "the new key leaves the group unfinished": len(recent) + 1 < size,
        "there are quantized groups already": bool(groups),
        "there are recent keys": len(recent) > 0,
    }


EXERCISE = Exercise(
    goal="Add a key to the cache: keep it as it is until a group is full, then quantize the group and never touch it again.",
    reference=append_key, oracle=oracle, cases=cases, minutes=7, difficulty="core", traits=traits,
    hints=(
        "The new key comes after the recent ones. If they are size keys now, they become a group, and no recent key is left. What was quantized before stays as it is.",
        "`key[None]` has the axis of tokens, and `np.concatenate` joins it to the recent keys. `[*groups, new]` is a new list with one more item. `recent[:0]` has no token and the right shape.",
    ),
    why="a key that was quantized once is never rounded again, however long the text becomes.",
    mistakes=(
        Mistake("all quantized at once", body("""
                recent = np.concatenate([recent, key[None]])
                return [*groups, quantize_along(recent, 0, bits)], recent[:0]
            """),
            cause="The recent keys were quantized though they were no full group.",
            cure="Quantize when there are size keys.", see="a group with too few tokens"),
        Mistake("a full group left", edit("len(recent) < size", "len(recent) <= size"),
            cause="With the new key the group is full, and it was left as it is.",
            cure="Compare the number of keys, the new one included, with size.", see="size recent keys where none is expected"),
        Mistake("the new key stays behind", body("""
                if len(recent) + 1 < size:
                    return list(groups), np.concatenate([recent, key[None]])
                if not len(recent):
                    return [*groups, quantize_along(key[None], 0, bits)], recent[:0]
                return [*groups, quantize_along(recent, 0, bits)], key[None].copy()
            """),
            cause="The group was made of the recent keys without the new one.",
            cure="Join the new key first, then quantize.", see="a group with one token too few, and the new key still recent"),
        Mistake("the recent keys kept", edit("recent[:0]", "recent"),
            cause="The keys of the new group are still among the recent ones, so they are there twice.",
            cure="Return an array without tokens.", see="size recent keys where none is expected, beside the group"),
        Mistake("the old groups lost", edit("[*groups, quantize_along(recent, 0, bits)]", "[quantize_along(recent, 0, bits)]"),
            cause="The list has the new group alone.",
            cure="Put the old groups first.", see="right for the first group"),
        Mistake("the new group first", edit("[*groups, quantize_along(recent, 0, bits)]", "[quantize_along(recent, 0, bits), *groups]"),
            cause="The new group is the first of the list, and the oldest comes first.",
            cure="Put it at the end.", see="groups in the wrong order"),
        Mistake("per token", edit("quantize_along(recent, 0, bits)", "quantize_along(recent, 2, bits)"),
            cause="The group was quantized along the axis of the channels: a scale for each token.",
            cure="Quantize along axis 0, the tokens.", see="a scale for each token"),
        Mistake("per head", edit("quantize_along(recent, 0, bits)", "quantize_along(recent, 1, bits)"),
            cause="The group was quantized along the axis of the heads.",
            cure="Quantize along axis 0, the tokens.", see="a scale of another shape"),
        Mistake("the new key first", edit("[recent, key[None]]", "[key[None], recent]"),
            cause="The new key was put before the recent ones, and it is the youngest.",
            cure="Put it at the end.", see="keys in the wrong order"),
        Mistake("the key replaces the recent ones", edit("np.concatenate([recent, key[None]])", "np.concatenate([recent[:0], key[None]])"),
            cause="The recent keys were lost: only the new one was kept.",
            cure="Join it to the recent keys.", see="one recent key, however many there were"),
        Mistake("four bits, always", edit("quantize_along(recent, 0, bits)", "quantize_along(recent, 0, 4)"),
            cause="The group was quantized to four bits, whatever the argument says.",
            cure="Pass bits on.", see="right for four bits"),
        Mistake("an empty array without axes", edit("recent[:0]", "np.zeros(0, np.float32)"),
            cause="The array without tokens has lost the axes of heads and channels.",
            cure="Take `recent[:0]`, which keeps them.", see="the shape (0,)"),
        Mistake("None for no keys", edit("recent[:0]", "None"),
            cause="None was returned where an array without tokens is asked for.",
            cure="Take `recent[:0]`.", see="None"),
        Mistake("old groups quantized again", body("""
                recent = np.concatenate([recent, key[None]])
                if len(recent) < size:
                    return list(groups), recent
                old = [levels * scale.astype(np.float32) + low for levels, scale, low in groups]
                every = np.concatenate([*old, recent])
                levels, scale, low = quantize_along(every, 0, bits)
                return [(levels[i : i + size], scale, low) for i in range(0, len(every), size)], recent[:0]
            """),
            cause="The old groups were restored and quantized again with the new one, so they were rounded once more.",
            cure="Leave the old groups as they are.", see="right for the first group; other levels in old groups"),
        Mistake("the list of the caller changed", edit("return [*groups, quantize_along(recent, 0, bits)], recent[:0]", "groups.append(quantize_along(recent, 0, bits))\n    return groups, recent[:0]"),
            cause="The group was appended to the list that was handed in.",
            cure="Make a new list.", see="the right result, and a word about the argument"),
    ),
)
