"""Whose a name is when several teams add it (domains.md sections 1.1 and 2)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from kit.client import error
from kit.domain_dns import Added, Place, checked
from kit.webhook_events import published_kinds, subscribe
from kit.world import Team
from pillarbox.directory import domains as directory
from pillarbox.domains import trust
from pillarbox.domains.checks.start import ClaimFirst
from pillarbox.domains.context import DomainContext
from pillarbox.kernel.postgres.database import TeamDb

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
RECEIVING = {"sending": "disabled", "receiving": "enabled"}


async def owner_of(at: Place, name: str = "harbor.example") -> object:
    return await at.world.pool.fetchval(
        "SELECT team_id FROM directory_domains WHERE name = $1 AND owned", name
    )


async def other_team(at: Place) -> Team:
    return await at.world.team("Quay")


def show_keys(at: Place, *domains: Added) -> None:
    """The DKIM values of these domains are in DNS, at the one selector that they share."""
    values = [
        record["value"]
        for domain in domains
        for record in domain.made["records"]
        if record["record"] == "DKIM"
    ]
    at.dns.put("pillarbox._domainkey.harbor.example", "TXT", *values)


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Place]:
    return checked(database_url, tmp_path)


async def test_two_teams_receive_at_one_name_whose_mx_points_here(place: Place) -> None:
    """Section 7: only the team whose DKIM value is in DNS verifies."""
    quay = await other_team(place)
    first = await place.adds(capabilities=RECEIVING)
    second = await place.adds(team=quay, capabilities=RECEIVING)
    assert [record["record"] for record in first.made["records"]] == ["DKIM", "Receiving"]
    place.dns.add("harbor.example", "MX", "10 mx.pillar.example")
    show_keys(place, second)
    await first.verifies()
    await second.verifies()
    assert await place.checks() == 2
    assert await second.states() == {
        "domain": "verified", "DKIM TXT": "verified", "Receiving MX": "verified",
    }  # fmt: skip
    assert (await first.states())["domain"] == "pending"
    assert (await first.may(), await second.may()) == ("", "receive")
    assert await owner_of(place) == quay.id


async def test_the_first_team_with_its_key_in_dns_owns_the_name(place: Place) -> None:
    quay = await other_team(place)
    first, second = await place.adds(), await place.adds(team=quay)
    await first.publishes("SPF")
    show_keys(place, first, second)
    await first.verifies()
    await place.checks()
    await second.verifies()
    await place.checks()
    assert await owner_of(place) == place.team.id
    assert set((await first.states()).values()) == {"verified"}
    assert set((await second.states()).values()) == {"pending"}
    codes = {result.advice[0].code for result in (await second.results()).values()}
    assert codes == {"owned_elsewhere"}
    await place.checks(72 * HOUR)
    assert set((await second.states()).values()) == {"failed"}
    assert await second.may() == ""
    third = await place.world.team("Pier")
    refused = error(await third.post("/domains", {"name": "harbor.example"}))
    assert refused[:2] == (403, "validation_error")


async def test_both_at_once_settle_it_in_the_database(place: Place) -> None:
    quay = await other_team(place)
    domains = [await place.adds(), await place.adds(team=quay)]
    await domains[0].publishes("SPF")
    show_keys(place, *domains)
    for domain in domains:
        await domain.verifies()
    assert await place.checks() == 2
    states = sorted([(await domain.states())["domain"] for domain in domains])
    assert states == ["pending", "verified"]


async def test_who_cannot_show_the_key_any_more_loses_the_name(place: Place) -> None:
    """Three days of mismatch: then another team may show that the name is its own."""
    quay = await other_team(place)
    second = await place.adds(team=quay)
    first = await (await place.adds()).verified()
    show_keys(place, second)
    await place.checks_until(place.now() + DAY)
    assert (await first.states())["DKIM TXT"] == "temporary_failure"
    assert await owner_of(place) == place.team.id
    await place.checks_until(place.now() + 3 * DAY)
    assert (await first.states())["DKIM TXT"] == "failed"
    assert await owner_of(place) is None
    await second.verifies()
    await place.checks()
    assert set((await second.states()).values()) == {"verified"}
    assert await owner_of(place) == quay.id


async def test_a_single_team_owns_by_its_mx_alone(place: Place) -> None:
    domain = await place.adds(capabilities=RECEIVING)
    assert [record["record"] for record in domain.made["records"]] == ["Receiving"]
    await domain.verified()
    assert await owner_of(place) == place.team.id
    assert await domain.may() == "receive"


async def test_a_name_that_was_only_looked_for_is_nobodys(place: Place) -> None:
    domain = await place.adds()
    await domain.publishes("SPF")
    await domain.verifies()
    await place.checks()
    assert (await domain.states())["SPF MX"] == "verified"
    assert await owner_of(place) is None


async def trusted(at: Place, name: str = "harbor.example", team: Team | None = None) -> None:
    owner = team or at.team
    await trust.trust(at.world.pool, name, owner.id, at.world.app.need(DomainContext))


async def test_the_team_is_told_that_its_domain_is_trusted(place: Place) -> None:
    """As of every other change of a status, and only once."""
    domain = await place.adds()
    await subscribe(place.team)
    await trusted(place)
    assert set((await domain.states()).values()) == {"verified"}
    assert await published_kinds(place.team) == ["domain.updated"]
    await trusted(place)
    assert await published_kinds(place.team) == ["domain.updated"]


async def test_trust_overwrites_nothing_that_changes_meanwhile(place: Place) -> None:
    domain = await place.adds(tracking_subdomain="links")
    async with place.world.pool.acquire() as other, other.transaction():
        await other.execute(
            "UPDATE domains SET records = $1",
            '{"tracking": {"status": "failed", "since": "2026-01-01T00:00:00.000Z"}}',
        )
        trusting = asyncio.create_task(trusted(place))
        while not await place.world.pool.fetchval(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')"
        ):
            assert not trusting.done()
    await trusting
    states = await domain.states()
    assert states.pop("Tracking CNAME") == "failed"
    assert set(states.values()) == {"verified"}


async def test_a_placeholder_is_not_trusted_before_its_claim_is_over(place: Place) -> None:
    """Nobody need own the name any more for a claim to be open."""
    quay = await other_team(place)
    await place.adds(team=quay)
    await trusted(place, team=quay)
    claim = (await place.team.post("/domains/claim", {"name": "harbor.example"})).json()
    await directory.release_ownership(TeamDb(place.world.pool, quay.id), "harbor.example")
    with pytest.raises(ClaimFirst):
        await trusted(place)
    assert await owner_of(place) is None
    shown = (await place.team.get(f"/domains/{claim['domain_id']}")).json()
    assert (shown["status"], shown["records"]) == ("not_started", [])
