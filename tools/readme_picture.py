"""Draw the README's picture from a real file: ``python tools/readme_picture.py``."""

from __future__ import annotations

import tempfile
from pathlib import Path

import miniquant as mq
from miniquant import plots
from miniquant.models.pretrained import load_pretrained

TARGET = Path(__file__).resolve().parent.parent / "book" / "_static" / "readme.png"


def main() -> None:
    """Write the trained model, and draw the descriptor of its first quantized matrix."""
    model = load_pretrained()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "minigpt.gguf-lite"
        mq.write_gguf_lite(path, model, mq.preset("int4-small-embeddings", model))
        with mq.open_gguf_lite(path) as file:
            figure = plots.descriptor_bytes(file, "layers.0.mlp.fc1.weight")
    figure.savefig(TARGET, dpi=150, bbox_inches="tight", pad_inches=0.15, metadata={"Software": None})
    print(f"wrote {TARGET.name}: {figure.alt}")


if __name__ == "__main__":
    main()
