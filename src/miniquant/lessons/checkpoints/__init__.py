"""A checkpoint without pickle, the format that GGUF replaced, and six questions for any format."""

EXERCISES = (
    "flatten_optimizer",
    "ggml_hparams",
    "format_of",
)
