"""MiniLlama: a small Llama of our own, as a Hugging Face folder, and the SentencePiece tokenizer that it reads with.

The model is ``LlamaForCausalLM`` of transformers: RMSNorm, rotary positions, grouped-query attention (two heads of
queries share one of keys and values), SwiGLU, and an output head of its own. Its text is MiniGPT's.

Source: Llama 2, https://arxiv.org/abs/2307.09288, section 2.2; SentencePiece, https://arxiv.org/abs/1808.06226.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

from ..core.assets import asset
from . import corpus

UNKNOWN, BEGIN, END = "<unk>", corpus.SENTENCEPIECE_BEGIN, corpus.SENTENCEPIECE_END  # tokens 0, 1 and 2
SPACE = "▁"  # how SentencePiece writes one
SHAPE: dict[str, Any] = {
    "vocab_size": 1536,
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def folder() -> Path:
    """The committed Hugging Face folder, ``assets/minillama``. Raises ``ModelMissing`` if it is not installed."""
    return Path(str(asset("minillama")))


def load_minillama() -> Any:
    """The trained MiniLlama: transformers' ``LlamaForCausalLM`` in float32, in evaluation mode.

    The folder stores float16, so every weight is a float16 number.
    """
    from safetensors.torch import load_file
    from transformers import LlamaConfig, LlamaForCausalLM

    model: Any = LlamaForCausalLM(LlamaConfig.from_pretrained(folder()))
    model.load_state_dict(load_file(folder() / "model.safetensors"))  # without the progress bar of from_pretrained
    return model.eval()


@functools.cache
def load_tokenizer() -> Tokenizer:
    """MiniLlama's tokenizer, 1536 tokens; it puts ``<s>`` before a text.

    >>> load_tokenizer().encode("import the module").tokens
    ['<s>', '▁import', '▁the', '▁module']
    """
    return Tokenizer.from_file(str(folder() / "tokenizer.json"))


# ---- the tokenizer ---------------------------------------------------------------------------------------------------


def train_sentencepiece(documents: Iterable[str], vocab_size: int) -> bytes:
    """A ``tokenizer.model`` as Llama 2 has one: BPE over characters, digits alone, unknown characters as their bytes.

    Lines are trained on one by one, so no piece holds the end of a line: that is always the token of its byte. The same
    documents give the same bytes.
    """
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in documents for line in text.split("\n") if line]),
        model_writer=written,
        model_type="bpe",
        vocab_size=vocab_size,
        character_coverage=0.9999,
        byte_fallback=True,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=2**20,
        num_threads=1,
        minloglevel=2,
    )
    return written.getvalue()


def to_tokenizer(model: bytes) -> Tokenizer:
    """The same tokenizer for the ``tokenizers`` package, built as Llama 2's ``tokenizer.json`` is.

    SentencePiece joins the two neighbours whose piece comes first in the vocabulary, so every way to cut a piece into
    two others is a merge, in the order of the pieces.
    """
    import sentencepiece

    read = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [read.id_to_piece(i) for i in range(read.get_piece_size())]
    ids = {piece: i for i, piece in enumerate(pieces)}
    joined = {
        piece for i, piece in enumerate(pieces) if not (read.is_byte(i) or read.is_control(i) or read.is_unknown(i))
    }
    merges = [
        (piece[:cut], piece[cut:])
        for piece in pieces
        if piece in joined
        for cut in range(1, len(piece))
        if piece[:cut] in joined and piece[cut:] in joined
    ]
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token=UNKNOWN, fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        f"{BEGIN} $A", f"{BEGIN} $A {BEGIN} $B", [(BEGIN, ids[BEGIN])]
    )
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in (UNKNOWN, BEGIN, END)])
    return tokenizer


# ---- a Hugging Face folder -------------------------------------------------------------------------------------------


def save_folder(out: Path, model: Any, sentencepiece: bytes, made: dict[str, Any]) -> None:
    """Write the folder: ``config.json``, the weights in float16, and the tokenizer in both forms."""
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    config = model.config.to_diff_dict() | {"architectures": [type(model).__name__], "dtype": "float32"}
    _write_json(out / "config.json", config | SHAPE)  # float32 is to compute in; what is stored says its own type
    ends = {key: SHAPE[key] for key in ("bos_token_id", "eos_token_id")}
    _write_json(out / "generation_config.json", ends | {"do_sample": False})
    state = {name: w.to(torch.float16).contiguous() for name, w in model.state_dict().items()}
    save_file(state, out / "model.safetensors", metadata={"format": "pt", "made": json.dumps(made)})
    (out / "model.safetensors").chmod(0o644)  # the package makes it readable for its owner alone
    (out / "tokenizer.model").write_bytes(sentencepiece)
    to_tokenizer(sentencepiece).save(str(out / "tokenizer.json"))
    tokens = {"bos_token": BEGIN, "eos_token": END, "unk_token": UNKNOWN}
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **tokens}
    _write_json(out / "tokenizer_config.json", about | {"model_max_length": model.config.max_position_embeddings})


def _write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
