"""Write the trained MiniGPT as minigpt.gguf-lite, and manifest.json: what was written, from what, with what.

python export.py [--preset int4-small-embeddings] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

from miniquant import PRESETS, preset, write_gguf_lite
from miniquant.core.files import atomic_write
from miniquant.core.machine import hardware, versions
from miniquant.formats.gguf_lite.sizes import file_sizes, human, torch_save_size
from miniquant.models.minigpt import MiniGPT
from miniquant.models.pretrained import how_it_was_made, load_pretrained
from miniquant.quantization.schemes import resolve

HERE = Path(__file__).resolve().parent
FILE, MANIFEST = "minigpt.gguf-lite", "manifest.json"
RECOMMENDED = "int4-small-embeddings"


def export(preset_name: str, out: Path) -> dict[str, Any]:
    """Write the model and its manifest into the folder ``out``; the manifest comes back as well."""
    model = load_pretrained()
    schemes = write(out / FILE, model, preset_name)
    sizes, baseline = file_sizes(out / FILE), torch_save_size(model)
    manifest = {
        "seed": how_it_was_made()["recipe"]["seed"],
        "preset": preset_name,
        "config": model.config.to_dict(),
        "sizes": {
            "file": sizes.total,
            **sizes.by_part,
            "torch_save": baseline,
            "ratio": round(baseline / sizes.total, 4),
        },
        "sha256": {FILE: hashlib.sha256((out / FILE).read_bytes()).hexdigest(), "minigpt.safetensors": source_hash()},
        "schemes": resolve(model, schemes),
        # everything above is the same on every machine
        "versions": versions("numpy", "torch", "miniquant"),
        "hardware": hardware(),
    }
    with atomic_write(out / MANIFEST) as file:
        file.write((json.dumps(manifest, indent=2) + "\n").encode())
    return manifest


def write(path: Path, model: MiniGPT, preset_name: str) -> dict[str, str]:
    """Write the model by a preset; the file says which, and from which weights. Returns the schemes."""
    schemes = preset(preset_name, model)
    write_gguf_lite(path, model, schemes, {"preset": preset_name, "source_sha256": source_hash()})
    return schemes


@functools.cache
def source_hash() -> str:
    """The SHA-256 of the trained weights' own file."""
    source = resources.files("miniquant").joinpath("assets/minigpt.safetensors")
    return hashlib.sha256(source.read_bytes()).hexdigest()


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default=RECOMMENDED, choices=PRESETS)
    parser.add_argument("--out", type=Path, default=HERE, help="an existing folder (default: beside this script)")
    options = parser.parse_args(arguments)
    sizes = export(options.preset, options.out)["sizes"]
    print(f"wrote {FILE}: {human(sizes['file'])}, {sizes['ratio']:.2f} times smaller than torch.save")
    print(f"wrote {MANIFEST}")


if __name__ == "__main__":
    main()
