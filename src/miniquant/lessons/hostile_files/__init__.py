"""Hostile files."""

EXERCISES = (
    "wrapping_file",
    "overlapping_file",
    "climbing_file",
    "bounded_count",
    "read_array",
    "tensor_size",
    "fits_inside",
    "tensor_file",
)
