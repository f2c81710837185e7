"""Products straight from the blocks of a file, as llama.cpp computes them: integers times integers.

A vector is rounded to blocks of eight bits first, see ``integer_products``, which says in numpy what is computed here.
Floats, F32, F16 and BF16, meet the vector as it is. No matrix is ever unpacked as a whole: a thread takes a tile of a
few rows apart at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..core.errors import QuantizationError
from ..core.machine import threads
from ..formats.bump.types import BumpType
from .activations import n_bytes, pack
from .compiled import compiled
from .crew import Crew
from .products import FLOATS, Place
from .unpacking import FORMS

THREADS = threads()  # at most; the kernels run without Python's lock
PARALLEL_MIN = 2**19  # bytes of a matrix up to which a second thread is not worth its start


def matvec(raw: np.ndarray, kind: BumpType, x: np.ndarray, out: np.ndarray) -> None:
    """out = W · x, where the rows of W are blocks of ``kind``.

    raw: (rows · row bytes,) uint8, x: (n,) float32   ->   out: (rows,) float32, overwritten

    Raises ``QuantizationError`` for a type without a kernel.
    """
    matmul(raw, kind, x[None], out[None])


def matmul(raw: np.ndarray, kind: BumpType, x: np.ndarray, out: np.ndarray) -> None:
    """out = x · Wᵀ, a row for each of several vectors; every block is unpacked once for all of them.

    raw: as in ``matvec``, x: (tokens, n) float32   ->   out: (tokens, rows) float32, overwritten

    Raises ``QuantizationError`` for a type without a kernel.
    """
    check(kind)
    x = np.ascontiguousarray(x, np.float32)
    crew = Crew(THREADS if raw.nbytes > PARALLEL_MIN else 1, x.shape[1])
    given = Given(x, np.empty(packed_floats(len(x), x.shape[1]), np.float32))
    with crew:
        multiply(crew, Matrix(raw, kind, (out.shape[1], x.shape[1])), given, place(out))


class Matrix:
    """Where a matrix of blocks lies, as numbers that a kernel takes; ``raw`` is kept alive with them.

    raw: (rows · row bytes,) uint8; shape: (rows, n)
    """

    def __init__(self, raw: np.ndarray, kind: BumpType, shape: tuple[int, ...]) -> None:
        check(kind)
        assert kind.ggml is not None
        self.raw, self.kind, self.shape = raw, kind, shape
        self.code, self.address, (self.rows, self.n) = int(kind.ggml), raw.ctypes.data, shape
        self.stride = raw.nbytes // max(1, self.rows)
        self.raised = FORMS[self.code].raised if self.code in FORMS else 0
        self.form = (kind.blocks.block, self.raised) if self.code in FORMS else None


class Given:
    """Vectors, and room for them rounded to eight bits: that happens once for all matrices of the same sort.

    x: (tokens, n) float32, contiguous; room: (``packed_floats(tokens, n)``,) float32
    """

    def __init__(self, x: np.ndarray, room: np.ndarray) -> None:
        self.x, self.room = x, room
        self.changed()
        self.tokens, self.n = x.shape
        self.address, self.place = x.ctypes.data, room.ctypes.data
        self.stride = n_bytes(self.n)

    def changed(self) -> None:
        """There are other numbers in ``x`` now, or in the room."""
        self.form = (0, 0)

    def packed(self, matrix: Matrix) -> tuple[int, int]:
        """The address and the bytes of a row of what this matrix is multiplied with."""
        if matrix.form is None:
            return self.address, 4 * self.n
        if matrix.form != self.form:
            self.form = matrix.form
            compiled(pack)(
                matrix.form[0] == 256, self.address, self.place, self.stride, self.n, self.tokens, matrix.raised
            )
        return self.place, self.stride


def packed_floats(tokens: int, n: int) -> int:
    """The room that vectors take when they are rounded, in float32."""
    return tokens * n_bytes(n) // 4


def place(out: np.ndarray) -> Place:
    """Where products are written.   out: (tokens, rows) float32, rows of it contiguous."""
    return out.ctypes.data, out.strides[0]


def multiply(crew: Crew, matrix: Matrix, given: Given, out: Place) -> None:
    """x · Wᵀ to a place, by a crew that is at work."""
    x, stride = given.packed(matrix)
    crew.multiply(
        matrix.code,
        matrix.address,
        matrix.stride,
        matrix.rows,
        matrix.n,
        x,
        stride,
        given.tokens,
        *out,
    )


def warm(kinds: Iterable[BumpType]) -> None:
    """Compile the kernels now, so that no later call waits for the compiler. Raises as ``matvec``."""
    for kind in sorted(set(kinds)):
        raw = np.zeros(2 * kind.blocks.n_bytes * (256 // kind.blocks.block), np.uint8)
        matmul(raw, kind, np.zeros((2, 256), np.float32), np.zeros((2, 2), np.float32))


def kernels() -> list[BumpType]:
    """The types that can be multiplied."""
    known = {*FLOATS, *FORMS}
    return [kind for kind in BumpType if kind.ggml is not None and int(kind.ggml) in known]


def check(kind: BumpType) -> None:
    """Raises ``QuantizationError`` for a type without a kernel."""
    if kind not in kernels():
        raise QuantizationError(f"no kernel for {kind.name}; there are {', '.join(k.name for k in kernels())}")
