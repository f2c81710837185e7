"""The reader (the assignment's Block B)."""

EXERCISES = (
    "parse_header",
    "parse_metadata",
    "parse_descriptor",
    "check_bounds",
    "dequantize_q8",
    "unpack_int4",
    "dequantize_q4",
    "read_file",
)
