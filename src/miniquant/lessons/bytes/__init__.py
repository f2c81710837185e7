"""Integers in bytes, masks and shifts, the bits of a float16. It needs numpy alone."""

EXERCISES = (
    "pack_fields",
    "png_size",
    "from_twos_complement",
    "get_bits",
    "join_nibbles",
    "float16_value",
)
