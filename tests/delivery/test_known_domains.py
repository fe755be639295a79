"""A domain that was reached before is looked up twice before its mail fails (OUT-03)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from kit.clock import ManualClock
from kit.manual_world import clock_of
from kit.smtp_sink import Sink
from kit.world import Team, World, world
from kit.zone import Zone
from pillarbox.delivery.smtp import known_domain_queries, known_domains

ZONE = """
quay.example  MX 10 mx.quay.example
mx.quay.example A 127.0.0.1
"""
MINUTE = timedelta(minutes=1)


@pytest.fixture
@asynccontextmanager
async def harbor(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[World, Team, Zone]]:
    """A Pillarbox on the route `direct` whose team has delivered one mail to quay.example."""
    zone = Zone(ZONE)
    async with (
        Sink() as sink,
        world(
            database_url,
            tmp_path,
            clock=ManualClock(),
            zone=zone,
            started=False,
            route="direct",
            remote_smtp_port=str(sink.port),
            allow_private="127.0.0.0/8",
        ) as pillarbox,
    ):
        team = await pillarbox.team()
        await team.domain()
        await reach(pillarbox, team)
        yield pillarbox, team, zone


async def reach(pillarbox: World, team: Team) -> None:
    email = await team.send()
    await pillarbox.turn()
    assert (await team.email(email))["last_event"] == "delivered"


async def until(pillarbox: World, *minutes: int) -> None:
    """Let the engine claim after each of these many minutes."""
    for pause in minutes:
        clock_of(pillarbox).advance(pause * MINUTE)
        await pillarbox.turn()


async def suppressed(team: Team) -> int:
    count: int = await team.db.value("SELECT count(*) FROM suppressions WHERE team_id = $1")
    return count


def vanish(zone: Zone) -> None:
    zone.remove("quay.example", "MX")
    zone.remove("mx.quay.example", "A")


async def test_a_known_domain_that_does_not_exist_bounces_after_ten_minutes(
    harbor: tuple[World, Team, Zone],
) -> None:
    """The schedule tries again after 1, 5 and 15 minutes more; suppression comes with the final reply
    alone."""
    pillarbox, team, zone = harbor
    vanish(zone)
    email = await team.send()
    await pillarbox.turn()
    await until(pillarbox, 2, 6)
    assert await team.kinds(email) == [
        "queued",
        "delivery_delayed",
        "delivery_delayed",
        "delivery_delayed",
    ]
    assert await suppressed(team) == 0
    await until(pillarbox, 17)
    assert (await team.email(email))["last_event"] in {"failed", "bounced"}
    assert await suppressed(team) == 1


async def test_a_domain_that_comes_back_gets_its_mail(harbor: tuple[World, Team, Zone]) -> None:
    pillarbox, team, zone = harbor
    vanish(zone)
    email = await team.send()
    await pillarbox.turn()
    zone.add("quay.example", "MX", "10 mx.quay.example")
    zone.add("mx.quay.example", "A", "127.0.0.1")
    await until(pillarbox, 2)
    assert (await team.email(email))["last_event"] == "delivered"
    assert (await team.db.value("SELECT missing_since FROM destinations WHERE team_id = $1")) is None


async def test_two_absences_are_two(harbor: tuple[World, Team, Zone]) -> None:
    """What was said of an absence weeks ago does not shorten this one."""
    pillarbox, team, zone = harbor
    vanish(zone)
    await team.send()
    await pillarbox.turn()
    clock_of(pillarbox).advance(timedelta(days=3))
    email = await team.send()
    await pillarbox.turn()
    assert (await team.kinds(email))[-1] == "delivery_delayed"


async def test_a_domain_that_only_another_team_has_reached_is_not_known(
    harbor: tuple[World, Team, Zone],
) -> None:
    pillarbox, _, zone = harbor
    other = await pillarbox.team("Other")
    await other.domain("other.example")
    vanish(zone)
    email = await other.send(from_="Other <news@other.example>")
    await pillarbox.turn()
    assert (await other.email(email))["last_event"] in {"failed", "bounced"}


async def test_the_same_destination_is_written_once_a_day(harbor: tuple[World, Team, Zone]) -> None:
    pillarbox, team, _ = harbor
    reached = "SELECT reached_at FROM destinations WHERE team_id = $1"
    first = await team.db.value(reached)
    clock_of(pillarbox).advance(timedelta(hours=1))
    await reach(pillarbox, team)
    assert await team.db.value(reached) == first
    clock_of(pillarbox).advance(timedelta(days=1))
    await reach(pillarbox, team)
    assert await team.db.value(reached) > first


async def test_what_nobody_reaches_any_more_is_removed(harbor: tuple[World, Team, Zone]) -> None:
    pillarbox, _, _ = harbor
    now = clock_of(pillarbox).now()
    assert await known_domain_queries.remove_old(pillarbox.pool, now - known_domains.KEPT) == 0
    [forgetting] = known_domains.known_domains_periodic(pillarbox.pool, pillarbox.clock)
    clock_of(pillarbox).advance(known_domains.KEPT + timedelta(days=1))
    assert await forgetting.work() == "1 destinations"
