"""A model completes a sentence: its text says more about its weights than a list of errors does.

``speak`` prints what each of several models writes after the same words, and its perplexity. ``ladder_of_bits`` makes
the models to compare: one model with fewer and fewer bits a weight, and one whose file was packed wrongly.

The perplexity is measured on ``assets/evaluation.txt``, a page that was written for this purpose. It is not in the
training text, and it is the same on every machine, unlike the held-out text of ``models.corpus``.
"""

from __future__ import annotations

import copy
import functools
import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from ..core.text import visible
from ..formats.gguf_lite.read import open_gguf_lite
from ..formats.gguf_lite.types import DType
from ..formats.gguf_lite.write import write_gguf_lite
from ..models import corpus
from ..models.minigpt import MiniGPT
from ..models.pretrained import load_gguf_lite
from ..quantization.schemes import GROUP_SIZE, preset
from ..quantization.symmetric import fake_quantize
from .quality import evaluate

PROMPT = "A list is a"
SWAPPED = "4 bits, nibbles swapped"
_LARGEST = 1e6  # a perplexity beyond this one is only said to be beyond


@dataclass(frozen=True)
class Line:
    """What one model wrote. perplexity: of the evaluation text, 1 at best; NaN if the model computes NaN."""

    model: str
    text: str
    perplexity: float


@dataclass(frozen=True)
class Speech:
    """What several models wrote after the same words: a table, as text and as HTML."""

    prompt: str
    lines: tuple[Line, ...]
    blind: int

    @property
    def _note(self) -> str:
        return (
            f"Perplexity: lower is better. A model that guesses blindly among its {self.blind:,} tokens has "
            f"{self.blind:,}. ↵ is the end of a line."
        )

    def __repr__(self) -> str:
        rows = [("model", "perplexity", f"{self.prompt} …")]
        rows += [(visible(line.model), shown(line.perplexity), one_line(line.text)) for line in self.lines]
        first, second = (max(len(row[i]) for row in rows) for i in (0, 1))
        return "\n".join([*(f"{a:{first}}  {b:>{second}}  {c}".rstrip() for a, b, c in rows), self._note])

    def _repr_html_(self) -> str:
        cell = "color:inherit;text-align:left;vertical-align:top;padding:.25em .6em .25em 0;border:0"
        text = f"{cell};width:100%;overflow-wrap:anywhere;white-space:normal"
        head = "".join(
            f"<th scope='col' style='{cell}'>{name}</th>" for name in ("model", "perplexity", "what it writes")
        )
        rows = "".join(
            f"<tr style='background:transparent'><th scope='row' style='{cell}'>{escape(visible(line.model))}</th>"
            f"<td style='{cell};text-align:right'>{escape(shown(line.perplexity))}</td>"
            f"<td style='{text}'><strong>{escape(visible(self.prompt))}</strong>{escape(one_line(line.text))}</td></tr>"
            for line in self.lines
        )
        label = f"What {len(self.lines)} models write after “{self.prompt}”, and their perplexity"
        return (
            "<div style='overflow-x:auto;color:inherit;font-size:14px;line-height:1.5'>"
            "<table style='border-collapse:collapse;table-layout:auto;width:100%;margin:0;color:inherit'>"
            f"<caption style='caption-side:top;text-align:left;color:inherit;font-weight:600'>{escape(visible(label))}"
            f"</caption><thead><tr style='background:transparent'>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p style='margin:.4em 0'>{escape(self._note)}</p></div>"
        )


def speak(models: Mapping[str, MiniGPT], prompt: str = PROMPT, tokens: int = 24) -> Speech:
    """What each model writes after ``prompt``: always the most likely next token, ``tokens`` times.

    Raises ``ValueError`` if a model's vocabulary is not that of the course's tokenizer.
    """
    tokenizer = corpus.load_tokenizer()
    known, words, windows = tokenizer.get_vocab_size(), tokenizer.encode(prompt).ids, evaluation_windows()
    lines = []
    for name, model in models.items():
        if model.config.vocab_size != known:
            raise ValueError(f"{name!r} has {model.config.vocab_size} tokens; the tokenizer of the course has {known}")
        written = tokenizer.decode(model.greedy(words, tokens), skip_special_tokens=False)
        nll = float(evaluate(model, windows).nll.mean())
        lines.append(Line(name, written, math.exp(nll) if not nll > 700 else math.inf))
    return Speech(prompt, tuple(lines), known)


def ladder_of_bits(model: MiniGPT) -> dict[str, MiniGPT]:
    """The model itself, then with 8, 4, 3 and 2 bits a weight, then read from a 4-bit file with swapped nibbles.

    The weights of the layers are quantized symmetrically, in groups of 64 with a float16 scale; embeddings, norms and
    biases stay float32. The model is not changed.
    """
    found = {"float32": model}
    for bits in (8, 4, 3, 2):
        twin, weights = copy.deepcopy(model), dict(model.state_dict())
        for name in preset("int4", model):
            weights[name] = fake_quantize(weights[name], bits, per="group", group_size=GROUP_SIZE)
        twin.load_state_dict(weights)
        found[f"{bits} bits"] = twin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "swapped.gguf-lite"
        write_gguf_lite(path, model, preset("int4", model))
        path.write_bytes(nibbles_swapped(path.read_bytes()))
        found[SWAPPED] = load_gguf_lite(path)
    return found


def nibbles_swapped(file: bytes) -> bytes:
    """A GGUF-lite file in which the two nibbles of every byte of its 4-bit integers have changed places.

    Only the integers are changed: the scales, the descriptors and the length of the file stay as they are.
    """
    data = np.frombuffer(file, np.uint8).copy()
    with open_gguf_lite(file) as opened:
        for info in opened.tensors.values():
            if info.dtype == DType.Q4_PER_GROUP_64:
                begin, end = opened.data_start + info.offset, opened.data_start + info.offset + info.n_bytes
                packed = data[begin + info.dtype.scale_bytes(info.shape) : end]
                packed[:] = packed << 4 | packed >> 4
    return data.tobytes()


@functools.cache
def evaluation_windows(length: int = 256, tokenizer: Tokenizer | None = None) -> np.ndarray:
    """The evaluation text cut into windows that do not overlap: (n, length + 1) int64, as ``held_out_windows``.

    The tokens are MiniGPT's, or another tokenizer's.
    """
    text = resources.files("miniquant").joinpath("assets/evaluation.txt").read_text("utf-8")
    ids = corpus.encode_documents(tokenizer or corpus.load_tokenizer(), [text.strip()])
    starts = range(0, len(ids) - length, length)
    return np.stack([ids[start : start + length + 1] for start in starts])


def shown(perplexity: float) -> str:
    """A perplexity with three significant digits: other machines may compute another seventh digit.

    >>> shown(46.912), shown(16423.0), shown(3e9), shown(float("nan"))
    ('46.9', '16,400', 'over 1,000,000', 'not a number')
    """
    if math.isnan(perplexity):
        return "not a number"
    if perplexity > _LARGEST:
        return f"over {_LARGEST:,.0f}"
    rounded = float(f"{perplexity:.3g}")
    digits = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{rounded:,.{digits}f}"


def one_line(text: str) -> str:
    r"""A text on one line: the end of a line is ↵, and what cannot be printed is escaped.

    >>> one_line("a list.\n\n\x1b")
    'a list.↵↵\\u001b'
    """
    return visible(text.replace("\n", "↵"))
