"""Signatures (webhooks.md section 3; WH-01, WH-02): judged by the libraries that receivers use."""

from __future__ import annotations

import time
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import resend
import standardwebhooks
import svix

from kit.receiver import WEBHOOKS, Arrival, receiver
from kit.webhooks import hook, publish
from kit.world import world
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher
from pillarbox.webhooks.dispatch.posting import headers, signature

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
KEY = b64decode(SECRET.removeprefix("whsec_"))
EVENT = "msg_2pillarboxTestVector0001"
BODY = b'{"type":"domain.updated","created_at":"2026-09-29T12:00:00.000Z","data":{}}'
VECTOR = "v1,60d+WFiHGYtEHonOVkj6z66HQqORIhIg0AYasRnkMHU="
"""The example of webhooks.md section 3."""


def test_the_vector_of_the_contract() -> None:
    assert signature([KEY], EVENT, 1790683200, BODY) == VECTOR
    at = datetime.fromtimestamp(1790683200, UTC)
    assert svix.Webhook(SECRET).sign(EVENT, at, BODY.decode()) == VECTOR


def verifiers(secret: str) -> list[Any]:
    """Each takes a body and headers and raises where they do not fit."""

    def by_the_sdk(body: bytes, given: dict[str, str]) -> None:
        ours = {name: given[f"svix-{name}"] for name in ("id", "timestamp", "signature")}
        resend.Webhooks.verify({"payload": body.decode(), "headers": ours, "webhook_secret": secret})

    return [
        lambda body, given: svix.Webhook(secret).verify(body, given),
        lambda body, given: standardwebhooks.Webhook(secret).verify(body, given),
        by_the_sdk,
    ]


def accepted(secret: str, body: bytes, given: dict[str, str]) -> list[bool]:
    found = []
    for verify in verifiers(secret):
        try:
            verify(body, given)
        except Exception:
            found.append(False)
        else:
            found.append(True)
    return found


def test_every_changed_byte_is_refused() -> None:
    now = int(time.time())
    given = headers([KEY], EVENT, now, BODY)
    assert accepted(SECRET, BODY, given) == [True] * 3
    for place in range(len(BODY)):
        changed = BODY[:place] + bytes([BODY[place] ^ 1]) + BODY[place + 1 :]
        assert accepted(SECRET, changed, given) == [False] * 3, place
    other = headers([KEY], "msg_2pillarboxTestVector0002", now, BODY)
    for name in ("id", "timestamp", "signature"):
        wrong = {f"{family}-{name}": other[f"{family}-{name}"] for family in ("svix", "webhook")}
        if name != "timestamp":
            assert accepted(SECRET, BODY, given | wrong) == [False] * 3
    for age in (-301, 301):
        assert accepted(SECRET, BODY, headers([KEY], EVENT, now + age, BODY)) == [False] * 3


def test_either_of_two_secrets_is_enough() -> None:
    given = headers([bytes(24), KEY], EVENT, int(time.time()), BODY)
    assert given["svix-signature"] == given["webhook-signature"]
    assert given["svix-signature"].split(" ")[1] == signature(
        [KEY], EVENT, int(given["svix-timestamp"]), BODY
    )
    assert accepted(SECRET, BODY, given) == [True] * 3
    assert accepted("whsec_" + "A" * 32, BODY, given) == [True] * 3
    assert accepted("whsec_" + "B" * 32, BODY, given) == [False] * 3


def given_with(arrival: Arrival) -> dict[str, str]:
    return {name: text for name, text in arrival.headers.items() if name.startswith(("svix-", "webhook-"))}


async def test_a_delivery_on_the_wire(database_url: str, tmp_path: Path) -> None:
    """Exactly these headers and no others; both families alike; verified by all; a rotation adds a signature,
    the new one first (section 1.6)."""
    async with receiver() as at, world(database_url, tmp_path, **WEBHOOKS) as pillarbox:
        team = await pillarbox.team()
        on = await hook(team, endpoint=at.url + "?a=%2F&b#part")
        await publish(team, "domain.updated", text="ä€😀")
        (arrival,) = await at.wait_for(1)
        assert arrival.target == "POST /in?a=%2F&b HTTP/1.1"
        names = sorted(line.partition(":")[0].lower() for line in arrival.lines)
        families = [f"{family}-{name}" for family in ("svix", "webhook") for name in ("id", "signature")]
        expected = ["content-length", "content-type", "host", "user-agent", *families]
        assert names == sorted([*expected, "svix-timestamp", "webhook-timestamp"])
        assert arrival.headers["host"] == f"127.0.0.1:{at.port}"
        assert arrival.headers["content-type"] == "application/json"
        assert arrival.headers["content-length"] == str(len(arrival.body))
        assert arrival.headers["user-agent"].startswith("Pillarbox-Webhooks/")
        for name in ("id", "timestamp", "signature"):
            assert arrival.headers[f"svix-{name}"] == arrival.headers[f"webhook-{name}"]
        assert "ä€😀".encode() in arrival.body
        assert b": " not in arrival.body
        assert accepted(on.secret, arrival.body, given_with(arrival)) == [True] * 3

        rotated = (await team.post(f"{on.path}/signing-secret/rotate")).json()["signing_secret"]
        await publish(team)
        second = (await at.wait_for(2))[1]
        assert len(second.headers["svix-signature"].split(" ")) == 2
        for secret in (on.secret, rotated):
            assert accepted(secret, second.body, given_with(second)) == [True] * 3
        first = given_with(second) | {"svix-signature": second.headers["svix-signature"].split(" ")[0]}
        with pytest.raises(svix.WebhookVerificationError):
            svix.Webhook(on.secret).verify(second.body, first)
        svix.Webhook(rotated).verify(second.body, first)


async def test_a_new_secret_signs_although_the_key_of_the_one_before_is_lost(
    database_url: str, tmp_path: Path
) -> None:
    """SEC-04: until then its deliveries wait, and reading the secret is 503."""
    settings = {**WEBHOOKS, "blob_url": f"file:{tmp_path / 'blobs'}"}
    async with world(database_url, tmp_path / "one", **settings) as before:
        lost = await hook(await before.team(), endpoint="http://127.0.0.1:1/")
        await before.pool.execute("UPDATE key_ring_keys SET abandoned_at = now()")
    async with receiver() as at, world(database_url, tmp_path / "two", **settings) as pillarbox:
        team = await pillarbox.team("Quay")
        mine = replace(team, id=lost.team.id, http=pillarbox.client(lost.team.token))
        assert (await mine.call("PATCH", lost.path, {"endpoint": at.url})).status_code == 200
        await publish(mine)
        answer = await mine.get(lost.path)
        assert (answer.status_code, answer.json()["name"]) == (503, "service_unavailable")
        rotated = await mine.post(f"{lost.path}/signing-secret/rotate")
        assert rotated.status_code == 200
        await publish(mine)
        dispatcher = pillarbox.app.need(WebhookDispatcher)
        dispatcher._paused.clear()
        dispatcher.wake()
        (first, *_) = await at.wait_for(1)
        assert accepted(rotated.json()["signing_secret"], first.body, given_with(first)) == [True] * 3
