"""What every reader says about a tensor, in the same words for every format."""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar


class TensorType(Protocol):
    """How a format stores a tensor's values: a member of the format's own enum (``DType``, ``GGMLType``, …)."""

    @property
    def name(self) -> str:
        """The name that people read: ``F32``, ``Q4_K``."""

    @property
    def block(self) -> int:
        """Weights that are stored together: a row's length is a multiple of it."""

    @property
    def description(self) -> str:
        """What the bytes of a tensor hold, in their order."""

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """The bytes of a tensor of this shape, scales included."""


Type = TypeVar("Type", bound=TensorType)


class TensorInfo(NamedTuple, Generic[Type]):
    """One tensor of a file.

    ``shape`` is in numpy's and PyTorch's order, out first, whatever the file's own order is. ``dtype`` is a member of
    the format's enum. ``offset`` is in bytes from the start of the data, as the files themselves count it: the tensor
    begins at the file's byte ``file.data_start + info.offset``. (A bump file says nothing of offsets, and its data
    start at byte 0.)
    """

    name: str
    shape: tuple[int, ...]
    dtype: Type
    offset: int
    length: int | None = None  # the bytes in the file, where shape and dtype do not say (numbers as text)

    @property
    def n_bytes(self) -> int:
        """The length of the tensor's data in bytes: scales included, padding not."""
        return self.dtype.bytes_of(self.shape) if self.length is None else self.length
