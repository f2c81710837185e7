"""The claim that no exporter of noise meets: weights come back within one step."""

from dataclasses import dataclass

import numpy as np

from ...lab import Exercise, Mistake, edit
from ...models.export import GGUFQuantization, ModelWeights
from .bugs import DimsAsGiven, DocumentsQ4
from .pipeline import InMemory, Pipeline, official

F32, Q4_0, Q8_0 = GGUFQuantization.NONE, GGUFQuantization.Q4_0, GGUFQuantization.Q8_0


def within_one_step(pipeline, w, quantization):
    """Whether every weight of a matrix comes back from an exported file within one step of its own block.

    pipeline: an exporter; w: (rows, n) finite float32, n a multiple of 32   ->   True or False
    quantization: F32, Q8_0 or Q4_0. A block is 32 neighbours of a row, and absmax its largest size. A step is absmax / 127 in
    Q8_0 and absmax / 8 in Q4_0, and an error of exactly 1.01 steps or less is allowed. In F32 every weight must be equal.
    False, too, if the official reader finds another shape than that of w, no tensor or several, or raises ValueError.
    """
    try:
        (tensor,) = official(pipeline.gguf(ModelWeights({"w": w}), quantization))[1]
    except ValueError:
        return False
    if tensor.weights.shape != w.shape:
        return False
    before, after = w.reshape(-1, 32), tensor.weights.reshape(-1, 32)
    if quantization == F32:
        return bool((before == after).all())
    step = np.abs(before).max(axis=1, keepdims=True) / (127 if quantization == Q8_0 else 8)
    return bool((np.abs(before - after) <= 1.01 * step).all())


def oracle(pipeline, w, quantization):
    """Weight by weight, with Python's floats."""
    try:
        (tensor,) = official(pipeline.gguf(ModelWeights({"w": w}), quantization))[1]
    except ValueError:
        return False
    if tensor.weights.shape != w.shape:
        return False
    for row, back in zip(w.tolist(), tensor.weights.tolist()):
        for at, (x, y) in enumerate(zip(row, back)):
            block = row[at - at % 32 : at - at % 32 + 32]
            step = {F32: 0.0, Q8_0: 1.01 * max(map(abs, block)) / 127, Q4_0: 1.01 * max(map(abs, block)) / 8}[quantization]
            if abs(x - y) > step:
                return False
    return True


@dataclass(repr=False)
class OneWrong(InMemory):
    """One weight is wrong: the level at ``at`` is off by ``by``, or the sign of a float32 is."""

    at: int = 0
    by: int = 2

    def encode(self, data, quantization):
        """The blocks, with one level changed; the nibble of index j is in byte j % 16 of its block."""
        raw = bytearray(super().encode(data, quantization))
        block, j = divmod(self.at, 32)
        if quantization == F32:
            raw[4 * self.at + 3] ^= 0x80
        elif quantization == Q8_0:
            place = 34 * block + 2 + j
            raw[place] = (raw[place] + self.by) % 256
        else:
            place, shift = 18 * block + 2 + j % 16, 4 * (j // 16)
            level = ((raw[place] >> shift & 15) + self.by) % 16
            raw[place] = raw[place] & ~(15 << shift) | level << shift
        return bytes(raw)

    def __repr__(self):
        return f"OneWrong(at={self.at}, by={self.by})"


class LastBit(InMemory):
    """The last bit of the first weight is wrong, where nothing is quantized."""

    def encode(self, data, quantization):
        """The weights, with one bit changed."""
        raw = super().encode(data, quantization)
        return bytes([raw[0] ^ 1]) + raw[1:] if quantization == F32 else raw


class LosesSmallBlocks(InMemory):
    """Blocks whose largest weight is below a hundredth of the matrix's become zeros."""

    def encode(self, data, quantization):
        """The blocks of the matrix without its small blocks."""
        blocks = data.reshape(-1, 32)
        absmax = np.abs(blocks).max(axis=1, keepdims=True)
        return super().encode(np.where(absmax < absmax.max() / 100, 0, blocks).astype(np.float32), quantization)


def cases(random):
    """Right exporters, the document's Q4_0, single wrong weights, lost blocks; blocks of zeros and of all sizes."""
    ramp = (np.arange(32, dtype=np.float32) - 12).reshape(1, 32) / 4
    drawn = random.normal(size=(3, 64)).astype(np.float32)
    sizes = drawn * np.repeat(np.float32([[1, 1e-3], [1e-4, 1], [2, 0]]), 32, axis=1)
    negative = -np.abs(drawn)
    right = [(InMemory(), w, q) for w in (ramp, drawn) for q in (F32, Q8_0, Q4_0)]
    right += [(Pipeline(), sizes, Q4_0), (InMemory(), sizes, Q8_0), (InMemory(), sizes, F32), (InMemory(), negative, Q4_0)]
    wrong = [(DocumentsQ4(), w, Q4_0) for w in (ramp, drawn, sizes)]
    wrong += [(DocumentsQ4(), drawn, Q8_0), (DimsAsGiven(), drawn, F32), (DimsAsGiven(), ramp, Q4_0)]
    wrong += [(OneWrong(at, by), ramp, Q8_0) for at, by in ((0, 3), (31, -3), (12, 3))]
    wrong += [(OneWrong(at, by), ramp, Q4_0) for at, by in ((1, -3), (30, 3), (12, 3), (17, 1))]
    wrong += [(OneWrong(160, -4), negative, Q8_0), (OneWrong(3), drawn, F32), (LastBit(), drawn, F32), (LastBit(), ramp, F32), (LosesSmallBlocks(), sizes, Q8_0)]
    wrong += [(LosesSmallBlocks(), sizes, Q4_0), (LosesSmallBlocks(), sizes, F32)]
    return right + wrong


def traits(pipeline, w, quantization):
    """What is special about a case."""
    return {
        "nothing is quantized": quantization == F32,
        "the type is Q8_0": quantization == Q8_0,
        "the type is Q4_0": quantization == Q4_0,
        "the blocks of `w` differ a hundredfold in size": type(pipeline) is LosesSmallBlocks or bool((w == 0).sum() > 3),
    }


EXERCISE = Exercise(
    goal="Write claim C-018: decoded by the official package, no weight is more than one step of its own block off.",
    reference=within_one_step, oracle=oracle, cases=cases, minutes=12, difficulty="stretch", traits=traits,
    hints=(
        "Export the matrix, let the official reader decode it, and compare block by block. The step belongs to a block, the error to a weight.",
        "`reshape(-1, 32)` makes every block a row, and `keepdims=True` keeps a column of largest sizes beside the blocks. The reader's weights are in `tensor.weights`.",
    ),
    why="it is the first claim here that asks what the bytes mean, and files of noise fall.",
    mistakes=(
        Mistake("one step for the whole matrix", edit("np.abs(before).max(axis=1, keepdims=True)", "np.abs(before).max()"),
            cause="One step was taken for the whole matrix, and a block of small weights may then be lost.",
            cure="Take the largest size of each block.", see="`True` for an exporter that loses small blocks"),
        Mistake("the average error", edit("(np.abs(before - after) <= 1.01 * step).all()", "np.abs(before - after).mean() <= step.mean()"),
            cause="The mean of all errors was compared, and one wrong weight hardly changes a mean.",
            cure="Compare each weight with the step of its block.", see="`True` for a file with one wrong weight"),
        Mistake("errors of one sign", edit("(np.abs(before - after) <= 1.01", "((before - after) <= 1.01"),
            cause="Only weights that come back too small are found.",
            cure="Take the absolute value of the difference.", see="`True` for a weight that came back too large"),
        Mistake("the largest, not the largest size", edit("np.abs(before).max(", "before.max("),
            cause="The sign was not left out: in a block of negative weights the largest one is the closest to zero.",
            cure="Take the absolute values first.", see="`False` for a right exporter and a block of negative weights"),
        Mistake("any instead of all", edit("<= 1.01 * step).all()", "<= 1.01 * step).any()"),
            cause="One weight within its step is enough for `any`.",
            cure="Use `all`.", see="`True` for a file with one wrong weight"),
        Mistake("float32 may be off, too", edit("bool((before == after).all())", "bool((np.abs(before - after) <= 2 * np.abs(before).max(axis=1, keepdims=True)).all())"),
            cause="A float32 may be off as well, and nothing may be lost where nothing is rounded.",
            cure="Ask for equal weights in F32.", see="`True` for a float32 that was changed"),
        Mistake("nearly equal in float32", edit("bool((before == after).all())", "np.allclose(before, after)"),
            cause="`np.allclose` allows a small difference, and in F32 each weight must be equal.",
            cure="Compare with `==`.", see="`True` for a float32 whose last bit is wrong"),
        Mistake("half a step in Q4_0", edit("1.01 * step", "0.505 * step"),
            cause="Half a step was allowed. In Q4_0 the weight at the other end of the block may be a whole step off: there is no level 8.",
            cure="Allow one whole step.", see="`False` for right exporters"),
        Mistake("no percent for the scale", edit("<= 1.01 * step", "< step"),
            cause="The scale is rounded to float16, which moves every level. A block of zeros has a step of 0, and its error is not smaller than 0.",
            cure="Allow one percent more, and compare with `<=`.", see="`False` for a right exporter and a block of zeros"),
        Mistake("the steps of Q8_0 everywhere", edit("(127 if quantization == Q8_0 else 8)", "127"),
            cause="Q4_0 has wider steps than Q8_0.",
            cure="Divide by 8 in Q4_0.", see="`False` for every right exporter in Q4_0"),
        Mistake("the steps of Q4_0 everywhere", edit("(127 if quantization == Q8_0 else 8)", "8"),
            cause="Q8_0 has finer steps than Q4_0, so sixteen of its steps pass as one.",
            cure="Divide by 127 in Q8_0.", see="`True` for a wrong weight in Q8_0"),
        Mistake("a seventh in Q4_0", edit("else 8)", "else 7)"),
            cause="A step of ggml's Q4_0 is absmax / 8. The document's is absmax / 7, and files are read with ggml's.",
            cure="Divide by 8 in Q4_0.", see="`True` for a weight that is a little more than one step off"),
        Mistake("an error in place of False", edit("except ValueError:\n        return False", "except KeyError:\n        return False"),
            cause="An error of the official reader comes through. A file that cannot be read falsifies the claim.",
            cure="Catch the `ValueError`, and return False.", see="a ValueError from the official reader"),
        Mistake("the shape is forgotten", edit("if tensor.weights.shape != w.shape:\n        return False", "pass"),
            cause="The weights were compared as one long list, in which rows and columns may be confused.",
            cure="Compare the two shapes first.", see="`True` for an exporter that writes the dims as given"),
    ),
)
