"""A team may have times of its own for its emails and history, and for its metrics (DUR-15)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kit.clock import ManualClock
from kit.manual_world import clock_of, manual_world
from kit.world import Team, World
from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.emails.retention import EmailRetention
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.teams.bootstrap import set_limits
from pillarbox.timeline import rollups

NOW = datetime(2026, 10, 7, 15, tzinfo=UTC)


async def rows(team: Team, table: str) -> int:
    found: int = await team.db.value(f"SELECT count(*) FROM {table} WHERE team_id = $1")
    return found


async def test_emails_go_by_the_days_of_their_team(pillarbox: World) -> None:
    """With their history. None: as the installation says; 0: never."""
    teams = {days: await pillarbox.team(f"Team {days}") for days in (None, 0, 3, 60, 36500)}
    for days, team in teams.items():
        await set_limits(pillarbox.pool, team.id, {"email_retention_days": days})
        await team.send()
    await pillarbox.turn()
    app = pillarbox.app
    for passed, installation, left in (
        (4, 0, {None: 1, 0: 1, 3: 0, 60: 1, 36500: 1}),
        (30, 30, {None: 0, 0: 1, 3: 0, 60: 1, 36500: 1}),
        (30, 30, {None: 0, 0: 1, 3: 0, 60: 0, 36500: 1}),
    ):
        clock_of(pillarbox).advance(timedelta(days=passed))
        kept = EmailRetention(app.kit.pool, app.kit.clock, app.need(BlobStore), emails=installation, bodies=0)
        await kept.purge_emails()
        assert {days: await rows(team, "emails") for days, team in teams.items()} == left
        histories = {days: bool(await rows(team, "timeline")) for days, team in teams.items()}
        assert histories == {days: bool(number) for days, number in left.items()}


@pytest.mark.parametrize("installation", [0, 40])
async def test_metrics_are_removed_by_the_retention_of_their_team(
    database_url: str, tmp_path: Path, installation: int
) -> None:
    """But a month is kept in any case: quotas count it."""
    async with manual_world(database_url, tmp_path, metrics_retention_days=str(installation)) as pillarbox:
        teams = {days: await pillarbox.team(f"Team {days}") for days in (None, 0, 3, 60)}
        for days, team in teams.items():
            await set_limits(pillarbox.pool, team.id, {"metrics_retention_days": days})
            await team.send()
        clock = clock_of(pillarbox)
        await rollups.fold(pillarbox.pool, clock.now())
        for passed, gone in ((20, set()), (15, {3}), (10, {3, None} if installation else {3}), (20, None)):
            clock.advance(timedelta(days=passed))
            await rollups.remove_old(pillarbox.pool, clock.now(), installation)
            left = {days for days, team in teams.items() if not await rows(team, "rollups")}
            assert left == ({3, 60} | ({None} if installation else set()) if gone is None else gone)


async def test_metrics_are_shown_for_the_retention_of_the_team(database_url: str, tmp_path: Path) -> None:
    async with manual_world(
        database_url, tmp_path, ManualClock(NOW), metrics_retention_days="3"
    ) as pillarbox:
        teams = {days: await pillarbox.team(f"Team {days}") for days in (None, 0, 5)}
        starts = {}
        for days, team in teams.items():
            await set_limits(pillarbox.pool, team.id, {"metrics_retention_days": days})
            pillarbox.app.need(KeyCredentials).forget(team.id)
            answer = await team.get("/emails/metrics?start_date=2026-09-01")
            assert answer.status_code == 200, answer.text
            starts[days] = answer.json()["start_date"][:10]
        assert starts == {None: "2026-10-04", 0: "2026-09-01", 5: "2026-10-02"}
