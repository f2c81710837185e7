"""The tensors of a MiniGPT, from its config."""

from ...lab import Exercise, Mistake, edit, omit
from ..shared import observed


def parameter_shapes(config):
    """The dims of every tensor of a MiniGPT.

    config: dict with vocab_size, context, d_model, n_layers, d_mlp, and
        perhaps other keys, which do not matter here
    -> dict, name -> tuple of dims, in any order; a linear layer's weight is
       (out, in)
    """
    d, d_mlp = config["d_model"], config["d_mlp"]
    shapes = {"tok_emb.weight": (config["vocab_size"], d), "pos_emb.weight": (config["context"], d)}
    linears = {"attn.qkv": (3 * d, d), "attn.proj": (d, d), "mlp.fc1": (d_mlp, d), "mlp.fc2": (d, d_mlp)}
    norms = ["ln_f"]
    for i in range(config["n_layers"]):
        norms += [f"layers.{i}.ln1", f"layers.{i}.ln2"]
        for name, dims in linears.items():
            shapes[f"layers.{i}.{name}.weight"] = dims
            shapes[f"layers.{i}.{name}.bias"] = dims[:1]
    for norm in norms:
        shapes[f"{norm}.weight"] = (d,)
        shapes[f"{norm}.bias"] = (d,)
    return shapes


def oracle(config):
    """Asks a real model whose weights have no memory."""
    import torch

    from ...models.minigpt import MiniGPT, MiniGPTConfig

    needed = ("vocab_size", "context", "d_model", "n_layers", "d_mlp")
    with torch.device("meta"):
        model = MiniGPT(MiniGPTConfig(**{name: config[name] for name in needed}, n_heads=1))
    return {name: tuple(w.shape) for name, w in model.state_dict().items()}


def _config(vocab_size, context, d_model, n_layers, d_mlp):
    return dict(vocab_size=vocab_size, context=context, d_model=d_model, n_layers=n_layers, d_mlp=d_mlp)


def cases(random):
    """No layer, one, two, twelve with other keys and another order of them, then a random config of three."""
    drawn = [int(n) for n in random.integers(2, 50, 5)]
    drawn[3] = 3  # layers
    others = {"n_heads": 2, "layer_norm_epsilon": 1e-5, "trained on": "the corpus of the course"}
    return [
        (_config(10, 7, 2, 0, 3),),
        (_config(10, 7, 2, 1, 3),),
        (_config(11, 5, 4, 2, 9),),
        ({**others, **dict(reversed(_config(6, 3, 8, 12, 5).items()))},),
        (_config(*drawn),),
    ]


EXERCISE = Exercise(
    goal="Return the dims of every tensor of a MiniGPT by name, from the five numbers of its config.",
    reference=parameter_shapes, oracle=oracle, cases=cases, minutes=10, difficulty="core", observe=observed.in_any_order,
    hints=(
        "Write one layer on paper first: two norms with a weight and a bias each, four linears with a weight and a bias each.",
        "An f-string such as `f\"layers.{i}.ln1\"` makes the names; a dict of the four linears and their dims saves you most of the lines.",
    ),
    why="a few numbers decide a model's size, and you can now weigh one that nobody has trained yet.",
    mistakes=(
        Mistake("a number instead of a tuple",
            edit('.weight"] = (d,)', '.weight"] = (d)').edit('.bias"] = (d,)', '.bias"] = (d)'),
            cause="A number stands where a tuple of one is expected. `(d)` is `d` in brackets; it is the comma that makes a tuple.",
            cure="Write `(d,)` for one dim.", see="`the type differs`, with `int` on your side"),
        Mistake("always four layers", edit('range(config["n_layers"])', "range(4)"),
            cause="There are four layers whatever the config says, and a config may say another number.",
            cure='Use `range(config["n_layers"])`.', see="`the keys differ`, whatever the number of layers"),
        Mistake("the head stored as well",
            edit("    return shapes", '    shapes["head.weight"] = (config["vocab_size"], d)\n    return shapes'),
            cause="The head is the token embedding itself, used a second time, so the state dict holds it once.",
            cure="Leave out the head.", see="one name too many, with the shape of `tok_emb.weight`"),
        Mistake("linear biases forgotten", omit('shapes[f"layers.{i}.{name}.bias"]'),
            cause="Every linear layer of this model has a bias of as many numbers as it has outputs.",
            cure="Add `.bias` with dims (out,) for all four linears of a layer.",
            see="`the keys differ`, and no bias among the linears"),
        Mistake("norm biases forgotten", omit('shapes[f"{norm}.bias"]'),
            cause="Every LayerNorm of this model has a weight and a bias; a weight alone is usual in an RMSNorm.",
            cure="Add `.bias` with dims (d_model,) for every norm.",
            see="`the keys differ`, and no bias among the norms"),
        Mistake("dims turned around", edit('.weight"] = dims', '.weight"] = dims[::-1]'),
            cause="The weight of an `nn.Linear` is (out, in): a row for each output.",
            cure="Put the number of outputs first.", see="(in, out) where (out, in) is expected"),
        Mistake("final norm forgotten", edit('norms = ["ln_f"]', "norms = []"),
            cause="After the last layer there is one more LayerNorm, `ln_f`.",
            cure="Add `ln_f.weight` and `ln_f.bias`.", see="two names too few, whatever the number of layers"),
        Mistake("four times d_model assumed", edit('config["d_mlp"]', '4 * config["d_model"]'),
            cause="The width of the MLP is four times d_model in the result, but it has a number of its own.",
            cure='Use `config["d_mlp"]`.',
            see="wrong dims for `mlp.fc1` and `mlp.fc2`, and the right ones for everything else"),
        Mistake("layers counted from 1", edit('range(config["n_layers"])', 'range(1, config["n_layers"] + 1)'),
            cause="PyTorch numbers the layers of a ModuleList from 0.",
            cure='Use `range(config["n_layers"])`.', see="`layers.1` where `layers.0` is expected"),
        Mistake("qkv as a square", edit("(3 * d, d)", "(d, d)"),
            cause="Queries, keys and values come out of one matrix, so it has three times d_model rows.",
            cure="Give `attn.qkv` the dims (3 * d_model, d_model), and its bias (3 * d_model,).",
            see="(d_model, d_model) for `attn.qkv.weight`"),
    ),
)
