"""The exercises of the lab k quants."""
