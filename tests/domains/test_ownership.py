"""Whose a name is when several teams add it (domains.md sections 1.1 and 2)."""

from __future__ import annotations

import asyncio
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


async def test_two_teams_receive_at_one_name_whose_mx_points_here(database_url: str, tmp_path: Path) -> None:
    """Section 7: only the team whose DKIM value is in DNS verifies."""
    async with checked(database_url, tmp_path) as at:
        quay = await other_team(at)
        first = await at.adds(capabilities=RECEIVING)
        second = await at.adds(team=quay, capabilities=RECEIVING)
        assert [record["record"] for record in first.made["records"]] == ["DKIM", "Receiving"]
        at.dns.add("harbor.example", "MX", "10 mx.pillar.example")
        show_keys(at, second)
        await first.verifies()
        await second.verifies()
        assert await at.checks() == 2
        assert await second.states() == {
            "domain": "verified", "DKIM TXT": "verified", "Receiving MX": "verified",
        }  # fmt: skip
        assert (await first.states())["domain"] == "pending"
        assert (await first.may(), await second.may()) == ("", "receive")
        assert await owner_of(at) == quay.id


async def test_the_first_team_with_its_key_in_dns_owns_the_name(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path) as at:
        quay = await other_team(at)
        first, second = await at.adds(), await at.adds(team=quay)
        await first.publishes("SPF")
        show_keys(at, first, second)
        await first.verifies()
        await at.checks()
        await second.verifies()
        await at.checks()
        assert await owner_of(at) == at.team.id
        assert set((await first.states()).values()) == {"verified"}
        assert set((await second.states()).values()) == {"pending"}
        codes = {result.advice[0].code for result in (await second.results()).values()}
        assert codes == {"owned_elsewhere"}
        await at.checks(72 * HOUR)
        assert set((await second.states()).values()) == {"failed"}
        assert await second.may() == ""
        third = await at.world.team("Pier")
        refused = error(await third.post("/domains", {"name": "harbor.example"}))
        assert refused[:2] == (403, "validation_error")


async def test_both_at_once_settle_it_in_the_database(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path) as at:
        quay = await other_team(at)
        domains = [await at.adds(), await at.adds(team=quay)]
        await domains[0].publishes("SPF")
        show_keys(at, *domains)
        for domain in domains:
            await domain.verifies()
        assert await at.checks() == 2
        states = sorted([(await domain.states())["domain"] for domain in domains])
        assert states == ["pending", "verified"]


async def test_who_cannot_show_the_key_any_more_loses_the_name(database_url: str, tmp_path: Path) -> None:
    """Three days of mismatch: then another team may show that the name is its own."""
    async with checked(database_url, tmp_path) as at:
        quay = await other_team(at)
        second = await at.adds(team=quay)
        first = await (await at.adds()).verified()
        show_keys(at, second)
        await at.checks_until(at.now() + DAY)
        assert (await first.states())["DKIM TXT"] == "temporary_failure"
        assert await owner_of(at) == at.team.id
        await at.checks_until(at.now() + 3 * DAY)
        assert (await first.states())["DKIM TXT"] == "failed"
        assert await owner_of(at) is None
        await second.verifies()
        await at.checks()
        assert set((await second.states()).values()) == {"verified"}
        assert await owner_of(at) == quay.id


async def test_a_single_team_owns_by_its_mx_alone(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path) as at:
        domain = await at.adds(capabilities=RECEIVING)
        assert [record["record"] for record in domain.made["records"]] == ["Receiving"]
        await domain.verified()
        assert await owner_of(at) == at.team.id
        assert await domain.may() == "receive"


async def test_a_name_that_was_only_looked_for_is_nobodys(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path) as at:
        domain = await at.adds()
        await domain.publishes("SPF")
        await domain.verifies()
        await at.checks()
        assert (await domain.states())["SPF MX"] == "verified"
        assert await owner_of(at) is None


async def trusted(at: Place, name: str = "harbor.example", team: Team | None = None) -> None:
    owner = team or at.team
    await trust.trust(at.world.pool, name, owner.id, at.world.app.need(DomainContext))


async def test_the_team_is_told_that_its_domain_is_trusted(database_url: str, tmp_path: Path) -> None:
    """As of every other change of a status, and only once."""
    async with checked(database_url, tmp_path) as at:
        domain = await at.adds()
        await subscribe(at.team)
        await trusted(at)
        assert set((await domain.states()).values()) == {"verified"}
        assert await published_kinds(at.team) == ["domain.updated"]
        await trusted(at)
        assert await published_kinds(at.team) == ["domain.updated"]


async def test_trust_overwrites_nothing_that_changes_meanwhile(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path) as at:
        domain = await at.adds(tracking_subdomain="links")
        async with at.world.pool.acquire() as other, other.transaction():
            await other.execute(
                "UPDATE domains SET records = $1",
                '{"tracking": {"status": "failed", "since": "2026-01-01T00:00:00.000Z"}}',
            )
            trusting = asyncio.create_task(trusted(at))
            while not await at.world.pool.fetchval(
                "SELECT EXISTS (SELECT FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock')"
            ):
                assert not trusting.done()
        await trusting
        states = await domain.states()
        assert states.pop("Tracking CNAME") == "failed"
        assert set(states.values()) == {"verified"}


async def test_a_placeholder_is_not_trusted_before_its_claim_is_over(
    database_url: str, tmp_path: Path
) -> None:
    """Nobody need own the name any more for a claim to be open."""
    async with checked(database_url, tmp_path) as at:
        quay = await other_team(at)
        await at.adds(team=quay)
        await trusted(at, team=quay)
        claim = (await at.team.post("/domains/claim", {"name": "harbor.example"})).json()
        await directory.release_ownership(TeamDb(at.world.pool, quay.id), "harbor.example")
        with pytest.raises(ClaimFirst):
            await trusted(at)
        assert await owner_of(at) is None
        shown = (await at.team.get(f"/domains/{claim['domain_id']}")).json()
        assert (shown["status"], shown["records"]) == ("not_started", [])
