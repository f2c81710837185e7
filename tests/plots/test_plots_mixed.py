"""The figures of mixes say what is in them."""

from __future__ import annotations

from matplotlib.text import Text

from miniquant.plots.mixed import File, alone, foretold, kl_by_bytes


def test_the_matrices_that_cost_least_and_most_are_named():
    costs = {"blk.0.a.weight": {"Q4_0": (18, 0.5)}, "blk.1.a.weight": {"Q4_0": (18, 0.25)}}
    fig = alone(costs, ["Q4_0"])
    assert fig.alt == (
        "KL of 2 matrices, one quantized at a time: Q4_0 from 0.25 (blk.1.a.weight) to 0.5 (blk.0.a.weight)."
    )
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["blk.0.a", "blk.1.a"]


def test_what_was_measured_is_told_in_parts_of_the_sum():
    fig = foretold({"ours": ([0.1, 0.2], [0.1, 0.3])})
    assert "ours measured 1.00 to 1.50 times the sum" in fig.alt


def test_every_series_of_every_model_is_told_from_its_smallest_to_its_largest_file():
    files = [File("Q6_K", 210, (0.01, 0.009, 0.011)), File("Q4_K", 144, (0.1, 0.09, 0.11))]
    fig = kl_by_bytes({"MiniGPT": {"mixes": files, "llama.cpp": files[:1]}, "MiniLlama": {"mixes": files[1:]}})
    assert "MiniGPT, mixes: from 0.1 at 144 bytes to 0.01 at 210" in fig.alt
    assert "MiniLlama, mixes: from 0.1 at 144 bytes to 0.1 at 144" in fig.alt
    assert len(fig.axes) == 2
    assert [text.get_text() for text in fig.axes[0].texts] == ["Q6_K"]


def test_names_of_files_that_lie_side_by_side_stand_above_one_another():
    files = [File(f"Q{n}_K_M", 200_000 + n, (0.01, 0.01, 0.01)) for n in range(5)]
    fig = kl_by_bytes({"MiniGPT": {"mixes": files[:2], "llama.cpp": files}})
    fig.draw_without_rendering()
    boxes = [Text.get_window_extent(label) for label in fig.axes[0].texts]
    assert len(boxes) == 5 and not any(box.count_overlaps(boxes[:i]) for i, box in enumerate(boxes))
