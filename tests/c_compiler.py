"""The C compiler of this machine: what CC names, or cc, clang, or Microsoft's cl."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
INSIDE = ["-static-libasan", "-static-libubsan"]  # gcc's options: a program starts in less time than with libraries
MISSING = (
    "these tests compile C, and there is no C compiler: install one that is called cc, clang or cl, or name another in "
    "the variable CC (cl is found in a Developer Command Prompt for Visual Studio)"
)


def compiler() -> list[str]:
    """The compiler's command. Fails with what to do if there is none."""
    named = shlex.split(os.environ.get("CC", ""), posix=os.name != "nt")
    found = named or next(filter(None, map(shutil.which, ("cc", "clang", "cl"))), "")
    assert found, MISSING
    return named or [found]


def is_cl(command: list[str]) -> bool:
    """Whether it is Microsoft's compiler, which has options of its own, or clang that speaks them."""
    return Path(command[0]).stem.lower() in ("cl", "clang-cl")


def compile_c(source: Path, program: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Compile one file, every warning an error (cl has other warnings: there they are only printed)."""
    command = compiler()
    if is_cl(command):
        own = ["/nologo", "/std:c11", "/W3", "/D_CRT_SECURE_NO_WARNINGS", f"/Fo{program.with_suffix('.obj')}"]
        command += [*own, f"/Fe{program}", str(source)]
    else:
        microsoft = ["-D_CRT_SECURE_NO_WARNINGS"] if os.name == "nt" else []  # clang with Microsoft's headers
        command += [*STRICT, *microsoft, *flags, "-o", str(program), str(source)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace")


def compiled(source: Path, program: Path) -> Path:
    """The program that a file of C gives, with sanitizers where the compiler and the machine have them.

    Called without arguments it must end with 2, as the readers do: a machine may lack the sanitizers' libraries.
    """
    program = program.with_suffix(".exe") if os.name == "nt" else program
    for flags in ((),) if is_cl(compiler()) else ([*SANITIZERS, *INSIDE], SANITIZERS, ()):
        done = compile_c(source, program, *flags)
        if done.returncode == 0 and subprocess.run([program], capture_output=True).returncode == 2:
            return program
    raise AssertionError(f"{source.name} does not compile, or does not start:\n{done.stdout}{done.stderr}")
