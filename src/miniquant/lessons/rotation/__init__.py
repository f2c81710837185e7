"""Rotations: the fast Hadamard transform, and a Llama whose residual stream is rotated while it computes the same."""

EXERCISES = (
    "peaks",
    "fast_hadamard",
    "rotation_matrix",
    "fold_gain",
    "rotate_weights",
)
