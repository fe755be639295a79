"""Changing, verifying and deleting domains (domains.md sections 4.4 to 4.6), and what is told of it."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.webhook_events import published_events, published_kinds, subscribe
from kit.world import Team, World, mail
from pillarbox.directory import domains as directory
from pillarbox.domains.senders import ASKED_AHEAD, REMEMBERED_SECONDS, Senders
from pillarbox.teams import bootstrap

BOTH = {"sending": "enabled", "receiving": "enabled"}


async def added(team: Team, name: str = "harbor.example", **fields: Any) -> str:
    """A new domain: its id."""
    answer = await team.post("/domains", {"name": name, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def seen(team: Team, domain_id: str) -> dict[str, Any]:
    answer = await team.get(f"/domains/{domain_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def patched(team: Team, domain_id: str, **fields: Any) -> dict[str, Any]:
    """The domain after a PATCH that must succeed."""
    answer = await team.call("PATCH", f"/domains/{domain_id}", fields)
    assert (answer.status_code, answer.json()) == (200, {"object": "domain", "id": domain_id})
    return await seen(team, domain_id)


async def set_states(team: Team, domain_id: str, **states: str) -> None:
    """As if a check had found this."""
    since = "2026-10-03T08:00:00.000Z"
    found = {name: {"status": state, "since": since} for name, state in states.items()}
    await team.world.pool.execute(
        "UPDATE domains SET records = $2, sending_ok = sending, receiving_ok = receiving, tracking_ok = true "
        "WHERE id = $1",
        UUID(domain_id),
        json.dumps(found),
    )


VERIFIED = {"spf_mx": "verified", "spf_txt": "verified", "dkim": "verified"}


def states_of(domain: dict[str, Any]) -> dict[str, str]:
    return {f"{record['record']} {record['type']}": record["status"] for record in domain["records"]}


async def flags(team: Team, domain_id: str) -> tuple[bool, bool, bool]:
    row = await team.world.pool.fetchrow(
        "SELECT sending_ok, receiving_ok, tracking_ok FROM domains WHERE id = $1", UUID(domain_id)
    )
    return tuple(row)


async def test_creating_tells_what_the_api_answers(pillarbox: World) -> None:
    """webhooks.md 7.3: the keys in order; Receiving is called Receiving MX."""
    team = await pillarbox.team()
    await subscribe(team)
    answer = await team.post("/domains", {"name": "harbor.example", "capabilities": BOTH})
    made = answer.json()
    [event] = await published_events(team)
    assert list(event) == ["type", "created_at", "data"]
    assert event["type"] == "domain.created"
    data = event["data"]
    assert list(data) == ["id", "name", "status", "created_at", "region", "records"]
    assert (data["id"], data["status"], data["region"]) == (made["id"], "not_started", "us-east-1")
    assert data["created_at"] == made["created_at"].replace(" ", "T")[:-6] + "Z"
    for record in made["records"]:
        record["record"] = record["record"].replace("Receiving", "Receiving MX")
    assert data["records"] == made["records"]
    assert [list(r) for r in data["records"]] == [list(r) for r in made["records"]]


async def test_a_receiving_capability_comes_and_goes(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain = await added(team)
    await set_states(team, domain, **VERIFIED)
    assert (await seen(team, domain))["status"] == "verified"
    await subscribe(team)
    after = await patched(team, domain, capabilities={"receiving": "enabled"})
    assert after["capabilities"] == BOTH
    assert after["status"] == "partially_verified"
    assert states_of(after) == {
        "SPF MX": "verified",
        "SPF TXT": "verified",
        "DKIM TXT": "verified",
        "Receiving MX": "not_started",
    }
    assert await flags(team, domain) == (True, False, True)
    await set_states(team, domain, **VERIFIED, receiving="verified")
    back = await patched(team, domain, capabilities={"receiving": "disabled"})
    assert (back["status"], "Receiving MX" in states_of(back)) == ("verified", False)
    assert await flags(team, domain) == (True, False, True)
    again = await patched(team, domain, capabilities={"receiving": "enabled"})
    assert states_of(again)["Receiving MX"] == "not_started"
    events = await published_events(team)
    assert [event["type"] for event in events] == ["domain.updated"] * 3
    assert [event["data"]["status"] for event in events] == [
        "partially_verified", "verified", "partially_verified",
    ]  # fmt: skip


async def test_the_dkim_key_outlives_the_sending_capability(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain = await added(team, capabilities=BOTH)
    before = await seen(team, domain)
    await set_states(team, domain, **VERIFIED, receiving="verified")
    without = await patched(team, domain, capabilities={"sending": "disabled"})
    assert states_of(without) == {"Receiving MX": "verified"}
    assert without["status"] == "verified"
    assert (await flags(team, domain))[:2] == (False, True)
    refused = await team.post("/emails", mail())
    assert error(refused)[:2] == (403, "validation_error")
    again = await patched(team, domain, capabilities={"sending": "enabled"})
    assert [r["value"] for r in again["records"]] == [r["value"] for r in before["records"]]
    assert states_of(again)["DKIM TXT"] == "not_started"
    assert again["status"] == "partially_verified"
    assert (await flags(team, domain))[0] is False


async def test_a_tracking_subdomain_is_set_changed_and_cleared(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain = await added(team)
    after = await patched(team, domain, tracking_subdomain="Links", click_tracking=True)
    assert after["tracking_subdomain"] == "links"
    assert states_of(after)["Tracking CNAME"] == "not_started"
    await set_states(team, domain, **VERIFIED, tracking="verified", tracking_caa="verified")
    senders = pillarbox.app.need(Senders)
    assert await host_of(senders, team) == "links.harbor.example"
    await patched(team, domain, tracking_subdomain="links", open_tracking=True)
    assert await host_of(senders, team) == "links.harbor.example"
    changed = await patched(team, domain, tracking_subdomain="go")
    assert states_of(changed)["Tracking CNAME"] == "not_started"
    assert await host_of(senders, team) is None
    assert (await flags(team, domain))[2] is False
    cleared = await patched(team, domain, tracking_subdomain=None)
    assert "tracking_subdomain" not in cleared
    assert "Tracking CNAME" not in states_of(cleared)
    assert (cleared["open_tracking"], cleared["click_tracking"]) == (True, True)
    assert states_of(cleared)["DKIM TXT"] == "verified"


async def host_of(senders: Senders, team: Team) -> str | None:
    found = await senders.find(team.id, "harbor.example")
    assert found is not None
    return found.tracking_host


async def test_what_changes_nothing_tells_nobody(pillarbox: World) -> None:
    """The Python SDK sends the id in the body; region, name and return path are fixed."""
    team = await pillarbox.team()
    domain = await added(team, tracking_subdomain="links")
    before = await seen(team, domain)
    await subscribe(team)
    for body in (
        {},
        {"id": domain},
        {"id": "x", "name": "other.example", "region": "mars", "custom_return_path": "1"},
        {"capabilities": {}},
        {"capabilities": {"sending": "enabled"}, "open_tracking": False, "tracking_subdomain": "LINKS"},
        {"tls": "opportunistic"},
    ):
        assert await patched(team, domain, **body) == before
    assert await published_events(team) == []
    await patched(team, domain, tls="enforced", open_tracking=True, click_tracking=True)
    assert await published_kinds(team) == ["domain.updated"]
    rows = await pillarbox.pool.fetch("SELECT tls FROM domains")
    assert [row["tls"] for row in rows] == ["enforced"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"capabilities": {"sending": "disabled"}}, "capabilities"),
        ({"capabilities": {"sending": "disabled", "receiving": "disabled"}}, "capabilities"),
        ({"capabilities": None}, "capabilities"),
        ({"capabilities": []}, "capabilities"),
        ({"capabilities": {"receiving": True}}, "capabilities.receiving"),
        ({"open_tracking": None}, "open_tracking"),
        ({"click_tracking": "true"}, "click_tracking"),
        ({"tls": None}, "tls"),
        ({"tls": "none"}, "tls"),
        ({"tracking_subdomain": ""}, "tracking_subdomain"),
        ({"tracking_subdomain": "send"}, "tracking_subdomain"),
        ({"tracking_subdomain": "a.b"}, "tracking_subdomain"),
        ({"tracking_subdomain": "_dmarc"}, "tracking_subdomain"),
        ({"tracking_subdomain": 5}, "tracking_subdomain"),
    ],
)
async def test_bad_changes(pillarbox: World, body: Any, field: str) -> None:
    team = await pillarbox.team()
    domain = await added(team)
    before = await seen(team, domain)
    found = error(await team.call("PATCH", f"/domains/{domain}", body))
    assert found[:2] == (422, "validation_error")
    assert found[2].startswith(f"Invalid `{field}` field. ")
    assert await seen(team, domain) == before


async def test_unknown_domains(pillarbox: World) -> None:
    team = await pillarbox.team()
    for method, path in (
        ("PATCH", ""), ("DELETE", ""), ("POST", "/verify"), ("GET", "/claim"), ("POST", "/claim/verify"),
    ):  # fmt: skip
        unknown = await team.call(method, f"/domains/{uuid4()}{path}", {})
        assert error(unknown) == (404, "not_found", "Domain not found")
        malformed = await team.call(method, f"/domains/nonsense{path}", {})
        assert error(malformed)[:2] == (422, "invalid_parameter")


async def test_a_sending_key_may_do_nothing_here(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain = await added(team)
    sender = team.using(await team.key(permission="sending_access"))
    for method, path in (
        ("GET", "/domains"), ("POST", "/domains"), ("GET", f"/domains/{domain}"),
        ("PATCH", f"/domains/{domain}"), ("DELETE", f"/domains/{domain}"),
        ("POST", f"/domains/{domain}/verify"), ("POST", "/domains/claim"),
        ("GET", f"/domains/{domain}/claim"), ("POST", f"/domains/{domain}/claim/verify"),
    ):  # fmt: skip
        assert error(await sender.call(method, path, {}))[:2] == (401, "restricted_api_key")


async def jobs_of(pillarbox: World, domain_id: str) -> list[datetime]:
    """When background work on the domain is due."""
    rows = await pillarbox.pool.fetch("SELECT due_at FROM jobs WHERE subject_id = $1", UUID(domain_id))
    return [row["due_at"] for row in rows]


# Verify -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state", ["not_started", "pending", "verified", "temporary_failure", "failed"], ids=str
)
async def test_verify_on_each_status_shows_pending(pillarbox: World, state: str) -> None:
    team = await pillarbox.team()
    domain = await added(team, capabilities=BOTH)
    if state != "not_started":
        await set_states(team, domain, **dict.fromkeys([*VERIFIED, "receiving"], state))
    await subscribe(team)
    before = await flags(team, domain)
    answer = await team.http.post(f"/domains/{domain}/verify")
    assert (answer.status_code, answer.json()) == (200, {"object": "domain", "id": domain})
    after = await seen(team, domain)
    assert after["status"] == "pending"
    assert set(states_of(after).values()) == {"pending"}
    assert await flags(team, domain) == before
    assert await published_kinds(team) == ([] if state == "pending" else ["domain.updated"])
    again = await team.post(f"/domains/{domain}/verify")
    assert again.status_code == 200
    assert len(await published_kinds(team)) == (0 if state == "pending" else 1)
    clock_of(pillarbox).advance(0.001)
    assert [due <= clock_of(pillarbox).now() for due in await jobs_of(pillarbox, domain)] == [True]


async def test_mail_goes_on_while_a_working_domain_is_verified_anew(
    database_url: str, tmp_path: Path
) -> None:
    async with manual_world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        domain = await added(team)
        assert error(await team.post("/emails", mail()))[:2] == (403, "validation_error")
        await set_states(team, domain, **VERIFIED)
        pillarbox.app.need(Senders).forget(team.id)
        await team.send()
        await team.post(f"/domains/{domain}/verify")
        pillarbox.app.need(Senders).forget(team.id)
        await team.send()


# Delete -------------------------------------------------------------------------------------------


async def test_a_deleted_domain_is_gone_with_its_keys_and_its_name_is_free(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain = await added(team)
    await team.post(f"/domains/{domain}/verify")
    before = await seen(team, domain)
    await subscribe(team)
    answer = await team.call("DELETE", f"/domains/{domain}")
    assert answer.json() == {"object": "domain", "id": domain, "deleted": True}
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/verify")):
        gone = error(await team.call(method, f"/domains/{domain}{path}", {}))
        assert gone == (404, "not_found", "Domain not found")
    [event] = await published_events(team)
    assert event["type"] == "domain.deleted"
    assert event["data"]["id"] == domain
    assert [r["value"] for r in event["data"]["records"]] == [r["value"] for r in before["records"]]
    for table in ("domains", "dkim_keys", "directory_domains"):
        assert await pillarbox.pool.fetchval(f"SELECT count(*) FROM {table}") == 0
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE subject_id = $1", UUID(domain)) == 0
    other = await pillarbox.team("Quay")
    again = await added(team)
    assert again != domain
    assert (await seen(team, again))["records"][2]["value"] != before["records"][2]["value"]
    assert (await other.post("/domains", {"name": "harbor.example"})).status_code == 201


async def test_keys_of_a_deleted_domain_are_inactive_and_stay_listed(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain = await team.domain()
    bound = await team.key(permission="sending_access", domain_id=domain, name="bound")
    free = await team.key(permission="sending_access", name="free")
    assert (await team.using(bound).post("/emails", mail())).status_code == 200
    await team.call("DELETE", f"/domains/{domain}")
    refused = await team.using(bound).post("/emails", mail())
    assert error(refused)[:2] == (403, "restricted_api_key")
    assert {key["name"] for key in (await team.get("/api-keys")).json()["data"]} >= {"bound", "free"}
    assert (await team.using(free).post("/emails", mail(from_="a@b.example"))).status_code == 200
    again = await team.domain()
    assert again != domain
    assert error(await team.using(bound).post("/emails", mail()))[:2] == (403, "restricted_api_key")


async def test_waiting_mail_of_a_deleted_domain_fails_when_it_is_due(pillarbox: World) -> None:
    """Also where the team has added a domain of that name again: the mail was that of another one."""
    team = await pillarbox.team()
    domain = await team.domain()
    waiting = await team.send(scheduled_at="in 1 hour")
    stays = await team.send(from_="Quay <notes@quay.example>", scheduled_at="in 1 hour")
    sent = await team.send()
    await pillarbox.turn()
    await team.call("DELETE", f"/domains/{domain}")
    assert (await team.email(waiting))["last_event"] == "scheduled"
    clock_of(pillarbox).advance(1)
    await team.domain()
    clock_of(pillarbox).advance(3600)
    while await pillarbox.turn():
        pass
    assert (await team.email(waiting))["last_event"] == "failed"
    reasons = [event["reason"] for event in await team.events(waiting) if event["event"] == "failed"]
    assert reasons == ["domain_not_verified"]
    assert (await team.email(stays))["last_event"] == "delivered"
    assert (await team.email(sent))["last_event"] == "delivered"
    rows = await pillarbox.pool.fetch("SELECT DISTINCT domain_id FROM emails WHERE domain_id IS NOT NULL")
    assert [str(row["domain_id"]) for row in rows] == [domain]


async def test_other_processes_know_of_it_within_a_second(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain = await team.domain()
    elsewhere = Senders(pillarbox.pool, pillarbox.clock)
    assert await elsewhere.find(team.id, "harbor.example") is not None
    await team.call("DELETE", f"/domains/{domain}")
    clock_of(pillarbox).advance(1)
    assert await elsewhere.find(team.id, "harbor.example") is None


async def test_a_sender_is_asked_for_again_before_it_is_forgotten(pillarbox: World) -> None:
    """Nobody waits for it, and what is told is never older than a quarter of a second."""
    team = await pillarbox.team()
    await team.domain()
    clock, place = clock_of(pillarbox), "harbor.example"
    elsewhere = Senders(pillarbox.pool, clock)
    first = await elsewhere.find(team.id, place)
    clock.advance(REMEMBERED_SECONDS - ASKED_AHEAD / 2)
    asked = asyncio.ensure_future(elsewhere.find(team.id, place))
    await asyncio.sleep(0)
    assert asked.done()
    assert asked.result() is first
    while elsewhere._asking:
        await asyncio.sleep(0.01)
    clock.advance(REMEMBERED_SECONDS - 2 * ASKED_AHEAD)
    again = await elsewhere.find(team.id, place)
    assert again == first
    assert again is not first
    assert not elsewhere._asking


async def test_two_deletions_at_once(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain = await added(team)
    await subscribe(team)
    answers = await asyncio.gather(*(team.call("DELETE", f"/domains/{domain}") for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404, 404]
    assert await published_kinds(team) == ["domain.deleted"]


async def test_a_domain_that_is_being_changed_is_locked(pillarbox: World) -> None:
    """Conventions section 15: a lock that is not had in time is 409 `resource_locked`."""
    team = await pillarbox.team()
    domain = await added(team)
    async with pillarbox.pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM domains WHERE id = $1 FOR UPDATE", UUID(domain))
        answers = await asyncio.gather(
            team.call("PATCH", f"/domains/{domain}", {"open_tracking": True}),
            team.call("DELETE", f"/domains/{domain}"),
            team.post(f"/domains/{domain}/verify"),
        )
    assert [error(answer)[:2] for answer in answers] == [(409, "resource_locked")] * 3
    assert (await team.call("DELETE", f"/domains/{domain}")).status_code == 200


async def test_a_limit_on_domains_holds_against_a_race(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, most_domains="2") as pillarbox:
        team, other = await pillarbox.team(), await pillarbox.team("Quay")
        answers = await asyncio.gather(
            *(team.post("/domains", {"name": f"n{number}.example"}) for number in range(5))
        )
        assert sorted(answer.status_code for answer in answers) == [201, 201, 403, 403, 403]
        assert (await other.post("/domains", {"name": "quay.example"})).status_code == 201
        await team.call("DELETE", f"/domains/{(await team.get('/domains')).json()['data'][0]['id']}")
        assert (await team.post("/domains", {"name": "new.example"})).status_code == 201


async def test_a_team_may_have_a_limit_of_its_own(database_url: str, tmp_path: Path) -> None:
    """Section 2: the operator's limit is set per team, over the installation's; `GET /usage` shows it."""
    async with manual_world(database_url, tmp_path, most_domains="1") as pillarbox:
        team, other = await pillarbox.team(), await pillarbox.team("Quay")
        await bootstrap.set_limits(pillarbox.pool, team.id, {"most_domains": 2})
        for number in range(2):
            assert (await team.post("/domains", {"name": f"n{number}.example"})).status_code == 201
        refused = await team.post("/domains", {"name": "n2.example"})
        assert error(refused) == (403, "validation_error", "Your team may have at most 2 domains.")
        assert (await team.get("/usage")).json()["domains"] == {"used": 2, "limit": 2}
        await bootstrap.set_limits(pillarbox.pool, other.id, {"most_domains": 0})
        assert error(await other.post("/domains", {"name": "quay.example"}))[0] == 403
        await bootstrap.set_limits(pillarbox.pool, other.id, {"most_domains": None})
        assert (await other.post("/domains", {"name": "quay.example"})).status_code == 201
        assert (await other.get("/usage")).json()["domains"] == {"used": 1, "limit": 1}


# Who receives -------------------------------------------------------------------------------------


async def receiver(pillarbox: World, name: str, *, require_dns: bool = True) -> UUID | None:
    return (await directory.receivers_of(pillarbox.pool, [name], require_dns=require_dns))[name].team_id


async def test_which_team_receives_for_a_name(pillarbox: World) -> None:
    team, other = await pillarbox.team(), await pillarbox.team("Quay")
    await added(team, capabilities=BOTH)
    second = await added(other, capabilities=BOTH)
    assert await receiver(pillarbox, "harbor.example") is None
    assert await receiver(pillarbox, "harbor.example", require_dns=False) == team.id
    await set_states(other, second, **VERIFIED, receiving="temporary_failure")
    assert await receiver(pillarbox, "harbor.example") == other.id
    assert await receiver(pillarbox, "harbor.example", require_dns=False) == other.id
    assert await receiver(pillarbox, "sub.harbor.example", require_dns=False) is None
    await patched(other, second, capabilities={"receiving": "disabled"})
    assert await receiver(pillarbox, "harbor.example") is None
    await other.call("DELETE", f"/domains/{second}")
    assert await receiver(pillarbox, "harbor.example", require_dns=False) == team.id
