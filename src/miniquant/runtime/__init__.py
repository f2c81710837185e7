"""A runtime that computes with the blocks of a bump file: one allocation, kernels, no dequantized copy."""
