"""The three questions of the README (the assignment's Block E)."""

EXERCISES = (
    "effective_bits",
    "largest_part",
    "ceiling_ratio",
    "what_costs",
    "readme_answers",
)
