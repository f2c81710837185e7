"""Marks for tests of what one kind of system has: nothing else is left out anywhere."""

import os
from pathlib import Path

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="fork, named pipes and signals are of POSIX")
linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells so what a process takes")
