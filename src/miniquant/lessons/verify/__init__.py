"""The exercises of the lab verify."""
