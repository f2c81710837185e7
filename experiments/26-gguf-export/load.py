"""Rebuild a MiniGPT from minigpt.gguf-lite alone: the file brings its config, its weights and their names.

python load.py [FILE]
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from miniquant import MiniquantError, open_gguf_lite
from miniquant.formats.gguf_lite.sizes import human
from miniquant.models.corpus import load_tokenizer
from miniquant.models.pretrained import load_gguf_lite as load  # what verify.py, a test or a notebook imports

HERE = Path(__file__).resolve().parent
PROMPT = "A function is"

__all__ = ["load"]


def main(arguments: list[str] | None = None) -> int:
    """The command line: show what the file holds, and let the model continue a sentence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=HERE / "minigpt.gguf-lite")
    path = parser.parse_args(arguments).file
    try:
        with open_gguf_lite(path) as file:  # lazy: no tensor is read yet
            print(f"{path.name}: {human(file.n_bytes)}, {len(file.tensors)} tensors")
            for key, value in file.metadata.items():
                print(f"  {key} = {value}")
            for dtype, count in sorted(Counter(info.dtype for info in file.tensors.values()).items()):
                print(f"  {dtype.name}: {count} of {len(file.tensors)} tensors")
        model = load(path)
    except FileNotFoundError:
        print(f"there is no {path.name} yet; run export.py first")
        return 1
    except MiniquantError as error:
        print(error)
        return 1
    tokenizer = load_tokenizer()
    continuation = model.greedy(tokenizer.encode(PROMPT).ids, 40)
    print(f"\n{PROMPT} |{tokenizer.decode(continuation)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
