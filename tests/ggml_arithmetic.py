"""MiniGPT and Llamas as ggml computes them on a processor: the same formulas as PyTorch's, other roundings.

* GELU goes through a table: its argument and its value are float16.
* Before a matrix of blocks, the activations become blocks of 32 int8 with a float16 scale (Q8_0). Where the weights
  have a minimum, the block carries the sum of its integers too, scaled and rounded to float16 (Q8_1).
* Before a matrix of K-quants, they become blocks of 256 int8 with a float32 scale (Q8_K).
* Before a matrix of float16 or bfloat16, the activations become that.
* Keys and values are cached as float16, unless the context asks for float32. Here they are float32.

Sums are made in float64 (or in ``sums``), and rounded to float32 where ggml stores a float32.

Source: ggml's ``ggml-cpu/vec.h`` (``ggml_vec_gelu_f32``), ``ggml-cpu/arch/x86/quants.c`` (``quantize_row_q8_0``,
``quantize_row_q8_1``, ``ggml_vec_dot_q4_1_q8_1``), ``ggml-quants.c`` (``quantize_row_q8_K_ref``), ``ggml-cpu.c``
(``vec_dot_type``); llama.cpp's ``src/models/gpt2.cpp`` and
``llama.cpp`` (the names of the steps), ``ggml-cpu/ops.cpp`` (``ggml_rope_cache_init``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from miniquant.formats.gguf import GGMLType, read_gguf
from miniquant.models.minigpt import MiniGPTConfig
from miniquant.models.to_gguf import gguf_name

WITH_A_MINIMUM = (GGMLType.Q4_1, GGMLType.Q5_1)


class Ggml:
    """The weights of a GGUF file, and what ggml makes of tokens with them, step by step."""

    def __init__(
        self, path: Path, names: Iterable[str], config: MiniGPTConfig, sums: torch.dtype = torch.float64
    ) -> None:
        self.config, self.sums = config, sums
        with read_gguf(path) as file:
            self.w = {name: torch.from_numpy(file.tensor(gguf_name(name)).copy()) for name in names}
            self.kind = {name: file.tensors[gguf_name(name)].dtype for name in names}
            self.minimum = {
                name: torch.from_numpy(mins(file.raw(gguf_name(name)), self.w[name].shape))
                for name, kind in self.kind.items()
                if kind in WITH_A_MINIMUM
            }

    @torch.no_grad()
    def steps(self, tokens: np.ndarray, given: Mapping[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """Every step under llama.cpp's name for it: (tokens, width) float32.

        A step continues from the results of the ones before it, or from what is ``given`` for them.
        """
        made: dict[str, Tensor] = {}

        def at(name: str) -> Tensor:
            return made[name] if given is None else torch.from_numpy(given[name])

        made["inpL"] = self.w["tok_emb.weight"][tokens] + self.w["pos_emb.weight"][: len(tokens)]
        last = "inpL"
        for i in range(self.config.n_layers):
            layer = f"layers.{i}"
            made[f"attn_norm-{i}"] = self.norm(at(last), f"{layer}.ln1")
            made[f"wqkv_b-{i}"] = self.linear(at(f"attn_norm-{i}"), f"{layer}.attn.qkv")
            made[f"kqv_out-{i}"] = self.attention(at(f"wqkv_b-{i}"))
            made[f"ffn_inp-{i}"] = self.linear(at(f"kqv_out-{i}"), f"{layer}.attn.proj") + at(last)
            made[f"ffn_norm-{i}"] = self.norm(at(f"ffn_inp-{i}"), f"{layer}.ln2")
            made[f"ffn_up_b-{i}"] = self.linear(at(f"ffn_norm-{i}"), f"{layer}.mlp.fc1")
            made[f"ffn_gelu-{i}"] = gelu(at(f"ffn_up_b-{i}"))
            made[f"l_out-{i}"] = self.linear(at(f"ffn_gelu-{i}"), f"{layer}.mlp.fc2") + at(f"ffn_inp-{i}")
            last = f"l_out-{i}"
        made["result_norm"] = self.norm(at(last), "ln_f")
        made["result_output"] = self.product(at("result_norm"), "tok_emb.weight")
        return {name: value.numpy() for name, value in made.items()}

    def norm(self, x: Tensor, name: str) -> Tensor:
        """LayerNorm; ggml stores the normalized, the scaled and the shifted."""
        x = F.layer_norm(x.to(self.sums), x.shape[-1:], eps=self.config.layer_norm_epsilon).float()
        return x * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def linear(self, x: Tensor, name: str) -> Tensor:
        return self.product(x, f"{name}.weight") + self.w[f"{name}.bias"]

    def product(self, x: Tensor, name: str) -> Tensor:
        """(tokens, in) float32   ->   (tokens, out) float32, the activations rounded as the type of the matrix asks."""
        w, kind = self.w[name], self.kind[name]
        if kind.block == 1:
            dtype = {GGMLType.F32: torch.float32, GGMLType.F16: torch.float16, GGMLType.BF16: torch.bfloat16}[kind]
            return self.sum_up(x.to(dtype), w)
        if kind.block == 256:
            return self.sum_up(q8_k(x), w)
        scale, values = q8(x)  # (tokens, blocks), (tokens, blocks, 32)
        x = (scale.half().float()[..., None] * values).flatten(-2)
        if kind not in WITH_A_MINIMUM:
            return self.sum_up(x, w)
        minimum = self.minimum[name].double()  # (out, blocks)
        sums = (scale * values.sum(-1)).half()  # (tokens, blocks)
        w = w.double() - minimum.repeat_interleave(32, -1)
        return self.sum_up(torch.cat([x, sums], -1), torch.cat([w, minimum], -1))

    def sum_up(self, x: Tensor, w: Tensor) -> Tensor:
        return (x.to(self.sums) @ w.to(self.sums).T).float()

    def attention(self, qkv: Tensor) -> Tensor:
        """Causal softmax attention of all heads: (tokens, 3 d_model)   ->   (tokens, d_model)."""
        q, k, v = (
            part.unflatten(-1, (self.config.n_heads, -1)).transpose(0, 1).to(self.sums) for part in qkv.chunk(3, dim=-1)
        )
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1).float()


class GgmlLlama(Ggml):
    """The same of a Llama or a Qwen2, with the names that the file itself has for its weights."""

    def __init__(self, path: Path, sums: torch.dtype = torch.float64) -> None:
        self.sums = sums
        with read_gguf(path) as file:
            arch = file.metadata["general.architecture"]
            about = {key.removeprefix(f"{arch}."): value for key, value in file.metadata.items()}
            self.w = {name: torch.from_numpy(np.array(file.tensor(name))) for name in file.tensors}
            self.kind = {name: info.dtype for name, info in file.tensors.items()}
            self.minimum = {
                name: torch.from_numpy(mins(file.raw(name), self.w[name].shape))
                for name, kind in self.kind.items()
                if kind in WITH_A_MINIMUM
            }
        self.layers, self.epsilon = int(about["block_count"]), float(about["attention.layer_norm_rms_epsilon"])
        self.heads, self.groups = int(about["attention.head_count"]), int(about["attention.head_count_kv"])
        self.base, self.neighbours = np.float32(about["rope.freq_base"]), arch == "llama"
        self.stretch = np.float32(1) / np.float32(about.get("rope.scaling.factor", 1))
        self.head = "output.weight" if "output.weight" in self.w else "token_embd.weight"

    @torch.no_grad()
    def steps(self, tokens: np.ndarray, given: Mapping[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """Every step under llama.cpp's name for it, queries and keys as they are turned."""
        made: dict[str, Tensor] = {}

        def at(name: str) -> Tensor:
            return made[name] if given is None else torch.from_numpy(given[name])

        x = self.w["token_embd.weight"][tokens]
        for i in range(self.layers):
            b = f"blk.{i}"
            made[f"attn_norm-{i}"] = self.norm(x, f"{b}.attn_norm")
            for step, part, heads in (("Q", "attn_q", self.heads), ("K", "attn_k", self.groups)):
                made[f"{step}cur-{i}"] = self.rope(self.linear(at(f"attn_norm-{i}"), f"{b}.{part}"), heads)
            made[f"Vcur-{i}"] = self.linear(at(f"attn_norm-{i}"), f"{b}.attn_v").unflatten(-1, (self.groups, -1))
            made[f"kqv_out-{i}"] = self.grouped(*(at(f"{step}cur-{i}") for step in "QKV"))
            made[f"ffn_inp-{i}"] = self.linear(at(f"kqv_out-{i}"), f"{b}.attn_output") + x
            made[f"ffn_norm-{i}"] = self.norm(at(f"ffn_inp-{i}"), f"{b}.ffn_norm")
            for part in ("ffn_gate", "ffn_up"):
                made[f"{part}-{i}"] = self.linear(at(f"ffn_norm-{i}"), f"{b}.{part}")
            made[f"ffn_swiglu-{i}"] = F.silu(at(f"ffn_gate-{i}")) * at(f"ffn_up-{i}")
            made[f"l_out-{i}"] = self.linear(at(f"ffn_swiglu-{i}"), f"{b}.ffn_down") + at(f"ffn_inp-{i}")
            x = at(f"l_out-{i}")
        made["result_norm"] = self.norm(x, "output_norm")
        made["result_output"] = self.product(at("result_norm"), self.head)
        return {name: value.numpy() for name, value in made.items()}

    def norm(self, x: Tensor, name: str) -> Tensor:
        """RMSNorm; ggml stores the normalized and the scaled."""
        mean = x.to(self.sums).square().mean(-1, keepdim=True)
        return (x * (1 / torch.sqrt(mean + self.epsilon)).float()) * self.w[f"{name}.weight"]

    def linear(self, x: Tensor, name: str) -> Tensor:
        y, bias = self.product(x, f"{name}.weight"), self.w.get(f"{name}.bias")
        return y if bias is None else y + bias

    def rope(self, x: Tensor, heads: int) -> Tensor:
        """Turn pairs of neighbours (Llama) or of both halves (Qwen2): (tokens, n)   ->   (tokens, heads, n / heads)."""
        x = x.unflatten(-1, (heads, -1))
        half = x.shape[-1] // 2
        angle = rope_angles(len(x), half, float(self.base))
        factors = self.w.get("rope_freqs.weight")
        turned = torch.from_numpy(angle) / (1 if factors is None else factors) * float(self.stretch)
        cos, sin = torch.cos(turned)[:, None], torch.sin(turned)[:, None]
        a, b = (x[..., ::2], x[..., 1::2]) if self.neighbours else (x[..., :half], x[..., half:])
        pairs = a * cos - b * sin, a * sin + b * cos
        return torch.stack(pairs, -1).flatten(-2) if self.neighbours else torch.cat(pairs, -1)

    def grouped(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal attention, several heads of queries to one of keys and values; all (tokens, heads, head)."""
        q, k, v = (part.transpose(0, 1).to(self.sums) for part in (q, k, v))
        k, v = (part.repeat_interleave(self.heads // self.groups, 0) for part in (k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1).float()


def rope_angles(tokens: int, half: int, base: float) -> np.ndarray:
    """(tokens, half) float32: the angle of a pair is the one of the pair before, times a constant, in float32."""
    angle = np.empty((tokens, half), np.float32)
    angle[:, 0] = np.arange(tokens)
    step = np.float32(base ** (-1 / half))
    for pair in range(1, half):
        angle[:, pair] = angle[:, pair - 1] * step
    return angle


def gelu(x: Tensor) -> Tensor:
    """Of a float16, as a float16; from 10 on the argument itself, to -10 nothing."""
    h = x.half().float()
    inside = 0.5 * h * (1 + torch.tanh((2 / math.pi) ** 0.5 * h * (1 + 0.044715 * h * h)))  # F.gelu sums otherwise
    return torch.where(x >= 10, x, torch.where(x <= -10, 0, inside.half().float()))


def q8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Blocks of 32: (tokens, n) float32   ->   (tokens, n / 32) float32 scales, (tokens, n / 32, 32) integers."""
    blocks = x.unflatten(-1, (-1, 32))
    largest = blocks.abs().amax(-1)
    inverse = torch.where(largest > 0, torch.full_like(largest, 127) / largest, 0)  # 127 / x would be 127 · (1 / x)
    return largest / 127, torch.round(blocks * inverse[..., None])


def q8_k(x: Tensor) -> Tensor:
    """Blocks of 256 integers with a float32 scale, rounded and back: (tokens, n)   ->   (tokens, n) float32."""
    blocks = x.unflatten(-1, (-1, 256))
    largest = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))  # with its sign
    inverse = torch.full_like(largest, -127) / largest
    values = torch.round(blocks * inverse).clamp(max=127)
    return torch.where(largest == 0, 0, values * (torch.ones_like(inverse) / inverse)).flatten(-2)


def mins(raw: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The minimum of each block of Q4_1 or Q5_1, which begin with scale and minimum: (out, in / 32) float32."""
    blocks = raw.reshape(shape[0], shape[1] // 32, -1)
    return np.ascontiguousarray(blocks[..., 2:4]).view("<f2")[..., 0].astype(np.float32)
