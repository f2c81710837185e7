"""Pickle, the format of PyTorch checkpoints: scanned, never executed."""
