"""Build the site in Spanish from ``es/``, and put it into the folder ``es`` of the built site.

    python tools/spanish_site.py [--strict]

The configuration is that of the English site with another language and other places. The labs keep their stored
outputs: ``make test`` executes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
WORK, SITE = ROOT / "_build" / "es", ROOT / "_build" / "html" / "es"


def configuration() -> dict[str, object]:
    """``_config.yml`` for the Spanish site."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    config["logo"] = f"../{config['logo']}"
    config["bibtex_bibfiles"] = []
    config["html"]["favicon"] = f"../{config['html']['favicon']}"
    sphinx = config["sphinx"]
    sphinx["extra_extensions"] = [e for e in sphinx["extra_extensions"] if e in ("sphinx-mathjax-offline",)]
    options = sphinx["config"]
    options["language"] = "es"
    options["html_static_path"] = ["../book/_static"]
    options["html_js_files"] += [["spoken.js", {"defer": "defer"}]]
    options["html_theme_options"]["search_bar_text"] = "Buscar en este libro"
    options["togglebutton_hint"], options["togglebutton_hint_hide"] = "Mostrar", "Ocultar"
    options["nb_code_prompt_show"], options["nb_code_prompt_hide"] = "Mostrar el código", "Ocultar el código"
    options["myst_heading_slug_func"] = "spanish.slug"
    for name in ("bibtex_default_style", "bibtex_reference_style", "nitpick_ignore_regex", "add_module_names"):
        options.pop(name, None)
    for name in [name for name in options if name.startswith("auto")]:
        options.pop(name)
    return config


def main() -> int:
    """The command line."""
    WORK.mkdir(parents=True, exist_ok=True)
    config = WORK / "_config.yml"
    config.write_text(yaml.safe_dump(configuration(), allow_unicode=True), "utf-8")
    command = ["jupyter-book", "build", "es", "--toc", "es/_toc.yml", "--config", str(config), "-n", "--all"]
    command += ["--path-output", str(WORK), *(("-W", "--keep-going") if "--strict" in sys.argv[1:] else ())]
    command[0] = shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0]
    environment = {**os.environ, "LABS": "stored", "MINIQUANT_LANG": "es"}
    done = subprocess.run(command, cwd=ROOT, env=environment)
    if done.returncode:
        return done.returncode
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(WORK / "_build" / "html", SITE)
    (SITE / "404.html").unlink(missing_ok=True)  # the site has one for all its folders
    return 0


if __name__ == "__main__":
    sys.exit(main())
