"""A pickle is a program, what it may import, and how to keep it from running."""

EXERCISES = (
    "run_small_pickle",
    "run_pickle",
    "harmless_payload",
    "imports_of",
    "off_the_list",
    "load_restricted",
)
