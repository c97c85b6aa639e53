"""Virtual time is exact, the same on every machine, and nobody waits; real time can be made faster; nothing hangs."""

from __future__ import annotations

import contextvars
import heapq
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from helpers import Heard, make, within

from minigraph import Graph, StateCollision, emit, run_graph
from minigraph import clock as clocks
from minigraph.clock import RealClock, VirtualClock, now, sleep, use, virtual_time

both = pytest.mark.parametrize("schedule", ["waves", "ready"])


def nap(seconds: float) -> Callable[[Any], None]:
    return lambda state: sleep(seconds)


def spans(graph: Graph, **options: Any) -> dict[str, tuple[float, float]]:
    """Return node -> (start, end) of its only visit, in virtual time."""
    heard = Heard()

    def go() -> None:
        with virtual_time():
            run_graph(graph, {}, heard, **options)

    within(30, go)
    ends = {e["node"]: e["t"] for e in heard["node_end"]}
    return {e["node"]: (e["t"], ends[e["node"]]) for e in heard["node_start"]}


# ---- outside a run


def test_sleep_is_free_in_virtual_time() -> None:
    """A century of sleep is over at once, and the clock says that it has passed."""
    def go() -> tuple[float, float, float]:
        begun = time.perf_counter()
        with virtual_time() as clock:
            before = now()
            sleep(100 * 365 * 86400)
            sleep(0.25)
            return clock.now() - before, now() - before, time.perf_counter() - begun

    slept, same, real = within(10, go)
    assert slept == same == 100 * 365 * 86400 + 0.25
    assert real < 5


def test_virtual_time_ends_with_its_block() -> None:
    """Within the block the clock is virtual, outside it is the real one; a block within a block has its own."""
    real = now()
    with virtual_time() as outer:
        sleep(7)
        with virtual_time() as inner:
            sleep(1)
        assert (outer.now(), inner.now(), now()) == (7, 1, 7)
    assert 0 <= now() - real < 5


def test_time_begins_at_nought() -> None:
    """A new virtual clock shows 0."""
    assert VirtualClock().now() == 0


@pytest.mark.parametrize("clock", [RealClock(1000), VirtualClock()], ids=["real", "virtual"])
@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan")])
def test_nobody_sleeps_backwards(clock: Any, seconds: float) -> None:
    """A negative sleep is a ValueError that quotes it, on every clock."""
    with use(clock), pytest.raises(ValueError, match=repr(seconds)):
        sleep(seconds)


@pytest.mark.parametrize("clock", [RealClock(), VirtualClock()], ids=["real", "virtual"])
def test_sleeping_no_time(clock: Any) -> None:
    """sleep(0) is allowed, and returns."""
    within(5, lambda: clock.sleep(0))


def test_real_time() -> None:
    """By default a second is a second: sleep waits, and now() advances by what it waited."""
    before, real = now(), time.perf_counter()
    sleep(0.02)
    assert time.perf_counter() - real >= 0.02
    assert now() - before >= 0.02


def test_a_faster_clock() -> None:
    """At speed 1000 a second takes a millisecond, and counts as a second."""
    with use(RealClock(speed=1000)):
        before, real = now(), time.perf_counter()
        sleep(5)
        assert now() - before >= 5
        assert 0.005 <= time.perf_counter() - real < 2


@pytest.mark.parametrize("speed", [0, -1])
def test_speed_is_positive(speed: float) -> None:
    """Time that stands still, or runs backwards, is a ValueError."""
    with pytest.raises(ValueError, match="speed"):
        RealClock(speed=speed)


def test_clocks_print() -> None:
    """A clock says what it is."""
    assert "10" in repr(RealClock(speed=10))
    assert "VirtualClock" in repr(VirtualClock())


# ---- runs


@both
def test_the_recorded_morning(schedule: str) -> None:
    """Four sources at once and one answer: 1.887 s and 11.279 s, to the last digit."""
    graph = make("START>github,web,calendar,memory github>answer web>answer calendar>answer memory>answer",
                 github=nap(1.506), web=nap(1.887), calendar=nap(0.002), memory=nap(0.001), answer=nap(11.279))
    assert spans(graph, schedule=schedule) == {
        "github": (0, 1.506), "web": (0, 1.887), "calendar": (0, 0.002), "memory": (0, 0.001),
        "answer": (1.887, 1.887 + 11.279)}


@both
@pytest.mark.parametrize(("workers", "expected"), [
    (1, [(0, 1), (1, 3), (3, 6), (6, 7), (7, 9)]),
    (2, [(0, 1), (0, 2), (1, 4), (2, 3), (3, 5)]),
    (3, [(0, 1), (0, 2), (0, 3), (1, 2), (2, 4)]),
    (9, [(0, 1), (0, 2), (0, 3), (0, 1), (0, 2)]),
])
def test_fewer_workers_than_nodes(schedule: str, workers: int, expected: list[tuple[float, float]]) -> None:
    """Nodes that find no worker start when one is free, in the order of the graph."""
    graph = make("START>a,b,c,d,e", a=nap(1), b=nap(2), c=nap(3), d=nap(1), e=nap(2))
    assert spans(graph, schedule=schedule, max_workers=workers) == dict(zip("abcde", expected, strict=True))


@both
@pytest.mark.parametrize("seed", range(6))
def test_any_number_of_workers(schedule: str, seed: int) -> None:
    """Exactly the times that a list of workers on paper gives, ties included."""
    dice = random.Random(seed)
    seconds = {f"n{i}": dice.choice([0, 0.5, 1, 1, 2, 3.25]) for i in range(25)}
    workers = dice.randint(1, 8)
    free, expected = [0.0] * workers, {}
    for name, length in seconds.items():
        start = heapq.heappop(free)
        expected[name] = (start, start + length)
        heapq.heappush(free, start + length)
    graph = make("START>" + ",".join(seconds), **{name: nap(length) for name, length in seconds.items()})
    assert spans(graph, schedule=schedule, max_workers=workers) == expected


@both
@pytest.mark.parametrize("workers", [None, 1, 2])
def test_nested_runs(schedule: str, workers: int | None) -> None:
    """A run within a node takes its own time, beside that of the node's neighbours."""
    def inner(state: Any) -> dict[str, Any]:
        begun = now()
        run_graph(make("START>x,y x>z y>z", x=nap(1), y=nap(2), z=nap(3)), {}, schedule=schedule, max_workers=workers)
        return {"inner": now() - begun}

    heard = Heard()
    graph = make("START>a,b,c a>end b>end c>end", a=inner, b=nap(4), c=nap(10), end=nap(1))

    def go() -> float:
        with virtual_time() as clock:
            state = run_graph(graph, {}, heard, schedule=schedule, max_workers=workers)
            assert state["inner"] == (6 if workers == 1 else 5)
            return clock.now()

    a = 6 if workers == 1 else 5
    assert within(30, go) == {None: 10 + 1, 1: a + 4 + 10 + 1, 2: 4 + 10 + 1}[workers]


@both
def test_many_nested_runs(schedule: str) -> None:
    """Runs in runs in runs, side by side: the time is that of the longest, and nothing hangs."""
    def nest(depth: int) -> Callable[[Any], None]:
        def node(state: Any) -> None:
            sleep(1)
            if depth:
                run_graph(make("START>a,b,c a>d b>d c>d", **dict.fromkeys("abc", nest(depth - 1)), d=nap(1)), {},
                          schedule=schedule, max_workers=2)
        return node

    def go() -> float:
        with virtual_time() as clock:
            run_graph(make("START>a,b,c", **dict.fromkeys("abc", nest(2))), {}, schedule=schedule)
            return clock.now()

    # one level: 1; with two workers three of them take twice as long, then 1 for d
    level0 = 1
    level1 = 1 + 2 * level0 + 1
    level2 = 1 + 2 * level1 + 1
    assert within(60, go) == level2


@both
def test_a_node_that_raises(schedule: str) -> None:
    """A failure stops nobody's time: neighbours and what follows go on."""
    def fail(state: Any) -> None:
        sleep(1)
        raise ValueError("boom")

    graph = make("START>a,b b>c h>end", a={"fn": fail, "on_error": "h"}, b=nap(3), c=nap(1), h=nap(1), end=nap(1))
    ready = {"a": (0, 1), "b": (0, 3), "c": (3, 4), "h": (1, 2), "end": (2, 3)}
    waves = {"a": (0, 1), "b": (0, 3), "c": (3, 4), "h": (3, 4), "end": (4, 5)}
    assert spans(graph, schedule=schedule) == (waves if schedule == "waves" else ready)


@both
def test_a_run_that_ends_in_an_exception(schedule: str) -> None:
    """A collision, or an interrupt, while others sleep: the run ends, and the clock can be used again."""
    def interrupt(state: Any) -> None:
        sleep(2)
        raise KeyboardInterrupt

    def go() -> list[float]:
        times = []
        with virtual_time() as clock:
            with pytest.raises(StateCollision):
                run_graph(make("START>a,b,c", a=lambda state: sleep(1) or {"k": 1},
                               b=lambda state: sleep(2) or {"k": 2}, c=nap(50)), {}, schedule=schedule)
            times.append(clock.now())
            with pytest.raises(KeyboardInterrupt):
                run_graph(make("START>a,b b>c", a=interrupt, b=nap(50), c=nap(1)), {}, schedule=schedule)
            begun = clock.now()
            run_graph(make("START>a,b", a=nap(1), b=nap(4)), {}, schedule=schedule)
            times.append(clock.now() - begun)
            begun = clock.now()
            sleep(3)
            times.append(clock.now() - begun)
        return times

    first, second, third = within(30, go)
    assert first in (2, 50)
    assert (second, third) == (4, 3)


@both
def test_an_observer_may_sleep(schedule: str) -> None:
    """An observer that takes its time on the clock hangs nothing."""
    def observer(kind: str, event: dict[str, Any]) -> None:
        sleep(0.5)

    def go() -> str:
        with virtual_time():
            graph = make("START>a,b,c a>d b>d", a=nap(1), b=nap(2), c=lambda state: emit("x", {}))
            return run_graph(graph, {}, observer, schedule=schedule).status

    assert within(5, go) == "done"


@both
def test_a_router_may_sleep(schedule: str) -> None:
    """A router's sleep takes time like any other."""
    graph = make("START>a", a=nap(1), x=nap(1), routers={"a": (lambda state: sleep(2) or "x", {"x": "x"})})
    assert spans(graph, schedule=schedule) == {"a": (0, 1), "x": (3, 4)}


@both
def test_runs_one_after_the_other(schedule: str) -> None:
    """On one clock the second run begins where the first ended; the times in its events begin at 0 all the same."""
    heard = Heard()

    def go() -> float:
        with virtual_time() as clock:
            graph = make("START>a,b", a=nap(1), b=nap(4))
            run_graph(graph, {}, schedule=schedule)
            run_graph(graph, {}, heard, schedule=schedule)
            return clock.now()

    assert within(30, go) == 8
    assert [e["t"] for e in heard["node_end"]] == [1, 4]


@both
def test_the_clock_as_an_argument(schedule: str) -> None:
    """A run uses the clock it is given, in all its nodes, whatever the current one is; the current one stays."""
    clock = VirtualClock()
    graph = make("START>a,b a>c", a=nap(1000), b=nap(2000), c=lambda state: {"now": now()})
    before = now()
    state = within(30, lambda: run_graph(graph, {}, schedule=schedule, clock=clock))
    assert (state["now"], clock.now()) == ((2000 if schedule == "waves" else 1000), 2000)
    assert now() - before < 20
    with virtual_time() as other:
        within(30, lambda: run_graph(graph, {}, schedule=schedule, clock=clock))
        assert (other.now(), clock.now()) == (0, 4000)


@both
def test_a_fast_real_run(schedule: str) -> None:
    """On a real clock at speed 500 the same graph runs in real threads, and its events are in its own seconds."""
    heard = Heard()
    graph = make("START>a,b a>c b>c", a=nap(5), b=nap(10), c=nap(5))
    within(30, lambda: run_graph(graph, {}, heard, schedule=schedule, clock=RealClock(speed=500)))
    ends = {e["node"]: e["t"] for e in heard["node_end"]}
    assert ends["a"] >= 5
    assert ends["b"] >= 10
    assert ends["c"] >= 15
    assert heard["graph_end"][0]["ms"] >= 15_000


@both
def test_the_same_every_time(schedule: str) -> None:
    """With ties everywhere, the times of thirty runs are the same."""
    def once() -> list[tuple[str, float, float]]:
        nodes = {f"{layer}{i}": nap((i * 7 + layer) % 3) for layer in range(4) for i in range(6)}
        edges = ["START>" + ",".join(f"0{i}" for i in range(6))]
        edges += [f"{layer}{i}>{layer + 1}{i},{layer + 1}{(i + 1) % 6}" for layer in range(3) for i in range(6)]
        found = spans(make(" ".join(edges), **nodes), schedule=schedule, max_workers=4)
        return sorted((name, *span) for name, span in found.items())

    first = once()
    assert all(once() == first for _ in range(30))


# ---- threads that the run does not know


def test_a_thread_that_sleeps_on_is_released() -> None:
    """A thread that still sleeps when virtual time ends wakes up, so that nothing is left behind."""
    threads = []

    def node(state: Any) -> None:
        context = contextvars.copy_context()
        threads.append(threading.Thread(target=context.run, args=(sleep, 1e9), daemon=True))
        threads[0].start()
        sleep(1)

    heard = Heard()

    def go() -> None:
        with virtual_time():
            run_graph(make("START>a,b", a=node, b=nap(2)), {}, heard)

    within(30, go)
    assert heard["graph_end"][0]["t"] == 2
    threads[0].join(10)
    assert not threads[0].is_alive()


def test_two_threads_on_one_clock() -> None:
    """Two runs on one clock, from two threads: whatever the times, neither hangs."""
    def go() -> list[str]:
        done: list[str] = []
        with virtual_time():
            def run() -> None:
                for _ in range(10):
                    done.append(run_graph(make("START>a,b a>c b>c", a=nap(1), b=nap(2), c=nap(1)), {}).status)
            threads = [threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
                       for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return done

    assert within(60, go) == ["done"] * 30


def test_clocks_do_not_mix() -> None:
    """Each thread's virtual time is its own."""
    def own(seconds: float, found: list[float]) -> None:
        with virtual_time() as clock:
            run_graph(make("START>a,b", a=nap(seconds), b=nap(seconds / 2)), {})
            found.append(clock.now())

    def go() -> list[float]:
        found: list[float] = []
        threads = [threading.Thread(target=own, args=(n, found), daemon=True) for n in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(found)

    assert within(30, go) == list(range(1, 9))


# ---- mailboxes: how a timeout waits


def call(box: Any, fn: Callable[..., Any], *args: Any) -> threading.Thread:
    """Do what a timeout does: hand a call to a thread of its own, its result to arrive in the box."""
    box.expect()
    thread = threading.Thread(target=contextvars.copy_context().run, args=(box.work, fn, *args), daemon=True)
    thread.start()
    return thread


def slow(seconds: float) -> float:
    sleep(seconds)
    return seconds


def in_a_run(fn: Callable[[], Any], observer: Any = None) -> Any:
    """Return what fn() returns within a node, in virtual time, while a neighbour sleeps."""
    def go() -> Any:
        with virtual_time():
            return run_graph(make("START>a,b", a=lambda state: {"found": fn()}, b=nap(500)), {}, observer)["found"]
    return within(30, go)


def test_a_result_arrives() -> None:
    """take() returns what has arrived, at the time when it did."""
    def wait() -> tuple[Any, float]:
        box = clocks.current().mailbox()
        call(box, slow, 3)
        return box.take(), now()

    assert in_a_run(wait) == ([3], 3)


def test_a_timeout_strikes() -> None:
    """take(timeout) returns an empty list, at that very moment; the call goes on, and its result can be taken later."""
    def wait() -> tuple[Any, ...]:
        box = clocks.current().mailbox()
        call(box, slow, 30)
        first = box.take(timeout=2), now()
        return first, (box.take(timeout=100), now())

    assert in_a_run(wait) == (([], 2), ([30], 30))


def test_a_timeout_that_does_not_strike() -> None:
    """A result in time is taken, and the timeout that was not needed moves no clock."""
    def wait() -> tuple[Any, ...]:
        box = clocks.current().mailbox()
        call(box, slow, 1)
        first = box.take(timeout=400), now()
        sleep(1)
        return first, now()

    assert in_a_run(wait) == (([1], 1), 2)


def test_results_of_one_moment_arrive_together() -> None:
    """take() returns everything that arrived at its moment, and nothing of a later one."""
    def wait() -> list[Any]:
        box = clocks.current().mailbox()
        for seconds in (2, 1, 1, 2, 1):
            call(box, slow, seconds)
        found = []
        while sum(map(len, found)) < 5:
            found.append(sorted(box.take()))
        return [*found, now()]

    assert in_a_run(wait) == [[1, 1, 1], [2, 2], 2]


def test_a_timeout_and_a_result_at_one_moment() -> None:
    """A tie between the two has one outcome, always the same."""
    def wait() -> int:
        box = clocks.current().mailbox()
        call(box, slow, 1)
        return len(box.take(timeout=1))

    assert len({in_a_run(wait) for _ in range(40)}) == 1


def test_a_call_that_nobody_waits_for() -> None:
    """A call that a timeout left behind does not hold up the end of the run, nor move its time."""
    heard = Heard()

    def wait() -> list[Any]:
        box = clocks.current().mailbox()
        call(box, slow, 1e6)
        found = box.take(timeout=1)
        assert isinstance(found, list)
        return found

    assert in_a_run(wait, heard) == []
    assert [(e["node"], e["t"]) for e in heard["node_end"]] == [("a", 1), ("b", 500)]
    assert (heard["graph_end"][0]["t"], heard["graph_end"][0]["ms"]) == (500, 500_000)


def test_a_mailbox_in_real_time() -> None:
    """The same with a real clock: results arrive, and a timeout is measured in the clock's own seconds."""
    def go() -> tuple[Any, ...]:
        with use(RealClock(speed=100)):
            box = clocks.current().mailbox()
            call(box, slow, 0.5)
            first = box.take(timeout=1000)
            thread = call(box, slow, 20)
            before = now()
            second = box.take(timeout=1)
            waited = now() - before
            third = box.take()
            thread.join()
            return first, second, waited >= 1, waited < 20, third

    assert within(30, go) == ([0.5], [], True, True, [20])
