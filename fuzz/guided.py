"""Guided by coverage: atheris (libFuzzer) tries what reaches new lines of a reader, for a set time.

Source: https://github.com/google/atheris
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

IN_NUMPY = {"MINIQUANT_COMPILED": "0"}  # to load compiled codecs, or to compile them, takes longer than a file may


def in_numpy() -> None:
    """For a process that reads damaged files."""
    os.environ.update(IN_NUMPY)


def guide(name: str, seconds: float) -> dict:
    """Run libFuzzer on one reader, in a process of its own; the corpus is made of the reader's valid files."""
    from .readers import READERS

    with tempfile.TemporaryDirectory() as folder:
        corpus, crashes = Path(folder) / "corpus", Path(folder) / "crashes"
        corpus.mkdir()
        crashes.mkdir()
        for index, seed in enumerate(READERS[name].seeds()):
            (corpus / f"seed-{index}").write_bytes(seed.data)
        command = [sys.executable, "-m", "fuzz.guided", name, str(Path(folder) / "file"), str(corpus)]
        command += [f"-max_total_time={max(1, round(seconds))}", f"-artifact_prefix={crashes}/", "-max_len=65536"]
        command += ["-timeout=20", "-rss_limit_mb=1024", "-seed=1", "-print_final_stats=1"]
        place, environment = Path(__file__).parent.parent, {**os.environ, **IN_NUMPY}
        done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=environment)
        found = [path.read_bytes().hex() for path in sorted(crashes.iterdir())]
        grown = len(list(corpus.iterdir()))
    log = done.stdout + done.stderr
    runs = re.findall(r"stat::number_of_executed_units:\s*(\d+)", log)
    edges = re.findall(r"\bcov: (\d+)", log)
    result = {
        "seconds": seconds,
        "files": int(runs[-1]) if runs else 0,
        "coverage": int(edges[-1]) if edges else 0,
        "corpus": grown,
        "findings": found,
    }
    if done.returncode and not found:
        result["findings"] = [f"libFuzzer ended with code {done.returncode}"]
    print(
        f"{name}: {result['files']} files, guided, for {seconds:g} s: {result['coverage']} edges, {grown} in the corpus"
    )
    if result["findings"]:
        print("\n".join(log.splitlines()[-40:]))
    return result


def main() -> None:
    """``python -m fuzz.guided READER FILE CORPUS -libfuzzer=options``."""
    import atheris

    with atheris.instrument_imports(include=["miniquant"]):
        from .mutate import mutated
        from .probe import outcome
        from .readers import READERS
    from .seeds import Seed

    name, path = sys.argv[1], Path(sys.argv[2])
    reader = READERS[name]
    files = reader.seeds()

    def test(data: bytes) -> None:
        problem, _ = outcome(reader.read, path, data)
        if problem:
            raise AssertionError(problem)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        """libFuzzer's own ways on three of four files, ours on the rest; both mend the checksum, where there is one."""
        draw = random.Random(seed)
        if draw.getrandbits(2):
            changed = bytearray(atheris.Mutate(data, most))
            if reader.repair and draw.getrandbits(4):
                reader.repair(changed)
        else:
            known = next((file for file in files if file.data == data), Seed(data or b"\0", [], {}))
            changed = mutated(draw, [known], reader.repair, reader.injuries)
        return bytes(changed[:most])

    atheris.Setup([sys.argv[0], *sys.argv[3:]], test, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
