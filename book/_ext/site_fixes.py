"""What the site needs beyond configuration: fresh executions, no script from another host, no broken script."""

from __future__ import annotations

import enum
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).resolve().parents[2]
SHOWN = (  # what pages import, include or read: when one of these changes, every page is executed again
    "src/miniquant/**/*.py",
    "src/miniquant/assets/*",
    "readers/*",
    "benchmarks/*.json",
    "book/*.json",
    "experiments/**/*.json",
)
UNDOCUMENTED = re.compile(  # of miniquant's modules: what no program imports
    r"\.(_|lab\.|lessons\b|plots_)|^miniquant\.course$"
)
SHAPES = re.compile(r"[a-z_]+(, [a-z_]+)*: ")  # "w, w_hat: (out, in)"


def choose_execution(app: Sphinx, config: Config) -> None:
    """Execute what has changed; with LABS=stored in the environment, leave the labs' stored outputs alone.

    The cache is named after a hash of the library and of this Python, so an output is never older than what made it.
    """
    os.environ["MINIQUANT_PROGRESS"] = os.devnull  # building the book is not doing the exercises
    config.html_baseurl = os.environ.get("SITE_ADDRESS") or config.html_baseurl  # where it will be published
    if os.environ.get("LABS") == "stored":
        config.nb_execution_excludepatterns = ["notebooks/*.ipynb", "solutions/*.ipynb"]
    digest = hashlib.sha256(sys.version.encode())
    for pattern in SHOWN:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    caches = Path(app.outdir).resolve().parent / ".jupyter_cache"
    current = caches / digest.hexdigest()[:16]
    for old in caches.glob("*"):
        if old != current:
            shutil.rmtree(old, ignore_errors=True)
    current.mkdir(parents=True, exist_ok=True)
    config.nb_execution_cache_path = str(current)


def remove_old_site(app: Sphinx) -> None:
    """A complete build begins with an empty folder: no page stays behind that is no longer part of the book."""
    if app.fresh_env_used and Path(app.outdir, "searchindex.js").exists():
        shutil.rmtree(app.outdir)
        Path(app.outdir).mkdir()


def drop_thebe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Leave out the scripts for live code: they come from another host, and declare a constant twice on each page."""
    for kind in ("script_files", "css_files"):
        context[kind] = [asset for asset in context.get(kind, []) if "thebe" not in _text_of(asset)]


def _text_of(asset: object) -> str:
    attributes = getattr(asset, "attributes", {})
    return f"{getattr(asset, 'filename', asset)} {attributes.get('body', '')}".lower()


def add_modules(app: Sphinx, page: str, source: list[str]) -> None:
    """Put every public module that the reference does not mention at the end of its page, so that none is forgotten."""
    if not page.startswith("book/api/"):
        return
    said = "".join(path.read_text("utf-8") for path in (ROOT / "book" / "api").glob("*.md"))
    for path in sorted((ROOT / "src" / "miniquant").rglob("*.py")):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        name = ".".join(parts)
        mentioned = f"automodule:: {name}\n" in said or UNDOCUMENTED.search(name)
        if not mentioned and reference_page(name) == page.rpartition("/")[2]:
            source[0] += f"\n## `{name}`\n\n```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```\n"


def reference_page(module: str) -> str:
    """The page of ``book/api`` that shows a module: its package's, or that of its format; ``core`` for all others."""
    pages = {path.stem for path in (ROOT / "book" / "api").glob("*.md")}
    _, package, *inner = module.split(".")
    if package == "formats" and inner and inner[0] in pages:
        return inner[0]
    name = {"quark": "models", "plots": "inspect"}.get(package, package)
    return name if name in pages else "core"


def keep_lines(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep the lines of a docstring that say ``name: shape, type`` apart, and read ``|`` in its prose as itself."""
    paragraphs = []
    for paragraph in "\n".join(lines).split("\n\n"):
        if ">>>" not in paragraph:
            pieces = re.split(r"(``.+?``)", paragraph, flags=re.S)  # every other one is code
            pieces[::2] = [piece.replace("|", r"\|") for piece in pieces[::2]]
            paragraph = "".join(pieces)
        paragraphs.append(_line_block(paragraph) if SHAPES.match(paragraph) else paragraph)
    lines[:] = "\n\n".join(paragraphs).split("\n")


def _line_block(paragraph: str) -> str:
    return "\n".join(f"| {line}" if SHAPES.match(line) else f"  {line}" for line in paragraph.split("\n"))


def plain_signature(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str | None, returns: str | None
) -> tuple[str, None] | None:
    """An enumeration is not called; its signature would be that of every enumeration."""
    return ("", None) if isinstance(obj, enum.EnumMeta) else None


def skip_aliases(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """The fields of a named tuple stand in its signature already."""
    return True if (getattr(obj, "__doc__", "") or "").startswith("Alias for field number") else None


def write_first_page(app: Sphinx, error: Exception | None) -> None:
    """``index.html`` leads on to the book's first page, and has a title and an icon of its own."""
    if error or app.builder.name != "html":
        return
    target = f"{app.config.root_doc}.html"
    icon = f"_static/{Path(app.config.html_favicon).name}"
    Path(app.outdir, "index.html").write_text(
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{app.config.html_title}</title>\n'
        f'<link rel="icon" href="{icon}">\n<meta http-equiv="Refresh" content="0; url={target}">\n</head>\n'
        f'<body><p><a href="{target}">{app.config.html_title}</a></p></body>\n</html>\n',
        "utf-8",
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("config-inited", choose_execution)
    app.connect("builder-inited", remove_old_site, priority=1)
    app.connect("source-read", add_modules)
    app.connect("autodoc-process-docstring", keep_lines)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("build-finished", write_first_page, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
