"""The exercises of the lab readme."""
