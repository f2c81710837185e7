"""MiniGPT: a small GPT-2 (pre-LayerNorm, learned positions, GELU tanh, tied head). It knows nothing about files."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class MiniGPTConfig:
    """The shape of a MiniGPT.

    ``d_model`` and ``d_mlp`` are multiples of 256 by default, so that every block of the course fits a row.

    >>> MiniGPTConfig().n_layers
    4
    """

    vocab_size: int = 1024
    context: int = 256
    d_model: int = 256
    n_layers: int = 4
    n_heads: int = 4
    d_mlp: int = 1024
    layer_norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model {self.d_model} must be a multiple of n_heads {self.n_heads}")

    def to_dict(self) -> dict[str, int | float]:
        """The fields by name, in order."""
        return asdict(self)


class Attention(nn.Module):
    """Causal self-attention: (batch, time, d_model) -> (batch, time, d_model)."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model)
        self.proj = nn.Linear(config.d_model, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, time, d_model)   ->   the same shape; no position sees a later one."""
        batch, time, d_model = x.shape
        qkv = self.qkv(x).view(batch, time, 3, self.n_heads, -1)  # (batch, time, 3, heads, d_model / heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, time, d_model / heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (batch, heads, time, d_model / heads)
        out: Tensor = self.proj(y.transpose(1, 2).reshape(batch, time, d_model))
        return out


class MLP(nn.Module):
    """Two linear layers around a GELU: (..., d_model) -> (..., d_model)."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.d_model, config.d_mlp)
        self.fc2 = nn.Linear(config.d_mlp, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., d_model)   ->   the same shape."""
        out: Tensor = self.fc2(F.gelu(self.fc1(x), approximate="tanh"))
        return out


class Block(nn.Module):
    """One transformer layer; the LayerNorms stand before the attention and before the MLP."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.attn = Attention(config)
        self.ln2 = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, time, d_model)   ->   the same shape."""
        x = x + self.attn(self.ln1(x))
        x = x + self.mlp(self.ln2(x))
        return x


class MiniGPT(nn.Module):
    """A GPT of 3.5 million parameters; the head is ``tok_emb`` itself, so the state dict holds it once.

    >>> model = MiniGPT(MiniGPTConfig(vocab_size=16, context=8, d_model=8, n_layers=1, n_heads=2, d_mlp=16))
    >>> model(torch.zeros(1, 5, dtype=torch.long)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, config: MiniGPTConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or MiniGPTConfig()
        self.tok_emb = _embedding(config.vocab_size, config.d_model)
        self.pos_emb = _embedding(config.context, config.d_model)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.ln_f = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self._initialize()

    def _initialize(self) -> None:
        """N(0, 0.02); the outputs that are added to the residual stream are smaller by sqrt(2 n_layers) (GPT-2)."""
        for name, parameter in self.named_parameters():
            if parameter.is_meta:
                continue
            if parameter.ndim == 2:
                residual = name.endswith(("attn.proj.weight", "mlp.fc2.weight"))
                std = 0.02 / math.sqrt(2 * self.config.n_layers) if residual else 0.02
                nn.init.normal_(parameter, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    @property
    def blocks(self) -> list[Block]:
        """``layers``, whose type is known."""
        return [layer for layer in self.layers if isinstance(layer, Block)]

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens: (batch, time) int64, time <= context   ->   logits: (batch, time, vocab_size) float32."""
        time = tokens.shape[-1]
        if time > self.config.context:
            raise ValueError(f"{time} tokens do not fit the context of {self.config.context}; pass fewer")
        x = self.tok_emb(tokens) + self.pos_emb.weight[:time]
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.ln_f(x), self.tok_emb.weight)  # the tied head

    @torch.no_grad()
    def greedy(self, tokens: list[int], n: int) -> list[int]:
        """The ``n`` most likely next tokens, one after another; the context slides once it is full."""
        tokens = list(tokens)
        for _ in range(n):
            window = torch.tensor([tokens[-self.config.context :]])
            tokens.append(int(self(window)[0, -1].argmax()))
        return tokens[-n:] if n else []


def _embedding(n: int, width: int) -> nn.Embedding:
    """A table of ``n`` rows; on the device "meta", where only its shape is wanted, it is not filled."""
    weight = torch.empty(n, width)
    return nn.Embedding(n, width, _weight=weight if weight.is_meta else None)


def parameter_shapes(config: MiniGPTConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter of a MiniGPT, in the order of its state dict; nothing is built.

    >>> parameter_shapes(MiniGPTConfig())["layers.0.mlp.fc1.weight"]
    (1024, 256)
    """
    d, inside = config.d_model, config.d_mlp
    parts = {"ln1": (d,), "attn.qkv": (3 * d, d), "attn.proj": (d, d)}
    parts |= {"ln2": (d,), "mlp.fc1": (inside, d), "mlp.fc2": (d, inside)}
    layers = {f"layers.{i}.{part}": shape for i in range(config.n_layers) for part, shape in parts.items()}
    found: dict[str, tuple[int, ...]] = {
        "tok_emb.weight": (config.vocab_size, d),
        "pos_emb.weight": (config.context, d),
    }
    for part, shape in {**layers, "ln_f": (d,)}.items():
        found |= {f"{part}.weight": shape, f"{part}.bias": shape[:1]}
    return found


def with_weights(config: MiniGPTConfig, weights: Mapping[str, Tensor]) -> MiniGPT:
    """A MiniGPT with the weights of a whole state dict, copied, in evaluation mode; no random number is drawn."""
    model = copy.deepcopy(_unfilled(config))
    model.load_state_dict(weights)
    return model.eval()


@functools.lru_cache(maxsize=1)
def _unfilled(config: MiniGPTConfig) -> MiniGPT:
    """One to copy: to draw random weights, and then put others in their place, takes four times as long."""
    with torch.random.fork_rng(devices=[]):
        return MiniGPT(config)


def random_model(seed: int = 0, config: MiniGPTConfig | None = None) -> MiniGPT:
    """A MiniGPT with reproducible random weights, norms and biases included, in evaluation mode; for tests and labs."""
    config = config or MiniGPTConfig(vocab_size=64, context=32, d_model=64, n_layers=2, n_heads=2, d_mlp=128)
    generator = torch.Generator().manual_seed(seed)
    model = MiniGPT(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if ".ln" in f".{name}" and name.endswith("weight") else 0.0
            parameter.copy_(centre + 0.05 * torch.randn(parameter.shape, generator=generator))
    return model.eval()
