"""Names between two teams, from the first record in DNS to mail that leaves (domains.md 1.1, 2, 5)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from kit.client import error
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.webhook_events import published_events, subscribe
from kit.world import Team, World, mail
from kit.zone import Zone
from pillarbox.directory import domains as directory

NAME = "harbor.example"
RECEIVING = {"sending": "disabled", "receiving": "enabled"}


async def added(team: Team, **fields: Any) -> dict[str, Any]:
    answer = await team.post("/domains", {"name": NAME, **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def later(pillarbox: World, by: timedelta) -> None:
    """Time passes, and what became due is done."""
    clock_of(pillarbox).advance(by)
    while await run_jobs(pillarbox):
        pass


async def status(team: Team, domain: dict[str, Any]) -> str:
    return str((await team.get(f"/domains/{domain['id']}")).json()["status"])


def publish(zone: Zone, domain: dict[str, Any]) -> None:
    """Exactly the records of this domain."""
    for record in domain["records"]:
        owner = record["name"] if record["record"] == "Receiving" else f"{record['name']}.{NAME}"
        zone.remove(owner, record["type"])
    for record in domain["records"]:
        owner = record["name"] if record["record"] == "Receiving" else f"{record['name']}.{NAME}"
        value = f"{record['priority']} {record['value']}" if "priority" in record else record["value"]
        zone.add(owner, record["type"], value)


async def test_a_dangling_mx_is_nobodys_invitation(database_url: str, tmp_path: Path) -> None:
    """Two teams add one receiving-only name whose MX points here: only the team whose DKIM value is in DNS
    verifies and receives."""
    zone = Zone(f"{NAME} MX 10 mx.pillar.example")
    async with manual_world(database_url, tmp_path, zone=zone) as pillarbox:
        thief, owner = await pillarbox.team("Thief"), await pillarbox.team("Owner")
        theirs = await added(thief, capabilities=RECEIVING)
        ours = await added(owner, capabilities=RECEIVING)
        assert [record["record"] for record in theirs["records"]] == ["DKIM", "Receiving"]
        for team, domain in ((thief, theirs), (owner, ours)):
            await team.post(f"/domains/{domain['id']}/verify")
        await later(pillarbox, timedelta(seconds=1))
        assert [await status(thief, theirs), await status(owner, ours)] == ["pending", "pending"]
        assert (await directory.receivers_of(pillarbox.pool, [NAME]))[NAME].team_id is None
        publish(zone, ours)
        await later(pillarbox, timedelta(minutes=2))
        assert [await status(thief, theirs), await status(owner, ours)] == ["pending", "verified"]
        assert (await directory.receivers_of(pillarbox.pool, [NAME]))[NAME].team_id == owner.id
        for _ in range(74):
            await later(pillarbox, timedelta(hours=1))
        assert [await status(thief, theirs), await status(owner, ours)] == ["failed", "verified"]
        refused = await thief.post("/domains/claim", {"name": NAME})
        assert error(refused)[:2] == (403, "validation_error")


async def test_a_claimed_domain_sends_after_its_new_key_is_seen(database_url: str, tmp_path: Path) -> None:
    zone = Zone()
    async with manual_world(
        database_url, tmp_path, zone=zone, require_verified_domain="always", claim_quiet="off"
    ) as pillarbox:
        owner, claimer = await pillarbox.team("Owner"), await pillarbox.team("Claimer")
        before = await added(owner)
        publish(zone, before)
        await owner.post(f"/domains/{before['id']}/verify")
        await later(pillarbox, timedelta(seconds=1))
        assert await status(owner, before) == "verified"
        await owner.send()
        assert error(await claimer.post("/emails", mail()))[:2] == (403, "validation_error")
        claim = (await claimer.post("/domains/claim", {"name": NAME})).json()
        zone.add(NAME, "TXT", claim["record"]["value"])
        await claimer.post(f"/domains/{claim['domain_id']}/claim/verify")
        await later(pillarbox, timedelta(seconds=1))
        shown = (await claimer.get(f"/domains/{claim['domain_id']}/claim")).json()
        assert (shown["status"], shown["blocked_reason"]) == ("blocked", "grace_period")
        for _ in range(7):
            await later(pillarbox, timedelta(days=1))
        await later(pillarbox, timedelta(hours=1))
        assert error(await owner.post("/emails", mail()))[:2] == (403, "validation_error")
        assert error(await claimer.post("/emails", mail()))[:2] == (403, "validation_error")
        await subscribe(claimer)
        after = (await claimer.get(f"/domains/{claim['domain_id']}")).json()
        await claimer.post(f"/domains/{after['id']}/verify")
        await later(pillarbox, timedelta(seconds=1))
        states = [
            record["status"] for record in (await claimer.get(f"/domains/{after['id']}")).json()["records"]
        ]
        assert states == ["verified", "verified", "pending"]
        publish(zone, after)
        await later(pillarbox, timedelta(minutes=2))
        assert await status(claimer, after) == "verified"
        email = await claimer.send()
        await pillarbox.turn()
        assert (await claimer.email(email))["last_event"] == "delivered"
        events = [event["data"]["status"] for event in await published_events(claimer)]
        assert events == ["pending", "pending", "verified"]
