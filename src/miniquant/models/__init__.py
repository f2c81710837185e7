"""Models, how they are trained, quantized and exported, and how a file becomes a model again."""
