"""The exercises of the lab writer."""
