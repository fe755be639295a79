"""Questions with more rows than an answer may have are refused before these are made; no others are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kit.clock import ManualClock
from kit.histories import instant
from kit.manual_world import manual_world
from kit.world import Team, World
from pillarbox.metrics.read import MOST_ROWS

NOW = instant("2026-11-21T10:07:33.123456")
HOURS, DOMAINS = 250, 40
END = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
TEXT = "More than 10000 rows. Narrow the range or use more filters."

# One email for each hour, domain and broadcast.
GROWN = """
    INSERT INTO rollups
    SELECT $1, level, $2::timestamptz - hour * interval '1 hour', md5('d' || n)::uuid, 'd' || n || '.example',
           broadcast::uuid, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
      FROM unnest($3::smallint[]) AS level, generate_series(1, $4::int) AS hour,
           generate_series(1, $5::int) AS n, unnest($6::text[]) AS broadcast
"""
ONE_MORE = """
    INSERT INTO metric_increments (team_id, id, start, domain_id, domain_name, received)
    VALUES ($1, $2, $3, md5($4)::uuid, $4 || '.example', $5)
"""
WAITING = """
    INSERT INTO metric_increments (team_id, id, start, domain_id, domain_name, received)
    SELECT $1, gen_random_uuid(), $2::timestamptz - hour * interval '1 hour', md5('d' || n)::uuid,
           'd' || n || '.example', 1
      FROM generate_series(1, $3::int) AS hour, generate_series(1, $4::int) AS n
"""
NOBODY, NEWS, TIDES = (f"00000000-0000-0000-0000-00000000000{n}" for n in (0, 5, 7))


@asynccontextmanager
async def grown(
    database_url: str, folder: Path, levels: list[int], hours: int = HOURS
) -> AsyncIterator[tuple[World, Team]]:
    async with manual_world(database_url, folder, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        broadcasts = [NOBODY, NEWS] if hours == HOURS else [NOBODY]
        await pillarbox.pool.execute(GROWN, team.id, END, levels, hours, DOMAINS, broadcasts)
        yield pillarbox, team


async def rows(team: Team, hours: int = HOURS, **more: str) -> int | str:
    """How many there are, or what the refusal says."""
    start = END - timedelta(hours=hours)
    asked = {"start_date": iso(start), "end_date": iso(END), "granularity": "hourly", "metrics": "received"}
    answer = await team.http.get("/emails/metrics", params=asked | {"dimensions": "period,domain"} | more)
    found_answer: dict[str, Any] = answer.json()
    return len(found_answer["data"]) if answer.status_code == 200 else str(found_answer["message"])


def iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


async def test_ten_thousand_rows_are_answered_and_one_more_is_refused(
    database_url: str, tmp_path: Path
) -> None:
    """Whether the one more is folded or not, and whether it is taken back."""
    async with grown(database_url, tmp_path, [1, 2]) as (pillarbox, team):
        assert await rows(team) == MOST_ROWS == HOURS * DOMAINS
        assert await rows(team, timezone="Asia/Kolkata") == MOST_ROWS
        assert await rows(team, dimensions="period,broadcast") == HOURS
        assert await rows(team, dimensions="period,domain,broadcast") == MOST_ROWS
        assert await rows(team, domain_id="d0b1ff5e-2f45-4a53-8a4f-6a5c7f5a0000") == 0
        args = team.id, team.id, END - timedelta(hours=3)
        await pillarbox.pool.execute(ONE_MORE, *args, "more", 1)
        assert await rows(team) == TEXT
        await pillarbox.pool.execute("DELETE FROM metric_increments")
        await pillarbox.pool.execute(GROWN, team.id, END, [1, 2], 1, DOMAINS + 1, [TIDES])
        assert await rows(team) == TEXT
        assert await rows(team, timezone="Asia/Kolkata") == TEXT
        await pillarbox.pool.execute(ONE_MORE, *args[:2], END - timedelta(hours=1), f"d{DOMAINS + 1}", -1)
        assert await rows(team) == MOST_ROWS


async def test_far_too_many_are_refused_without_adding_up(database_url: str, tmp_path: Path) -> None:
    """Hours show it, of zones whose hours are no hours of UTC as well: there are no quarter hours to read."""
    hours = 3 * HOURS + 25
    async with grown(database_url, tmp_path, [2], hours) as (_, team):
        assert await rows(team, hours) == TEXT
        assert await rows(team, hours, timezone="Asia/Kolkata") == TEXT


async def test_all_that_waits_is_counted_however_many_periods_it_lies_in(
    database_url: str, tmp_path: Path
) -> None:
    """As mending leaves it: few rows of each hour, and together more than any one hour may have."""
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        team = await pillarbox.team()
        await pillarbox.pool.execute(WAITING, team.id, END, 4, DOMAINS)
        assert await rows(team) == 4 * DOMAINS
