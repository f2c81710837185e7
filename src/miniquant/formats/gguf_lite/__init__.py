"""GGUF-lite, version 1: the format of the course, little-endian throughout."""
