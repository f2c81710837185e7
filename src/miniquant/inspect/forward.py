"""The forward pass of MiniGPT, drawn: every stage in its order, with the names and shapes of its tensors.

``forward_pass`` is the drawing, ``stage_table`` the same stages as a table with their numbers of parameters. Names and
shapes are those of the model that is handed in; a tensor that belongs to no stage is an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

from .markup import Picture, box, scroll, table, text_table

LAYER = "layers.N."  # stands for layers.0., layers.1., … in the name of a tensor
_STYLE = """
.mq.mq.mq svg{display:block;width:100%;max-width:500px;height:auto;color:inherit}
.mq.mq.mq svg text{fill:currentColor;font-family:sans-serif;font-size:11.5px}
.mq.mq.mq svg .mq-name{font-weight:700;font-size:13px}
.mq.mq.mq svg .mq-tensor{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:11px}
.mq.mq.mq svg :is(rect,path,circle){stroke:currentColor;stroke-width:1;fill:none}
.mq.mq.mq svg .mq-stream{stroke-width:4}
.mq.mq.mq svg .mq-tip{fill:currentColor}
.mq.mq.mq svg .mq-frame{stroke-dasharray:5 4}
"""
_FILLS = {  # one colour for what stages have in common; the names say the same
    "embedding": "230,159,0",
    "norm": "204,121,167",
    "attention": "86,180,233",
    "feed-forward": "0,158,115",
    "head": "230,159,0",
    "loss": "128,128,128",
}


@dataclass(frozen=True)
class Stage:
    """One stage of the forward pass. tensors: name -> shape; ``repeated``: once in every block, under LAYER."""

    name: str
    what: str
    tensors: dict[str, tuple[int, ...]]
    repeated: bool = False
    again: bool = False  # its tensor was counted before: the tied head


def stages(model: Any) -> list[Stage]:
    """The stages of a MiniGPT's forward pass, in order, with the tensors of its state dict.

    Raises ``ValueError`` if the state dict has a tensor that belongs to no stage, or lacks one.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    config = model.config
    heads = f"{config.n_heads} heads: each token gathers from earlier ones"

    def pick(*names: str) -> dict[str, tuple[int, ...]]:
        found = {}
        for name in names:
            if (key := name.replace(LAYER, "layers.0.")) not in shapes:
                raise ValueError(f"the model has no tensor {key!r}; this draws a MiniGPT")
            found[name] = shapes[key]
        return found

    def linear(*names: str) -> dict[str, tuple[int, ...]]:
        return pick(*(f"{name}.{part}" for name in names for part in ("weight", "bias")))

    found = [
        Stage("token embedding", "looks up one row for each token", pick("tok_emb.weight")),
        Stage("position embedding", "adds one row for each position", pick("pos_emb.weight")),
        Stage("norm", "each row: mean 0, variance 1, then × weight + bias", linear(f"{LAYER}ln1"), True),
        Stage("attention", heads, linear(f"{LAYER}attn.qkv", f"{LAYER}attn.proj"), True),
        Stage("norm", "the same, with its own weight and bias", linear(f"{LAYER}ln2"), True),
        Stage(
            "feed-forward", "two linear layers, GELU between them", linear(f"{LAYER}mlp.fc1", f"{LAYER}mlp.fc2"), True
        ),
        Stage("norm", "once more, after the last block", linear("ln_f")),
        Stage("head", "one logit for each token: the token embedding again", pick("tok_emb.weight"), again=True),
        Stage("loss", "in training: how unlikely was the token that came?", {}),
    ]
    placed = {
        name.replace(LAYER, f"layers.{n}.") if stage.repeated else name
        for stage in found
        for name in stage.tensors
        for n in range(config.n_layers)
    }
    if odd := placed ^ shapes.keys():
        raise ValueError(f"the tensor {min(odd)!r} belongs to no stage, or is missing; this draws a MiniGPT")
    return found


def stage_table(model: Any) -> Picture:
    """Every stage with its tensors: names, shapes, how often they occur, how many parameters that makes.

    Raises ``ValueError`` as ``stages`` does.
    """
    layers = model.config.n_layers
    total = sum(tensor.numel() for tensor in model.state_dict().values())
    rows: list[list[object]] = []
    for stage in stages(model):
        for i, (name, shape) in enumerate(stage.tensors.items()):
            times = layers if stage.repeated else 0 if stage.again else 1
            count = times * math.prod(shape)
            share = "counted above" if stage.again else f"{100 * count / total:.1f} %"
            rows.append([stage.name if not i else "", name, list(shape), times, f"{count:,}", share])
        if not stage.tensors:
            rows.append([stage.name, "no tensor", "", "", "", ""])
    rows.append(["together", "", "", len(model.state_dict()), f"{total:,}", "100.0 %"])
    head = ["stage", "tensor", "shape", "times", "parameters", "share"]
    title = f"the tensors of the forward pass; N is 0 to {layers - 1}"
    text = text_table(head, rows, (3, 4, 5))
    unbroken: list[list[object]] = [[str(cell).replace(" ", "\N{NO-BREAK SPACE}") for cell in row] for row in rows]
    return Picture(f"{title}\n{text}", box(title, scroll(title, table("", head, unbroken, (3, 4, 5)))))


# ---- the drawing -----------------------------------------------------------------------------------------------------

WIDE, STREAM, LEFT = 400, 20, 48  # the drawing's width, where the residual stream runs, where the boxes begin
LINE, PAD, GAP = 15, 8, 16  # heights: a line of text, the margin inside a box, the gap between two boxes


def forward_pass(model: Any) -> Picture:
    """The forward pass of a MiniGPT from tokens to loss, as one drawing from top to bottom.

    The thick line is the residual stream; a circle with a plus adds to it. Raises ``ValueError`` as ``stages`` does.
    """
    config, found = model.config, stages(model)
    drawn, y = "", 4.0
    drawn += _text(LEFT, y + 12, "tokens: integers, one for each piece of text", "mq-name")
    drawn += _arrow(LEFT + 150, y + LINE + 2, LEFT + 150, y + LINE + GAP)
    y += LINE + GAP
    places: list[tuple[Stage, float, float]] = []  # stage, top, bottom
    frame = 0.0
    for i, stage in enumerate(found):
        if stage.repeated and not frame:
            frame = y
            drawn += _text(LEFT, y + 13, f"block N, for N from 0 to {config.n_layers - 1}", "mq-name")
            y += LINE + PAD
        bottom = y + _height(stage)
        drawn += _stage(stage, y)
        places.append((stage, y, bottom))
        y = bottom + GAP
        if stage.repeated and not found[i + 1].repeated:
            drawn += f"<rect class='mq-frame' x='4' y='{frame:g}' width='{WIDE - 8}' height='{y - frame:g}' rx='6'/>"
            y += GAP
    drawn += _wires(places)
    title = "MiniGPT's forward pass"
    width = f"The residual stream, the thick line, holds {config.d_model} numbers for each token."
    label = f"{title}. {width} In order: " + ", ".join(stage.name for stage in found)
    label += f"; norm, attention, norm and feed-forward run {config.n_layers} times, and each half adds to the stream."
    svg = f"<svg viewBox='0 0 {WIDE} {y:g}' role='img' aria-label='{escape(label, quote=True)}'>{drawn}</svg>"
    text = "\n".join([title, width, *_lines(found, config.n_layers)])
    return Picture(text, box(title, f"{svg}<p>{width} A circle with a plus adds to it.</p>", _STYLE))


def _lines(found: list[Stage], layers: int) -> list[str]:
    """The drawing in words: a line for each stage, indented inside the blocks."""
    lines = []
    for i, stage in enumerate(found):
        if stage.repeated and not found[i - 1].repeated:
            lines.append(f"{layers} times, for N from 0 to {layers - 1}:")
        named = "; ".join(f"{name} {list(shape)}" for name, shape in stage.tensors.items())
        line = "  " * stage.repeated + f"{stage.name}: {stage.what}"
        lines += [line + f" · {named}" * bool(named)]
    return lines


def _height(stage: Stage) -> float:
    return 2 * PAD + LINE * (2 + len(stage.tensors)) - 4


def _stage(stage: Stage, y: float) -> str:
    """One box: the name of the stage, what it does, its tensors with their shapes."""
    fill = next(colour for key, colour in _FILLS.items() if key in stage.name)
    out = f"<rect x='{LEFT}' y='{y:g}' width='{WIDE - LEFT - 12}' height='{_height(stage):g}' rx='5' "
    out += f"style='fill:rgba({fill},.22)'/>"
    at = y + PAD + 10
    out += _text(LEFT + 10, at, stage.name, "mq-name") + _text(LEFT + 10, at + LINE, stage.what)
    for i, (name, shape) in enumerate(stage.tensors.items(), 2):
        out += _text(LEFT + 10, at + i * LINE, f"{name} {list(shape)}", "mq-tensor")
    return out


def _wires(places: list[tuple[Stage, float, float]]) -> str:
    """The residual stream, what branches off it, and what is added to it."""
    middles = {i: (top + bottom) / 2 for i, (_, top, bottom) in enumerate(places)}
    norms = [i for i, (stage, *_) in enumerate(places) if stage.name == "norm"]
    out = f"<path class='mq-stream' d='M{STREAM} {middles[0]:g}L{STREAM} {middles[norms[-1]]:g}'/>"
    for i, (stage, _, bottom) in enumerate(places):
        if stage.name == "norm":
            out += _arrow(STREAM, middles[i], LEFT, middles[i])
        if stage.name in ("norm", "head"):  # its result goes into the next stage
            out += _arrow(LEFT + 150, bottom, LEFT + 150, bottom + GAP)
        if "embedding" in stage.name or stage.name in ("attention", "feed-forward"):
            out += _arrow(LEFT, middles[i], STREAM + 8 * (i > 0), middles[i])
        if i and ("embedding" in stage.name or stage.name in ("attention", "feed-forward")):
            out += _plus(middles[i])
    return out


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """A straight line with a tip, to the right, to the left or down."""
    tip = "l-4 -7l8 0z" if to_x == x else f"l{-7 if to_x > x else 7} -4l0 8z"
    return f"<path d='M{x:g} {y:g}L{to_x:g} {to_y:g}'/><path class='mq-tip' d='M{to_x:g} {to_y:g}{tip}'/>"


def _plus(y: float) -> str:
    cross = f"<path d='M{STREAM - 4} {y:g}L{STREAM + 4} {y:g}M{STREAM} {y - 4:g}L{STREAM} {y + 4:g}'/>"
    return f"<circle cx='{STREAM}' cy='{y:g}' r='8' style='fill:rgba(255,255,255,1)'/><g style='color:#000'>{cross}</g>"


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}'{f' class={kind!r}' if kind else ''}>{escape(text)}</text>"
