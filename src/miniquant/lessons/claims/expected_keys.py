"""How many keys an exported file must have."""

from ...lab import Exercise, Mistake, edit
from ...models.export import ModelMetadata


def expected_keys(about, quantized, include):
    """How many keys an exported file must have.

    about: ModelMetadata with architecture, model_name, num_params,
        hidden_size, num_layers, vocab_size; where the architecture is None,
        these three sizes are None, too, in every call
    quantized: whether any tensor is quantized; include: whether metadata is
        written
    ->   an int (not a bool), by the three rules above
    A field that is None is unknown; 0 and an empty text are known.
    """
    if not include:
        return 1 if quantized else 0
    known = [about.architecture, about.model_name, about.hidden_size, about.num_layers, about.vocab_size]
    return 2 + len(known) - known.count(None)


def oracle(about, quantized, include):
    """One field after another."""
    count = 0
    if include:
        count += 2
        for field in ("architecture", "model_name", "hidden_size", "num_layers", "vocab_size"):
            if getattr(about, field) is not None:
                count += 1
    elif quantized:
        count = 1
    return count


def cases(random):
    """Nothing known, some of it, all of it, zeros and empty names, then random sizes."""
    nothing = ModelMetadata()
    named = ModelMetadata("gpt2", "tiny")
    whole = ModelMetadata("gpt2", "tiny", 1000, 64, 2, 256)
    odd = ModelMetadata("gpt2", "", None, 0, 0, 0)
    trained = ModelMetadata("llama", None, 7, 32, None, None, {"epochs": 3})
    only, empty = ModelMetadata(None, "tiny", 5), ModelMetadata("", "", 0, 3, 7, 9)
    same, unnamed = ModelMetadata("gpt2", "tiny", 5, 64, 64), ModelMetadata("", "tiny", 3, 8, 4)
    made = [(about, q, i) for about in (nothing, named, whole, odd, trained, only, empty, same, unnamed) for i in (True, False) for q in (0, 1)]
    drawn = []
    for sizes, kept in zip(random.integers(1, 99, (4, 4)).tolist(), random.integers(0, 2, (4, 4)).tolist()):
        numbers = [size if keep else None for size, keep in zip(sizes, kept)]
        drawn.append((ModelMetadata("gpt2", None, *numbers), kept[0], True))
    return [(about, bool(q), i) for about, q, i in (*made, *drawn)]


def traits(about, quantized, include):
    """What is special about a model."""
    texts, sizes = [about.architecture, about.model_name], [about.hidden_size, about.num_layers, about.vocab_size]
    known = [field for field in (*texts, *sizes) if field is not None]
    return {
        "metadata is written and a size is 0": include and 0 in sizes,
        "metadata is written and a text is empty": include and "" in texts,
        "metadata is written and two known fields are equal": include and len(set(known)) < len(known),
        "metadata is written and nothing but a name is known": include and texts[0] is None and len(known) == 1 and about.num_params is None,
        "metadata is written and more than one field is known": include and len(known) > 1,
        "metadata is written and `num_params` is known": include and about.num_params is not None,
        "metadata is written and one of `num_params` and `hidden_size` is known": include
        and (about.num_params is None) != (about.hidden_size is None),
        "metadata is written and no tensor is quantized": include and not quantized,
        "metadata is written and a tensor is quantized": include and quantized,
        "no metadata is written and a tensor is quantized": not include and quantized,
    }


EXERCISE = Exercise(
    goal="Return how many keys an exported file must have, given what is known about the model.",
    reference=expected_keys, oracle=oracle, cases=cases, minutes=7, difficulty="core", traits=traits,
    hints=(
        "Two keys are in every file with metadata; five more are there if their field is not `None`.",
        "Return `int(quantized)` without metadata; otherwise 2 and one for each of `architecture`, `model_name`, `hidden_size`, `num_layers` and `vocab_size` that `is not None`.",
    ),
    why="the document's own formula fails here, and yours says what is true of every file.",
    mistakes=(
        Mistake("the document's formula",
            edit("1 if quantized else 0", "0").edit(", about.vocab_size", "").edit("return 2", "return 1"),
            cause="This is the formula of the document, which knows neither `general.quantization_version` nor the vocabulary.",
            cure="Count 2 keys for every file with metadata, and `vocab_size` among the fields.",
            see="one key too few for a file with metadata"),
        Mistake("nothing without metadata", edit("1 if quantized else 0", "0"),
            cause="A quantized file needs its version key, whatever else is left out.",
            cure="Return `int(quantized)` where `include` is False.", see="`0` for a quantized file without metadata"),
        Mistake("a version key for quantized files only", edit("return 2", "return 1 + quantized"),
            cause="With metadata, this exporter writes `general.quantization_version` into every file, F32 included.",
            cure="Add 2 where `include` is True, whether quantized or not.",
            see="one key too few for F32 with metadata"),
        Mistake("the version key everywhere", edit("1 if quantized else 0", "1"),
            cause="A file without metadata has the version key only if it has quantized tensors.",
            cure="Return `int(quantized)` where `include` is False.", see="`1` for F32 without metadata"),
        Mistake("zero counts as unknown", edit("len(known) - known.count(None)", "sum(map(bool, known))"),
            cause="`if value` drops 0 and the empty text, and both are known values that are written.",
            cure="Ask `is not None`.", see="fewer keys where a size is 0 or a name is empty"),
        Mistake("the parameter count only if it is stated",
            edit("about.vocab_size", "about.vocab_size, about.num_params").edit("return 2", "return 1"),
            cause="`general.parameter_count` is always written, because the exporter counts the weights where nobody says.",
            cure="Leave `num_params` out of the fields, and add 2.",
            see="one key too few where `num_params` is `None`"),
        Mistake("the parameter count twice", edit("about.vocab_size", "about.vocab_size, about.num_params"),
            cause="`num_params` was counted among the fields, and again among the two keys that are always there.",
            cure="Leave `num_params` out of the fields.", see="one key too many where `num_params` is known"),
        Mistake("every field that is not None", edit("about.vocab_size", "about.vocab_size, about.training"),
            cause="`training` is for people: it is an empty dict, not `None`, and GGUF has no key for it.",
            cure="Name the five fields that have a key.", see="one key too many for every file with metadata"),
        Mistake("no vocabulary", edit(", about.vocab_size", ""),
            cause="`vocab_size` has a key of its own, and the document's list does not have it.",
            cure="Add `vocab_size` to the fields.", see="one key too few where `vocab_size` is known"),
        Mistake("the quantized key added again", edit("return 2", "return quantized + 2"),
            cause="With metadata, the version key is one of the two that are always there, and it was added once more.",
            cure="Add `int(quantized)` only where `include` is False.",
            see="one key too many for quantized files with metadata"),
    ),
)
