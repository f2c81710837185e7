"""The exercises of the lab reader."""
