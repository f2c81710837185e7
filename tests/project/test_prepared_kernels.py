"""The kernels in which the notebooks are tested begin with the large libraries, and with nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import local_provisioner
from prepared_kernels import RUN, Prepared

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kernels cannot be copied here")


@pytest.fixture
def prepared(monkeypatch, tmp_path_factory):
    """The same plugin, with a small library in the place of the large ones."""
    found = Prepared(("colorsys", "ipykernel.kernelapp"), tmp_path_factory.mktemp("p"))
    monkeypatch.setattr(local_provisioner, "launch_kernel", found.launch)
    yield found
    found.end()


def said(client, code):
    """What a cell prints."""
    printed = []
    client.execute_interactive(code, timeout=60, output_hook=lambda m: printed.append(m["content"].get("text", "")))
    return "".join(printed).strip()


def started(folder):
    manager = KernelManager()
    manager.start_kernel(cwd=str(folder), env={**os.environ, "FOLDER": folder.name})
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return manager, client


ABOUT = """
import json, os, sys
asked = [name in sys.modules for name in ("colorsys", "miniquant", "prepared_kernels")]
print(json.dumps([os.path.basename(os.getcwd()), os.environ["FOLDER"], *asked, "left" in globals()]))
left = 1
"""


DRAWN = """
from IPython.core.pylabtools import print_figure
class Figure:
    axes, lines = [1], []
    def __init__(self, **given):
        self.__dict__.update(given)
for figure in (Figure(_repr_svg_=str), Figure()):
    try:
        print(print_figure(figure), end=" ")
    except AttributeError:
        print("drawn", end=" ")
"""


@pytest.mark.parametrize(("thorough", "said_of_both"), [("0", "None drawn"), ("1", "drawn drawn")])
def test_a_figure_that_is_svg_is_not_drawn_as_png(prepared, tmp_path, monkeypatch, thorough, said_of_both):
    monkeypatch.setenv("MINIQUANT_THOROUGH", thorough)
    manager, client = started(tmp_path)
    assert said(client, DRAWN) == said_of_both
    client.stop_channels()
    manager.shutdown_kernel()


def test_each_kernel_has_its_folder_and_environment_the_libraries_and_nothing_of_another_notebook(prepared, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        manager, client = started(tmp_path / name)
        assert json.loads(said(client, ABOUT)) == [name, name, True, False, False, False]
        client.stop_channels()
        manager.shutdown_kernel()
        assert not manager.is_alive()


def test_a_kernel_that_has_the_lab_already_explains_a_missing_name_and_keeps_no_history(prepared, tmp_path):
    prepared.libraries = ("miniquant.lab", *prepared.libraries)
    manager, client = started(tmp_path)
    assert said(client, "print(sys_of)").endswith("one of them defines it.")
    asked = 'import sys; print(sys.modules["debugpy"], get_ipython().history_manager.enabled)'
    assert said(client, asked) == "None False"
    client.stop_channels()
    manager.shutdown_kernel()


ASKED = """
import os, sys
from miniquant.evaluate.llamacpp import LlamaCpp, LlamaCppError
with LlamaCpp(None) as llama, LlamaCpp(None) as other:
    parents = [open(f"/proc/{each._process.pid}/stat").read().split()[3] for each in (llama, other)]
    print(parents == 2 * [str(os.getpid())], other.block(8), llama.block(2), end=" ")
    llama._requests.close()
    print(llama._process.wait(), end=" ")
    os.kill(other._process.pid, 6)
    try:
        other.block(8)
    except LlamaCppError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc whose child a process is")
def test_llamacpp_in_a_kernel_is_a_copy_of_it_that_ends_and_fails_alone(prepared, tmp_path):
    prepared.libraries = ("miniquant.evaluate.llamacpp_process", *prepared.libraries)
    manager, client = started(tmp_path)
    assert said(client, ASKED) == "True (32, 34) (32, 18) 0 llama.cpp ended with code -6 in block:"
    client.stop_channels()
    manager.shutdown_kernel()


def test_an_interrupt_stops_a_cell_and_a_kernel_that_died_is_known_to_be_dead(prepared, tmp_path):
    manager, client = started(tmp_path)
    message = client.execute("import time; print('begun', flush=True); time.sleep(60)")
    while "begun" not in client.get_iopub_msg(timeout=30)["content"].get("text", ""):
        pass
    manager.interrupt_kernel()
    reply = client.get_shell_msg(timeout=30)
    while reply["parent_header"].get("msg_id") != message:
        reply = client.get_shell_msg(timeout=30)
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    client.stop_channels()
    kernel = manager.provisioner.process
    kernel.kill()
    assert kernel.wait() == -signal.SIGKILL
    manager.cleanup_resources()


def test_a_notebook_that_asks_what_is_imported_gets_a_kernel_of_the_usual_kind(prepared, tmp_path, monkeypatch):
    notebook = tmp_path / "asks.ipynb"
    notebook.write_text('"import sys; sys.modules"')
    monkeypatch.setenv("PYTEST_CURRENT_TEST", f"{notebook}::Cell 0 (setup)")
    started_as = prepared.launch([sys.executable, "-c", "pass"], env=dict(os.environ))
    assert started_as.wait() == 0
    assert not prepared.address.exists()


def test_workers_share_one_process_which_ends_when_the_run_has_ended_without_a_word(prepared, tmp_path, monkeypatch):
    run = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setenv(RUN, str(run.pid))
    other, parents = Prepared(prepared.libraries, prepared.address.parent), []
    for worker in (prepared, other):
        monkeypatch.setattr(local_provisioner, "launch_kernel", worker.launch)
        manager, client = started(tmp_path)
        parents.append(said(client, "import os; print(os.getppid())"))
        client.stop_channels()
        manager.shutdown_kernel()
    assert parents == 2 * [str(prepared.process.pid)] and other.process is None
    run.communicate(b"\n", timeout=20)
    assert prepared.process.wait(timeout=20) == 0
    prepared.address.unlink()
