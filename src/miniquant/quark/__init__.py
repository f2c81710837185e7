"""The workflow of AMD's Quark under Quark's names: specify, quantize, freeze, export.

An observer looks at the numbers that share a scale, and ``qscheme`` says which; so the observers per tensor, per
channel and per group are one.
"""

from ..models.bridge import ExporterConfig, JsonExporterConfig, ModelExporter
from ..quantization.config import AWQConfig, Config, GPTQConfig, QuantizationConfig, SmoothQuantConfig
from ..quantization.observers import MSE as PerTensorMSEObserver
from ..quantization.observers import MinMax as PerChannelMinMaxObserver
from ..quantization.observers import MinMax as PerGroupMinMaxObserver
from ..quantization.observers import MinMax as PerTensorMinMaxObserver
from ..quantization.observers import Percentile as PerTensorPercentileObserver
from ..quantization.spec import Dtype, QSchemeType, QuantizationSpec, RoundType, ScaleType
from .quantizer import ModelQuantizer

__all__ = [
    "AWQConfig",
    "Config",
    "Dtype",
    "ExporterConfig",
    "GPTQConfig",
    "JsonExporterConfig",
    "ModelExporter",
    "ModelQuantizer",
    "PerChannelMinMaxObserver",
    "PerGroupMinMaxObserver",
    "PerTensorMSEObserver",
    "PerTensorMinMaxObserver",
    "PerTensorPercentileObserver",
    "QSchemeType",
    "QuantizationConfig",
    "QuantizationSpec",
    "RoundType",
    "ScaleType",
    "SmoothQuantConfig",
]
