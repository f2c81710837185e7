"""The exercises of the lab pickle."""
