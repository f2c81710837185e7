"""The exercises of the lab size."""
