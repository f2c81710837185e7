"""The size of a file that nobody has written yet."""

from ...lab import Exercise, Mistake, edit
from ..shared.gguf_lite_by_hand import Q4, Q8, tensor_bytes_oracle
from . import overhead_bytes as overhead
from .overhead_bytes import overhead_bytes
from .tensor_bytes import tensor_bytes


def predict_file_size(shapes, schemes, metadata):
    """The bytes of the whole file.

    shapes: dict, name -> dims; schemes: dict, name -> scheme, for some of the names; metadata: dict   ->   int
    """
    data = sum(tensor_bytes(schemes.get(name, "f32"), dims) for name, dims in shapes.items())
    return overhead_bytes(shapes, metadata) + data


def oracle(shapes, schemes, metadata):
    """From the oracles of the two parts."""
    total = overhead.oracle(shapes, metadata)
    for name, dims in shapes.items():
        total += tensor_bytes_oracle(schemes.get(name, "f32"), dims)
    return total


def cases(random):
    """One tensor, two, each quantized type, then a small model."""
    rows = [int(n) for n in random.integers(1, 20, 4)]
    model = {"emb": (rows[0], 64), "fc1": (rows[1], 128), "fc2": (rows[2], 64), "fc2.bias": (rows[2],), "ln": (63,)}
    chosen = {"emb": "f16", "fc1": Q4, "fc2": Q8}
    return [
        ({"w": (3,)}, {}, {}),
        ({"w": (3,), "v": (1, 1)}, {"v": "f16"}, {"k": "v"}),
        ({"w": (1, 64)}, {"w": Q4}, {}),
        ({"w": (2, 64), "b": (2,)}, {"w": Q8}, {"group_size": "64"}),
        (model, chosen, {"dims_order": "out,in", "group_size": "64"}),
    ]


EXERCISE = Exercise(
    goal="Predict the size of a whole GGUF-lite file in bytes, before anyone writes it.",
    reference=predict_file_size, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    hints=(
        "Two parts: `overhead_bytes(shapes, metadata)`, and the sum of `tensor_bytes` over all tensors; their checks come first.",
        '`schemes.get(name, "f32")` is the scheme of a tensor, also of one that `schemes` does not name.',
    ),
    why="a prediction that is right to the byte means that there is nothing in the file that you do not know about.",
    mistakes=(
        Mistake("no default scheme", edit('schemes.get(name, "f32")', "schemes[name]"),
            cause="`schemes[name]` fails for a tensor that `schemes` does not name, and such a tensor is stored as f32.",
            cure='Use `schemes.get(name, "f32")`.', see="`KeyError` with the name of a tensor"),
        Mistake("header and data only", edit("overhead_bytes(shapes, metadata)", "16"),
            cause="The metadata and the descriptors stand between the header and the data.",
            cure="Add `overhead_bytes(shapes, metadata)`, which has the header in it.",
            see="at least 12 bytes too few for each tensor"),
        Mistake("a header for each tensor", edit(
                "overhead_bytes(shapes, metadata)",
                "sum(overhead_bytes({name: dims}, metadata) for name, dims in shapes.items())",
            ),
            cause="`overhead_bytes` was called once for each tensor, and each call counts the header and the metadata again.",
            cure="Call it once, with all the shapes.", see="at least 16 bytes too many for each further tensor"),
        Mistake("only the tensors in schemes", edit("in shapes.items())", "in shapes.items() if name in schemes)"),
            cause="A tensor that `schemes` does not name is in the file too, as f32.",
            cure='Go over `shapes`, and take `schemes.get(name, "f32")`.',
            see="an answer without the biases and norms"),
        Mistake("everything as f32", edit('schemes.get(name, "f32")', '"f32"'),
            cause="The schemes were not used.",
            cure='Give `tensor_bytes` the scheme of each tensor, `schemes.get(name, "f32")`.',
            see="the right answer as long as nothing is quantized"),
        Mistake("data only", edit("overhead_bytes(shapes, metadata) + ", ""),
            cause="The header, the metadata and the descriptors are in the file too.",
            cure="Add `overhead_bytes(shapes, metadata)`.", see="at least 16 bytes too few"),
        Mistake("metadata forgotten", edit("overhead_bytes(shapes, metadata)", "overhead_bytes(shapes, {})"),
            cause="The overhead was computed without the metadata.",
            cure="Hand `metadata` on to `overhead_bytes`.", see="the right answer as long as there is no metadata"),
        Mistake("padding assumed", edit(
                'tensor_bytes(schemes.get(name, "f32"), dims) for',
                '-(-tensor_bytes(schemes.get(name, "f32"), dims) // 32) * 32 for',
            ).edit("overhead_bytes(shapes, metadata)", "-(-overhead_bytes(shapes, metadata) // 32) * 32"),
            cause="Parts were rounded up to multiples of 32 bytes, as real GGUF does; this layout has no padding.",
            cure="Add the bytes as they are.", see="an answer that is a multiple of 32"),
        Mistake("scales counted twice", edit(
                "    return",
                '    groups = {"q8_per_channel": lambda dims: 1, "q4_per_group_64": lambda dims: dims[1] // 64}\n    data += sum(2 * shapes[name][0] * groups[s](shapes[name]) for name, s in schemes.items() if s in groups)\n    return',
            ),
            cause="`tensor_bytes` includes the scales already.",
            cure="Add nothing to it.", see="two bytes too many for every scale"),
    ),
)
