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
def time_limit(seconds: float | None, *, processor: bool = False) -> Iterator[None]:
    """Raise ``TooSlow`` inside the block once it has run for ``seconds``; ``None`` is no limit.

    ``processor=True`` counts the process's processor time, in the main thread of a system that has such a timer;
    elsewhere, and otherwise, the clock counts.
    """
    if seconds is None:
        yield
        return
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        timer, number = (signal.ITIMER_PROF, signal.SIGPROF) if processor else (signal.ITIMER_REAL, signal.SIGALRM)
        clock = time.process_time if processor else time.monotonic

        def stop(*_: object) -> None:
            raise TooSlow(f"no end after {seconds:g} s")

        start = clock()
        outer, _ = signal.getitimer(timer)  # what is left of a limit around this one; 0 if there is none
        before = signal.signal(number, stop)
        # again and again: a bare except may swallow the first
        signal.setitimer(timer, min(seconds, outer or seconds), AGAIN)
        try:
            yield
        finally:
            signal.setitimer(timer, 0)
            signal.signal(number, before)
            if outer:
                signal.setitimer(timer, max(outer - (clock() - start), 0.001), AGAIN)
        return
    target = ctypes.c_ulong(threading.get_ident())  # no SIGALRM (Windows, or another thread): raise from a timer
    alarm = threading.Timer(seconds, ctypes.pythonapi.PyThreadState_SetAsyncExc, (target, ctypes.py_object(TooSlow)))
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()
