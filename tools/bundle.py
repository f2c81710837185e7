"""The whole course in one folder, for a computer without a network.

The folder is a copy of the course with two more folders: ``wheels`` holds every package that the commands install, for
this system and this version of Python, and ``site`` is the built site, alive. Its START.md says how to begin. Where
``wheels`` is there, ``python -m miniquant.course`` installs from it and asks no registry.

    python tools/bundle.py [_build/bundle]
    python tools/bundle.py --try [_build/bundle]    in a network namespace that has nothing but itself (Linux, root)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from miniquant.course import BUILT, WHEELS, Stopped, this_python

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
START = """# The course, without a network

You need Python {python} and a C compiler on {system}, and neither git nor make. In this folder:

```sh
{command} -m http.server -d site 8000           # the site, alive: open http://127.0.0.1:8000
{command} -m miniquant.course lab               # JupyterLab on the labs
{command} -m miniquant.course book              # run every lab and build the site
{command} -m miniquant.course test              # run all tests
```

The last three set up `.venv` from the folder `wheels`, which takes a few minutes the first time. They ask no registry.

The packages in `wheels` are for {system} and Python {python}. For another system, make a bundle there: `make bundle`,
or `python3 -m miniquant.course bundle`, in a clone of the course.
"""


def tracked() -> list[str]:
    """The files of the course, from git. Raises ``Stopped`` outside a clone."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if done.returncode or not done.stdout:
        raise Stopped("git does not know this folder; a bundle is made in a clone of the course, with git installed")
    names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    return [name for name in names if (ROOT / name).is_file() and not name.startswith(tuple(f"{b}/" for b in BUILT))]


def copy_course(target: Path) -> None:
    """Every file of the course, with its permissions."""
    for name in tracked():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)


def copy_site(target: Path) -> None:
    """The live site. Raises ``Stopped`` if it is not built, or not alive."""
    if not (SITE / "_live" / "live.json").is_file():
        raise Stopped("the live site is not built; make live builds it")
    shutil.copytree(SITE, target, ignore=shutil.ignore_patterns("*.doctree", ".buildinfo"))


def download(target: Path) -> None:
    """Every package that setting up installs, at the versions of constraints.txt, as wheels."""
    requirements = re.sub(r"^-e .*$", "", (ROOT / "requirements.txt").read_text("utf-8"), flags=re.M)
    target.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        (named := Path(folder, "requirements.txt")).write_text(requirements, "utf-8")
        options = ["-r", str(named), "-c", "constraints.txt", "-d", str(target), "--only-binary", ":all:"]
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", *options], cwd=ROOT)
    if done.returncode:
        raise Stopped("pip could not fetch a package; its own lines above say which")
    (target / "for.txt").write_text(this_python() + "\n", "utf-8")


def make(target: Path) -> None:
    """Everything, into a folder made anew. Raises ``Stopped`` if something is missing or the folder is no bundle."""
    if target.exists():
        if not (target / "START.md").is_file():
            raise Stopped(f"{target} is there and is no bundle; name a folder that is not there")
        shutil.rmtree(target)
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    copy_course(part)
    copy_site(part / "site")
    print("== the packages", flush=True)
    download(part / WHEELS)
    python, _, system = this_python().partition(" ")
    command = "py" if os.name == "nt" else "python3"
    (part / "START.md").write_text(START.format(python=python, system=system, command=command), "utf-8")
    part.rename(target)
    total = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {total / 1e6:,.0f} MB, {len(list((target / WHEELS).glob('*.whl')))} packages; read its START.md")


# ---- trying it -------------------------------------------------------------------------------------------------------


def begin(target: Path, commands: list[str]) -> int:
    """Work with a copy of the bundle where there is no network. The exit code of the first command that fails, or 0.

    The process that calls this is alone in its namespace: it has 127.0.0.1, and nothing else answers.
    """
    names = [name for _, name in socket.if_nameindex()]
    print(f"== interfaces: {' '.join(names)}", flush=True)
    if set(names) != {"lo"}:
        raise Stopped("this namespace has interfaces other than its own; call it by --try")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder, "course")
        shutil.copytree(target, there, symlinks=True)
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "UV_"))}
        bare["PIP_CONFIG_FILE"] = os.devnull  # a registry on this disk does not count
        for command in commands:
            begun = time.monotonic()
            code = subprocess.run(["python3", "-m", "miniquant.course", command], cwd=there, env=bare).returncode
            print(f"== {command}: exit code {code} after {time.monotonic() - begun:.0f} s", flush=True)
            if code:
                return code
        with subprocess.Popen(["python3", "-m", "http.server", "-d", "site", "8000"], cwd=there) as server:
            try:
                return 0 if answers("http://127.0.0.1:8000/index.html") else 1
            finally:
                server.terminate()


def answers(address: str) -> bool:
    """Whether a page comes within ten seconds."""
    for _ in range(100):
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5) as page:
            print(f"== {address}: {len(page.read()):,} bytes", flush=True)
            return True
        time.sleep(0.1)
    return False


def main() -> int:
    """The command line; 1 if a bundle cannot be made, or does not work."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "_build" / "bundle")
    parser.add_argument("--try", action="store_true", dest="tried", help="set it up and work with it without a network")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--command", action="append", default=[], help="with --try: of miniquant.course; quick if none is named"
    )
    options = parser.parse_args()
    target = options.folder.resolve()
    try:
        if options.inside:
            return begin(target, options.command or ["quick"])
        if not options.tried:
            make(target)
            return 0
        named = [word for name in options.command for word in ("--command", name)]
        inside = [sys.executable, __file__, "--inside", *named, str(target)]
        return subprocess.run(["unshare", "--net", *inside]).returncode
    except Stopped as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
