"""GPTQ: round one column after another, and let the columns that are still float make up for each error.

The columns of a layer work together: if one is rounded a little too far up, its neighbours in the sum can lean the
other way. How much each must move follows from H = XᵀX / n. With U the upper Cholesky factor of H⁻¹, rounding column j
by an error e moves every later column k by ``-e / U[j, j] · U[j, k]``, which is the best that can be done about it.

Source: GPTQ, https://arxiv.org/abs/2210.17323, section 3.3 and algorithm 1.
"""

from __future__ import annotations

import numpy as np

from ..core.errors import QuantizationError
from ..quantization.grids import Grid, GridRule, QuantizedMatrix, dequantize, quantize
from .inputs import Model, calibration_walk, get_weight, output_error, set_weight
from .rounding import clip_weights, quantize_nearest, rule_named, with_quantized_layers

DAMPING = 0.01  # of the mean diagonal of H
BLOCK = 128  # columns; later ones are moved once a block


def gptq(
    model: Model,
    tokens: np.ndarray | None = None,
    rule: str | GridRule = "Q4_1",
    *,
    damping: float = DAMPING,
    act_order: bool = True,
    clip: bool = False,
    progress: bool | None = None,
) -> Model:
    """A frozen copy with every linear layer rounded, each for the inputs that the rounded layers before it give.

    model: a MiniGPT, or a Llama or Qwen2 of transformers, whose head stays float. tokens: (n, length) int64, from the
    training text by default; for a model of transformers there is no default. ``act_order`` rounds the columns with the
    largest activations first; ``clip`` lets each grid give up the ends of its group where that pays. Scales and groups
    are the rule's either way, so the file's layout is that of plain rounding. No row's output error on the calibration
    text is worse than with plain rounding: a row that would be is rounded to nearest. ``progress=None`` shows a bar on
    a terminal only.

    Raises ``QuantizationError`` for tokens that are no windows, for what the rule cannot hold, for another model, and
    for a Hessian that is not positive definite after damping.
    """
    rule = rule_named(rule)
    twin, walk = calibration_walk(model, tokens, "GPTQ", progress)
    chosen = {}
    for group in walk:
        for name, linear in group.layers.items():
            w, hessian = get_weight(linear), group.seen.hessian
            try:
                chosen[name] = gptq_layer(w, hessian, rule, damping=damping, act_order=act_order, clip=clip)
            except QuantizationError as error:
                raise QuantizationError(f"{name}: {error}") from None
            set_weight(linear, dequantize(*chosen[name]))  # the next layers see what rounding has done
    return with_quantized_layers(twin, chosen, rule)


def gptq_layer(
    w: np.ndarray,
    hessian: np.ndarray,
    rule: GridRule,
    *,
    damping: float = DAMPING,
    act_order: bool = True,
    clip: bool = False,
) -> QuantizedMatrix:
    """Integers and grid for one matrix: w (out, in) float32, hessian (in, in) float64, not damped.

    Without ``act_order`` the grid of a group is fitted when its first column is reached, to weights that have moved
    already. With it the columns of a group are rounded at different times, so all grids are fitted beforehand: which
    column belongs to which group never changes. A dead column, whose input is always 0, is rounded to nearest.
    """
    plain = quantize_nearest(w, rule)
    size = rule.group_size or w.shape[1]

    def fitted(v: np.ndarray, h: np.ndarray) -> Grid:
        return rule.fit(clip_weights(v, h, rule) if clip else v)

    grid = Grid(plain.grid.scale.copy(), plain.grid.minimum.copy(), plain.grid.low, plain.grid.high)
    early = act_order or size == w.shape[1]
    if early:
        grid = fitted(w, hessian)
    order = np.argsort(-np.diag(hessian), kind="stable") if act_order else np.arange(w.shape[1])
    factor = cholesky_of_inverse(damped(hessian, damping)[np.ix_(order, order)])
    left = w[:, order].astype(np.float64)  # what is still to be rounded, in the order in which it will be
    q = np.empty(w.shape, np.int16)
    for start in range(0, w.shape[1], BLOCK):
        end = min(start + BLOCK, w.shape[1])
        scaled = np.empty((len(w), end - start))  # error / U[j, j] of each column
        for j in range(start, end):
            group = order[j] // size
            if not early and j % size == 0:
                span = slice(j, j + size)
                part = fitted(left[:, span].astype(np.float32), hessian[span, span])
                grid.scale[:, group], grid.minimum[:, group] = part.scale[:, 0], part.minimum[:, 0]
            own = Grid(grid.scale[:, group, None], grid.minimum[:, group, None], grid.low, grid.high)
            chosen = quantize(left[:, j, None].astype(np.float32), own)
            q[:, order[j]] = chosen[:, 0]
            scaled[:, j - start] = (left[:, j] - dequantize(chosen, own)[:, 0]) / factor[j, j]
            left[:, j + 1 : end] -= np.outer(scaled[:, j - start], factor[j, j + 1 : end])
        left[:, end:] -= scaled @ factor[start:end, end:]
    return _never_worse(QuantizedMatrix(q, grid), plain, w, hessian)


def damped(hessian: np.ndarray, damping: float = DAMPING) -> np.ndarray:
    """H with ``damping`` × its mean diagonal added to the diagonal; a dead column gets the mean diagonal itself.

    >>> damped(np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]]), 0.5)
    array([[4., 1., 0.],
           [1., 4., 0.],
           [0., 0., 3.]])
    """
    h, diagonal = hessian.astype(np.float64), np.diag(hessian)
    level = diagonal.mean() or 1.0  # all columns dead: any diagonal will do
    np.fill_diagonal(h, np.where(diagonal == 0, level, diagonal) + damping * level)
    return h


def cholesky_of_inverse(hessian: np.ndarray) -> np.ndarray:
    """The upper triangular U with ``Uᵀ U = H⁻¹``: (in, in) float64.

    Raises ``QuantizationError`` if H is not positive definite.

    >>> cholesky_of_inverse(np.array([[0.25, 0.0], [0.0, 1.0]]))
    array([[2., 0.],
           [0., 1.]])
    """
    try:
        lower = np.linalg.cholesky(hessian[::-1, ::-1])  # of H backwards, so that its inverse comes out upper
        factor = np.linalg.inv(lower)[::-1, ::-1]
    except np.linalg.LinAlgError:
        factor = np.full_like(hessian, np.nan)
    if np.isfinite(factor).all():
        return factor
    smallest = np.linalg.eigvalsh(hessian)[0] if np.isfinite(hessian).all() else np.nan
    raise QuantizationError(
        f"the Hessian of {len(hessian)} columns is not positive definite (its smallest eigenvalue is {smallest:.2g}): "
        "some columns always move together on the calibration text; use more damping (0.01 is usual), or more text"
    )


def _never_worse(found: QuantizedMatrix, plain: QuantizedMatrix, w: np.ndarray, hessian: np.ndarray) -> QuantizedMatrix:
    """Row by row the better of two roundings, by the output error on the calibration text."""
    errors = [output_error(dequantize(*rounded) - w, hessian) for rounded in (found, plain)]
    keep = (errors[0] <= errors[1])[:, None]  # (out, 1); false for NaN too

    def pick(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(keep, a, b)

    grid = Grid(pick(found.grid.scale, plain.grid.scale), pick(found.grid.minimum, plain.grid.minimum), *plain.grid[2:])
    return QuantizedMatrix(pick(found.q, plain.q), grid)
