"""Every error that miniquant raises on purpose: what was found, where, what was expected, what to do."""

from __future__ import annotations

import os


class MiniquantError(ValueError):
    """The parent of them all; a ``ValueError``, so a caller need not import it to catch it."""


class FormatError(MiniquantError):
    """A file is malformed.

    ``message`` says what is wrong, ``path`` is the file, ``field`` names the part of the format (``"header.magic"``,
    ``"tensor 'a': offset"``) and ``offset`` is the byte at which that field begins, counted from the start of the file.
    Each of the three may be ``None``.

    >>> print(FormatError("found 7, expected 1", field="header.version", offset=4))
    header.version at byte 4: found 7, expected 1
    >>> raise FormatError
    Traceback (most recent call last):
    miniquant.core.errors.FormatError: the file is malformed
    """

    def __init__(
        self,
        message: str = "the file is malformed",
        *,
        path: str | os.PathLike[str] | None = None,
        field: str | None = None,
        offset: int | None = None,
    ) -> None:
        self.message = message
        self.path = None if path is None else os.fsdecode(path)
        self.field = field
        self.offset = offset
        where = field or ""
        if offset is not None:
            where += f" at byte {offset}" if where else f"byte {offset}"
        super().__init__(": ".join(part for part in (self.path, where, message) if part))


class SchemeError(MiniquantError):
    """A quantization scheme does not fit: an unknown name, an unknown parameter, a shape that it cannot store."""


class QuantizationError(MiniquantError):
    """A weight cannot be quantized: it is not finite, not floating point, or its scale does not fit in float16."""


class MetadataError(MiniquantError):
    """A metadata key or value that the format has no way to store."""


class WriteError(MiniquantError, OSError):
    """A file could not be written. Whatever stood at the path before is still there, untouched."""


class PickleSecurityRisk(MiniquantError):
    """A PyTorch checkpoint is a pickle, and loading a pickle runs whatever code it holds: none is read or written."""


class ModelMissing(MiniquantError):
    """A trained model was asked for, and the package that has it, miniquant-models, is not installed."""
