"""What a fuzzer or an attack found, each with a name: it must not come back."""

from __future__ import annotations

import pytest
from lines import lines_of_python

from conformance import gguf_lite_files as lite
from fuzz import bump
from miniquant import open_gguf_lite
from miniquant.formats.fields import fields


@pytest.mark.parametrize("rows", [2**16, 2**32 - 1])
def test_billions_of_rows_of_nothing_are_decoded_at_once(rows, tmp_path):
    """A tensor of no bytes whose rows were walked through chunk by chunk: a fifth of a second for 20 bytes of file."""
    path = tmp_path / "f"
    path.write_bytes(lite.assemble([lite.descriptor(dims=(rows, 0), dtype=lite.Q4)]))
    with open_gguf_lite(path) as file:
        assert lines_of_python(lambda: file.tensor("w")) < 200
        assert file.tensor("w").shape == (rows, 0)
        assert file.quantized("w").values.shape == (rows, 0)


def test_a_config_json_that_claims_billions_of_layers_costs_the_viewer_no_time():
    """The names of all its tensors were listed, although the file beside it has a dozen: minutes, and memory."""
    weights, _, config = bump.bump_seeds()[0].data.partition(bump.BETWEEN)
    honest, lying = config, config.replace(b'"num_hidden_layers": 1', b'"num_hidden_layers": %d' % (2**31))
    assert lying != honest
    few = lines_of_python(lambda: fields(weights, {"config.json": honest}))
    assert lines_of_python(lambda: fields(weights, {"config.json": lying})) < 2 * few
