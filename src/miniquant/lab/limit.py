"""A time limit on a block of code, so that a loop that never ends becomes a message. Limits may be nested."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

AGAIN = 0.2  # seconds from one alarm to the next


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

        start = time.monotonic()
        outer, _ = signal.getitimer(signal.ITIMER_REAL)  # what is left of a limit around this one; 0 if there is none
        before = signal.signal(signal.SIGALRM, stop)
        # again and again: a bare except may swallow the first
        signal.setitimer(signal.ITIMER_REAL, min(seconds, outer or seconds), AGAIN)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            if outer:
                signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - start), 0.001), AGAIN)
        return
    target = ctypes.c_ulong(threading.get_ident())  # no SIGALRM (Windows, or another thread): raise from a timer
    timer = threading.Timer(seconds, ctypes.pythonapi.PyThreadState_SetAsyncExc, (target, ctypes.py_object(TooSlow)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
