"""A model file that is one allocation."""

EXERCISES = (
    "bump_offsets",
    "bump_header",
    "bump_types",
    "bump_order",
    "bump_seal",
    "q8_dot",
    "q8_q8_dot",
    "decode_fast",
)
