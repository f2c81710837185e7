"""Grade a folder of submitted notebooks."""
