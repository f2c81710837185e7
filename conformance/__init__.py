"""Files that a reader of GGUF, GGUF-lite, bump or safetensors must read or must refuse, and a command that tries them.

``README.md`` says how to try a reader of your own.
"""
