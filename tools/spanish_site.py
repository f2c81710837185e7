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
    config["logo"] = str(ROOT / config["logo"])
    config["bibtex_bibfiles"] = [str(ROOT / name) for name in config["bibtex_bibfiles"]]
    config["html"]["favicon"] = str(ROOT / config["html"]["favicon"])
    sphinx = config["sphinx"]
    sphinx["local_extensions"] = {name: str(ROOT / place) for name, place in sphinx["local_extensions"].items()}
    options = sphinx["config"]
    options["language"] = "es"
    options["html_static_path"] = [str(ROOT / "book/_static")]
    options["html_js_files"] += [["spoken.js", {"defer": "defer"}]]
    options["html_theme_options"]["search_bar_text"] = "Buscar en este libro"
    options["togglebutton_hint"], options["togglebutton_hint_hide"] = "Mostrar", "Ocultar"
    options["nb_code_prompt_show"], options["nb_code_prompt_hide"] = "Mostrar el código", "Ocultar el código"
    options["myst_heading_slug_func"] = "spanish.slug"
    return config


def main() -> int:
    """The command line."""
    WORK.mkdir(parents=True, exist_ok=True)
    config = WORK / "_config.yml"
    config.write_text(yaml.safe_dump(configuration(), allow_unicode=True), "utf-8")
    toc = str(ROOT / "es" / "_toc.yml")
    command = ["jupyter-book", "build", "es", "--toc", toc, "--config", str(config), "-n", "--all"]
    command += ["--path-output", str(WORK), *(("-W", "--keep-going") if "--strict" in sys.argv[1:] else ())]
    command[0] = shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0]
    environment = {**os.environ, "LABS": "stored", "MINIQUANT_LANG": "es"}
    done = subprocess.run(command, cwd=ROOT, env=environment)
    if done.returncode:
        return done.returncode
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(WORK / "_build" / "html", SITE)
    (SITE / "404.html").unlink(missing_ok=True)  # the site has one for all its folders
    for path in SITE.glob("_static/*.html"):  # templates that the theme copies along
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
