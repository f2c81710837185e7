"""The files that the inspector's page offers: one of each format, and some that are wrong on purpose.

Imported only where the library and PyTorch are installed.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
from pathlib import Path
from typing import Any

import torch

from miniquant import preset, write_gguf_lite
from miniquant.formats.bump import write_bump
from miniquant.models.corpus import load_tokenizer
from miniquant.models.pretrained import load_pretrained
from miniquant.models.to_gguf import write_minigpt


class _Command:
    """An object whose pickle runs a command when it is loaded. Nothing here loads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo This pickle ran a command.",)


def write(folder: Path) -> list[dict[str, Any]]:
    """Write every sample into a folder; for each its file, a title, and where it and what lies beside it are served."""
    folder.mkdir(parents=True)
    model, tokenizer = load_pretrained(), load_tokenizer()
    gguf = folder / "minigpt-q4_0.gguf"
    write_minigpt(gguf, model, tokenizer, "Q4_0")
    write_minigpt(folder / "minigpt-q8_0.gguf", model, tokenizer, "Q8_0")
    write_gguf_lite(folder / "minigpt-int4.gguf-lite", model, preset("int4", model))
    (folder / "bump").mkdir()
    write_bump(gguf, folder / "bump" / "minigpt.bump")
    shutil.move(folder / "bump" / "minigpt.bump", folder / "minigpt.bump")
    norms = {name: w.clone() for name, w in model.state_dict().items() if ".ln1." in name}
    torch.save(norms, folder / "norms.pt")
    (folder / "command.pkl").write_bytes(pickle.dumps(_Command(), 4))
    whole = gguf.read_bytes()
    (folder / "wrong-count.gguf").write_bytes(whole[:8] + struct.pack("<Q", 2**40) + whole[16:60_000])
    (folder / "cut.gguf").write_bytes(whole[:60_000])
    lite = (folder / "minigpt-int4.gguf-lite").read_bytes()
    (folder / "wrong-magic.gguf-lite").write_bytes(lite[3::-1] + lite[4:60_000])
    titles = {
        "minigpt-q4_0.gguf": "MiniGPT in Q4_0",
        "minigpt-q8_0.gguf": "MiniGPT in Q8_0",
        "minigpt-int4.gguf-lite": "MiniGPT as GGUF-lite",
        "minigpt.bump": "MiniGPT as bump",
        "minigpt.safetensors": "MiniGPT as safetensors",
        "norms.pt": "A few weights, saved by torch.save",
        "command.pkl": "A pickle that would run a command",
        "wrong-count.gguf": "GGUF with a wrong count",
        "cut.gguf": "GGUF that is cut short",
        "wrong-magic.gguf-lite": "GGUF-lite with its magic reversed",
    }
    places = {name: f"samples/{name}" for name in titles} | {"minigpt.safetensors": "assets/minigpt.safetensors"}
    beside = {"minigpt.bump": {"config.json": "samples/bump/config.json"}}
    found = [
        {"file": name, "title": title, "url": places[name], "beside": beside.get(name, {})}
        for name, title in titles.items()
    ]
    (folder / "samples.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return found
