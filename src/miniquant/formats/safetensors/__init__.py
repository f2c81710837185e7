"""safetensors: one file or a folder of several, opened without loading a tensor."""
