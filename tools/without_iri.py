"""Imported before ``nbformat``, or as a pytest plugin ``-p tools.without_iri``: what it cannot need is left out.

``nbformat`` imports ``jsonschema``, and that builds 38 parsers for addresses in the letters of all languages, for three
seconds in every process. No notebook's schema asks for such an address, and without the parsers nothing else changes.
"""

from __future__ import annotations

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # an import of it is refused, as if it were not installed
