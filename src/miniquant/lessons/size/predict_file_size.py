"""The exercise ``predict_file_size``."""

from .exercises import PREDICT_FILE_SIZE as EXERCISE

__all__ = ["EXERCISE"]
