"""The workers of pytest-xdist are copies of one process that has the large libraries."""

from __future__ import annotations

import json
import os
import subprocess

import prepared_workers
import pytest
from execnet import XSpec, gateway_io
from execnet.gateway_base import get_execmodel

LOOK = (
    "import json, os, sys; found = [m in sys.modules for m in ('colorsys', 'tools.prepared_workers', 'miniquant')];"
    "print(json.dumps([os.getpid(), os.getppid(), *found]), flush=True)"
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers cannot be copied here")
def test_workers_are_copies_with_the_libraries_and_one_more_is_of_the_usual_kind(monkeypatch):
    monkeypatch.setattr(gateway_io, "Popen2IOMaster", gateway_io.Popen2IOMaster)
    monkeypatch.setattr(prepared_workers, "LIBRARIES", ("colorsys",))
    for name in ("_ends", "_prepared", "_pids"):
        monkeypatch.setattr(prepared_workers, name, [])
    prepared_workers.pytest_xdist_setupnodes(specs=["popen", "popen"])
    usual = gateway_io.popen_args(XSpec("popen"))
    workers = [gateway_io.Popen2IOMaster(usual, get_execmodel("thread")) for _ in range(3)]
    found = []
    for worker in workers:
        worker.outfile.write(f"{LOOK!r}\n".encode())
        worker.outfile.flush()
        found.append(json.loads(worker.infile.readline()))
    (server,) = prepared_workers._prepared
    copy, other = [server.pid, True, False, False], [os.getpid(), False, False, False]
    assert [answer[1:] for answer in found] == [copy, copy, other]
    assert len({answer[0] for answer in found}) == 3
    assert isinstance(workers[2].popen, subprocess.Popen)
    workers[1].kill()
    assert workers[1].infile.read() == b"" and server.poll() is None
    for worker in workers[::2]:
        worker.outfile.close()
        worker.wait()
    assert server.returncode == 0
