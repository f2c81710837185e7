"""The exercises of the lab q4 1 bridge."""
