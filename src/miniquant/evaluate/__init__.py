"""How good a model is: perplexity and KL divergence, errors by layer, and llama.cpp as a referee."""
