"""SmoothQuant: eight bits for weights and activations."""

EXERCISES = (
    "smooth_scales",
)
