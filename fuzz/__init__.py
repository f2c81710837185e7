"""Damaged files for the readers: ``python -m fuzz`` mutates valid ones, and is guided by coverage where it can be."""
