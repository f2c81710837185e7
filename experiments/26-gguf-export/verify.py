"""Is the file the model? Every preset is written, rebuilt from its file alone, and compared with the quantized model.

python verify.py            every preset; exits 1 past any limit
python verify.py FILE       one file, against the trained model quantized as the file says
python verify.py --quick    fewer windows of held-out text

report.py measures the same, and writes README.md.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from export import FILE, RECOMMENDED, write
from load import load
from tqdm import tqdm

from miniquant import PRESETS, MiniquantError, fake_quantize_model, open_gguf_lite, preset
from miniquant.evaluate.quality import Quality, evaluate
from miniquant.evaluate.verify import ACTIVATION_LIMIT, WEIGHT_LIMIT, late_rounding, layer_errors, tensor_errors
from miniquant.formats.gguf_lite.sizes import FileSizes, file_sizes, torch_save_size
from miniquant.models import corpus
from miniquant.models.minigpt import MiniGPT
from miniquant.models.pretrained import load_pretrained
from miniquant.quantization.schemes import resolve

SIZE_BARS = {"int8": 3.0, "int4": 6.0}  # times smaller than torch.save; a preset's name begins with its family
PROMISED = ("int8", RECOMMENDED)  # the presets that must reach their bar
MEASURED = (*PROMISED, "int4-everything")  # the presets whose quality is measured on held-out text
NLL_BAR = 5e-4  # nats a token, for INT8
QUICK = 16  # windows of held-out text
TEXT = (
    "A file holds numbers, names and shapes. Whoever reads it must know where each of them begins, how many bytes it "
    "takes, and in which order they stand. If one of these is wrong, the model still runs, and it runs wrongly."
)

Table = list[tuple[str, ...]]  # a header, then rows


@dataclass(frozen=True)
class RoundTrip:
    """One file held against its model: sizes, and max abs error of each tensor and of each layer's output."""

    schemes: dict[str, str]
    sizes: FileSizes
    weights: dict[str, float]
    layers: dict[str, float]
    late_weights: dict[str, float]  # the trap: the same two if the model in memory keeps the exact scale
    late_layers: dict[str, float]


@dataclass(frozen=True)
class Findings:
    """Everything that the verdict and the README rest on. ``baseline`` is the size of ``torch.save``, in bytes."""

    model: MiniGPT
    baseline: int
    trips: dict[str, RoundTrip]
    quality: dict[str, Quality]


def measure(limit: int | None = None) -> Findings:
    """Write, rebuild and compare every preset; measure some on at most ``limit`` windows of held-out text."""
    model = load_pretrained()
    trips = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in tqdm(PRESETS, desc="writing and rebuilding", unit="preset"):
            path = Path(folder, FILE)
            schemes = write(path, model, name)
            trips[name] = round_trip(model, schemes, path)
    windows = corpus.held_out_windows(limit=limit)
    quality = {"float": evaluate(model, windows, progress=True)}
    for name in MEASURED:
        quantized = fake_quantize_model(model, preset(name, model))
        quality[name] = evaluate(quantized, windows, reference=model, progress=True)
    return Findings(model, torch_save_size(model), trips, quality)


def round_trip(model: MiniGPT, schemes: Mapping[str, str], path: Path) -> RoundTrip:
    """Compare the file at ``path`` with ``model`` fake-quantized by ``schemes``, on the same fixed input."""
    tokens = torch.tensor([corpus.load_tokenizer().encode(TEXT).ids])  # (1, time)
    fake, reloaded = fake_quantize_model(model, schemes), load(path)
    computed, stored = late_rounding(model, schemes)
    return RoundTrip(
        resolve(model, schemes),
        file_sizes(path),
        tensor_errors(fake.state_dict(), reloaded.state_dict()),
        layer_errors(fake, reloaded, tokens),
        tensor_errors(computed, stored),
        layer_errors(_twin(model, computed), _twin(model, stored), tokens),
    )


def _twin(model: MiniGPT, state: Mapping[str, torch.Tensor]) -> MiniGPT:
    other = copy.deepcopy(model)
    other.load_state_dict(state)
    return other.eval()


# ---- what was found, as tables ---------------------------------------------------------------------------------------


def limits(found: Findings, judge_quality: bool = True) -> Table:
    """Each promise: what, bound, found, and whether it holds."""
    trips, n = found.trips.values(), len(found.trips)
    weights = np.max([error for trip in trips for error in trip.weights.values()])  # unlike max, keeps a NaN
    layers = np.max([error for trip in trips for error in trip.layers.values()])
    trap, sizes = found.trips[RECOMMENDED], found.trips[RECOMMENDED].sizes
    rows = [
        ("what", "bound", "found", "ok"),
        (f"weights: reloaded - fake-quantized, {n} presets", "exactly 0", f"{weights:g}", _yes(weights == 0)),
        (f"activations of every layer: the same, {n} presets", "exactly 0", f"{layers:g}", _yes(layers == 0)),
        _trap("weights", WEIGHT_LIMIT, max(trap.late_weights.values())),
        _trap("activations", ACTIVATION_LIMIT, max(trap.late_layers.values())),
    ]
    for name in PROMISED:
        ratio, bar = found.baseline / found.trips[name].sizes.total, bar_of(name)
        rows.append((f"size: torch.save / {name}", f"at least {bar:g}", f"{ratio:.2f}", _yes(ratio >= bar)))
    overhead = sizes.by_part["header"] + sizes.by_part["descriptors"]
    percent = f"{100 * overhead / sizes.total:.2f} %"
    rows.append((f"header and descriptors, {RECOMMENDED}", "reported", f"{overhead:,} bytes, {percent}", "-"))
    for name in MEASURED:
        kl, change = found.quality[name].kl_divergence, found.quality[name].nll_change(found.quality["float"])
        rows.append((f"KL(float, {name}), nats a token", "reported", str(kl), "-"))
        judged = judge_quality and name == "int8"
        verdict = (f"abs < {NLL_BAR:g}", _yes(abs(change.mean) < NLL_BAR)) if judged else ("reported", "-")
        rows.append((f"change of NLL, {name}, nats a token", verdict[0], str(change), verdict[1]))
    return rows


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def _trap(what: str, limit: float, error: float) -> tuple[str, ...]:
    verdict = f"past the {limit:g} allowed" if error > limit else "within the limit"
    return f"the trap, exact scale in memory: {what}", "reported", f"≈ {error:.1e}", verdict


def bar_of(name: str) -> float | None:
    """The size bar of a preset's family; f32 and f16 have none."""
    return SIZE_BARS.get(name.partition("-")[0])


def size_rows(found: Findings) -> Table:
    """Every preset against ``torch.save``, and why a preset misses its bar."""
    rows = [("preset", "bytes", "torch.save / file", "bar", "reached")]
    for name, trip in found.trips.items():
        ratio, bar = found.baseline / trip.sizes.total, bar_of(name)
        reached = "-" if bar is None else "yes" if ratio >= bar else f"no: {_reason(trip)}"
        rows.append((name, f"{trip.sizes.total:,}", f"{ratio:.2f}", f"{bar:g}" if bar else "-", reached))
    return rows


def _reason(trip: RoundTrip) -> str:
    """What takes the room beside the quantized weights: the embeddings, in each preset that misses its bar."""
    percent = 100 * trip.sizes.by_role["embeddings"] / trip.sizes.total
    return f"{trip.schemes['tok_emb.weight'].upper()} embeddings take {percent:.0f} % of the file"


def error_rows(trip: RoundTrip) -> Table:
    """max abs error, tensor by tensor, then layer by layer; beside it, the trap."""
    rows = [("tensor", "stored as", "reloaded - fake-quantized", "exact scale in memory")]
    rows += [(n, trip.schemes[n], _short(e), _short(trip.late_weights[n])) for n, e in trip.weights.items()]
    rows += [("output of layer", "", "", "")]
    rows += [(n, "", _short(e), _short(trip.late_layers[n])) for n, e in trip.layers.items()]
    return rows


def _short(error: float) -> str:
    return "0" if error == 0 else f"{error:.1e}"


def as_markdown(rows: Table) -> str:
    """A table that reads well in a terminal, and is Markdown."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


# ---- the command line ------------------------------------------------------------------------------------------------


def verify_all(limit: int | None) -> Iterator[str]:
    """Measure, and print the tables; what it yields are the promises that do not hold."""
    found = measure(limit)
    print(f"\nmax abs error, {RECOMMENDED}\n\n{as_markdown(error_rows(found.trips[RECOMMENDED]))}")
    print(f"\nsize; torch.save takes {found.baseline:,} bytes\n\n{as_markdown(size_rows(found))}")
    text = corpus.text_hash(corpus.held_out_documents("topics"))
    print(f"\nlimits; {len(found.quality['float'].nll)} windows of held-out text {text}\n")
    table = limits(found, judge_quality=limit is None)
    print(as_markdown(table))
    yield from (f"{what}: expected {bound}, found {value}" for what, bound, value, ok in table if ok == "NO")


def verify_file(path: Path) -> Iterator[str]:
    """The same for one file: its descriptors say how the trained model is to be fake-quantized."""
    with open_gguf_lite(path) as file:
        schemes = {name: info.dtype.scheme for name, info in file.tensors.items()}
    model = load_pretrained()
    trip = round_trip(model, schemes, path)
    print(as_markdown(error_rows(trip)))
    print(f"\n{trip.sizes.total:,} bytes; torch.save / file = {torch_save_size(model) / trip.sizes.total:.2f}")
    for name, error in {**trip.weights, **trip.layers}.items():
        if error != 0:
            yield f"{name}: expected an error of exactly 0, found {error:g}"


def main(arguments: list[str] | None = None) -> int:
    """The command line: 0 if every limit holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="a .gguf-lite file (default: every preset, written anew)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} windows of held-out text instead of all")
    options = parser.parse_args(arguments)
    try:
        broken = list(verify_file(options.file) if options.file else verify_all(QUICK if options.quick else None))
    except (MiniquantError, OSError) as error:
        broken = [str(error)]
    print("\nEvery limit holds." if not broken else "\nPast the limits:\n  " + "\n  ".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
