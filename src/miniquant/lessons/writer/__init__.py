"""The writer (the assignment's Block A)."""

EXERCISES = (
    "header_bytes",
    "metadata_bytes",
    "choose_dtypes",
    "tensor_offsets",
    "descriptor_bytes",
    "encode_q8",
    "pack_int4",
    "encode_q4",
    "write_file",
)
