"""A time limit on one call, so that a loop that never ends becomes a message."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooSlow(BaseException):
    """The call took longer than its limit. Not an ``Exception``: a student's ``except Exception`` must not catch it."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise ``TooSlow`` inside the block once it has run for ``seconds``; ``None`` is no limit."""
    if seconds is None:
        yield
        return
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():

        def stop(*_: object) -> None:
            raise TooSlow

        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)  # again and again: a bare except may swallow the first
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    target = ctypes.c_ulong(threading.get_ident())  # no SIGALRM (Windows, or another thread): raise from a timer
    timer = threading.Timer(seconds, ctypes.pythonapi.PyThreadState_SetAsyncExc, (target, ctypes.py_object(TooSlow)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
