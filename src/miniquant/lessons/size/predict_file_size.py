"""The size of a file that nobody has written yet."""

from ...lab import Exercise, Mistake, edit
from ..shared import counts
from ..shared.gguf_lite_by_hand import Q4, Q8, tensor_bytes_oracle
from . import overhead_bytes as overhead
from .overhead_bytes import overhead_bytes
from .tensor_bytes import tensor_bytes


def predict_file_size(shapes, schemes, metadata):
    """The bytes of the whole file.

    shapes: dict, name -> dims; schemes: dict, name -> scheme, for some of
        the names; metadata: dict, key -> value, both strings
    ->   int

    A tensor that schemes does not name is stored as f32. Every dim may be
    0, as in `tensor_bytes`; such a tensor still has its descriptor.
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
    # float32 does not hold the bytes of any type here, and 32 bits not those of all
    large = {"w": (70_001, 20_001), "W": (70_001, 19_263), "u": (70_002, 40_001), "t": (70_001, 301 * 64), "s": (1, 64)}
    return [
        ({"w": (3,)}, {}, {}),
        ({"w": (3,), "v": (1, 1)}, {"v": "f16"}, {"k": "v"}),
        ({"w": (1, 64)}, {"w": Q4}, {}),
        ({"w": (2, 64), "b": (2,)}, {"w": Q8}, {"group_size": "64"}),
        ({"w": (3, 4), "v": (3, 4), "none": (0, 4), "b": (4,)}, {"b": "f16"}, {}),
        (model, chosen, {"dims_order": "out,in", "group_size": "64"}),
        ({"größe": (2, 3), "s": ()}, {"größe": "f16", "s": "f32"}, {"author": "Zoë"}),
        ({}, {}, {}),
        ({"a": (3, 64), "b": (3, 64)}, {"a": Q4, "b": Q8}, {}),
        ({"a": (2, 2), "norm": (5,), "c": (1, 128)}, {"a": "f16", "c": Q4}, {"k": ""}),
        ({"c": (3, 191), "none": (3, 0)}, {"c": Q8, "none": Q8}, {"a": "1", "b": "2", "c": "3"}),  # three scales, no values
        (large, {"w": "f16", "u": Q8, "t": Q4}, {}),
        ({"w": (1, 64), "v": (2, 128), "b": (7,)}, {"w": Q4}, {"k": "v"}),
        ({"x": (4,), "y": (3, 3), "z": ()}, {}, {}),
        ({"long name": (1, 2), "w": (5, 64), "v": (6, 64)}, {"w": Q4, "v": Q4}, {"k": "größe"}),
    ]


def quantities(shapes, schemes, metadata):
    """What the bytes are counted from."""
    before = overhead.oracle(shapes, metadata)
    sizes = [tensor_bytes_oracle(schemes.get(name, "f32"), dims) for name, dims in shapes.items()]
    padding = {f"the sum of what each tensor lacks to a multiple of {m}": sum(-size % m for size in sizes) for m in (32, 64, 16, 8, 4)}
    return {
        "the bytes of header, metadata and descriptors": before,
        "the bytes of the data": sum(sizes),
        "the bytes of the metadata": len("\n".join(f"{key}={value}" for key, value in metadata.items()).encode()),
        "the bytes of the last tensor": [0, *sizes][-1],
        "the bytes of the largest tensor": max(sizes, default=0),
    } | padding | counts.of_tensors(shapes, schemes)


EXERCISE = Exercise(
    goal="Predict the size of a whole GGUF-lite file in bytes, before anyone writes it.",
    reference=predict_file_size, oracle=oracle, cases=cases, minutes=5, difficulty="core",
    quantities=quantities,
    hints=(
        "You have built both parts of this already; make sure that their checks pass first.",
        "`overhead_bytes` is called once, `tensor_bytes` once for each tensor; `.get` of a dict takes a default for a name that it lacks.",
    ),
    why="a prediction that is right to the byte means that there is nothing in the file that you do not know about.",
    mistakes=(
        Mistake("no default scheme", edit('schemes.get(name, "f32")', "schemes[name]"),
            cause="A tensor that `schemes` does not name ends in a `KeyError`, and such a tensor is stored as f32.",
            cure='Use `schemes.get(name, "f32")`.', see="`KeyError` with the name of a tensor"),
        Mistake("header and data only", edit("overhead_bytes(shapes, metadata)", "16"),
            cause="The metadata and the descriptors come between the header and the data.",
            cure="Add `overhead_bytes(shapes, metadata)`, which has the header in it.",
            see="at least 12 bytes too few for each tensor"),
        Mistake("a header for each tensor", edit(
                "overhead_bytes(shapes, metadata)",
                "sum(overhead_bytes({name: dims}, metadata) for name, dims in shapes.items())",
            ),
            cause="The header and the metadata are counted once for each tensor.",
            cure="Call it once, with all the shapes.", see="at least 16 bytes too many for each further tensor"),
        Mistake("only the data of the tensors in schemes", edit("in shapes.items())", "in shapes.items() if name in schemes)"),
            cause="The data of a tensor that `schemes` does not name is in the file too, as f32.",
            cure='Go over `shapes`, and take `schemes.get(name, "f32")`.',
            see="an answer without the biases and norms"),
        Mistake("everything as f32", edit('schemes.get(name, "f32")', '"f32"'),
            cause="Every tensor takes the bytes of f32, whatever its scheme.",
            cure='Give `tensor_bytes` the scheme of each tensor, `schemes.get(name, "f32")`.',
            see="the right answer as long as nothing is quantized"),
        Mistake("data only", edit("overhead_bytes(shapes, metadata) + ", ""),
            cause="The header, the metadata and the descriptors are in the file too.",
            cure="Add `overhead_bytes(shapes, metadata)`.", see="at least 16 bytes too few"),
        Mistake("metadata forgotten", edit("overhead_bytes(shapes, metadata)", "overhead_bytes(shapes, {})"),
            cause="The bytes of the metadata are missing.",
            cure="Hand `metadata` on to `overhead_bytes`.", see="the right answer as long as there is no metadata"),
        Mistake("padding assumed", edit(
                'tensor_bytes(schemes.get(name, "f32"), dims) for',
                '-(-tensor_bytes(schemes.get(name, "f32"), dims) // 32) * 32 for',
            ).edit("overhead_bytes(shapes, metadata)", "-(-overhead_bytes(shapes, metadata) // 32) * 32"),
            cause="The parts have the sizes that they have when each is rounded up to a multiple of 32 bytes; this layout has no padding.",
            cure="Add the bytes as they are.", see="an answer that is a multiple of 32"),
        Mistake("scales counted twice", edit(
                "    return",
                '    groups = {"q8_per_channel": lambda dims: 1, "q4_per_group_64": lambda dims: dims[1] // 64}\n    data += sum(2 * shapes[name][0] * groups[s](shapes[name]) for name, s in schemes.items() if s in groups)\n    return',
            ),
            cause="The scales are counted twice; `tensor_bytes` includes them already.",
            cure="Add nothing to it.", see="two bytes too many for every scale"),
    ),
)
