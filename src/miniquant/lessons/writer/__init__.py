"""The data of a GGUF-lite file, and the whole writer (the assignment's Block A, second half)."""

EXERCISES = (
    "choose_dtypes",
    "encode_q8",
    "pack_int4",
    "encode_q4",
    "write_file",
)
