"""The figures: closed, described in a sentence, with labelled axes, and showing what the data say."""

import functools
import math
import re
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle, Rectangle, Wedge
from matplotlib.text import Annotation

from miniquant import fake_quantize, open_gguf_lite, plots, preset, write_gguf_lite
from miniquant.evaluate.quality import Estimate
from miniquant.formats.gguf_lite.sizes import file_sizes, torch_save_size
from miniquant.models.minigpt import MiniGPTConfig, random_model
from miniquant.plots.style import INK, PAPER, svg

W = np.random.default_rng(0).normal(0, 0.02, (8, 128)).astype(np.float32)
ERRORS = {"first": {"a": 0.0, "b": 0.0}, "late": {"a": 3e-5, "b": 2e-7, "c": math.nan}}
KL = {
    "f32": (14_000_000, Estimate(0.0, 0.0)),
    "int8": (4_500_000, Estimate(2e-4, 1e-5)),
    "int4": (3_000_000, Estimate(0.0410, 1e-3)),
    "int4-f16-embeddings": (2_400_000, Estimate(0.0411, 1e-3)),
    "int4-small-embeddings": (2_100_000, Estimate(0.0412, 1e-3)),
}


@pytest.fixture(scope="module")
def model():
    return random_model(0, MiniGPTConfig(vocab_size=64, context=16, d_model=64, n_layers=1, n_heads=2, d_mlp=128))


@pytest.fixture(scope="module")
def paths(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name in ("f32", "int8", "int4-small-embeddings"):
        write_gguf_lite(folder / name, model, preset(name, model))
    return {path.name: path for path in sorted(folder.iterdir())}


BITS = {  # the points of the lab on four bits, of which five lie close together
    **{
        f"INT4, groups of {size}": (4 + 16 / size, Estimate(0.02 + size / 5000, 0.002))
        for size in (16, 32, 64, 128, 256)
    },
    "INT8, a scale a row": (8.0625, Estimate(4e-4, 1e-5)),
    "INT3, groups of 64": (3.25, Estimate(0.14, 0.01)),
    "INT2, groups of 64": (2.25, Estimate(1.5, 0.06)),
}


@pytest.fixture(scope="module")
def figures(model, paths):
    """Each figure once, with the settings and the open figures of the caller before and after."""
    sizes, whole = {name: file_sizes(path) for name, path in paths.items()}, torch_save_size(model)
    before = dict(matplotlib.rcParams), plt.get_fignums()
    with open_gguf_lite(paths["int4-small-embeddings"]) as file:
        drawn = {
            "histograms": plots.histograms(W, fake_quantize(W, 4, per="tensor"), title="weights"),
            "error_heatmap": plots.error_heatmap(W, fake_quantize(W, 4, per="group")),
            "error_bars": plots.error_bars(ERRORS, limit=1e-6, what="layer"),
            "size_pies": plots.size_pies(sizes["int4-small-embeddings"], whole),
            "size_bars": plots.size_bars(sizes, whole, bar=3.0),
            "size_against_kl": plots.size_against_kl(KL),
            "bits_against_kl": plots.bits_against_kl(BITS, guess=0.01, title="fewer bits"),
            "descriptor_bytes": plots.descriptor_bytes(file, "layers.0.mlp.fc1.weight"),
            "number_line": plots.number_line([-0.9, 0.26, 1.3], 0.13, 7),
            "probabilities": plots.probabilities(["a", " b", "\n"], {"one": [0.5, 0.2, 0.3], "two": [0.4, 0.3, 0.3]}),
            "layer_curves": plots.layer_curves({"good": dict.fromkeys(ERRORS["late"], 0.0)}, limit=1e-3),
            "rate_dots": plots.rate_dots(
                {"a": {"x": 9.0, "y": 30.0, "copy": 50.0}, "b": {"x": 8.0, "copy": 40.0}}, limit="copy"
            ),
            "throughput_bars": plots.throughput_bars({"encode": 700.0, "copy": 12_000.0}),
        }
    drawn["settings"] = before, (dict(matplotlib.rcParams), plt.get_fignums())
    return drawn


def drawings(figures):
    return {name: fig for name, fig in figures.items() if name != "settings"}


@functools.cache
def texts(fig):
    fig.draw_without_rendering()
    return [t.get_text() for t in fig.findobj(matplotlib.text.Text) if t.get_text() and t.get_visible()]


def test_every_public_figure_is_drawn_here_or_among_the_lines(figures):
    lines = {"curves", "fitted_lines", "role_bars", "timeline"}  # test_plots_lines
    assert set(drawings(figures)) | lines == set(plots.__all__)


def test_figures_are_closed_and_the_callers_settings_untouched(figures):
    before, after = figures["settings"]
    assert before == after


def test_a_figure_that_fails_leaves_nothing_open():
    before = plt.get_fignums()
    with pytest.raises(ValueError, match="above 0"):
        plots.number_line([1.0], 0.0, 7)
    with pytest.raises(ValueError, match="finite"):
        plots.histograms(W, W * np.nan)
    with pytest.raises(ValueError, match="one shape"):
        plots.error_heatmap(W, W[:2])
    assert plt.get_fignums() == before


def test_every_figure_has_a_sentence_for_those_who_do_not_see_it(figures):
    for name, fig in drawings(figures).items():
        assert 40 < len(fig.alt) < 600, name
        assert fig.alt.endswith("."), name
        assert any(c.isdigit() for c in fig.alt), f"{name}: the sentence says what the data show"


def test_figures_fit_a_page_and_stand_on_white(figures):
    for name, fig in drawings(figures).items():
        assert fig.get_size_inches()[0] <= 7, name
        assert to_rgb(fig.get_facecolor()) == to_rgb(PAPER) and min(to_rgb(PAPER)) > 0.99, name
        assert fig.get_facecolor()[3] == 1, name


@pytest.fixture(scope="module")
def as_svg(figures):
    """Each figure as SVG, and its layout engine before."""
    return {name: (type(fig.get_layout_engine()), fig._repr_svg_()) for name, fig in drawings(figures).items()}


def test_as_svg_a_figure_has_text_in_letters_of_at_least_seven_points_and_names_that_no_other_has(figures, as_svg):
    seen: dict[str, str] = {}
    for name, fig in drawings(figures).items():
        text = as_svg[name][1]
        root = ElementTree.fromstring(text)
        assert len(text) < 400_000, (name, len(text))
        sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", text)]
        assert min(set(sizes) - {6.3}) >= 7, name  # an exponent on an axis is 0.7 of 9 points
        shown = {t.get_text() for ax in fig.axes for t in ax.texts if t.get_text().isalnum()}
        assert shown <= set(root.itertext()), name
        for mark in {e.get("id") for e in root.iter() if e.get("id")}:
            assert seen.setdefault(mark, name) == name, "an id of one page is that of one thing"
        assert INK.lower() in text and PAPER.lower() in text, name


def test_numbers_in_the_text_of_an_svg_keep_their_digits():
    fig, axes = plt.subplots()
    axes.text(0.5, 0.5, "scale = 0.0151")
    plt.close(fig)
    assert "scale = 0.0151" in "".join(ElementTree.fromstring(svg(fig)).itertext())


def test_a_figure_keeps_its_layout_when_it_is_saved_as_svg(figures, as_svg):
    for name, (before, _) in as_svg.items():
        assert type(figures[name].get_layout_engine()) is before, name


def test_every_axis_is_labelled(figures):
    for name, fig in drawings(figures).items():
        axes = [ax for ax in fig.axes if ax.axison and ax.get_label() != "<colorbar>"]
        assert axes or name in ("size_pies", "descriptor_bytes"), name
        assert any(ax.get_xlabel() for ax in axes) or not axes, name
        for ax in axes:
            assert ax.get_ylabel() or any(t.get_text() for t in ax.get_yticklabels()), name


def test_text_stays_inside_the_figure_and_labels_of_one_kind_do_not_cover_each_other(figures):
    for name, fig in drawings(figures).items():
        fig.draw_without_rendering()
        whole = fig.bbox.padded(2)
        labels = [t for t in fig.axes[0].texts if t.get_text().strip()]
        boxes = [matplotlib.text.Text.get_window_extent(t) for t in labels]  # of an annotation, without its arrow
        for i, box in enumerate(boxes):
            assert whole.x0 <= box.x0 and box.x1 <= whole.x1, (name, labels[i])
            assert whole.y0 <= box.y0 and box.y1 <= whole.y1, (name, labels[i])
            for j in range(i):
                assert not box.padded(-1).overlaps(boxes[j].padded(-1)), (name, labels[i], labels[j])


def test_histograms_count_every_weight_and_take_torch_tensors(figures):
    import torch

    after = fake_quantize(W, 4, per="tensor")
    for ax, w in zip(figures["histograms"].axes, (W, after)):
        tallest = np.histogram(w, np.linspace(min(W.min(), after.min()), max(W.max(), after.max()), 121))[0].max()
        assert ax.patches[0].get_xy()[:, 1].max() == tallest
    same = plots.histograms(torch.from_numpy(W), torch.from_numpy(after), title="weights")
    assert same.alt == figures["histograms"].alt
    assert f"{len(np.unique(W)):,} distinct values before, {len(np.unique(after))} after" in same.alt


def test_the_heat_map_shows_the_absolute_error(figures):
    image = figures["error_heatmap"].axes[0].images[0].get_array()
    np.testing.assert_array_equal(image, np.abs(W - fake_quantize(W, 4, per="group")))


def test_exact_zeros_stand_at_the_left_edge_and_are_labelled(figures):
    fig = figures["error_bars"]
    ax = fig.axes[0]
    first, late = ax.lines[:2]
    assert list(first.get_xdata()) == [ax.get_xlim()[0]] * 2
    assert list(late.get_xdata()) == [3e-5, 2e-7, ax.get_xlim()[1]], "what is not a number stands at the right edge"
    assert ax.get_xlim()[0] < 2e-7
    found = texts(fig)
    assert "exactly 0" in found
    assert "limit 1e-06" in found
    assert " nan" in found
    assert first.get_marker() != late.get_marker()
    assert "late: at most nan, 2 beyond the limit" in fig.alt
    assert "exactly 0" not in texts(plots.error_bars({"x": {"a": 1e-3}}, limit=None))
    assert "all exactly 0" in plots.error_bars({"x": {"a": 0.0}}, limit=1e-6).alt


def test_a_byte_has_the_same_area_in_every_disc_and_each_part_says_bytes_and_percent(figures, paths, model):
    sizes, whole = file_sizes(paths["int4-small-embeddings"]), torch_save_size(model)
    ax = figures["size_pies"].axes[0]
    (disc,) = [p for p in ax.patches if isinstance(p, Circle)]
    wedges = [p for p in ax.patches if isinstance(p, Wedge)]
    assert [w.r for w in wedges] == pytest.approx([disc.radius * math.sqrt(sizes.total / whole)] * len(wedges))
    for parts in (sizes.by_dtype, sizes.by_role):
        count = sum(map(bool, parts.values()))
        angles, wedges = sorted(w.theta2 - w.theta1 for w in wedges[:count]), wedges[count:]
        assert angles == pytest.approx(sorted(360 * n / sizes.total for n in parts.values() if n))
        for name, n in parts.items():
            assert not n or any(t.startswith(f"{name}: ") and " %" in t for t in texts(figures["size_pies"])), name


def test_bars_of_roles_add_up_to_the_file_and_end_in_the_ratio(figures, paths, model):
    ax = figures["size_bars"].axes[0]
    bars = [p for p in ax.patches if isinstance(p, Rectangle)]
    for row, path in enumerate(paths.values(), start=1):
        widths = [p.get_width() for p in bars if p.get_y() < row < p.get_y() + p.get_height()]
        assert sum(widths) == pytest.approx(file_sizes(path).total / 1e6)
        lefts = [p.get_x() for p in bars if p.get_y() < row < p.get_y() + p.get_height()]
        assert lefts == pytest.approx([sum(widths[:i]) for i in range(len(widths))])
        ratio = torch_save_size(model) / file_sizes(path).total
        assert any(t.startswith(f"{ratio:.2f}×") for t in texts(figures["size_bars"]))
    assert ax.lines[-1].get_xdata()[0] == pytest.approx(torch_save_size(model) / 3 / 1e6)
    assert "3× smaller" in texts(figures["size_bars"])
    assert len({p.get_hatch() for p in bars}) > 3, "grey print tells the roles apart"


def test_points_of_size_and_kl_are_where_the_data_are_and_each_has_its_name(figures):
    ax = figures["size_against_kl"].axes[0]
    assert ax.get_yscale() == "log"
    names = [t.get_text() for t in ax.texts if isinstance(t, Annotation)]
    assert names == ["f32: exactly 0", *list(KL)[1:]]
    for (size, kl), label in zip(list(KL.values())[1:], ax.texts[1:]):
        assert tuple(label.xy) == (size / 1e6, kl.mean)


def test_points_of_bits_and_kl_are_where_the_data_are_and_the_guess_is_a_line(figures):
    ax = figures["bits_against_kl"].axes[0]
    labels = {t.get_text(): tuple(t.xy) for t in ax.texts if isinstance(t, Annotation)}
    assert labels == {name: (bits, kl.mean) for name, (bits, kl) in BITS.items()}
    assert [line.get_ydata()[0] for line in ax.lines if line.get_label() == "your guess"] == [0.01]
    assert "INT8, a scale a row 8.062 bits and 0.0004 nats" in figures["bits_against_kl"].alt


def test_without_a_guess_there_is_no_line_for_one():
    for guess in (None, float("nan")):
        ax = plots.bits_against_kl(dict([*BITS.items()][-2:]), guess=guess).axes[0]
        assert "your guess" not in [line.get_label() for line in ax.lines]


def test_a_descriptor_shows_each_byte_and_each_value(figures, paths):
    with open_gguf_lite(paths["int4-small-embeddings"]) as file:
        start, end = file.spans["layers.0.mlp.fc1.weight"]
        data = paths["int4-small-embeddings"].read_bytes()[start:end]
        offset = file.tensors["layers.0.mlp.fc1.weight"].offset
    found = texts(figures["descriptor_bytes"])
    assert [t for t in found if len(t) == 2 and set(t) <= set("0123456789abcdef")] == [f"{b:02x}" for b in data]
    for value in (
        "u16: 23 bytes of name follow",
        "UTF-8: 'layers.0.mlp.fc1.weight'",
        "u32 each: 128 × 64",
        "u8: 3: Q4_PER_GROUP_64",
        f"u64: {offset} bytes into the data section",
    ):
        assert value in found
    with open_gguf_lite(paths["f32"]) as file, pytest.raises(KeyError, match="no tensor 'x'"):
        plots.descriptor_bytes(file, "x")


def test_weights_on_the_number_line_go_to_their_levels_and_clip_at_the_ends(figures):
    arrows = [t for t in figures["number_line"].axes[0].texts if isinstance(t, Annotation)]
    assert [round(a.xy[0] / 0.13) for a in arrows] == [-7, 2, 7]
    assert [t for t in texts(figures["number_line"]) if t in ("-7", "0", "7")] == ["-7", "0", "7"]
    assert "127" in texts(plots.number_line([0.5], 0.01, 127))


def test_rates_are_written_at_the_ends_of_their_bars(figures):
    found = texts(figures["throughput_bars"])
    assert {" 700", " 12,000", "MB/s", "encode", "copy"} <= set(found)


@pytest.mark.parametrize("guess", [None, float("nan"), 500.0])
def test_a_guess_of_a_rate_is_a_line_within_the_figure_and_no_guess_is_none(guess):
    axes = plots.throughput_bars({"a": 100.0, "b": 90.0}, guess=guess).axes[0]
    lines = [line.get_xdata()[0] for line in axes.lines]
    assert lines == ([500.0] if guess == 500.0 else [])
    assert axes.get_xlim()[1] > (500 if lines else 100)


def test_dots_of_rates_stand_at_the_rates_and_the_limit_is_a_line(figures):
    axes = figures["rate_dots"].axes[0]
    x, y = (found.get_offsets().tolist() for found in axes.collections)
    assert x == [[9, 0], [8, 1]] and y == [[30, 0]]
    assert axes.lines[0].get_xydata().tolist() == [[50, 0], [40, 1]] and axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert figures["rate_dots"].alt == "2 jobs, rates in MB/s on a logarithmic axis; the medians: x 8.5, y 30; copy 45."
    assert [text.get_text() for text in figures["rate_dots"].legends[0].get_texts()] == ["x", "y", "copy"]
