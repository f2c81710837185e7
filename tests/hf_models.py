"""Small Hugging Face folders, made on the spot with ``transformers`` and ``tokenizers``; nothing is downloaded."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from miniquant.formats.gguf import read_gguf
from miniquant.formats.gguf.pre_tokenizers import PRE_TOKENIZERS
from miniquant.models.corpus import held_out_documents

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

VOCABULARY = 512  # of the tokenizer; the models' may be larger
TEXTS = [
    "The import statement",
    "  two  spaces, a tab\t, a newline\n\n\nand three \r\n \r x",
    "def f(x: int) -> str:\n    return f'{x!r:>10}'  # done",
    "it's we'll I'd they're 'quoted' don't CAN'T WE'LL 'S",
    "0 1 12 123 1234567890 3.14159 1e-9 0xFF ²³ ٣٤٥ Ⅷ",
    "naïve café Straße ½ µ ﬁ ǅ İ e\u0301",
    "日本語のテキスト 中文 한국어 ไทย עברית العربية हिन्दी",
    "🙂 👩‍👩‍👧‍👦 🇪🇸 \u200b\u00a0\ufeff\u2028\u3000x",
    "\x00\x01\x7f\x80\u0085\x0b\x0c",
    "<s> in the middle </s><|tool|>x<|tool|>",
    "!@#$%^&*()_+-=[]{};':\",./<>?\\|`~",
    "a" * 300,
    " " * 300,
    "𝄞𐍈\U0010ffff\uffff",
    "",
]
LLAMA = {
    "vocab_size": 520,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
LLAMA3 = {  # as Llama 3.2 has it, and heads that are wider than their share of the model
    "head_dim": 32,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
}
GPT2 = {"vocab_size": 520, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}


@functools.cache
def make_tokenizer(pre: str = "gpt-2") -> Tokenizer:
    """A byte-level BPE with one of the rules for words; <s> and </s> are special, the added <|tool|> is not.

    Or ``sentencepiece``, a BPE of characters with a space before a text, as Llama 2 has it.
    """
    if pre == "sentencepiece":
        return _make_sentencepiece()
    (steps, ignore_merges) = next((steps, ignoring) for name, steps, ignoring in PRE_TOKENIZERS if name == pre)
    tokenizer = Tokenizer(models.BPE())
    rule = {"type": "Sequence", "pretokenizers": [{"trim_offsets": True, **step} for step in steps]}
    parts = json.loads(tokenizer.to_str()) | {"pre_tokenizer": rule if len(steps) > 1 else rule["pretokenizers"][0]}
    parts["model"]["ignore_merges"] = ignore_merges
    tokenizer = Tokenizer.from_str(json.dumps(parts))
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 1, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*held_out_documents("topics")[:40], *TEXTS], trainer)
    tokenizer.add_tokens([AddedToken("<|tool|>", normalized=False)])
    return tokenizer


def _make_sentencepiece() -> Tokenizer:
    """The pieces are those of a trained BPE; merges are every way to join two pieces, in the order of the pieces."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.pre_tokenizer = pre_tokenizers.Split(Regex(r"▁*[^▁\s]+|▁+"), "isolated")
    special, raw = ["<unk>", "<s>", "</s>"], [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 260, initial_alphabet=["▁"], limit_alphabet=100, show_progress=False
    )
    trained.train_from_iterator([*held_out_documents("topics")[:40], " " * 64, "-" * 9, "=" * 32], trainer)
    pieces = [piece for piece, _ in sorted(trained.get_vocab().items(), key=lambda item: item[1]) if "\n" not in piece]
    longest_first = sorted(pieces, key=lambda piece: len(piece) == 1)  # characters come last, as SentencePiece has them
    ids = {token: i for i, token in enumerate([*special, *raw, *longest_first])}
    merges = [
        (piece[:at], piece[at:])
        for piece in longest_first
        for at in range(1, len(piece))
        if piece[:at] in ids and piece[at:] in ids
    ]
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = trained.normalizer
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(back)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken("<|tool|>", normalized=False)])
    return tokenizer


def save_tokenizer(folder: Path, pre: str = "gpt-2", **more: Any) -> None:
    if pre == "sentencepiece":
        more["unk_token"] = "<unk>"
    PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(pre), bos_token="<s>", eos_token="</s>", **more
    ).save_pretrained(folder)


def randomise(model: torch.nn.Module, seed: int = 0) -> None:
    """Weights large enough that the logits are not flat (they reach 2); norms and biases that are neither 1 nor 0."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, w in model.named_parameters():
            w.normal_(0, 0.1 if w.ndim == 1 else 0.6 / w.shape[-1] ** 0.5, generator=rng)
            if w.ndim == 1 and ("norm" in name or "ln_" in name) and name.endswith("weight"):
                w.add_(1)


def save_llama(folder: Path, dtype: torch.dtype = torch.float32, seed: int = 0, pre: str = "gpt-2", **config: Any):
    shard = config.pop("max_shard_size", "1GB")
    model = LlamaForCausalLM(LlamaConfig(**{**LLAMA, "bos_token_id": 0, "eos_token_id": 1, **config}))
    return _save(model, folder, dtype, seed, pre, shard)


def save_llama3(folder: Path, seed: int = 0, **config: Any):
    """A small Llama 3: rope factors, and ``head_dim`` is not ``hidden_size / num_attention_heads``."""
    return save_llama(folder, seed=seed, pre="llama-bpe", **{**LLAMA3, **config})


def save_qwen2(folder: Path, dtype: torch.dtype = torch.float32, seed: int = 0, pre: str = "qwen2", **config: Any):
    """A small Qwen2: biases on q, k and v, and a tied head unless ``tie_word_embeddings=False`` is said."""
    shard = config.pop("max_shard_size", "1GB")
    shape = {**LLAMA, "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": True, **config}
    return _save(Qwen2ForCausalLM(Qwen2Config(**shape)), folder, dtype, seed, pre, shard)


def save_gpt2(folder: Path, dtype: torch.dtype = torch.float32, seed: int = 0, pre: str = "gpt-2", **config: Any):
    shard = config.pop("max_shard_size", "1GB")
    model = GPT2LMHeadModel(GPT2Config(**{**GPT2, "bos_token_id": 0, "eos_token_id": 1, **config}))
    return _save(model, folder, dtype, seed, pre, shard)


def _save(model: Any, folder: Path, dtype: torch.dtype, seed: int, pre: str, shard: str) -> Any:
    """Save a model, and give it back as transformers reads it: rounded to ``dtype``, computing in float32."""
    randomise(model, seed)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    save_tokenizer(folder, pre)
    return type(model).from_pretrained(folder, dtype=torch.float32).eval()


def logits(model: Any, ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def greedy(model: Any, ids: list[int], n: int) -> list[int]:
    ids, start = list(ids), len(ids)
    while len(ids) < start + n:
        ids.append(int(logits(model, ids)[-1].argmax()))
    return ids[start:]


def edit(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file; ``...`` takes a key out."""
    found = json.loads(path.read_text("utf-8")) | changes
    path.write_text(json.dumps({key: value for key, value in found.items() if value is not ...}), "utf-8")


# ---- from a folder's weights to a file's and back, by hand and by the official names ---------------------------------


def by_hand(name, w, config):
    """A checkpoint's tensor as the GGUF file has it: transposed, or the rows of each head paired up one by one."""
    if config.model_type == "gpt2":
        return w.T if w.ndim == 2 and ".h." in name and not name.endswith("wte.weight") else w
    if config.model_type == "qwen2":
        return w
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(name.split(".")[-2])
    if heads is None:
        return w
    width = len(w) // heads
    rows = [w[h * width + i + second] for h in range(heads) for i in range(width // 2) for second in (0, width // 2)]
    return np.stack(rows)


def official_names(config):
    arch = gguf.MODEL_ARCH[config.model_type.upper()]
    table = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    return lambda name: f"{table.get_name(name.rpartition('.')[0])}.{name.rpartition('.')[2]}"


def checkpoint(model):
    """The weights by the names that a folder has; a tied head only once."""
    tied = model.config.tie_word_embeddings
    return {n: w.numpy() for n, w in model.state_dict().items() if not (tied and n == "lm_head.weight")}


def as_the_file_has_it(model, path):
    """The model with the weights that the GGUF file holds, put back in place by hand."""
    official, config = official_names(model.config), model.config
    with read_gguf(path) as file, torch.no_grad():
        for name, w in model.state_dict().items():
            if config.tie_word_embeddings and name == "lm_head.weight":
                continue
            stored = file.tensor(official(name))
            place = np.arange(w.numel()).reshape(w.shape)  # where each number of the file belongs
            back = np.empty(w.numel(), np.float32)
            back[by_hand(name, place, config).reshape(-1)] = stored.reshape(-1)
            w.copy_(torch.from_numpy(back.reshape(w.shape)))
    return model
