"""Measure the course's table of everything: what each way to make a model smaller costs, in PyTorch and in llama.cpp.

python measure.py [--jobs 2] [--windows N] [--out FOLDER] [--only TEXT] [--again TEXT]

Every model of ``SUBJECTS`` with every row of ``METHODS``. Each row goes into results.json as soon as it is measured,
with a hash of what it depends on. A second run measures only what is missing or stale. An hour on two cores.
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from methods import METHODS, Method
from subjects import SUBJECTS, Workshop, digest

from miniquant.core.files import atomic_write
from miniquant.core.machine import hardware, versions
from miniquant.evaluate.llamacpp import LlamaCppError
from miniquant.evaluate.paired import CONFIDENCE, RESAMPLES
from miniquant.evaluate.quality import Quality, evaluate, evaluate_in_llamacpp
from miniquant.models import corpus

HERE = Path(__file__).resolve().parent
WINDOWS, CALIBRATION = 40, 128  # of 256 tokens: held-out text to measure on, training text to calibrate with
Row = dict[str, Any]
Results = dict[str, Any]


# ---- one row ---------------------------------------------------------------------------------------------------------


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@functools.cache
def workshop(label: str, windows: int) -> Workshop:
    """The workshop of a model, made once in a process."""
    return Workshop(SUBJECTS[label], Path(tempfile.mkdtemp(dir=_folder().name)), windows, CALIBRATION)


@functools.cache
def texts(label: str, windows: int) -> dict[str, str]:
    """Hashes of what every row of a model depends on: its weights, the text it is measured on, calibration text."""
    shop = workshop(label, windows)
    return {
        "weights": digest(shop.subject.weights.read_bytes()),
        "held_out": digest(shop.windows.astype("<i8").tobytes()),
        "calibration": digest(shop.tokens.astype("<i8").tobytes()),
    }


def depends_on(label: str, method: Method, windows: int = WINDOWS) -> str:
    """The hash that a row is stored with: of model and texts, the method's own code, and llama.cpp's version."""
    parts = [label, *texts(label, windows).values(), method.fingerprint(), version("xllamacpp")]
    return digest("\n".join(parts).encode())


def measure(label: str, name: str, windows: int = WINDOWS) -> Row:
    """One row: bytes, bits of a weight, seconds of processor time, and what each program makes of every window."""
    shop, method, start = workshop(label, windows), METHODS[name], time.process_time()
    made = method.make(shop, method.given)
    row: Row = {
        "hash": depends_on(label, method, windows),
        "kind": method.kind,
        "how": method.how,
        "plain": method.plain,
        "bytes": made.n_bytes,
        "bits": None if made.bits is None else round(made.bits, 4),
        "seconds": round(time.process_time() - start, 1),
        **made.about,
    }
    if made.model is not None:
        row["pytorch"] = _by_window(evaluate(made.model, shop.windows, shop.reference, tokenizer=shop.tokenizer))
    if made.path is not None:
        try:
            found = evaluate_in_llamacpp(
                made.path, shop.windows, shop.reference, tokenizer=shop.tokenizer, **made.llamacpp
            )
            row["llamacpp"] = _by_window(found)
        except LlamaCppError as error:
            row["refused"] = str(error)[:200]
    return row


def _by_window(quality: Quality) -> dict[str, list[float]]:
    assert quality.kl is not None
    return {"nll": _short(quality.nll), "kl": _short(quality.kl)}


def _short(samples: np.ndarray) -> list[float]:
    return [float(f"{x:.6g}") for x in samples]


# ---- all rows, into a file that grows --------------------------------------------------------------------------------


def wanted() -> Iterator[tuple[str, str]]:
    """Every model with every row that it has."""
    return ((label, name) for label in SUBJECTS for name, method in METHODS.items() if label in method.models)


def stale(found: Results, windows: int = WINDOWS) -> list[tuple[str, str]]:
    """The rows that are missing in the results, or depend on something that has changed."""
    stored = {label: model["rows"] for label, model in found.get("models", {}).items()}
    return [
        (label, name)
        for label, name in wanted()
        if stored.get(label, {}).get(name, {}).get("hash") != depends_on(label, METHODS[name], windows)
    ]


def empty(windows: int = WINDOWS) -> Results:
    """The results before the first row: what was measured on, and with what."""
    models = {}
    for label in SUBJECTS:
        shop = workshop(label, windows)
        models[label] = texts(label, windows) | {
            "windows": len(shop.windows),
            "tokens": int(shop.windows[:, 1:].size),
            "calibration_tokens": int(shop.tokens.size),
            "bytes_per_token": round(float(corpus.window_bytes(shop.windows, shop.tokenizer).mean()), 3),
            "rows": {},
        }
    return {
        "text_hash": corpus.text_hash(corpus.held_out_documents("topics")),
        "bootstrap": {"resamples": RESAMPLES, "confidence": CONFIDENCE},
        "versions": versions("numpy", "torch", "transformers", "gguf", "xllamacpp", "miniquant"),
        "hardware": hardware(),
        "models": models,
    }


def kept(found: Results, windows: int = WINDOWS) -> Results:
    """Results that hold only what is up to date, in the order of the table."""
    missing, begun = set(stale(found, windows)), empty(windows)
    for label, name in wanted():
        if (label, name) not in missing:
            begun["models"][label]["rows"][name] = found["models"][label]["rows"][name]
    return begun


def save(found: Results, path: Path) -> None:
    """Write the results, a row a line, so that the file can be read and compared."""
    order = {name: i for i, name in enumerate(METHODS)}
    for model in found["models"].values():
        model["rows"] = dict(sorted(model["rows"].items(), key=lambda row: order[row[0]]))
    lines = {f"{label}/{name}": row for label, model in found["models"].items() for name, row in model["rows"].items()}
    places = {
        label: model | {"rows": {name: f"{label}/{name}" for name in model["rows"]}}
        for label, model in found["models"].items()
    }
    text = json.dumps(found | {"models": places}, indent=1)
    for place, row in lines.items():
        text = text.replace(f': "{place}"', f": {json.dumps(row)}")
    with atomic_write(path) as file:
        file.write((text + "\n").encode())


def run(path: Path, jobs: int, windows: int = WINDOWS, only: str = "", again: str | None = None) -> Results:
    """Measure every row that is missing or stale, write each one down at once, and say how far it is."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    found = kept(found, windows)
    if again is not None:
        for model in found["models"].values():
            model["rows"] = {name: row for name, row in model["rows"].items() if again not in name}
    todo = [(label, name) for label, name in stale(found, windows) if only in f"{label}: {name}"]
    stand, start = sum(len(model["rows"]) for model in found["models"].values()), time.monotonic()
    print(f"{stand} of {len([*wanted()])} rows stand, {len(todo)} to measure", flush=True)
    for done, (label, name, row) in enumerate(_rows(todo, jobs, windows), 1):
        found["models"][label]["rows"][name] = row
        save(found, path)
        spent = time.monotonic() - start
        kl = row.get("llamacpp", row.get("pytorch", {})).get("kl")
        print(
            f"row {done} of {len(todo)}  {label}: {name}, KL {np.mean(kl) if kl else float('nan'):.4g}   "
            f"{_clock(spent)} spent, about {_clock(spent / done * (len(todo) - done))} to go",
            flush=True,
        )
    save(found, path)
    return found


def _rows(todo: list[tuple[str, str]], jobs: int, windows: int) -> Iterator[tuple[str, str, Row]]:
    if jobs == 1:
        yield from ((label, name, measure(label, name, windows)) for label, name in todo)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin) as pool:
        waiting = {pool.submit(measure, label, name, windows): (label, name) for label, name in todo}
        try:
            for future in as_completed(waiting):
                yield *waiting[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin() -> None:
    torch.set_num_threads(1)  # a process for each core


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes, one a core")
    parser.add_argument("--windows", type=int, default=WINDOWS, help=f"of held-out text (default: {WINDOWS})")
    parser.add_argument("--out", type=Path, default=HERE, help="an existing folder (default: beside this script)")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose 'model: name' holds this text")
    parser.add_argument("--again", metavar="TEXT", help="measure rows whose name holds this text, stale or not")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found = run(options.out / "results.json", options.jobs, options.windows, options.only, options.again)
    print(f"results.json holds {sum(len(model['rows']) for model in found['models'].values())} rows")


if __name__ == "__main__":
    main()
