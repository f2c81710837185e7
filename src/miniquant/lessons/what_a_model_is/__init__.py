"""The exercises of the lab what a model is."""
