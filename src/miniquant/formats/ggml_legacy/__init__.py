"""Legacy GGML, the format that GGUF replaced."""
