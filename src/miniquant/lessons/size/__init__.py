"""Where every byte goes (the assignment's Block D)."""

EXERCISES = (
    "tensor_bytes",
    "overhead_bytes",
    "parameter_shapes",
    "predict_file_size",
    "bytes_by_dtype",
)
