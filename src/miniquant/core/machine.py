"""What computed a figure: versions and the kind of machine, and nothing that says whose machine it is."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python and of installed packages, without a build's suffix ("+cpu", "+cu130").

    >>> list(versions("numpy", "miniquant"))
    ['python', 'numpy', 'miniquant']
    """
    return {"python": platform.python_version()} | {name: version(name).partition("+")[0] for name in packages}


def threads() -> int:
    """How many threads compute at once, at most: what ``MINIQUANT_THREADS`` says, else four, or the number of cores."""
    said = os.environ.get("MINIQUANT_THREADS", "")
    return max(1, int(said)) if said.isdecimal() else min(4, os.cpu_count() or 1)


def hardware() -> dict[str, str | int | None]:
    """The processor, the number of cores, the system: no host name, no path, no user.

    >>> list(hardware())
    ['cpu', 'cores', 'system']
    """
    return {"cpu": _cpu(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def _cpu() -> str:
    """The processor's name: from Linux's own list, elsewhere what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
