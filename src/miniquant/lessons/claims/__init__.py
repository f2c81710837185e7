"""The exercises of the lab claims."""
