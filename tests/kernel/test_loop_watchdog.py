"""A stall of the event loop leaves one line in the log that names its cause, and is counted."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from pillarbox.kernel.observability import loop_watchdog
from pillarbox.kernel.observability.loop_watchdog import LAG, LoopWatchdog


@pytest.fixture(autouse=True)
def fresh_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loggers that were used before are bound to where they wrote then."""
    monkeypatch.setattr(loop_watchdog, "log", loop_watchdog.get("loop_watchdog"))


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    with capture_logs() as found:
        yield found


def counted(process: str, above: float) -> float:
    """How many values of the histogram were above a bound; 0 for all."""
    numbers = LAG.numbers()
    values = dict(numbers.values).get((process,))
    return 0 if values is None else sum(values[numbers.bounds.index(above) + 1 if above else 0 : -1])


def handler_that_sleeps() -> None:
    time.sleep(0.3)


async def test_a_handler_that_blocks_leaves_one_line_that_names_it(lines: list[Any]) -> None:
    watchdog = LoopWatchdog("sleeps")
    watchdog.start()
    await asyncio.sleep(0.12)
    before = len(lines)
    handler_that_sleeps()
    await asyncio.sleep(0.02)
    watchdog.stop()
    [line] = [line for line in lines[before:] if "handler_that_sleeps" in line["where"]]
    assert line["event"] == "loop.stalled"
    assert line["log_level"] == "warning"
    assert line["ms"] >= 200
    assert line["cpu_ms"] < 200
    assert "test_loop_watchdog.py" in line["where"]
    assert " < " in line["stack"]
    assert counted("sleeps", 0.1) >= 1


async def test_code_that_keeps_the_lock_is_named_too(lines: list[Any]) -> None:
    """While one call of a C library runs, no other thread can look."""
    watchdog = LoopWatchdog("computes")
    watchdog.start()
    await asyncio.sleep(0.06)
    before = len(lines)
    used = time.thread_time()
    while time.thread_time() - used < 0.3:
        sorted(range(100_000, 0, -1), key=str)
    await asyncio.sleep(0.02)
    watchdog.stop()
    found = [line for line in lines[before:] if "test_code_that_keeps_the_lock" in line["where"]]
    assert found
    assert found[-1]["cpu_ms"] >= 200
    assert found[-1]["process_cpu_ms"] >= found[-1]["cpu_ms"]


async def test_it_needs_no_thread_and_ends_with_its_loop() -> None:
    """A thread that looks now and then takes Python's lock from the loop each time."""
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    left = signal.setitimer(signal.ITIMER_REAL, 60)[0]
    try:
        threads = threading.enumerate()
        watchdog = LoopWatchdog("idle")
        watchdog.start()
        await asyncio.sleep(0.2)
        assert threading.enumerate() == threads
        watchdog.stop()
        signal.raise_signal(signal.SIGALRM)
        assert rung == [signal.SIGALRM]
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 30
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left)


async def test_the_alarm_rings_only_where_the_loop_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[int] = []
    monkeypatch.setattr(LoopWatchdog, "_look", lambda _, number, __: rung.append(number))
    watchdog = LoopWatchdog("in time")
    watchdog.start()
    while counted("in time", 0.0) < 10:
        await asyncio.sleep(0.01)
    watchdog.stop()
    assert len(rung) <= counted("in time", loop_watchdog.LOOK_AFTER)


async def idle(process: str) -> LoopWatchdog:
    """A watchdog of a loop that does nothing, once it has noticed that."""
    watchdog = LoopWatchdog(process)
    watchdog.start()
    while not watchdog.is_idle:
        await asyncio.sleep(0.3)
    return watchdog


def work_that_computes() -> None:
    used = time.thread_time()
    while time.thread_time() - used < 0.3:
        sorted(range(1000, 0, -1), key=str)


async def test_an_idle_process_is_woken_less_often_and_a_computation_is_found_all_the_same(
    lines: list[Any],
) -> None:
    watchdog = await idle("nothing to do")
    due = watchdog._due
    while watchdog._due == due:
        await asyncio.sleep(0.01)
    assert watchdog._due - due >= loop_watchdog.IDLE_BEAT
    before = len(lines)
    work_that_computes()
    await asyncio.sleep(0)
    assert not watchdog.is_idle
    await asyncio.sleep(0.02)
    watchdog.stop()
    [line] = [line for line in lines[before:] if "work_that_computes" in line["stack"]]
    assert line["ms"] >= 200
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0


async def test_in_an_idle_process_a_long_wait_is_found(lines: list[Any]) -> None:
    watchdog = await idle("a long wait")
    before = len(lines)
    time.sleep(loop_watchdog.IDLE_BEAT + 2 * loop_watchdog.STALL)
    await asyncio.sleep(0.02)
    watchdog.stop()
    assert any("test_in_an_idle_process" in line["where"] for line in lines[before:])


async def test_a_call_that_is_interrupted_goes_on(lines: list[Any]) -> None:
    ours, theirs = socket.socketpair()
    watchdog = LoopWatchdog("waits")
    with ours, theirs:
        watchdog.start()
        await asyncio.sleep(0.06)
        late = threading.Timer(0.3, theirs.send, (b"late",))
        late.start()
        assert ours.recv(4) == b"late"
        await asyncio.sleep(0.02)
        watchdog.stop()
        late.join()
    assert any("test_a_call_that_is_interrupted" in line["where"] for line in lines)


def test_one_that_was_never_started_can_be_stopped() -> None:
    LoopWatchdog("never").stop()
