"""Both forms of every codec are under test: what the tests of this folder encode and decode runs in each of them.

Their bytes and values must be equal bit for bit, but for NaNs, which have many bits. A test then goes on with those of
numpy, which it compares with the referees. So each case is a case of both forms, and there are no more tests.
"""

import numpy as np
import pytest

from miniquant.formats.gguf import compiled
from miniquant.formats.gguf.codecs import rows


def without_nans(array):
    """Bytes as they are; the bits of floats, 0 for a NaN."""
    return np.where(np.isnan(array), 0, array.view(np.uint32)) if array.dtype == np.float32 else array


def in_both_forms(function):
    """``encode`` or ``decode``, which computes its result twice."""

    def both(*given, **named):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(compiled.SWITCH, "0")
            found = function(*given, **named)
            patch.setenv(compiled.SWITCH, "1")
            other = function(*given, **named)
        assert other.shape == found.shape and other.dtype == found.dtype
        if not np.isnan(given[0]).any():
            assert np.array_equal(without_nans(other), without_nans(found)), "numpy and the compiled form differ"
        return found

    return both


@pytest.fixture(autouse=True, scope="module")
def both_forms(request):
    """For the module under test alone."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("encode", "decode"):
            if getattr(request.module, name, None) is getattr(rows, name):
                patch.setattr(request.module, name, in_both_forms(getattr(rows, name)))
        yield
