"""Figures. Each function returns a closed ``matplotlib`` Figure: a notebook shows it once, a script calls ``savefig``.

Its ``alt`` is one sentence that says what the data show, computed from them. Hatches, markers and labels carry what
colour carries.
"""

from .errors import error_bars
from .events import timeline
from .files import bits_against_kl, descriptor_bytes, role_bars, size_against_kl, size_bars, size_pies
from .layers import layer_curves
from .lines import curves, fitted_lines
from .predictions import probabilities
from .speed import rate_dots, throughput_bars
from .weights import error_heatmap, histograms, number_line

__all__ = [
    "bits_against_kl",
    "curves",
    "descriptor_bytes",
    "error_bars",
    "error_heatmap",
    "fitted_lines",
    "histograms",
    "layer_curves",
    "number_line",
    "probabilities",
    "rate_dots",
    "role_bars",
    "size_against_kl",
    "size_bars",
    "size_pies",
    "throughput_bars",
    "timeline",
]
