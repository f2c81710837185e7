"""Zero point or minimum, the bridge from a quantizer to Q4_1."""

EXERCISES = (
    "affine_parameters",
    "round_with_zero_point",
    "round_with_minimum",
    "where_zero_lands",
    "zero_point_to_q4_1",
    "decode_q4_1",
)
