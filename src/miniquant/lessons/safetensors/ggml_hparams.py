"""The exercise ``ggml_hparams``."""

from .ggml import GGML_HPARAMS as EXERCISE

__all__ = ["EXERCISE"]
