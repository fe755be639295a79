"""Loops that fail: they wait longer each time, and say so once a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from kit.world import world
from pillarbox.kernel.observability.loop_failures import LINE_EVERY, LONGEST_PAUSE, LoopFailures


async def broken() -> None:
    raise ValueError("broken")


async def works() -> None:
    return


def test_each_pause_is_longer_up_to_a_limit() -> None:
    failures = LoopFailures("toys.claim")
    pauses = []
    for _ in range(7):
        failures.failed(ValueError("broken"))
        pauses.append(failures.pause)
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE]
    failures.succeeded()
    assert failures.pause == 0


def test_a_database_that_is_away_is_asked_again_soon() -> None:
    failures = LoopFailures("toys.claim")
    for _ in range(7):
        failures.failed(asyncpg.CannotConnectNowError("starting up"))
    assert failures.pause == 2


async def test_a_loop_that_fails_for_good_writes_a_line_a_minute() -> None:
    seconds = 0.0
    failures = LoopFailures("toys.claim", lambda: seconds)
    with capture_logs() as lines:
        for _ in range(1200):
            assert not await failures.attempt(broken())
            seconds += 0.125
        assert [line["failures"] for line in lines] == [1, 480, 480]
        assert [line["exc_info"] is None for line in lines] == [False, True, True]
        assert {line["event"] for line in lines} == {"toys.loop_failed"}
        await failures.attempt(works())
        await failures.attempt(works())
    assert [line["event"] for line in lines[3:]] == ["toys.loop_recovered"]


async def test_a_loop_that_fails_every_other_time_writes_two_lines_a_minute() -> None:
    seconds = 0.0
    failures = LoopFailures("toys.claim", lambda: seconds)
    with capture_logs() as lines:
        while seconds < 3 * LINE_EVERY:
            await failures.attempt(broken())
            await failures.attempt(works())
            seconds += 0.5
    assert [line["event"] for line in lines] == ["toys.loop_failed", "toys.loop_recovered"] * 3


BREAK = "ALTER TABLE {0} RENAME TO {0}_away"
MEND = "ALTER TABLE {0}_away RENAME TO {0}"


async def seen(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("table", "loop"),
    [
        ("webhook_deliveries", "webhooks.claim"),
        ("deliveries", "delivery.claim"),
        ("automation_work", "automations.claim"),
        ("jobs", "jobs.due"),
    ],
)
async def test_loops_of_engines_say_it_once_and_go_on(
    database_url: str, tmp_path: Path, table: str, loop: str
) -> None:
    with capture_logs() as lines:

        def of(event: str) -> list[Any]:
            part = loop.partition(".")[0]
            return [line for line in lines if line.get("loop") == loop and line["event"] == f"{part}.{event}"]

        async with world(database_url, tmp_path, roles="api,delivery,webhooks,jobs") as pillarbox:
            await pillarbox.pool.execute(BREAK.format(table))
            await seen(lambda: bool(of("loop_failed")))
            await pillarbox.pool.execute(MEND.format(table))
            await seen(lambda: len(of("loop_recovered")) >= len(of("loop_failed")))
    assert {line["failures"] for line in of("loop_failed")} == {1}
