"""Time is an argument: a run reads one clock, and that clock may be real or virtual.

    with virtual_time() as clock:
        sleep(3600)             # returns at once
        print(clock.now())      # 3600.0

Under virtual time no one waits. When everything that runs is asleep, time jumps to the next wake-up: pools and
threads are the real ones, and the times that come out are exact, the same on every machine, and free.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Protocol


class Mailbox(Protocol):
    """Where results of calls arrive: `expect` before a call is handed to a thread, `work` in it, `take` to wait."""

    def expect(self, calls: int = 1) -> None: ...
    def work(self, fn: Callable[..., Any], *args: Any) -> None: ...
    def take(self, timeout: float | None = None, count: int = 1) -> list[Any]: ...


class Clock(Protocol):
    """What a run asks of its clock. Seconds everywhere."""

    def now(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
    def mailbox(self) -> Mailbox: ...
    def running(self) -> AbstractContextManager[Any]: ...


# ---- real time


class RealClock:
    """The wall clock, `speed` times as fast: at speed 10, `sleep(5)` takes half a second and `now()` advances by 5."""

    def __init__(self, speed: float = 1.0) -> None:
        if not speed > 0:
            raise ValueError(f"speed={speed!r}: a clock needs a speed above 0; 1 is real time, 10 is ten times as fast")
        self.speed = speed

    def __repr__(self) -> str:
        return f"RealClock(speed={self.speed:g})"

    def now(self) -> float:
        """Seconds on this clock, from an arbitrary start."""
        return time.perf_counter() * self.speed

    def sleep(self, seconds: float) -> None:
        """Returns after `seconds` of this clock; ValueError below 0."""
        time.sleep(_duration(seconds) / self.speed)

    def mailbox(self) -> Mailbox:
        return _Queue(self.speed)

    def running(self) -> AbstractContextManager[Any]:
        return nullcontext()


class _Queue:
    """A mailbox in real time: a list, and a bell that is rung when it holds as many results as its owner waits for."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.items: deque[Any] = deque()
        self.wanted = 1
        self.bell: queue.SimpleQueue[None] = queue.SimpleQueue()

    def expect(self, calls: int = 1) -> None:
        """Nothing to do: in real time nobody counts who is running."""

    def work(self, fn: Callable[..., Any], *args: Any) -> None:
        self.items.append(fn(*args))
        if len(self.items) >= self.wanted:
            self.bell.put(None)

    def take(self, timeout: float | None = None, count: int = 1) -> list[Any]:
        """The results that are there, at least `count`, waiting for them; what there is when `timeout` is over."""
        self.wanted = count
        end = None if timeout is None else time.perf_counter() + timeout / self.speed
        while len(self.items) < count:
            # Short waits: on some systems a thread that waits without a limit cannot be interrupted.
            left = 0.5 if end is None else min(0.5, max(0.0, end - time.perf_counter()))
            try:
                self.bell.get(timeout=left)
            except queue.Empty:
                if end is not None and time.perf_counter() >= end:
                    break
        return [self.items.popleft() for _ in range(len(self.items))]


# ---- virtual time


class VirtualClock:
    """A clock that counts who is running, and jumps to the next wake-up when nobody is.

    A thread counts while it runs a graph, or a call that a mailbox expects. It does not count while it sleeps, nor
    while it waits for a mailbox; a result that nobody has taken is taken before time moves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0.0
        self._active = 0  # how many threads are running
        self._runs = 0  # how many threads are in a run
        self._sleepers: list[tuple[float, int, _Sleeper]] = []  # a heap: when to wake, a tie-breaker, whom
        self._due: list[_Inbox] = []  # mailboxes that hold results and whose owner waits
        self._serial = itertools.count()
        self._here = threading.local()  # .counts: does this thread count?
        self._closed = False

    def __repr__(self) -> str:
        return f"VirtualClock(now={self._now:g})"

    def now(self) -> float:
        """Seconds since this clock was made."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Returns when `seconds` of virtual time have passed; ValueError below 0."""
        if _duration(seconds) == 0:
            return
        with self._lock:
            if self._closed:
                return
            me = _Sleeper(self._counts())
            heapq.heappush(self._sleepers, (self._now + seconds, next(self._serial), me))
            self._rest(me)
        me.wait()

    def mailbox(self) -> Mailbox:
        return _Inbox(self)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within it this thread counts as running; nested uses count once."""
        if self._counts():
            yield
            return
        with self._lock:
            self._active += 1
            self._runs += 1
        self._here.counts = True
        try:
            yield
        finally:
            self._here.counts = False
            with self._lock:
                self._active -= 1
                self._runs -= 1
                if self._runs:  # with the last run over, nobody waits for time to move
                    self._step()

    def turn_back(self, to: float) -> None:
        """Sets the time: where no thread can be started, calls that should overlap run in order, each from `to`."""
        self._now = to

    def close(self) -> None:
        """Wakes whoever still sleeps: calls that a timeout left behind end instead of sleeping for ever."""
        with self._lock:
            self._closed = True
            while self._sleepers:
                self._wake(heapq.heappop(self._sleepers)[2])

    def _counts(self) -> bool:
        return getattr(self._here, "counts", False)

    def _rest(self, me: _Sleeper) -> None:
        """This thread stops counting; the lock is held, and `me.wait()` comes next."""
        self._active -= me.counts
        self._step()

    def _wake(self, sleeper: _Sleeper) -> None:
        if not sleeper.awake.is_set():
            self._active += sleeper.counts
            sleeper.awake.set()

    def _step(self) -> None:
        """When nobody runs: hand out the results of this moment, or move time to the earliest wake-up."""
        if self._active:
            return
        if self._due:
            # The youngest first: an inner run ends before the run around it looks at what it has.
            self._due.sort(key=lambda box: box.serial)
            self._due.pop().hand_over()
            return
        while self._sleepers and self._sleepers[0][2].awake.is_set():
            heapq.heappop(self._sleepers)  # a timeout that was answered in time
        if self._sleepers:
            self._now = max(self._now, self._sleepers[0][0])
            while self._sleepers and self._sleepers[0][0] <= self._now:
                self._wake(heapq.heappop(self._sleepers)[2])


class _Sleeper:
    """A thread that waits, and whether it counts when it runs."""

    __slots__ = ("counts", "awake")

    def __init__(self, counts: bool) -> None:
        self.counts = counts
        self.awake = threading.Event()

    def wait(self) -> None:
        self.awake.wait()


class _Inbox:
    """A mailbox in virtual time: an expected call counts as running until it ends."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.serial = next(clock._serial)
        self.items: list[Any] = []
        self.taken: list[Any] = []
        self.owner: _Sleeper | None = None  # who waits in take()

    def expect(self, calls: int = 1) -> None:
        with self.clock._lock:
            self.clock._active += calls

    def work(self, fn: Callable[..., Any], *args: Any) -> None:
        here = self.clock._here
        before, here.counts = self.clock._counts(), True
        try:
            result = fn(*args)
        finally:
            here.counts = before
        with self.clock._lock:
            self.items.append(result)
            self.clock._active -= 1
            if self.owner is not None and self not in self.clock._due:
                self.clock._due.append(self)
            self.clock._step()

    def take(self, timeout: float | None = None, count: int = 1) -> list[Any]:
        """The results of the earliest moment that has any; [] when `timeout` virtual seconds pass without one."""
        clock = self.clock
        with clock._lock:
            self.owner = me = _Sleeper(clock._counts())
            if self.items:
                clock._due.append(self)
            elif timeout is not None:
                heapq.heappush(clock._sleepers, (clock._now + timeout, next(clock._serial), me))
            clock._rest(me)
        try:
            me.wait()
        finally:
            with clock._lock:
                if not me.awake.is_set():  # interrupted: this thread runs again
                    clock._wake(me)
                if self in clock._due:
                    clock._due.remove(self)
                self.owner, taken, self.taken = None, self.taken, []
        return taken

    def hand_over(self) -> None:
        """Wakes the owner with what is here; the clock's lock is held."""
        if self.owner is not None:
            self.taken, self.items = self.items, []
            self.clock._wake(self.owner)


def _duration(seconds: float) -> float:
    if not seconds >= 0:
        raise ValueError(f"sleep({seconds!r}): seconds must be 0 or more")
    return seconds


# ---- the current clock

REAL = RealClock()
_current: ContextVar[Clock] = ContextVar("minigraph.clock", default=REAL)


def current() -> Clock:
    """The clock of the run this code is in, or of the `virtual_time()` or `use()` around it; otherwise real time."""
    return _current.get()


def now() -> float:
    """Seconds on the current clock; only differences mean anything."""
    return _current.get().now()


def sleep(seconds: float) -> None:
    """Waits `seconds` on the current clock. Use it in nodes instead of `time.sleep`: virtual time makes it free."""
    _current.get().sleep(seconds)


@contextmanager
def use(clock: Clock) -> Iterator[Clock]:
    """Makes `clock` the current one within a `with` block, and in every run started there."""
    token = _current.set(clock)
    try:
        yield clock
    finally:
        _current.reset(token)


@contextmanager
def virtual_time() -> Iterator[VirtualClock]:
    """A new VirtualClock, current within the `with` block: runs started there wait for nothing and time exactly."""
    clock = VirtualClock()
    try:
        with use(clock):
            yield clock
    finally:
        clock.close()
