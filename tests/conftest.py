"""Shared by the tests of the library: repeatable hypothesis runs, one thread, and the trained model loaded once."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: the same sums on every machine

import pytest
from hypothesis import HealthCheck, settings
from thorough import THOROUGH

sys.modules.setdefault("rfc3987_syntax", None)  # before nbformat is imported: tools/without_iri.py says why

settings.register_profile(
    "miniquant",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=20,  # every run draws the same ones: more of them are for the thorough runs
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", parent=settings.get_profile("miniquant"), max_examples=300)
settings.load_profile("thorough" if THOROUGH else "miniquant")


def pytest_collection_finish(session):
    """Where the tests run in copies of this process, the text that many of them need is read here, not in each copy."""
    if session.config.getoption("copies", 0) and any("tests/calibrate/" in item.nodeid for item in session.items):
        from miniquant.models.corpus import training_documents

        training_documents()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Here, so that the process that only hands out the tests does not import torch."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def trained():
    """The MiniGPT that comes with the package. Do not change it: it is loaded once."""
    from miniquant.models.pretrained import load_pretrained

    return load_pretrained()


@pytest.fixture(scope="session")
def exported(trained, tmp_path_factory):
    """The GGUF file of the trained MiniGPT in a type, written when it is asked for first. Do not change it."""
    return _written_once(trained, tmp_path_factory.mktemp("exported"))


def _written_once(model, folder):
    from miniquant.models.corpus import load_tokenizer
    from miniquant.models.to_gguf import write_minigpt

    def get(kind):
        path = folder / f"{kind}.gguf"
        if not path.exists():
            write_minigpt(path, model, load_tokenizer(), kind)
        return path

    return get


@pytest.fixture(scope="session")
def shallow(trained):
    """The first layer of the trained model as a model: real weights, a third of the work. Do not change it."""
    from dataclasses import replace

    from miniquant.models.minigpt import parameter_shapes, with_weights

    config, state = replace(trained.config, n_layers=1), trained.state_dict()
    return with_weights(config, {name: state[name] for name in parameter_shapes(config)})


@pytest.fixture(scope="session")
def shallow_in(shallow, tmp_path_factory):
    """The GGUF file of that model in a type, written when it is asked for first. Do not change it."""
    return _written_once(shallow, tmp_path_factory.mktemp("shallow"))


@pytest.fixture(scope="session")
def minillama_model():
    """The MiniLlama that comes with the package, in float32. Do not change it: it is loaded once."""
    from miniquant.models.minillama import load_minillama

    return load_minillama()


@pytest.fixture(scope="session")
def tiny_qwen2(tmp_path_factory):
    """The folder of a small Qwen2 with random weights: biases on q, k and v, a tied head. Do not change it."""
    from hf_models import save_qwen2

    folder = tmp_path_factory.mktemp("qwen2") / "tiny"
    save_qwen2(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_llama3(tmp_path_factory):
    """The folder of a small Llama 3 with random weights: rope factors, heads of their own width. Do not change it."""
    from hf_models import save_llama3

    folder = tmp_path_factory.mktemp("llama3") / "tiny"
    save_llama3(folder)
    return folder


@pytest.fixture(autouse=True, scope="session")
def nothing_waits_for_the_disk():
    """Nobody pulls the plug in a test: of a flush, which takes milliseconds, a closed file's refusal is left."""
    os.fsync = lambda descriptor: os.fstat(descriptor) and None


@pytest.fixture(autouse=True, scope="session")
def faults_of_the_search_are_seen():
    """In a notebook a search for a cause that fails costs the report its cause; here it fails the test."""
    from miniquant.lab import guard

    guard.ON = False


@pytest.fixture(autouse=True, scope="session")
def llamacpp_starts_at_once():
    """Its processes are copies of one that is prepared: hundreds of them are started."""
    from prepared_llamacpp import prepared

    from miniquant.evaluate import llamacpp

    llamacpp.subprocess = prepared()


@pytest.fixture(scope="module")
def few_pairs():
    """A tenth of the changed inputs on which conditions are confirmed, for claims that are true of any reports."""
    from functools import lru_cache

    from miniquant.lab import pair_cases, verdict
    from miniquant.lab.detect import properties
    from miniquant.lab.near import repair

    if THOROUGH:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_cases, "MOST", 24)
        patch.setattr(pair_cases, "TRIED", 60)
        few = lru_cache(maxsize=256)(pair_cases.pair_cases.__wrapped__)
        for module in (verdict, properties, repair):
            patch.setattr(module, "pair_cases", few)
        yield


@pytest.fixture
def no_leftovers(tmp_path):
    """After the test, ``tmp_path`` holds no temporary file."""
    yield tmp_path
    leftovers = [p.name for p in tmp_path.rglob("*") if p.name.endswith(".tmp")]
    assert not leftovers, f"temporary files were left behind: {leftovers}"
