"""The directive ``{exhibit}``: 64 weights of MiniGPT to quantize; ``_static/exhibit.js`` does the rest."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from miniquant.models.pretrained import load_pretrained

WEIGHTS = 64


class Exhibit(SphinxDirective):
    """``{exhibit}`` has no argument: the weights are the first group of the model's first feed-forward matrix."""

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        row = load_pretrained().layers[0].mlp.fc1.weight[0, :WEIGHTS].detach().numpy()
        listed = ",".join(repr(float(weight)) for weight in row)
        html = (
            f'<div class="mq-exhibit" role="group" aria-label="quantize {WEIGHTS} weights" data-weights="[{listed}]">'
            f"<p>With JavaScript, you can quantize {WEIGHTS} weights of the model here.</p></div>"
        )
        return [nodes.raw("", html, format="html")]


def add_script(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Only a page with the exhibit loads its script."""
    if 'class="mq-exhibit"' in context.get("body", ""):
        app.add_js_file("exhibit.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("exhibit", Exhibit)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
