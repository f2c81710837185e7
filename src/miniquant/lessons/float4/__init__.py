"""Four-bit floats: MXFP4 and NVFP4 written by hand, and their levels beside those of integers."""

EXERCISES = (
    "e2m1_values",
    "nearest_e2m1",
    "e8m0_exponents",
    "encode_mxfp4",
    "e4m3_values",
    "encode_nvfp4",
)
