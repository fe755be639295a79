"""Pages of the log, who sees it, and how long it is kept (logs.md sections 2 and 3)."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.world import Team, World, mail
from pillarbox.kernel.plugin import PeriodicJobs
from pillarbox.logs import retention
from pillarbox.logs.policy import LogPolicy
from pillarbox.logs.writing import RequestLog

DAY = 86_400.0


async def asked(team: Team, times: int) -> list[str]:
    """So many requests; the ids of their rows, newest first."""
    answers = [await team.post("/api-keys", {"name": str(n)}) for n in range(times)]
    return [answer.headers["x-request-id"] for answer in reversed(answers)]


async def ids(team: Team, query: str = "") -> tuple[list[str], bool]:
    answer = (await team.get(f"/logs{query}")).json()
    assert answer["object"] == "list"
    return [row["id"] for row in answer["data"]], answer["has_more"]


async def test_pages(pillarbox: World) -> None:
    """Newest first, twenty without a limit; a walk sees nothing twice while requests arrive."""
    team = await pillarbox.team()
    made = await asked(team, 25)
    assert await ids(team) == (made[:20], True)
    assert await ids(team, "?limit=100&colour=blue") == (made, False)
    walked: list[str] = []
    after = ""
    while True:
        page, more = await ids(team, f"?limit=7{after}")
        walked += page
        if not more:
            break
        after = f"&after={page[-1]}"
        await asked(team, 2)
    assert walked == made
    assert await ids(team, f"?limit=2&before={made[10]}") == (made[8:10], True)
    assert await ids(team, f"?after={made[-1]}") == ([], False)


async def test_what_is_refused(pillarbox: World) -> None:
    team = await pillarbox.team()
    [mine] = await asked(team, 1)
    for query in ("limit=0", "limit=101", "after=x", f"after={mine}&before={mine}"):
        assert error(await team.get(f"/logs?{query}"))[:2] == (422, "validation_error")
    assert error(await team.get("/logs/12"))[:2] == (422, "invalid_parameter")
    assert error(await team.get(f"/logs/{uuid4()}")) == (404, "not_found", "Log not found")
    sender = team.using(await team.key(permission="sending_access"))
    assert error(await sender.get("/logs"))[:2] == (401, "restricted_api_key")
    assert error(await sender.get(f"/logs/{mine}"))[:2] == (401, "restricted_api_key")
    quay = await pillarbox.team("Quay")
    assert error(await quay.get(f"/logs/{mine}")) == (404, "not_found", "Log not found")
    assert await ids(quay) == ([], False)
    assert await ids(quay, f"?before={mine}") == ([], False)


async def test_rows_go_after_their_time(database_url: str, tmp_path: Path) -> None:
    """Shown no longer than kept, and removed by the next round; a team may have a time of its own."""
    async with manual_world(database_url, tmp_path, log_retention_days="30") as pillarbox:
        harbor, quay = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
        await pillarbox.pool.execute("UPDATE teams SET log_retention_days = 2 WHERE name = 'Quay'")
        old = [await asked(team, 3) for team in (harbor, quay)]
        clock_of(pillarbox).advance(3 * DAY)
        new = [await asked(team, 2) for team in (harbor, quay)]
        assert (await ids(harbor))[0] == new[0] + old[0]
        assert (await ids(quay))[0] == new[1]
        assert (await quay.get(f"/logs/{old[1][0]}")).status_code == 404
        app = pillarbox.app
        assert await retention.purge(app.kit.pool, app.kit.clock, app.need(LogPolicy)) == 3
        await pillarbox.pool.execute("UPDATE teams SET log_retention_days = 36500 WHERE name = 'Quay'")
        clock_of(pillarbox).advance(28 * DAY)
        assert (await ids(quay))[0] == new[1]
        assert (await ids(harbor))[0] == new[0]
        assert await retention.purge(app.kit.pool, app.kit.clock, app.need(LogPolicy)) == 3
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM logs") == 4
        clock_of(pillarbox).advance(DAY / 24)
        [work] = [r.work for r in app.need(PeriodicJobs) if r.kind == "logs.retention"]
        assert await work() == "0 log rows"


async def test_without_days_there_is_no_log(database_url: str, tmp_path: Path) -> None:
    """Nothing is written, what was written goes, and the list is empty."""
    async with manual_world(database_url, tmp_path, log_retention_days="0") as pillarbox:
        team, other = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
        await pillarbox.pool.execute("UPDATE teams SET log_retention_days = 5 WHERE name = 'Quay'")
        await team.send()
        await team.get("/emails")
        await team.post("/emails", {})
        await pillarbox.app.need(RequestLog).flush()
        assert await ids(team) == ([], False)
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM logs") == 0
        sent = await other.post("/emails", mail())
        assert await ids(other) == ([sent.headers["x-request-id"]], False)
        await pillarbox.pool.execute("UPDATE teams SET log_retention_days = 0 WHERE name = 'Quay'")
        clock_of(pillarbox).advance(1.0)
        assert await ids(other) == ([], False)
        app = pillarbox.app
        assert await retention.purge(app.kit.pool, app.kit.clock, app.need(LogPolicy)) == 1
