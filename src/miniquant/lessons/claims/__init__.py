"""Five predicates, each the heart of a claim about exported files."""

EXERCISES = (
    "magic_and_version",
    "expected_keys",
    "names_in_order",
    "sizes_fall",
    "bits_survive",
)
