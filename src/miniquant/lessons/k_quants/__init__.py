"""K-quants, from one super-block by hand to a whole file."""

EXERCISES = (
    "k_bits",
    "split_super_block",
    "unpack_k_scales",
    "pack_k_scales",
    "k_nibbles",
    "decode_q4_k",
    "decode_q6_k",
    "fitted_scale",
)
