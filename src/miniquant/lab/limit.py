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
from contextlib import AbstractContextManager, contextmanager, nullcontext

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


def time_limit(seconds: float | None, *, processor: bool = False) -> AbstractContextManager[None]:
    """Raise ``TooSlow`` inside the block once it has run for ``seconds``; ``None`` is no limit.

    ``processor=True`` counts the process's processor time, in the main thread of a system that has such a timer;
    elsewhere, and otherwise, the clock counts.
    """
    if seconds is None:
        return nullcontext()
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        return _Alarm(seconds, processor)
    return _from_a_timer(seconds)


class _Alarm:
    """The limit of time by a signal. Not a generator, which takes three times as long to enter and to leave."""

    __slots__ = ("before", "clock", "inside", "number", "outer", "seconds", "start", "timer")

    def __init__(self, seconds: float, processor: bool) -> None:
        self.seconds = seconds
        self.timer, self.number = (
            (signal.ITIMER_PROF, signal.SIGPROF) if processor else (signal.ITIMER_REAL, signal.SIGALRM)
        )
        self.clock = time.process_time if processor else time.monotonic
        self.inside = True  # an alarm that comes once the block is left must not raise: the timer would stay on

    def _stop(self, _: int, frame: types.FrameType | None) -> None:
        if self.inside and not (frame and frame.f_code.co_filename in _ENDS):
            raise TooSlow(f"no end after {self.seconds:g} s")

    def __enter__(self) -> None:
        self.before = set_handler(self.number, self._stop)
        # again and again: a bare except may swallow the first
        self.outer = signal.setitimer(self.timer, self.seconds, AGAIN)[0]  # what is left of a limit around this one
        if self.outer:
            self.start = self.clock()
            signal.setitimer(self.timer, min(self.seconds, self.outer), AGAIN)

    def __exit__(self, *_: object) -> None:
        self.inside = False
        signal.setitimer(self.timer, 0)
        set_handler(self.number, self.before)
        if self.outer:
            signal.setitimer(self.timer, max(self.outer - (self.clock() - self.start), 0.001), AGAIN)


@contextmanager
def _from_a_timer(seconds: float) -> Iterator[None]:
    """The limit where there is no SIGALRM (Windows, or another thread): raised from a timer."""
    target = ctypes.c_ulong(threading.get_ident())
    alarm = threading.Timer(seconds, ctypes.pythonapi.PyThreadState_SetAsyncExc, (target, ctypes.py_object(TooSlow)))
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()


def memory_limit(n_bytes: int | None = MEMORY) -> AbstractContextManager[None]:
    """Raise ``MemoryError`` inside the block if it takes ``n_bytes`` more than the process has; Linux only.

    Elsewhere, and for ``None``, there is no limit. The limit is lifted at the end.
    """
    return nullcontext() if n_bytes is None else _Bound(n_bytes)


class _Bound:
    """The limit of memory."""

    __slots__ = ("before", "n_bytes")

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes

    def __enter__(self) -> None:
        self.before: tuple[int, int] | None = None
        if room := _address_space():
            import resource

            soft, hard = before = resource.getrlimit(resource.RLIMIT_AS)
            wanted = room + self.n_bytes
            bounds = [bound for bound in (soft, hard, wanted) if bound != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_AS, (min(bounds), hard))
            self.before = before

    def __exit__(self, *_: object) -> None:
        if self.before:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, self.before)


_statm = (0, -1)  # a process, and the file in which the system says how much memory that process has


def _address_space() -> int:
    """How many bytes of addresses this process has; 0 where the system does not say so.

    The file stays open, since opening it takes longer than reading it; a copy of the process opens its own.
    """
    global _statm
    try:
        import resource

        pid = os.getpid()
        if _statm[0] != pid:
            _statm = pid, os.open("/proc/self/statm", os.O_RDONLY)
        try:
            numbers = os.pread(_statm[1], 200, 0).split()
        except OSError:
            numbers = []
        if len(numbers) != 7:  # somebody has closed it, and its number may be that of another file
            _statm = pid, os.open("/proc/self/statm", os.O_RDONLY)
            numbers = os.pread(_statm[1], 200, 0).split()
        return int(numbers[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError, AttributeError):
        return 0
