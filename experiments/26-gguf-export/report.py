"""Render README.md and the solved PHASE_26_REPORT.md from templates/: every number in them comes out of this code.

python report.py        runs verify.py's measurements, then writes both
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from export import HERE, RECOMMENDED
from verify import Findings, Table, as_markdown, limits, measure, size_rows

from miniquant.core.files import atomic_write
from miniquant.core.machine import versions
from miniquant.formats.gguf_lite.sizes import human
from miniquant.models import corpus
from miniquant.quantization.schemes import GROUP_SIZE, role_of

RENDERED = {"README.md": HERE / "README.md", "PHASE_26_REPORT.md": HERE.parents[1] / "solutions" / "PHASE_26_REPORT.md"}
NOTE = "\n<!-- written by experiments/26-gguf-export/report.py; edit its templates/{name}, not this file -->\n"


def share_rows(counts: Mapping[str, int]) -> Table:
    """One way of counting a file's bytes, largest first."""
    total, shares = sum(counts.values()), sorted(counts.items(), key=lambda share: -share[1])
    return [("what", "bytes", "share"), *((name, f"{n:,}", f"{100 * n / total:.1f} %") for name, n in shares if n)]


def staircase(found: Findings) -> Table:
    """From four bits for every parameter to the recommended file as it is, one overhead at a time."""
    sizes, parameters = found.trips[RECOMMENDED].sizes, dict(found.model.named_parameters())
    embeddings = sum(w.numel() for name, w in parameters.items() if "embedding" in role_of(name))
    vectors = sum(w.numel() for w in parameters.values() if w.ndim == 1)
    steps = {
        "every parameter in 4 bits, and nothing else": sum(w.numel() for w in parameters.values()) // 2,
        "the scales, in float16": sizes.by_role["scales"],
        "embeddings: what they take beyond 4 bits": sizes.by_role["embeddings"] - embeddings // 2,
        "norms and biases, F32: what they take beyond 4 bits": 4 * vectors - vectors // 2,
        "header, metadata and descriptors": sizes.overhead,
        "padding for alignment (the format has none)": sizes.by_part["padding"],
    }
    rows, so_far = [("step", "bytes", "file so far", "torch.save / file so far")], 0
    for what, n in steps.items():
        so_far += n
        rows.append((what, f"{n:,}", f"{so_far:,}", f"{found.baseline / so_far:.2f}"))
    assert so_far == sizes.total, "the steps account for every byte"
    return rows


def values(found: Findings) -> dict[str, str]:
    """What the templates' {names} stand for."""
    sizes, int8, int4 = (found.trips[name].sizes for name in (RECOMMENDED, "int8", "int4"))
    windows = len(found.quality["float"].nll)
    q4 = 100 * sizes.by_dtype["Q4_PER_GROUP_64"] / sizes.total
    bits = 4 + 16 / GROUP_SIZE
    return {
        "recommended": RECOMMENDED,
        "torch_save": human(found.baseline),
        "file": human(sizes.total),
        "saved": human(found.baseline - sizes.total),
        "ratio": f"{found.baseline / sizes.total:.2f}",
        "int8_ratio": f"{found.baseline / int8.total:.2f}",
        "int4_ratio": f"{found.baseline / int4.total:.2f}",
        "int4_embeddings": f"{100 * int4.by_role['embeddings'] / int4.total:.0f} %",
        "q4_percent": f"{q4:.0f} %",
        "scales_percent": f"{100 * sizes.by_role['scales'] / sizes.total:.1f} %",
        "overhead_percent": f"{100 * sizes.overhead / sizes.total:.2f} %",
        "bits": f"{bits:g}",
        "ceiling": f"{32 / bits:.2f}",
        "limits": as_markdown(limits(found)),
        "sizes": as_markdown(size_rows(found)),
        "shares": as_markdown(share_rows(sizes.by_dtype)),
        "staircase": as_markdown(staircase(found)),
        "perplexity": f"{found.quality['float'].perplexity}",
        "held_out": f"{windows} windows (≈), text hash {corpus.text_hash(corpus.held_out_documents('topics'))}, "
        f"Python {versions()['python']}",
    }


def render(found: Findings) -> dict[str, str]:
    """Both documents: file name -> Markdown."""
    filled = {}
    for name in RENDERED:
        template = (HERE / "templates" / name).read_text("utf-8")
        filled[name] = template.format_map(values(found)) + NOTE.format(name=name)
    return filled


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args(arguments)
    for name, text in render(measure()).items():
        with atomic_write(RENDERED[name]) as file:
            file.write(text.encode())
        print(f"wrote {Path(*RENDERED[name].parts[-2:])}")


if __name__ == "__main__":
    main()
