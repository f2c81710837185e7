"""``python -m fuzz.report``: put the recorded counts into SECURITY.md, between its two marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .__main__ import CHUNK

HERE = Path(__file__).parent
SECURITY = HERE.parent / "SECURITY.md"
BEGIN, END = "<!-- counts: python -m fuzz.report -->\n", "<!-- end of counts -->\n"
NAMES = {"gguf-lite": "GGUF-lite", "gguf": "GGUF", "bump": "bump", "viewer": "the byte viewer"}


def counts(results: dict[str, Any]) -> str:
    """The results as Markdown: a table of the damaged files, one of the guided runs."""
    limits, versions = results["limits"], results["versions"]
    lines = ["| reader | damaged files | read | refused | anything else | slowest file | most memory |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    total = 0
    for name in NAMES:
        if found := results.get("mutated", {}).get(name):
            total += found["files"]
            cells = [NAMES[name], f"{found['files']:,}", f"{found['accepted']:,}", f"{found['refused']:,}"]
            cells += [str(len(found["findings"])), f"{1000 * found['worst_seconds']:.0f} ms"]
            cells += [f"{found['worst_memory'] / 2**10:,.0f} KiB"]
            lines.append(f"| {' | '.join(cells)} |")
    seeds = {found["seed"] for found in results.get("mutated", {}).values()}
    named = ", ".join(map(str, sorted(seeds)))
    lines += [
        "",
        f"{total:,} damaged files in all, of seed {named}, under Python {versions['python']} and NumPy "
        f"{versions['numpy']}. Each file had {limits['seconds']:g} s of processor time, and each run of {CHUNK:,} "
        f"files {limits['memory'] >> 20} MiB of address space more than its process had before the first.",
    ]
    if guided := results.get("guided"):
        lines += ["", "| reader, guided by coverage | seconds | files | edges reached | anything else |"]
        lines += ["| --- | ---: | ---: | ---: | ---: |"]
        for name in NAMES:
            if found := guided.get(name):
                cells = [NAMES[name], f"{found['seconds']:g}", f"{found['files']:,}", f"{found['coverage']:,}"]
                lines.append(f"| {' | '.join([*cells, str(len(found['findings']))])} |")
    return "\n".join(lines) + "\n"


def rendered(page: str, results: dict[str, Any]) -> str:
    """The page with the counts of these results."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{counts(results)}\n{END}{after}"


def main() -> None:
    """Write the page."""
    page = SECURITY.read_text("utf-8")
    SECURITY.write_text(rendered(page, json.loads((HERE / "results.json").read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main()
