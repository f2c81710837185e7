"""Hugging Face folders of Llama and GPT-2 models, converted to GGUF."""
