"""The importance matrix: which columns count, and a search that knows it."""

EXERCISES = (
    "add_squares",
    "columns_for",
    "weighted_error",
    "weighted_scale",
    "search_scale",
    "imatrix_tensors",
)
