"""The exercises of the lab gguf."""
