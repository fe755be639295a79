"""Bounces and complaints by domain: shown by the API, warned of by the doctor (BNC-09)."""

from __future__ import annotations

import pytest

from kit.manual_world import clock_of
from kit.reports import about, bounce, came_back, complaint, token_of
from kit.world import Team, World
from pillarbox.doctor.checks import Level
from pillarbox.doctor.reputation import LEAST, reputation_checks
from pillarbox.kernel.ids import Ids

INCREMENT = """
    INSERT INTO metric_increments
           (team_id, id, start, domain_name, sent, delivered, bounced_permanent, complained)
    VALUES ($1, $2, $3, $4, $5, $5, $6, $7)
"""


async def counted(team: Team, domain: str, sent: int, bounced: int = 0, complained: int = 0) -> None:
    """So much happened just now, as the timeline counts it."""
    app = team.world.app
    await team.db.run(INCREMENT, app.need(Ids).new(), app.kit.clock.now(), domain, sent, bounced, complained)


async def warned(pillarbox: World) -> list[str]:
    found = await reputation_checks(pillarbox.pool, clock_of(pillarbox).now())
    return [check.found for check in found if check.level is Level.WARNING]


@pytest.mark.parametrize(
    ("sent", "bounced", "complained", "warnings"),
    [
        (1000, 39, 0, 0),
        (1000, 40, 0, 1),
        (10_000, 0, 7, 0),
        (10_000, 0, 8, 1),
        (10_000, 400, 8, 2),
        (LEAST, 0, 2, 0),
        (LEAST - 1, 50, 50, 0),
        (0, 0, 0, 0),
    ],
)
async def test_limits(pillarbox: World, sent: int, bounced: int, complained: int, warnings: int) -> None:
    """4 % and 0.08 %; a handful of mails says nothing."""
    team = await pillarbox.team()
    await counted(team, "harbor.example", sent, bounced, complained)
    await counted(team, "pier.example", 1000)
    found = await warned(pillarbox)
    assert len(found) == warnings
    assert all(line.startswith("harbor.example: ") for line in found)


async def test_what_is_older_than_a_week_is_forgiven(pillarbox: World) -> None:
    """Days that were folded count like those that were not, and teams are added up by domain."""
    for team in (await pillarbox.team(), await pillarbox.team()):
        await counted(team, "harbor.example", 1000, 30)
        await counted(team, "quay.example", 1000, 50)
    assert await warned(pillarbox) == ["quay.example: 100 of 2000 bounced in 7 days"]
    clock_of(pillarbox).advance(6 * 86_400)
    assert len(await warned(pillarbox)) == 1
    clock_of(pillarbox).advance(86_400)
    [check] = await reputation_checks(pillarbox.pool, clock_of(pillarbox).now())
    assert (check.level, check.name) == (Level.OK, "standing")


async def test_the_api_shows_both_rates_by_domain(pillarbox: World) -> None:
    """After reports that came back."""
    team = await pillarbox.team()
    emails = [await team.send(to=f"someone{number}@quay.example") for number in range(4)]
    await pillarbox.turn()
    for email, raw in zip(emails, (bounce(about("someone0@quay.example")), complaint()), strict=False):
        await came_back(pillarbox, await token_of(pillarbox, email), raw)
    answer = await team.get("/emails/metrics?metrics=bounce_rate,complaint_rate&dimensions=domain")
    assert answer.status_code == 200, answer.text
    [row] = answer.json()["data"]
    assert (row["domain_name"], row["bounce_rate"], row["complaint_rate"]) == ("harbor.example", 25, 25)
