"""bump: the file that is memory already, and a runtime that never dequantizes more than a block.

Reading and writing need numpy alone; the runtime compiles its kernels with numba when it is imported.
"""

from .read import BumpFile, open_bump
from .types import BumpConfig, BumpType
from .write import write_bump

__all__ = ["BumpConfig", "BumpFile", "BumpType", "open_bump", "write_bump"]
