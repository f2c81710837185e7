"""Hostile files."""

EXERCISES = (
    "bounded_count",
    "safe_string",
    "read_array",
    "read_dims",
    "tensor_size",
    "fits_inside",
    "data_start",
    "tensor_file",
)
