"""Taking over a name that another team has verified (domains.md section 5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.client import error
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.webhook_events import published_events, published_kinds, subscribe
from kit.world import Team, World, mail
from kit.zone import Zone
from pillarbox.domains.claims.jobs import claim_periodic

CLAIM = [
    "object", "id", "name", "status", "domain_id", "region", "record", "blocked_reason", "failure_reason",
    "created_at", "expires_at",
]  # fmt: skip
WEEK = timedelta(days=7)
NAME = "quay.example"


@dataclass
class Quay:
    """A name that one team owns and another one wants."""

    pillarbox: World
    zone: Zone
    owner: Team
    claimer: Team
    domain: str

    async def claim(self, team: Team | None = None, **fields: Any) -> dict[str, Any]:
        """A claim, new or not."""
        answer = await (team or self.claimer).post("/domains/claim", {"name": NAME, **fields})
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())

    async def prove(self, claim: dict[str, Any], team: Team | None = None) -> dict[str, Any]:
        """Publish the TXT record, ask for a check, and let the job work; the claim as it is then."""
        self.zone.add(NAME, "TXT", claim["record"]["value"])
        return await self.checked(claim, team)

    async def checked(self, claim: dict[str, Any], team: Team | None = None) -> dict[str, Any]:
        answer = await (team or self.claimer).http.post(f"/domains/{claim['domain_id']}/claim/verify")
        assert answer.status_code == 200, answer.text
        await run_jobs(self.pillarbox)
        return await self.seen(claim, team)

    async def seen(self, claim: dict[str, Any], team: Team | None = None) -> dict[str, Any]:
        answer = await (team or self.claimer).get(f"/domains/{claim['domain_id']}/claim")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def later(self, by: timedelta) -> None:
        """Time passes, and what became due is done."""
        clock_of(self.pillarbox).advance(by)
        while await run_jobs(self.pillarbox):
            pass

    async def shown(self, team: Team, domain: str) -> dict[str, Any]:
        answer = await team.get(f"/domains/{domain}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


@asynccontextmanager
async def quay(database_url: str, folder: Path, **settings: Any) -> AsyncIterator[Quay]:
    """The owner has had the name for longer than the grace period, and been quiet."""
    zone = Zone()
    async with manual_world(database_url, folder, zone=zone, **settings) as pillarbox:
        owner, claimer = await pillarbox.team("Owner"), await pillarbox.team("Claimer")
        domain = await owner.domain(NAME)
        clock_of(pillarbox).advance(timedelta(days=8))
        yield Quay(pillarbox=pillarbox, zone=zone, owner=owner, claimer=claimer, domain=domain)


@pytest.fixture
def claiming(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Quay]:
    return quay(database_url, tmp_path)


async def test_a_claim_and_its_placeholder(claiming: Quay) -> None:
    await subscribe(claiming.claimer)
    answer = await claiming.claimer.post("/domains/claim", {"name": " QUAY.example. ", "region": "eu-west-1"})
    assert answer.status_code == 201
    claim = answer.json()
    assert list(claim) == CLAIM
    assert list(claim["record"]) == ["type", "name", "value", "ttl"]
    prefix, _, token = claim["record"]["value"].partition("=")
    assert (prefix, len(token), claim["record"]["type"]) == ("pillarbox-domain-verification", 32, "TXT")
    assert (claim["record"]["name"], claim["record"]["ttl"]) == (NAME, "Auto")
    assert (claim["name"], claim["status"], claim["region"]) == (NAME, "pending", "eu-west-1")
    assert (claim["blocked_reason"], claim["failure_reason"]) == (None, None)
    assert claim["created_at"].replace("-11 ", "-18 ") == claim["expires_at"]
    again = await claiming.claimer.post("/domains/claim", {"name": NAME, "region": "eu-west-1"})
    assert (again.status_code, again.json()) == (200, claim)
    assert await claiming.seen(claim) == claim
    place = await claiming.shown(claiming.claimer, claim["domain_id"])
    assert (place["status"], place["records"], place["region"]) == ("not_started", [], "eu-west-1")
    listed = (await claiming.claimer.get("/domains")).json()["data"]
    assert [(found["id"], found["status"]) for found in listed] == [(claim["domain_id"], "not_started")]
    [event] = await published_events(claiming.claimer)
    assert (event["type"], event["data"]["id"], event["data"]["records"]) == (
        "domain.created", claim["domain_id"], [],
    )  # fmt: skip
    assert error(await claiming.claimer.post(f"/domains/{claim['domain_id']}/verify"))[:2] == (
        422, "validation_error",
    )  # fmt: skip
    assert error(await claiming.claimer.post("/domains", {"name": NAME}))[:2] == (403, "validation_error")
    assert (await claiming.shown(claiming.owner, claiming.domain))["status"] == "verified"


async def test_a_transfer(claiming: Quay) -> None:
    """The owner loses the domain with all that deleting it does; the claimer has a key of its own."""
    await subscribe(claiming.owner)
    bound = await claiming.owner.key(permission="sending_access", domain_id=claiming.domain)
    before = await claiming.shown(claiming.owner, claiming.domain)
    claim = await claiming.claim(tracking_subdomain="links", open_tracking=True)
    await subscribe(claiming.claimer)
    change = await claiming.claimer.call("PATCH", f"/domains/{claim['domain_id']}", {"click_tracking": True})
    assert change.status_code == 200
    done = await claiming.prove(claim)
    assert done == {**claim, "status": "completed"}
    assert error(await claiming.owner.get(f"/domains/{claiming.domain}")) == (
        404,
        "not_found",
        "Domain not found",
    )
    assert error(await claiming.owner.get(f"/domains/{claiming.domain}/claim"))[2] == "Domain not found"
    [gone] = await published_events(claiming.owner)
    assert (gone["type"], gone["data"]["id"]) == ("domain.deleted", claiming.domain)
    sender = claiming.owner.using(bound)
    assert error(await sender.post("/emails", mail(from_=f"a@{NAME}")))[:2] == (
        403, "restricted_api_key",
    )  # fmt: skip
    after = await claiming.shown(claiming.claimer, claim["domain_id"])
    assert after["status"] == "not_started"
    assert (after["tracking_subdomain"], after["open_tracking"], after["click_tracking"]) == (
        "links", True, True,
    )  # fmt: skip
    assert [record["record"] for record in after["records"]] == ["SPF", "SPF", "DKIM", "Tracking"]
    assert {record["status"] for record in after["records"]} == {"not_started"}
    old, new = before["records"][2], after["records"][2]
    assert old["name"] == new["name"] == "pillarbox._domainkey"
    assert old["value"] != new["value"]
    updated, became = await published_events(claiming.claimer)
    assert (updated["type"], became["type"]) == ("domain.updated", "domain.updated")
    assert (updated["data"]["records"], became["data"]["records"]) == ([], after["records"])
    assert error(await claiming.owner.post("/domains", {"name": NAME}))[:2] == (403, "validation_error")
    assert (await claiming.claimer.post(f"/domains/{claim['domain_id']}/verify")).status_code == 200
    assert (await claiming.claimer.post(f"/domains/{claim['domain_id']}/claim/verify")).json() == done
    assert await jobs(claiming) == 0


async def test_a_transfer_takes_the_inboxes_of_the_former_owner(database_url: str, tmp_path: Path) -> None:
    """inboxes.md 3.5. Their addresses are free for the claimer."""
    async with quay(database_url, tmp_path, inbound_domain="in.pillar.example") as it:
        await subscribe(it.owner, ["inbox.created", "inbox.deleted"])
        wanted = {"email_address": f"help@{NAME}", "forwarding": True}
        inbox = (await it.owner.post("/inboxes", wanted)).json()["id"]
        claim = await it.claim()
        assert (await it.claimer.post("/inboxes", wanted)).status_code == 422
        assert (await it.prove(claim))["status"] == "completed"
        assert error(await it.owner.get(f"/inboxes/{inbox}")) == (404, "not_found", "Inbox not found")
        deleted = "SELECT detail FROM webhook_deliveries WHERE kind = 'inbox.deleted' AND subject_id = $1"
        detail = json.loads(await it.pillarbox.pool.fetchval(deleted, UUID(inbox)))
        assert detail == {"source": "system", "inbox_id": inbox}
        made = await it.claimer.post("/inboxes", wanted)
        assert made.status_code == 201, made.text


async def jobs(it: Quay) -> int:
    """How many claims are still worked on."""
    found: int = await it.pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE kind = 'domain.claim'")
    return found


async def test_the_proof_is_looked_for_on_a_schedule(claiming: Quay) -> None:
    claim = await claiming.claim()
    await claiming.later(timedelta(hours=3))
    assert claiming.zone.questions == []
    assert (await claiming.checked(claim))["status"] == "pending"
    start = clock_of(claiming.pillarbox).now()
    asked = []
    for _ in range(8 * 60):
        count = len(claiming.zone.questions)
        await claiming.later(timedelta(minutes=1))
        if len(claiming.zone.questions) > count:
            asked.append(round((clock_of(claiming.pillarbox).now() - start).total_seconds() / 60))
    assert asked == [1, 2, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480]
    claiming.zone.add(NAME, "TXT", "v=spf1 -all")
    claiming.zone.add(NAME, "TXT", claim["record"]["value"] + "x")
    assert (await claiming.checked(claim))["status"] == "pending"
    claiming.zone.fail(NAME)
    assert (await claiming.checked(claim))["status"] == "pending"
    claiming.zone.fail(NAME, "")
    claiming.zone.add(NAME, "TXT", claim["record"]["value"])
    await claiming.later(timedelta(minutes=1))
    assert (await claiming.seen(claim))["status"] == "completed"


async def test_a_claim_expires(claiming: Quay) -> None:
    """Whether or not a check was ever asked for; its placeholder becomes an ordinary domain."""
    claim = await claiming.claim()
    other = await claiming.pillarbox.team("Third")
    checked = await claiming.claim(other)
    await claiming.checked(checked, other)
    clock_of(claiming.pillarbox).advance(WEEK)
    late = await claiming.claimer.post(f"/domains/{claim['domain_id']}/claim/verify")
    assert error(late)[:2] == (422, "validation_error")
    await claiming.later(timedelta(0))
    for team, found in ((claiming.claimer, claim), (other, checked)):
        assert await claiming.seen(found, team) == {**found, "status": "expired"}
        again = await team.post(f"/domains/{found['domain_id']}/claim/verify")
        assert error(again)[:2] == (422, "validation_error")
        assert "`POST /domains/claim`" in error(again)[2]
        place = await claiming.shown(team, found["domain_id"])
        assert (place["status"], len(place["records"])) == ("not_started", 3)
    assert await jobs(claiming) == 0
    assert (await claiming.claimer.post(f"/domains/{claim['domain_id']}/verify")).status_code == 200
    await subscribe(claiming.claimer)
    new = await claiming.claim()
    assert new["id"] != claim["id"]
    assert new["record"]["value"] != claim["record"]["value"]
    assert new["domain_id"] == claim["domain_id"]
    assert (await claiming.shown(claiming.claimer, new["domain_id"]))["records"] == []
    assert await published_kinds(claiming.claimer) == ["domain.updated"]
    waiting = await claiming.pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE kind = 'domain.check'")
    assert waiting == 0
    assert (await claiming.prove(new))["status"] == "completed"


async def test_other_options_supersede_the_claim(claiming: Quay) -> None:
    first = await claiming.claim()
    answer = await claiming.claimer.post("/domains/claim", {"name": NAME, "custom_return_path": "Bounce"})
    assert answer.status_code == 201
    second = answer.json()
    assert second["id"] != first["id"]
    assert second["domain_id"] == first["domain_id"]
    assert second["record"]["value"] != first["record"]["value"]
    assert await claiming.seen(second) == second
    states = await claiming.pillarbox.pool.fetch("SELECT id, status FROM domain_claims ORDER BY id")
    assert [row["status"] for row in states] == ["superseded", "pending"]
    assert (await claiming.prove(first))["status"] == "pending"
    assert (await claiming.prove(second))["status"] == "completed"
    place = await claiming.shown(claiming.claimer, second["domain_id"])
    assert place["records"][0]["name"] == "bounce"


async def test_the_faster_team_wins(claiming: Quay) -> None:
    third = await claiming.pillarbox.team("Third")
    slow, fast = await claiming.claim(), await claiming.claim(third)
    assert slow["record"]["value"] != fast["record"]["value"]
    assert (await claiming.checked(slow))["status"] == "pending"
    assert (await claiming.prove(fast, third))["status"] == "completed"
    assert await claiming.seen(slow) == {**slow, "status": "superseded"}
    claiming.zone.add(NAME, "TXT", slow["record"]["value"])
    again = await claiming.claimer.post(f"/domains/{slow['domain_id']}/claim/verify")
    assert error(again)[:2] == (422, "validation_error")
    place = await claiming.shown(claiming.claimer, slow["domain_id"])
    assert len(place["records"]) == 3
    anew = await claiming.claim()
    assert anew["domain_id"] == slow["domain_id"]
    assert (await claiming.prove(anew))["blocked_reason"] == "grace_period"


async def test_two_transfers_at_once_have_one_winner(claiming: Quay) -> None:
    teams = [claiming.claimer, *[await claiming.pillarbox.team(f"T{number}") for number in range(3)]]
    claims = [await claiming.claim(team) for team in teams]
    for team, claim in zip(teams, claims, strict=True):
        claiming.zone.add(NAME, "TXT", claim["record"]["value"])
        await team.post(f"/domains/{claim['domain_id']}/claim/verify")
    await claiming.later(timedelta(seconds=1))
    found = [await claiming.seen(claim, team) for team, claim in zip(teams, claims, strict=True)]
    assert sorted(claim["status"] for claim in found) == ["completed"] + ["superseded"] * 3
    owners = await claiming.pillarbox.pool.fetch("SELECT domain_id FROM directory_domains WHERE owned")
    [winner] = [claim for claim in found if claim["status"] == "completed"]
    assert [str(row["domain_id"]) for row in owners] == [winner["domain_id"]]


# What blocks --------------------------------------------------------------------------------------


async def test_the_grace_period(database_url: str, tmp_path: Path) -> None:
    async with quay(database_url, tmp_path, claim_grace="10d") as it:
        claim = await it.claim()
        done = await it.prove(claim)
        assert done == {**claim, "status": "blocked", "blocked_reason": "grace_period"}
        assert (await it.shown(it.owner, it.domain))["status"] == "verified"
        await it.later(timedelta(days=1))
        assert (await it.seen(claim))["status"] == "blocked"
        await it.later(timedelta(days=1))
        assert (await it.seen(claim))["status"] == "completed"


async def test_recent_activity_of_the_owner(claiming: Quay) -> None:
    await claiming.owner.domain("other.example")
    await claiming.owner.send(from_=f"a@{NAME}")
    await claiming.pillarbox.turn()
    claim = await claiming.claim()
    done = await claiming.prove(claim)
    assert (done["status"], done["blocked_reason"]) == ("blocked", "recent_owner_activity")
    await claiming.later(timedelta(hours=23))
    await claiming.owner.send(from_="a@other.example")
    await claiming.pillarbox.turn()
    assert (await claiming.checked(claim))["status"] == "blocked"
    await claiming.later(timedelta(hours=2))
    assert (await claiming.seen(claim))["status"] == "completed"


async def test_scheduled_mail_of_the_owner(claiming: Quay) -> None:
    waiting = await claiming.owner.send(from_=f"a@{NAME}", scheduled_at="in 20 days")
    claim = await claiming.claim()
    done = await claiming.prove(claim)
    assert (done["status"], done["blocked_reason"]) == ("blocked", "pending_scheduled_emails")
    await claiming.later(timedelta(days=8))
    assert (await claiming.seen(claim))["status"] == "blocked"
    await claiming.owner.post(f"/emails/{waiting}/cancel")
    assert (await claiming.checked(claim))["status"] == "completed"


async def test_blocked_for_too_long(database_url: str, tmp_path: Path) -> None:
    async with quay(database_url, tmp_path, claim_grace="60d") as it:
        claim = await it.claim()
        await it.prove(claim)
        await it.later(timedelta(days=29, hours=23))
        assert (await it.seen(claim))["status"] == "blocked"
        await it.later(timedelta(hours=2))
        failed = await it.seen(claim)
        assert failed == {**claim, "status": "failed", "failure_reason": "blocked_too_long"}
        assert len((await it.shown(it.claimer, claim["domain_id"]))["records"]) == 3
        assert await jobs(it) == 0


async def test_the_checks_can_be_switched_off(database_url: str, tmp_path: Path) -> None:
    off = {"claim_grace": "off", "claim_quiet": "off", "claim_scheduled": "no"}
    async with quay(database_url, tmp_path, **off, claim_token_prefix="berth") as it:
        await it.owner.send(from_=f"a@{NAME}")
        await it.owner.send(from_=f"a@{NAME}", scheduled_at="in 1 hour")
        await it.pillarbox.turn()
        claim = await it.claim()
        assert claim["record"]["value"].startswith("berth=")
        assert (await it.prove(claim))["status"] == "completed"


# What ends a claim --------------------------------------------------------------------------------


async def test_the_owner_removes_the_domain(claiming: Quay) -> None:
    claim = await claiming.claim()
    await claiming.owner.call("DELETE", f"/domains/{claiming.domain}")
    assert await claiming.seen(claim) == {
        **claim, "status": "failed", "failure_reason": "owner_removed_domain",
    }  # fmt: skip
    assert await jobs(claiming) == 0
    assert len((await claiming.shown(claiming.claimer, claim["domain_id"]))["records"]) == 3
    assert (await claiming.claimer.post(f"/domains/{claim['domain_id']}/verify")).status_code == 200


async def test_deleting_the_placeholder_cancels(claiming: Quay) -> None:
    claim = await claiming.claim()
    assert (await claiming.claimer.call("DELETE", f"/domains/{claim['domain_id']}")).status_code == 200
    [row] = await claiming.pillarbox.pool.fetch("SELECT status, domain_id FROM domain_claims")
    assert (row["status"], row["domain_id"]) == ("canceled", None)
    assert error(await claiming.claimer.get(f"/domains/{claim['domain_id']}/claim"))[2] == "Domain not found"
    assert await jobs(claiming) == 0
    assert (await claiming.claim())["domain_id"] != claim["domain_id"]


async def test_a_transfer_that_the_database_refuses(claiming: Quay) -> None:
    claim = await claiming.claim()
    await claiming.pillarbox.pool.execute(
        "ALTER TABLE domain_claims ADD CHECK (status <> 'completed') NOT VALID"
    )
    done = await claiming.prove(claim)
    assert (done["status"], done["failure_reason"]) == ("failed", "transfer_error")
    assert (await claiming.shown(claiming.owner, claiming.domain))["status"] == "verified"
    assert await jobs(claiming) == 0


async def test_a_process_that_dies_between_proof_and_transfer(claiming: Quay) -> None:
    """The job is a row: another process goes on from where the claim stands."""
    claim = await claiming.claim()
    await claiming.pillarbox.pool.execute(
        "UPDATE domain_claims SET status = 'verified' WHERE id = $1", UUID(claim["id"])
    )
    assert (await claiming.checked(claim))["status"] == "completed"


# Who may claim what -------------------------------------------------------------------------------


async def test_what_cannot_be_claimed(claiming: Quay) -> None:
    """Another team's unverified name looks like one that nobody has."""
    await claiming.owner.post("/domains", {"name": "held.example"})
    held = error(await claiming.claimer.post("/domains/claim", {"name": "held.example"}))
    unknown = error(await claiming.claimer.post("/domains/claim", {"name": "free.example"}))
    assert held == unknown
    assert held[:2] == (422, "validation_error")
    assert "`POST /domains`" in held[2]
    own = await claiming.owner.post("/domains/claim", {"name": NAME})
    assert error(own)[:2] == (403, "validation_error")
    await claiming.claimer.post("/domains", {"name": "late.example"})
    await claiming.owner.domain("late.example")
    late = await claiming.claimer.post("/domains/claim", {"name": "late.example"})
    assert error(late)[:2] == (403, "validation_error")
    domain = (await claiming.claimer.get("/domains")).json()["data"][0]["id"]
    for method, path in (("GET", "/claim"), ("POST", "/claim/verify")):
        never = error(await claiming.claimer.call(method, f"/domains/{domain}{path}", {}))
        assert never == (404, "not_found", "Domain claim not found")
    assert await claiming.pillarbox.pool.fetchval("SELECT count(*) FROM domain_claims") == 0


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"name": None}, "missing_required_field"),
        ({"name": "co.uk"}, "validation_error"),
        ({"name": "mx.pillar.example"}, "validation_error"),
        ({"region": "mars"}, "invalid_region"),
        ({"custom_return_path": "1"}, "validation_error"),
        ({"tracking_subdomain": "send"}, "validation_error"),
        ({"open_tracking": 1}, "validation_error"),
    ],
)
async def test_bad_claims(claiming: Quay, fields: dict[str, Any], name: str) -> None:
    found = error(await claiming.claimer.post("/domains/claim", {"name": NAME, **fields}))
    assert found[:2] == (422, name)
    assert (await claiming.claimer.get("/domains")).json()["data"] == []


async def test_the_same_claim_many_times_at_once_is_one(claiming: Quay) -> None:
    answers = await asyncio.gather(
        *(claiming.claimer.post("/domains/claim", {"name": NAME}) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1


async def test_a_claim_and_a_deletion_at_once(claiming: Quay) -> None:
    """Whichever is first: nothing is stuck, and nobody owns what is gone."""
    claim = await claiming.claim()
    claiming.zone.add(NAME, "TXT", claim["record"]["value"])
    await claiming.claimer.post(f"/domains/{claim['domain_id']}/claim/verify")
    gone, canceled, _ = await asyncio.gather(
        claiming.owner.call("DELETE", f"/domains/{claiming.domain}"),
        claiming.claimer.call("DELETE", f"/domains/{claim['domain_id']}"),
        claiming.later(timedelta(seconds=1)),
    )
    assert gone.status_code in (200, 404)
    assert canceled.status_code == 200
    assert await claiming.pillarbox.pool.fetchval("SELECT count(*) FROM domains") == 0
    assert await claiming.pillarbox.pool.fetchval("SELECT count(*) FROM directory_domains") == 0
    assert await jobs(claiming) == 0


async def test_claims_that_nobody_can_look_at_are_forgotten(claiming: Quay) -> None:
    """The latest claim of a domain stays for as long as the domain."""
    first = await claiming.claim()
    second = await claiming.claim(open_tracking=True)
    third = await claiming.pillarbox.team("Third")
    gone = await claiming.claim(third)
    await third.call("DELETE", f"/domains/{gone['domain_id']}")
    [found] = claim_periodic(claiming.pillarbox.pool, claiming.pillarbox.clock)
    clock_of(claiming.pillarbox).advance(timedelta(days=89))
    assert await found.work() == "0 old claims"
    clock_of(claiming.pillarbox).advance(timedelta(days=2))
    assert await found.work() == "2 old claims"
    kept = await claiming.pillarbox.pool.fetch("SELECT id FROM domain_claims")
    assert [str(row["id"]) for row in kept] == [second["id"]] != [first["id"]]
