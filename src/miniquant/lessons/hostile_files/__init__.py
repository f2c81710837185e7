"""The exercises of the lab hostile files."""
