"""K-quants: a super-block read by hand, and written with a search."""

EXERCISES = (
    "k_bits",
    "unpack_k_scales",
    "k_nibbles",
    "decode_q4_k",
    "fit_scale_and_minimum",
    "search_blocks",
)
