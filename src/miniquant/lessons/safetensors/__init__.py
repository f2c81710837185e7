"""The exercises of the lab safetensors."""
