"""The webhook resource (webhooks.md sections 1 and 6; WH-01, SEC-04)."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.client import error
from kit.dumps import rows_of
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.webhooks import ENDPOINT, hook, publish
from kit.world import World
from pillarbox.kernel.security.secrets import KeyRing, SealBroken
from pillarbox.webhooks import signing_secrets
from pillarbox.webhooks.endpoints import EndpointRules
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.signing_secrets import signing_keys

SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{32}")
CREATED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")


async def keys_of(team: Any, webhook_id: str) -> list[bytes]:
    """What signs for a webhook at this moment."""
    row = await team.db.source.fetchrow("SELECT * FROM webhooks WHERE id = $1", UUID(webhook_id))
    app = team.world.app
    return signing_keys(app.need(KeyRing), row["id"], row["secrets"], row["secret_ends"], app.kit.clock.now())


def key(secret: str) -> bytes:
    return b64decode(secret.removeprefix("whsec_"), validate=True)


async def test_a_webhook_is_created_and_read_in_the_order_of_the_contract(pillarbox: World) -> None:
    team = await pillarbox.team()
    wanted = {"endpoint": ENDPOINT, "events": ["email.sent", "domain.updated", "email.sent"]}
    made = await team.post("/webhooks", wanted)
    assert made.status_code == 201
    created = made.json()
    assert list(created) == ["object", "id", "signing_secret"]
    assert created["object"] == "webhook"
    assert SECRET.fullmatch(created["signing_secret"])
    assert len(key(created["signing_secret"])) == 24
    shown = (await team.get(f"/webhooks/{created['id']}")).json()
    assert list(shown) == ["object", "id", "created_at", "status", "endpoint", "events", "signing_secret"]
    assert CREATED.fullmatch(shown["created_at"])
    assert (shown["status"], shown["endpoint"]) == ("enabled", ENDPOINT)
    assert shown["events"] == ["email.sent", "domain.updated"]
    assert shown["signing_secret"] == created["signing_secret"]


async def test_every_kind_can_be_asked_for(pillarbox: World) -> None:
    team = await pillarbox.team()
    assert len(KINDS) == 37 + 1
    made = await hook(team, *KINDS)
    assert (await made.get())["events"] == list(KINDS)


REFUSED_BODIES: list[tuple[Any, str, str]] = [
    ({}, "missing_required_field", "`endpoint`"),
    ({"endpoint": ENDPOINT}, "missing_required_field", "`events`"),
    ({"events": ["email.sent"]}, "missing_required_field", "`endpoint`"),
    ({"endpoint": "", "events": ["email.sent"]}, "missing_required_field", "`endpoint`"),
    ({"endpoint": None, "events": ["email.sent"]}, "missing_required_field", "`endpoint`"),
    ({"endpoint": ENDPOINT, "events": None}, "missing_required_field", "`events`"),
    ({"endpoint": ENDPOINT, "events": []}, "validation_error", "`events`"),
    ({"endpoint": ENDPOINT, "events": "email.sent"}, "validation_error", "`events`"),
    ({"endpoint": ENDPOINT, "events": ["email.sent", 1]}, "validation_error", "`events"),
    ({"endpoint": ENDPOINT, "events": ["email.sent", "email.lost"]}, "validation_error", "`email.lost`"),
    ({"endpoint": 7, "events": ["email.sent"]}, "validation_error", "`endpoint`"),
]


async def test_a_creation_that_is_not_right_changes_nothing(pillarbox: World) -> None:
    team = await pillarbox.team()
    before = await rows_of(pillarbox.pool, team.id)
    for body, name, says in REFUSED_BODIES:
        status, found, message = error(await team.post("/webhooks", body))
        assert (status, found) == (422, name), body
        assert says in message, body
    assert await rows_of(pillarbox.pool, team.id) == before


REFUSED_ENDPOINTS = [
    "http://hooks.harbor.example/in",
    "ftp://hooks.harbor.example/in",
    "hooks.harbor.example/in",
    "//hooks.harbor.example/in",
    "https:///in",
    "https://ada:secret@hooks.harbor.example/in",
    "https://hooks.harbor.example:0/",
    "https://hooks.harbor.example:70000/",
    "https://hooks.harbor.example/a b",
    " https://hooks.harbor.example/",
    "https://hooks.harbor.example/" + "x" * 2020,
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://10.0.0.1/",
    "https://172.16.3.4/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/",
    "https://0.0.0.0/",
    "https://224.0.0.1/",
    "https://[::1]/",
    "https://[::]/",
    "https://[fe80::1]/",
    "https://[fc00::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://app.localhost/",
    "https://hooks.harbor.example:25/",
    "https://hooks.harbor.example:465/",
    "https://hooks.harbor.example:587/",
]


async def test_an_endpoint_that_may_not_be_called_is_refused_at_once(pillarbox: World) -> None:
    """WH-06: what the URL alone tells; names are looked up at every attempt."""
    team = await pillarbox.team()
    made = await hook(team)
    for endpoint in REFUSED_ENDPOINTS:
        answer = await team.post("/webhooks", {"endpoint": endpoint, "events": ["email.sent"]})
        assert error(answer)[:2] == (422, "validation_error"), endpoint
        assert "`endpoint`" in answer.text
        assert error(await made.change(endpoint=endpoint))[:2] == (422, "validation_error"), endpoint
    assert len((await team.get("/webhooks")).json()["data"]) == 1
    assert (await made.get())["endpoint"] == ENDPOINT


async def test_the_operator_may_allow_http_ports_and_private_networks(
    database_url: str, tmp_path: Path
) -> None:
    settings = {
        "webhooks_allow_http": "true",
        "webhooks_allowed_ports": "80,443,8025",
        "allow_private": "127.0.0.0/8",
    }
    async with manual_world(database_url, tmp_path, **settings) as pillarbox:
        team = await pillarbox.team()
        for endpoint in (
            "http://127.0.0.1:8025/in",
            "http://localhost/",
            "https://127.1/",
            "http://x.example",
        ):
            assert (await hook(team, endpoint=endpoint)).id
        for endpoint in ("http://10.0.0.1/", "https://hooks.harbor.example:8443/", "https://[::1]/"):
            answer = await team.post("/webhooks", {"endpoint": endpoint, "events": ["email.sent"]})
            assert error(answer)[:2] == (422, "validation_error"), endpoint


def test_endpoints_are_judged_by_the_url_alone() -> None:
    rules = EndpointRules()
    assert rules.refusal("https://hooks.harbor.example/in?a=b#part") is None
    assert rules.refusal("https://8.8.8.8:8443/") is None
    assert rules.refusal("https://bücher.example/") is None
    assert rules.refusal("http://hooks.harbor.example/") == "scheme"
    assert rules.refusal("https://10.1.2.3/") == "address"
    assert rules.refusal("https://hooks.harbor.example:25/") == "port"
    assert rules.refusal("nothing") == "form"


async def test_lists_show_neither_secrets_nor_listeners(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = [await hook(team, endpoint=f"{ENDPOINT}/{at}") for at in range(5)]
    listener = await hook(team)
    await pillarbox.pool.execute(
        "UPDATE webhooks SET kind = 'listener' WHERE team_id = $1 AND id = $2", team.id, UUID(listener.id)
    )
    listed = (await team.get("/webhooks")).json()
    assert list(listed) == ["object", "has_more", "data"]
    assert listed["has_more"] is False
    assert [item["id"] for item in listed["data"]] == [one.id for one in reversed(made)]
    assert list(listed["data"][0]) == ["id", "endpoint", "created_at", "status", "events"]
    assert "whsec_" not in json.dumps(listed)
    page = (await team.get(f"/webhooks?limit=2&after={made[3].id}")).json()
    assert [item["id"] for item in page["data"]] == [made[2].id, made[1].id]
    assert page["has_more"] is True
    back = (await team.get(f"/webhooks?limit=2&before={made[1].id}")).json()
    assert [item["id"] for item in back["data"]] == [made[3].id, made[2].id]
    for query in (
        "limit=0",
        "limit=101",
        "limit=x",
        "after=x",
        f"after={made[0].id}&before={made[1].id}",
    ):
        assert error(await team.get(f"/webhooks?{query}"))[:2] == (422, "validation_error"), query
    assert (await team.get(listener.path)).status_code == 404
    assert (await team.call("DELETE", listener.path)).status_code == 404


async def test_a_change_replaces_what_it_names(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team, "email.sent", "email.bounced")
    answer = await made.change(webhook_id=made.id, events=["domain.updated"], whatever=1)
    assert (answer.status_code, answer.json()) == (200, {"object": "webhook", "id": made.id})
    assert (await made.get())["events"] == ["domain.updated"]
    await made.change(endpoint="https://other.harbor.example/")
    await made.change(status="disabled")
    shown = await made.get()
    assert (shown["endpoint"], shown["status"]) == ("https://other.harbor.example/", "disabled")
    assert shown["signing_secret"] == made.secret
    await made.change(status="enabled")
    assert (await made.get())["status"] == "enabled"


async def test_a_change_that_is_not_right_changes_nothing(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    before = await rows_of(pillarbox.pool, team.id)
    bodies: list[dict[str, Any]] = [
        {},
        {"webhook_id": made.id},
        {"status": "paused"},
        {"status": None},
        {"events": None},
        {"events": []},
        {"events": ["email.lost"]},
        {"endpoint": None},
        {"endpoint": ""},
    ]
    for body in bodies:
        assert error(await made.change(**body))[:2] == (422, "validation_error"), body
    assert await rows_of(pillarbox.pool, team.id) == before


async def test_a_deleted_webhook_is_gone_with_all_it_had(pillarbox: World) -> None:
    team = await pillarbox.team()
    kept, made = await hook(team), await hook(team)
    await publish(team)
    await publish(team)
    [first, second] = await made.events()
    await made.attempt(first["id"], 500, "no")
    await made.ends(first["id"], "failed")
    answer = await team.call("DELETE", made.path)
    assert answer.json() == {"object": "webhook", "id": made.id, "deleted": True}
    for method, below in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/events"),
        ("GET", f"/events/{second['id']}"),
        ("POST", f"/events/{second['id']}/replay"),
        ("GET", f"/events/{first['id']}/attempts"),
        ("POST", "/signing-secret/rotate"),
    ):
        assert error(await team.call(method, made.path + below))[:2] == (404, "not_found")
    assert await run_jobs(pillarbox) == 1
    for table in ("webhook_deliveries", "webhook_outcomes", "webhook_attempts"):
        left = await pillarbox.pool.fetch(f"SELECT webhook_id FROM {table}")
        assert {str(row["webhook_id"]) for row in left} <= {kept.id}, table
    assert len(await kept.events()) == 2


async def test_ids_that_are_none_and_keys_that_may_not(pillarbox: World) -> None:
    team = await pillarbox.team()
    sender = team.using(await team.key(permission="sending_access"))
    for method, path, body in (
        ("POST", "/webhooks", {"endpoint": ENDPOINT, "events": ["email.sent"]}),
        ("GET", "/webhooks", None),
        ("GET", f"/webhooks/{uuid4()}", None),
        ("POST", f"/webhooks/{uuid4()}/events/msg_x/replay", {}),
    ):
        assert error(await sender.call(method, path, body))[:2] == (401, "restricted_api_key")
    for method, below in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/events")):
        body = {"status": "enabled"} if method == "PATCH" else None
        answer = await team.call(method, f"/webhooks/hook{below}", body)
        assert error(answer)[:2] == (422, "invalid_parameter")
        answer = await team.call(method, f"/webhooks/{uuid4()}{below}", body)
        assert error(answer) == (404, "not_found", "Webhook not found")


# Secrets ------------------------------------------------------------------------------------------


async def test_a_rotated_secret_signs_for_a_day_beside_the_new_one(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    answer = await team.call("POST", f"{made.path}/signing-secret/rotate")
    rotated = answer.json()
    assert answer.status_code == 200
    assert list(rotated) == ["object", "id", "signing_secret"]
    assert SECRET.fullmatch(rotated["signing_secret"])
    assert rotated["signing_secret"] != made.secret
    assert (await made.get())["signing_secret"] == rotated["signing_secret"]
    assert await keys_of(team, made.id) == [key(rotated["signing_secret"]), key(made.secret)]
    clock_of(pillarbox).advance(timedelta(hours=24) - timedelta(seconds=1))
    assert len(await keys_of(team, made.id)) == 2
    clock_of(pillarbox).advance(2)
    assert await keys_of(team, made.id) == [key(rotated["signing_secret"])]


async def test_at_most_five_earlier_secrets_sign(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    secrets = [made.secret]
    for _ in range(7):
        clock_of(pillarbox).advance(60)
        answer = await team.post(f"{made.path}/signing-secret/rotate")
        secrets.append(answer.json()["signing_secret"])
    assert await keys_of(team, made.id) == [key(secret) for secret in reversed(secrets[2:])]
    clock_of(pillarbox).advance(timedelta(hours=24) - timedelta(seconds=150))
    assert await keys_of(team, made.id) == [key(secret) for secret in reversed(secrets[4:])]
    answer = await team.post(f"{made.path}/signing-secret/rotate")
    stored = await pillarbox.pool.fetchval(
        "SELECT cardinality(secrets) FROM webhooks WHERE team_id = $1", team.id
    )
    assert stored == 5


async def test_a_disabled_webhook_can_be_rotated(pillarbox: World) -> None:
    team = await pillarbox.team()
    made = await hook(team)
    await made.change(status="disabled")
    assert (await team.call("POST", f"{made.path}/signing-secret/rotate")).status_code == 200
    assert (await made.get())["status"] == "disabled"


async def test_secrets_lie_sealed_for_their_own_row(pillarbox: World) -> None:
    """SEC-04: unreadable in the database, useless in another row."""
    team = await pillarbox.team()
    made = await hook(team)
    rotated = (await team.post(f"{made.path}/signing-secret/rotate")).json()["signing_secret"]
    dump = repr(await rows_of(pillarbox.pool, team.id)).encode()
    row = await pillarbox.pool.fetchrow("SELECT secrets FROM webhooks WHERE team_id = $1", team.id)
    for secret in (made.secret, rotated):
        assert secret.encode() not in dump
        assert secret.removeprefix("whsec_").encode() not in dump
        assert all(key(secret) not in bytes(sealed) for sealed in row["secrets"])
    with pytest.raises(SealBroken):
        signing_secrets.shown(pillarbox.app.need(KeyRing), uuid4(), row["secrets"][0])
