"""The trained models of the course miniquant. Data alone: ``miniquant.core.assets`` finds the files."""
