"""Claims about exported files: a strategy that draws cases, predicates, and the claim that no useless file meets."""

EXERCISES = (
    "model_shapes",
    "magic_and_version",
    "expected_keys",
    "bits_survive",
    "size_is_true",
    "within_one_step",
)
