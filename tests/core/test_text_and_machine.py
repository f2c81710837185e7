"""Texts that are safe to print; versions and hardware without a name in them."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np
import pytest

from miniquant.core import machine
from miniquant.core.text import visible


@pytest.mark.parametrize("text, shown", [
    ("größe 7", "größe 7"),
    ("", ""),
    ("a\nb", r"a\nb"),
    ("\x1b[2J", r"\u001b[2J"),
    ("a\u202eb", r"a\u202eb"),
    ("\x00\x7f", r"\u0000\u007f"),
])  # fmt: skip
def test_what_cannot_be_printed_is_escaped_as_in_json(text, shown):
    assert visible(text) == shown


def test_versions_are_those_that_are_installed_without_a_builds_suffix(monkeypatch):
    assert machine.versions("numpy") == {"python": platform.python_version(), "numpy": np.__version__}
    monkeypatch.setattr(machine, "version", {"torch": "2.13.0+cu130+x", "click": "8.1"}.get)
    assert machine.versions("torch", "click") == {
        "python": platform.python_version(),
        "torch": "2.13.0",
        "click": "8.1",
    }


@pytest.mark.parametrize("said, cores, count", [
    (None, 64, 4),
    (None, 2, 2),
    (None, None, 1),
    ("7", 2, 7),
    ("0", 2, 1),
    ("many", 3, 3),
])  # fmt: skip
def test_threads_are_what_the_environment_says_or_at_most_four(said, cores, count, monkeypatch):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: cores)
    monkeypatch.delenv("MINIQUANT_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("MINIQUANT_THREADS", said)
    assert machine.threads() == count


def test_hardware_is_the_processor_its_cores_and_the_system(monkeypatch):
    monkeypatch.setattr(machine, "_cpu", lambda: "Chip")
    assert machine.hardware() == {
        "cpu": "Chip",
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


@pytest.mark.parametrize("listed, known, name", [
    ("processor\t: 0\nmodel name\t: Chip: 7 GHz ®\nmodel name\t: Other\n", "x86_64", "Chip: 7 GHz ®"),
    ("processor\t: 0\n", "x86_64", "x86_64"),
    ("", "", "unknown"),
    (None, "arm", "arm"),
    (None, "", "unknown"),
])  # fmt: skip
def test_the_processor_is_the_first_of_linuxs_list_or_what_python_knows(monkeypatch, listed, known, name):
    def read(path, encoding):
        assert (str(path), encoding) == ("/proc/cpuinfo", "utf-8")
        if listed is None:
            raise OSError
        return listed

    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(platform, "processor", lambda: known)
    assert machine._cpu() == name
