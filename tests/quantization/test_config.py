"""Configurations: which layer has which specification, and what makes no sense is refused."""

from __future__ import annotations

import pytest

from miniquant.core.errors import SchemeError
from miniquant.quantization.config import AWQConfig, Config, GPTQConfig, QuantizationConfig, SmoothQuantConfig
from miniquant.quantization.grids import GRID_RULES
from miniquant.quantization.spec import Dtype, QSchemeType, QuantizationSpec

UINT4 = QuantizationSpec(Dtype.uint4, False, qscheme=QSchemeType.per_group, group_size=32)
PLAIN = QuantizationConfig(UINT4)
BY_ROW = QuantizationSpec(Dtype.int8)


def test_weights_are_never_dynamic():
    with pytest.raises(SchemeError, match="weights are the same in each; use is_dynamic=False"):
        QuantizationConfig(QuantizationSpec(Dtype.int8, is_dynamic=True))


@pytest.mark.parametrize("where", ["input_tensors", "output_tensors"])
def test_fixed_ranges_of_inputs_and_outputs_are_shared_by_all_of_them(where):
    with pytest.raises(SchemeError, match=rf"{where}: int8 .* use QSchemeType.per_tensor, or is_dynamic=True"):
        QuantizationConfig(UINT4, **{where: BY_ROW})
    with pytest.raises(SchemeError, match=f"{where}: 8 is no QuantizationSpec"):
        QuantizationConfig(UINT4, **{where: 8})
    for spec in (
        QuantizationSpec(Dtype.int8, is_dynamic=True),
        QuantizationSpec(Dtype.int8, qscheme=QSchemeType.per_tensor),
    ):
        assert getattr(QuantizationConfig(UINT4, **{where: spec}), where) is spec


def test_layers_by_name_and_pattern_the_first_that_fits_counts():
    names = ["a.fc1", "a.fc2", "b.fc1", "head"]
    q8, other, int8 = (QuantizationConfig(rule) for rule in (GRID_RULES["Q8_0"], GRID_RULES["Q4_0"], BY_ROW))
    config = Config(PLAIN, {"a.fc2": q8, "*.fc2": other, "b.*": int8}, exclude=["head"])
    assert config.layers(names) == {"a.fc1": PLAIN, "a.fc2": q8, "b.fc1": int8}


@pytest.mark.parametrize("where", ["exclude", "layer_quant_config"])
def test_a_pattern_that_no_layer_has_is_refused(where):
    config = Config(PLAIN, **{where: {"haed": PLAIN}})
    with pytest.raises(SchemeError, match="no linear layer is called 'haed'; there are a, head"):
        config.layers(["a", "head"])


def test_parts_of_another_kind_are_refused():
    with pytest.raises(SchemeError, match=r"exclude='head' is one string; pass a list of names: \['head'\]"):
        Config(PLAIN, exclude="head")
    with pytest.raises(SchemeError, match="weight: 'int4' is no QuantizationSpec"):
        QuantizationConfig("int4")
    with pytest.raises(SchemeError, match=r"global_quant_config: .* is no QuantizationConfig; write Quant.*\(weight="):
        Config(UINT4)
    with pytest.raises(SchemeError, match=r"a\.fc1: .* is no QuantizationConfig"):
        Config(PLAIN, {"a.fc1": UINT4})
    with pytest.raises(SchemeError, match=r"algo_config: SmoothQuantConfig\(alpha=0.5\) is neither AWQConfig"):
        Config(PLAIN, algo_config=SmoothQuantConfig())
    with pytest.raises(SchemeError, match=r"pre_quant_opt_config: AWQConfig\(clip=True\) is no SmoothQuantConfig"):
        Config(PLAIN, pre_quant_opt_config=AWQConfig())


def test_the_settings_of_the_algorithms_are_those_of_the_algorithms_themselves():
    assert (AWQConfig().clip, SmoothQuantConfig().alpha) == (True, 0.5)
    assert (GPTQConfig().damp_percent, GPTQConfig().desc_act) == (0.01, True)
