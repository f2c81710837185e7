"""The exercises of the lab bump."""
