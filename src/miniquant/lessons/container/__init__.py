"""The container of a GGUF-lite file: header, metadata, offsets, descriptors (the assignment's Block A, first half)."""

EXERCISES = (
    "header_bytes",
    "metadata_bytes",
    "tensor_offsets",
    "descriptor_bytes",
)
