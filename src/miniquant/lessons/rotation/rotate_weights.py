"""All matrices of a Llama, rotated."""

import numpy as np

from ...lab import Exercise, Mistake, edit


def rotate_weights(weights, q):
    """The weights of a Llama whose residual stream is rotated by q.

    weights: dict, name -> float64 array, the gains of the norms (n,) are
        all 1; matrices that read or keep the stream have n columns, those
        that write to it have n rows and names that end with o_proj.weight
        or down_proj.weight; q: (n, n) float64, orthogonal
    ->   dict, the same names -> float64 arrays, each number right to 1e-9;
         a row x of the stream becomes x @ q
    """
    rotated = {}
    for name, w in weights.items():
        if w.ndim == 1:
            rotated[name] = w
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            rotated[name] = q.T @ w
        else:
            rotated[name] = w @ q
    return rotated


def oracle(weights, q):
    """Number by number: a product with a row of the stream must stay, and what is added to it must come out rotated."""
    turned, n, found = q.tolist(), len(q), {}
    for name, w in weights.items():
        last = name.split(".")[-2]
        rows = w.tolist()
        if "norm" in last:
            found[name] = np.array(rows)
        elif last in ("o_proj", "down_proj"):
            made = [
                [sum(turned[k][i] * rows[k][j] for k in range(n)) for j in range(len(rows[0]))] for i in range(n)
            ]
            found[name] = np.array(made)
        else:
            found[name] = np.array([[sum(row[k] * turned[k][j] for k in range(n)) for j in range(n)] for row in rows])
    return found


_NAMES = {
    "model.embed_tokens.weight": (5, 0),
    "model.layers.0.input_layernorm.weight": (0,),
    "model.layers.0.self_attn.q_proj.weight": (4, 0),
    "model.layers.0.self_attn.k_proj.weight": (2, 0),
    "model.layers.0.self_attn.v_proj.weight": (2, 0),
    "model.layers.0.self_attn.o_proj.weight": (0, 4),
    "model.layers.0.post_attention_layernorm.weight": (0,),
    "model.layers.0.mlp.gate_proj.weight": (3, 0),
    "model.layers.0.mlp.up_proj.weight": (3, 0),
    "model.layers.0.mlp.down_proj.weight": (0, 3),
    "model.norm.weight": (0,),
    "lm_head.weight": (5, 0),
}


def _drawn(random, n, names=tuple(_NAMES)):
    shapes = {name: tuple(size or n for size in _NAMES[name]) for name in names}
    return {name: np.ones(n) if "norm" in name else random.normal(size=shape) for name, shape in shapes.items()}


def cases(random):
    """A reader alone, a writer alone, a norm between them, then whole models of one block, by several rotations."""
    quarter, small = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([[0.6, 0.8], [-0.8, 0.6]])
    up, down, norm = "model.layers.0.mlp.up_proj.weight", "model.layers.11.mlp.down_proj.weight", "model.norm.weight"
    turned, _ = np.linalg.qr(random.normal(size=(4, 4)))
    return [
        ({up: np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])}, quarter),
        ({down: np.array([[1.0, 2.0, 3.0], [5.0, 0.0, 5.0]])}, quarter),
        ({up: np.array([[10.0, 5.0]]), norm: np.ones(2), down: np.array([[10.0], [5.0]])}, small),
        (_drawn(random, 2), small),
        (_drawn(random, 4), turned),
        (_drawn(random, 4), np.eye(4)[[2, 0, 3, 1]]),
    ]


_READ = "rotated[name] = w @ q"
_WRITE = "rotated[name] = q.T @ w"
_WRITERS = '("o_proj.weight", "down_proj.weight")'

EXERCISE = Exercise(
    goal="Rotate every matrix of a Llama that reads the residual stream, keeps rows of it, or writes to it.",
    reference=rotate_weights, oracle=oracle, cases=cases, minutes=9, difficulty="core", tolerance=1e-9,
    hints=(
        "Two questions for each matrix: does it have the numbers of the stream in its columns, or are its outputs, the rows, added to the stream? In the first case its rows become rotated rows, in the second case its columns do.",
        "`@` multiplies matrices and `.T` transposes. `name.endswith((…, …))` is True for any of several endings. What has one dimension is a gain of ones, and stays.",
    ),
    why="every product stays what it was, so the model does: only its stream is seen from another side.",
    mistakes=(
        Mistake("writers as readers", edit(_WRITE, "rotated[name] = w @ q if w.shape[1] == len(q) else w"),
            cause="A matrix that writes was multiplied on the side of its inputs, or left as it is. Its outputs are what is added to the stream.",
            cure="Multiply on the other side: `q.T @ w`.", see="readers right, writers wrong"),
        Mistake("writers left alone", edit(_WRITE, "rotated[name] = w"),
            cause="The matrices that write were left as they are, so they add rows that are not rotated.",
            cure="Multiply them: `q.T @ w`.", see="readers right, writers as before"),
        Mistake("writers by q", edit(_WRITE, "rotated[name] = q @ w"),
            cause="A matrix that writes was multiplied by q, and its outputs must come out as x @ q.",
            cure="The outputs are y = h @ w.T, and y @ q = h @ (q.T @ w).T.", see="readers right, writers wrong"),
        Mistake("readers by the transpose", edit(_READ, "rotated[name] = w @ q.T"),
            cause="A matrix that reads was multiplied by the transpose of q.",
            cure="(x @ q) @ (w @ q).T is x @ w.T again: use `w @ q`.", see="writers right, readers wrong"),
        Mistake("rotated the other way", edit(_READ, "rotated[name] = w @ q.T").edit(_WRITE, "rotated[name] = q @ w"),
            cause="Everything is rotated by the transpose of q: the stream becomes x @ q.T.",
            cure="Exchange q and q.T.", see="all numbers wrong, though the model computes the same"),
        Mistake("the embedding left alone", edit("        if w.ndim == 1:", '        if w.ndim == 1 or "embed" in name:'),
            cause="The rows of the embedding are the first rows of the stream, and they were left as they are.",
            cure="Rotate its rows: `w @ q`.", see="all right but the embedding"),
        Mistake("the head left alone", edit("        if w.ndim == 1:", '        if w.ndim == 1 or "lm_head" in name:'),
            cause="The head reads the stream like any other matrix, and it was left as it is.",
            cure="Multiply it: `w @ q`.", see="all right but lm_head"),
        Mistake("attention's writer forgotten", edit(_WRITERS, '("down_proj.weight",)'),
            cause="o_proj was treated as a reader. It writes what attention has found to the stream.",
            cure="o_proj and down_proj both write.", see="all right but o_proj"),
        Mistake("the feed-forward writer forgotten", edit(_WRITERS, '("o_proj.weight",)').edit(_READ, "rotated[name] = w @ q if w.shape[1] == len(q) else w"),
            cause="down_proj was not treated as a writer.",
            cure="o_proj and down_proj both write.", see="all right but down_proj"),
        Mistake("up_proj as a writer", edit(_WRITERS, '("o_proj.weight", "down_proj.weight", "up_proj.weight")').edit(_WRITE, "rotated[name] = q.T @ w if len(w) == len(q) else w"),
            cause="up_proj was treated as a writer. It reads the stream, as gate_proj does.",
            cure="Multiply it like the other readers.", see="all right but up_proj"),
        Mistake("the gains rotated", edit("            rotated[name] = w\n        elif", "            rotated[name] = w @ q\n        elif"),
            cause="The gains were rotated. After the fold they are 1, and they stay 1.",
            cure="Leave what has one dimension as it is.", see="matrices right, gains that are not 1"),
        Mistake("the gains left out", edit("            rotated[name] = w\n        elif", "            continue\n        elif"),
            cause="The gains are missing in the result.",
            cure="Put every name into the new dict.", see="names that are missing"),
        Mistake("changed in place", edit("rotated = {}", "rotated = weights"),
            cause="The dict that was passed in was changed.",
            cure="Put the results into a new dict.", see="the right numbers, and a word about the argument"),
    ),
)
