"""The exercises of the lab int4."""
