"""What the doctor says of the installation's own certificate and endpoints, and of names that are none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import trustme

from doctor.test_outward import direct, outside
from kit.manual_world import clock_of, manual_world
from kit.webhooks import hook
from kit.world import World
from pillarbox.app import SETTINGS
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.doctor.checks import Level
from pillarbox.doctor.examination import CheckedInstallation, effective_route, endpoints
from pillarbox.doctor.listeners import return_path_check
from pillarbox.doctor.outward import EffectiveRoute, outgoing
from pillarbox.doctor.own_certificate import certificate
from pillarbox.kernel.process.process_table import boot_id
from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.kinds import RouteKind
from pillarbox.kernel.settings.settings import settings_of

NOW = datetime(2026, 11, 24, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("left", "hostname", "name", "level"),
    [
        (90 * DAY, "mx.pillar.example", "certificate", Level.OK),
        (10 * DAY, "mx.pillar.example", "certificate.expires", Level.WARNING),
        (-1 * DAY, "mx.pillar.example", "certificate.expired", Level.PROBLEM),
        (90 * DAY, "other.example", "certificate.name", Level.WARNING),
    ],
)
async def test_the_own_certificate(
    tmp_path: Path, left: timedelta, hostname: str, name: str, level: Level
) -> None:
    made = trustme.CA().issue_cert("mx.pillar.example", not_after=NOW + left)
    made.cert_chain_pems[0].write_to_path(tmp_path / "chain.pem")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    texts = {"tls_cert": str(tmp_path / "chain.pem"), "tls_key": str(tmp_path / "key.pem")}
    settings = settings_of({**texts, "hostname": hostname}, SETTINGS)
    # trustme's certificates are valid from the day on which they are made.
    check = await certificate(settings, max(NOW, datetime.now(UTC)) if left > DAY else NOW, is_known=True)
    assert (check.name, check.level) == (name, level)
    (tmp_path / "key.pem").write_text("no key")
    check = await certificate(settings, NOW, is_known=True)
    assert (check.name, check.level) == ("certificate.unusable", Level.PROBLEM)


async def test_endpoints_that_are_away(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    now = clock_of(pillarbox).now()
    assert [check.level for check in await endpoints(pillarbox.pool, now)] == [Level.SKIPPED]
    away = await hook(team, "email.sent", endpoint="https://away.example/hook")
    await hook(team, "email.sent", endpoint="https://fine.example/hook")
    assert [check.level for check in await endpoints(pillarbox.pool, now)] == [Level.OK]
    since = now - timedelta(hours=30)
    await team.db.run(
        "UPDATE webhooks SET failing_since = $3, last_status_code = 502 WHERE team_id = $1 AND id = $2",
        away.id,
        since,
    )
    [check] = await endpoints(pillarbox.pool, now)
    assert (check.name, check.level) == ("webhooks.failing", Level.WARNING)
    assert check.found == "https://away.example/hook of Harbor fails for 30 h, last with 502"
    await team.db.run("UPDATE webhooks SET status = 'disabled' WHERE team_id = $1 AND id = $2", away.id)
    [check] = await endpoints(pillarbox.pool, now)
    assert check.name == "webhooks.disabled"


async def test_a_name_that_does_not_exist_is_said_to_be_none() -> None:
    check = await direct("other.example A 192.0.2.1", {})
    assert (check.name, check.level) == ("outgoing.no_names", Level.PROBLEM)
    assert "do not exist" in check.found
    async with outside("other.example A 192.0.2.1") as world:
        relay = await outgoing(world, EffectiveRoute(kinds.route("relay:smtp://nowhere.example:25")), 25, ())
        back = await return_path_check(world, "mx.nowhere.example", RouteKind.DIRECT, None, receives=True)
    for check in (relay, back):
        assert check.level is Level.PROBLEM
        assert "(NXDOMAIN)" in check.found
    async with outside("* ! SERVFAIL") as world:
        back = await return_path_check(world, "mx.pillar.example", RouteKind.DIRECT, None, receives=True)
    assert "DNS does not say what mx.pillar.example is" in back.found


PROCESS = """
    INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at, route)
    VALUES ($1, $2, 1, 1, $3, $4, $4, $5)
"""


async def test_the_route_is_that_of_the_processes_that_deliver(database_url: str, tmp_path: Path) -> None:
    """Whatever the command was told, and where no server runs on its data folder."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        pool, now = pillarbox.pool, clock_of(pillarbox).now()
        await pool.execute("DELETE FROM processes")
        settings = settings_of({"route": "direct", "data": str(tmp_path)}, SETTINGS)
        here = CheckedInstallation(settings=settings, pool=pool, running=False, listeners={}, connections=1)
        assert await effective_route(here, now) == EffectiveRoute(kinds.route("direct"))
        relay = "relay:smtps://smart.example:465"
        await pool.execute(PROCESS, uuid4(), "another", "api,delivery", now, relay)
        await pool.execute(PROCESS, uuid4(), "another", "api", now, None)
        assert await effective_route(here, now) == EffectiveRoute(kinds.route(relay), is_elsewhere=True)
        await pool.execute(PROCESS, uuid4(), boot_id(), "delivery", now, "capture")
        assert await effective_route(here, now) == EffectiveRoute(kinds.route("capture"))
        running = CheckedInstallation(settings=settings, pool=pool, running=True, listeners={}, connections=1)
        assert await effective_route(running, now) == EffectiveRoute(kinds.route("direct"))
        assert await effective_route(here, now + timedelta(hours=1)) == EffectiveRoute(kinds.route("direct"))


async def test_where_another_machine_delivers_this_one_is_not_judged() -> None:
    secret = kinds.route("relay:smtp://user:secret@smart.example:587")
    async with outside("* ! SERVFAIL") as world:
        check = await outgoing(world, EffectiveRoute(secret, is_elsewhere=True), 25, ())
    assert check.level is Level.SKIPPED
    assert check.found == "another machine delivers, by the route `relay:smtp://smart.example:587`"


async def test_an_engine_says_by_which_route_it_delivers(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, route="relay:smtp://u:p@127.0.0.1:2525") as pillarbox:
        await pillarbox.app.need(ItemClaims).write_heartbeat("delivery")
        found = await pillarbox.pool.fetchval("SELECT route FROM processes WHERE route IS NOT NULL")
        assert found == "relay:smtp://127.0.0.1:2525"
