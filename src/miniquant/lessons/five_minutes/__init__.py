"""Eight bytes, written and read back. They need numpy alone."""

EXERCISES = (
    "magic_bytes",
    "read_magic",
    "byte_order",
)
