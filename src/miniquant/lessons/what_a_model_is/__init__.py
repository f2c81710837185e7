"""What a model is, from one neuron to the memory of MiniGPT."""

EXERCISES = (
    "predict_jars",
    "rmse",
    "gradients",
    "gradient_descent",
    "kept_bytes",
)
