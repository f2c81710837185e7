"""The claim that no exporter of noise meets: weights come back within one step."""

from dataclasses import dataclass

import numpy as np

from ...lab import Exercise, Mistake, edit
from ...models.export import GGUFQuantization, ModelWeights
from .bugs import DimsAsGiven, DocumentsQ4
from .pipeline import InMemory, Pipeline, official

F32, Q4_0, Q8_0 = GGUFQuantization.NONE, GGUFQuantization.Q4_0, GGUFQuantization.Q8_0


def within_one_step(pipeline, w, quantization):
    """Whether every weight of a matrix comes back from an exported file
    within one step of its own block.

    pipeline: an exporter; w: (rows, n) finite float32, n a multiple of 32
    ->   True or False
    quantization: F32, Q8_0 or Q4_0. A block is 32 neighbours of a row, and
        absmax its largest size. A step is absmax / 127 in Q8_0 and absmax /
        8 in Q4_0, and an error of exactly 1.01 steps or less is allowed. In
        F32 every weight must be equal (0.0 equals -0.0). False, too, if the
        official reader finds another shape than that of w, no tensor or
        several, or if the reader or the exporter raises ValueError.
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
            if not abs(x - y) <= step:  # NaN is within no step
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


class NoTensor(InMemory):
    """The file has no tensor."""

    def gguf(self, model, quantization=F32, include=True):
        """The file of an empty model."""
        return super().gguf(ModelWeights({}, model.metadata), quantization, include)


class RefusesAll(InMemory):
    """The exporter raises an error."""

    def gguf(self, model, quantization=F32, include=True):
        """No file."""
        raise ValueError("the exporter refuses this model")


class TwoTensors(InMemory):
    """The file has every tensor twice."""

    def gguf(self, model, quantization=F32, include=True):
        """The file of a model with a copy of each tensor."""
        copies = {f"{name}.copy": w for name, w in model.tensors.items()}
        return super().gguf(ModelWeights({**model.tensors, **copies}, model.metadata), quantization, include)


class OneDimMore(InMemory):
    """The dims have a further 1: ggml's outermost dim."""

    def dims(self, shape):
        """Reversed, and a 1."""
        return (*shape[::-1], 1)


class ScaleIsNaN(InMemory):
    """The scale of the second block is NaN; in F32, a weight is."""

    def encode(self, data, quantization):
        """The blocks, with the two bytes of one float16 changed, or the four of a weight."""
        raw = bytearray(super().encode(data, quantization))
        at, nan = {F32: (132, b"\0\0\xc0\x7f"), Q8_0: (34, b"\0\x7e"), Q4_0: (18, b"\0\x7e")}[quantization]
        raw[at : at + len(nan)] = nan
        return bytes(raw)


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
    wrong += [(InMemory(), np.float32(1e-30) * drawn, Q8_0), (DimsAsGiven(), drawn, F32), (DimsAsGiven(), ramp, Q4_0)]
    wrong += [(OneWrong(at, by), ramp, Q8_0) for at, by in ((0, 3), (31, -3), (12, 3))]
    wrong += [(OneWrong(at, by), ramp, Q4_0) for at, by in ((1, -3), (30, 3), (12, 3), (17, 1))]
    wrong += [(OneWrong(160, -4), negative, Q8_0), (OneWrong(131), drawn, F32), (OneWrong(12), ramp, F32), (LastBit(), np.float32(1e-30) * ramp, F32), (LastBit(), ramp, F32), (LosesSmallBlocks(), sizes, Q8_0)]
    wrong += [(LosesSmallBlocks(), sizes, Q4_0), (LosesSmallBlocks(), sizes, F32)]
    wrong += [(LosesSmallBlocks(), drawn[:2, :32] * np.float32([[1], [1e-3]]), Q8_0)]
    wrong += [(LosesSmallBlocks(), drawn[:1] * np.repeat(np.float32([[1e-3, 1]]), 32, axis=1), Q4_0)]
    wrong += [(NoTensor(), ramp, Q8_0), (NoTensor(), ramp, F32), (TwoTensors(), drawn, F32), (TwoTensors(), ramp, Q4_0)]
    wrong += [(RefusesAll(), ramp, Q8_0), (RefusesAll(), drawn, F32)]
    wrong += [(OneDimMore(), ramp, F32), (OneDimMore(), drawn, Q8_0)]
    gap = drawn * np.repeat(np.float32([[1, 0], [1, 1], [1, 1]]), 32, axis=1)
    wrong += [(ScaleIsNaN(), drawn, F32), (ScaleIsNaN(), gap, Q8_0), (ScaleIsNaN(), drawn, Q4_0)]
    return right + wrong + [*near_one_step()]


def near_one_step():
    """Errors of 1.008 steps and of 1.012, large ones and tiny ones."""
    eight, four = np.zeros((1, 64), np.float32), np.zeros((1, 64), np.float32)
    eight[0, [32, 35, 40, 50]] = 127, 10.008, 20.012, -30.008
    four[0, [32, 35, 40, 50]] = -8, 3.008, 1.012, -5.008
    for matrix, quantization in ((eight, Q8_0), (four, Q4_0)):
        for size in (1, 2.0**-13):
            for at, by in ((35, -1), (40, -1), (50, 1)):
                yield OneWrong(at, by), size * matrix, quantization
    for end, largest, other in ((0, 127, 10.008), (31, 127.0508, 10.0102)):  # the block's largest weight is its first or its last
        alone = np.zeros((1, 32), np.float32)
        alone[0, [end, 7]] = largest, other  # 127.0508 / 127 is no float16
        yield OneWrong(7, 1), alone, Q8_0
        yield OneWrong(7, -1), alone, Q8_0
    turned = np.zeros((1, 32), np.float32)
    turned[0, 0] = -127.11176  # -128 × 1.000977 comes back: 1.012 steps of this, and 1.004 of what came back
    yield OneWrong(0, -1), turned, Q8_0


def traits(pipeline, w, quantization):
    """What is special about a case."""
    sizes = np.abs(w.reshape(-1, 32)).max(axis=1)
    return {
        "nothing is quantized": quantization == F32,
        "the type is Q8_0": quantization == Q8_0,
        "the type is Q4_0": quantization == Q4_0,
        "a block of `w` is all zeros": bool((sizes == 0).any()),
        "the blocks of `w` differ a hundredfold in size": bool(sizes.min() < sizes.max() / 100),
        "a level outside of the first block is wrong": isinstance(pipeline, OneWrong) and pipeline.at > 31,
        "a weight of 0.0 comes back as -0.0": isinstance(pipeline, OneWrong) and quantization == F32 and not w.flat[pipeline.at],
        "the file has no tensor or two": isinstance(pipeline, NoTensor | TwoTensors),
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
            cause="A block of small weights may be lost, as if the step of the largest block counted for the whole matrix.",
            cure="Take the largest size of each block.", see="`True` for an exporter that loses small blocks"),
        Mistake("the average error", edit("(np.abs(before - after) <= 1.01 * step).all()", "np.abs(before - after).mean() <= step.mean()"),
            cause="One wrong weight passes, as it does where errors are averaged: it hardly changes a mean.",
            cure="Compare each weight with the step of its block.", see="`True` for a file with one wrong weight"),
        Mistake("errors of one sign", edit("(np.abs(before - after) <= 1.01", "((before - after) <= 1.01"),
            cause="Weights that come back too small are found, and those that come back too large are not.",
            cure="Take the absolute value of the difference.", see="`True` for a weight that came back too large"),
        Mistake("the largest, not the largest size", edit("np.abs(before).max(", "before.max("),
            cause="Right exporters fail with negative weights, as if absmax were the largest weight. In a block of negative ones that is the closest to zero.",
            cure="Take the absolute values first.", see="`False` for a right exporter and a block of negative weights"),
        Mistake("any instead of all", edit("<= 1.01 * step).all()", "<= 1.01 * step).any()"),
            cause="A file passes as soon as one weight is within its step.",
            cure="Use `all`.", see="`True` for a file with one wrong weight"),
        Mistake("float32 may be off, too", edit("bool((before == after).all())", "bool((np.abs(before - after) <= 2 * np.abs(before).max(axis=1, keepdims=True)).all())"),
            cause="In F32 wrong weights pass, and nothing may be lost where nothing is rounded.",
            cure="Ask for equal weights in F32.", see="`True` for a float32 that was changed"),
        Mistake("nearly equal in float32", edit("bool((before == after).all())", "np.allclose(before, after)"),
            cause="In F32 a weight passes whose last bit is wrong, and each weight must be equal.",
            cure="Compare with `==`.", see="`True` for a float32 whose last bit is wrong"),
        Mistake("half a step in Q4_0", edit("1.01 * step", "0.505 * step"),
            cause="Right exporters fail, as if half a step were allowed. In Q4_0 the weight at the other end of the block may be a whole step off: there is no level 8.",
            cure="Allow one whole step.", see="`False` for right exporters"),
        Mistake("no percent for the scale", edit("<= 1.01 * step", "< step"),
            cause="Errors between 1 step and 1.01 do not pass, nor does a block of zeros, whose step and errors are 0.",
            cure="Allow one percent more, and compare with `<=`.", see="`False` for a right exporter and a block of zeros"),
        Mistake("one step and no percent", edit("1.01 * step", "step"),
            cause="Errors between 1 step and 1.01 do not pass. The percent is for the scale, which is rounded to float16.",
            cure="Allow 1.01 steps.", see="`False` for errors of 1.008 steps"),
        Mistake("a tenth too much", edit("1.01 * step", "1.1 * step"),
            cause="Errors of a little more than 1.01 steps pass.",
            cure="Allow 1.01 steps and no more.", see="`True` for errors of 1.012 steps"),
        Mistake("the step of what came back", edit("np.abs(before).max", "np.abs(after).max"),
            cause="A weight of the largest size passes that is 1.012 steps off, as if the step were that of the block that came back.",
            cure="Take absmax of the weights that went in.", see="`True` where a wrong weight is the largest of its block"),
        Mistake("NaN passes", edit("bool((np.abs(before - after) <= 1.01 * step).all())", "not (np.abs(before - after) > 1.01 * step).any()"),
            cause="A file whose scale is NaN passes: `>` with NaN is False, as every comparison with it is.",
            cure="Ask whether all errors are within the step, with `<=`.", see="`True` for a file with NaN"),
        Mistake("several tensors", edit("(tensor,) = official", "tensor, *_ = official"),
            cause="A file with two tensors passes, and the model has one.",
            cure="Ask for exactly one tensor.", see="`True` for a file with a tensor too many"),
        Mistake("the steps of Q8_0 everywhere", edit("(127 if quantization == Q8_0 else 8)", "127"),
            cause="In Q4_0 right exporters fail, as if the step were absmax / 127 there, too. Q4_0 has wider steps.",
            cure="Divide by 8 in Q4_0.", see="`False` for every right exporter in Q4_0"),
        Mistake("the steps of Q4_0 everywhere", edit("(127 if quantization == Q8_0 else 8)", "8"),
            cause="In Q8_0 errors of several steps pass, as if the step were absmax / 8 there, too. Q8_0 has finer steps.",
            cure="Divide by 127 in Q8_0.", see="`True` for a wrong weight in Q8_0"),
        Mistake("a seventh in Q4_0", edit("else 8)", "else 7)"),
            cause="In Q4_0 errors of a little more than 1.01 steps pass, as if a step were absmax / 7. It is absmax / 8.",
            cure="Divide by 8 in Q4_0.", see="`True` for a weight that is a little more than one step off"),
        Mistake("an error in place of False", edit("except ValueError:\n        return False", "except KeyError:\n        return False"),
            cause="A `ValueError` of the official reader comes through. A file that cannot be read falsifies the claim.",
            cure="Catch the `ValueError`, and return False.", see="a ValueError from the official reader"),
        Mistake("the shape is forgotten", edit("if tensor.weights.shape != w.shape:\n        return False", "pass"),
            cause="A file whose dims are wrong passes if its numbers are right, one after another.",
            cure="Compare the two shapes first.", see="`True` for an exporter that writes the dims as given"),
    ),
)
