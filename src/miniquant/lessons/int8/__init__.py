"""The exercises of the lab int8."""
