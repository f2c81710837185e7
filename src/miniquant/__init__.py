"""miniquant: a teaching lab on quantized model files, and the small reference library that it uses.

The names here import nothing but numpy; ``read_gguf_lite`` returns torch tensors and imports torch when it is called.
"""

from .core.errors import FormatError, MetadataError, MiniquantError, QuantizationError, SchemeError, WriteError
from .formats.gguf_lite.read import GGUFLite, open_gguf_lite, read_gguf_lite
from .formats.gguf_lite.types import DType
from .formats.gguf_lite.write import write_gguf_lite
from .formats.tensor import TensorInfo
from .quantization.packing import pack_nibbles, unpack_nibbles
from .quantization.schemes import PRESETS, SCHEMES, fake_quantize_model, fake_quantize_state, preset
from .quantization.symmetric import (
    Quantized,
    dequantize,
    fake_quantize,
    quantize_per_channel,
    quantize_per_group,
    quantize_per_tensor,
)

__version__ = "0.1.0"

__all__ = [
    "PRESETS",
    "SCHEMES",
    "DType",
    "FormatError",
    "GGUFLite",
    "MetadataError",
    "MiniquantError",
    "QuantizationError",
    "Quantized",
    "SchemeError",
    "TensorInfo",
    "WriteError",
    "dequantize",
    "fake_quantize",
    "fake_quantize_model",
    "fake_quantize_state",
    "open_gguf_lite",
    "pack_nibbles",
    "preset",
    "quantize_per_channel",
    "quantize_per_group",
    "quantize_per_tensor",
    "read_gguf_lite",
    "unpack_nibbles",
    "write_gguf_lite",
]
