"""Limits of time and memory on a block of code, so that an endless loop becomes a message. They may be nested."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
import types
from _signal import signal as set_handler  # type: ignore[import-not-found]  # the public one takes six times as long
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AGAIN = 0.2  # seconds from one alarm to the next
MEMORY = 1 << 30  # bytes that one call of a student's function may take
WAITING = 4  # times as long by the clock: for a call that waits, or shares the machine with other programs


# files that begin and end a block: an exception in them would leave the timer on; the next alarm comes soon enough
_ENDS = (__file__, contextmanager.__code__.co_filename)


class TooSlow(BaseException):
    """The call took longer than its limit. Not an ``Exception``: a student's ``except Exception`` must not catch it."""


def spent(seconds: float) -> Callable[[], bool]:
    """Whether since now so many seconds of the processor are over, or ``WAITING`` times as many by the clock."""
    start, begin = time.process_time(), time.monotonic()
    return lambda: time.process_time() - start > seconds or time.monotonic() - begin > WAITING * seconds


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

        inside = True  # an alarm that comes once the block is left must not raise: the timer would stay on

        def stop(_: int, frame: types.FrameType | None) -> None:
            if inside and not (frame and frame.f_code.co_filename in _ENDS):
                raise TooSlow(f"no end after {seconds:g} s")

        start = clock()
        outer, _ = signal.getitimer(timer)  # what is left of a limit around this one; 0 if there is none
        before = set_handler(number, stop)
        # again and again: a bare except may swallow the first
        signal.setitimer(timer, min(seconds, outer or seconds), AGAIN)
        try:
            try:
                yield
            finally:
                inside = False
        finally:
            inside = False  # once more: an alarm may have come just before the line above
            signal.setitimer(timer, 0)
            set_handler(number, before)
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


@contextmanager
def memory_limit(n_bytes: int | None = MEMORY) -> Iterator[None]:
    """Raise ``MemoryError`` inside the block if it takes ``n_bytes`` more than the process has; Linux only.

    Elsewhere, and for ``None``, there is no limit. The limit is lifted at the end.
    """
    room = _address_space() if n_bytes is not None else 0
    if not room or n_bytes is None:
        yield
        return
    import resource

    soft, hard = before = resource.getrlimit(resource.RLIMIT_AS)
    wanted = room + n_bytes
    bounds = [bound for bound in (soft, hard, wanted) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int:
    """How many bytes of addresses this process has; 0 where the system does not say so."""
    try:
        import resource

        file = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            return int(os.read(file, 100).split(maxsplit=1)[0]) * resource.getpagesize()
        finally:
            os.close(file)
    except (ImportError, OSError, ValueError):
        return 0
