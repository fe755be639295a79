"""The official Python SDK's webhook methods, and its verifier with secrets of ours (WH-01)."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from hmac import digest
from typing import Any
from uuid import uuid4

import pytest
import resend
from resend import exceptions
from resend.webhooks import _webhook

from kit.served import Server, params, sdk_at, serving
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.signing_secrets import new_secret
from repository.running import TIMEOUT

ENDPOINT = "https://hooks.harbor.example/in"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server without a dispatcher: what is owed stays owed."""
    settings = {"roles": "api,delivery,jobs", "processes": "1"}
    with serving(tmp_path_factory.mktemp("sdk-webhooks"), **settings) as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def made(*events: str) -> Any:
    return resend.Webhooks.create({"endpoint": ENDPOINT, "events": list(events) or ["email.sent"]})  # type: ignore[typeddict-item]


def logged(webhook_id: str, count: int) -> list[Any]:
    """The webhook's events once there are so many, the oldest first."""
    end = time.monotonic() + TIMEOUT
    while len(found := resend.Webhooks.list_events(webhook_id)["data"]) < count:
        assert time.monotonic() < end, found
    return found[::-1]


def test_create_get_list_update_remove(sdk: Server) -> None:
    created = made("email.sent", "email.bounced")
    assert created["object"] == "webhook"
    shown = resend.Webhooks.get(created["id"])
    assert shown["signing_secret"] == created["signing_secret"]
    assert (shown["endpoint"], shown["status"]) == (ENDPOINT, "enabled")
    listed = resend.Webhooks.list()
    assert created["id"] in [item["id"] for item in listed["data"]]
    assert resend.Webhooks.list({"limit": 1})["has_more"] is (len(listed["data"]) > 1)
    updated = resend.Webhooks.update({"webhook_id": created["id"], "status": "disabled"})
    assert updated["id"] == created["id"]
    assert resend.Webhooks.get(created["id"])["status"] == "disabled"
    removed = resend.Webhooks.remove(created["id"])
    assert removed["deleted"] is True
    with pytest.raises(exceptions.ResendError, match="Webhook not found"):
        resend.Webhooks.get(created["id"])


def test_every_kind_of_the_sdk_is_one_of_ours(sdk: Server) -> None:
    known = _webhook.WebhookEvent.__args__  # type: ignore[attr-defined]
    assert set(known) <= set(KINDS)
    assert made(*known)["id"]


def test_events_attempts_and_replays(sdk: Server) -> None:
    created = made("email.sent", "email.delivered")
    resend.Emails.send(params())
    first, second = logged(created["id"], 2)
    assert [first["type"], second["type"]] == ["email.sent", "email.delivered"]
    assert first["status"] == "pending"
    event = resend.Webhooks.get_event(created["id"], second["id"])
    assert event["payload"]["type"] == "email.delivered"
    assert event["payload"]["data"]["to"] == ["ada@quay.example"]
    assert event["next_attempt_at"] == event["created_at"]
    page = resend.Webhooks.list_events(created["id"], {"limit": 1, "after": second["id"]})
    assert [item["id"] for item in page["data"]] == [first["id"]]
    assert resend.Webhooks.list_event_attempts(created["id"], first["id"])["data"] == []
    assert resend.Webhooks.replay_event(created["id"], first["id"])["id"] == first["id"]
    resend.Webhooks.update({"webhook_id": created["id"], "status": "disabled"})
    with pytest.raises(exceptions.ValidationError, match="disabled"):
        resend.Webhooks.replay_event(created["id"], first["id"])


def test_errors_are_those_that_the_sdk_knows(sdk: Server) -> None:
    with pytest.raises(exceptions.ValidationError, match=r"`email\.lost`"):
        made("email.lost")
    with pytest.raises(exceptions.ValidationError, match="https"):
        resend.Webhooks.create({"endpoint": "http://127.0.0.1/", "events": ["email.sent"]})
    with pytest.raises(exceptions.ResendError, match="Webhook not found"):
        resend.Webhooks.rotate_signing_secret(str(uuid4()))


def test_the_verifier_takes_every_secret_that_we_make(sdk: Server) -> None:
    created = made()
    rotated = resend.Webhooks.rotate_signing_secret(created["id"])["signing_secret"]
    assert rotated != created["signing_secret"]
    for secret in (created["signing_secret"], rotated, *[new_secret() for _ in range(50)]):
        event, now, payload = "msg_2pillarboxTestVector0001", str(int(time.time())), '{"type":"email.sent"}'
        signature = signed(secret, f"{event}.{now}.{payload}")
        headers = {"id": event, "timestamp": now, "signature": signature}
        verified = resend.Webhooks.verify(
            {"payload": payload, "headers": headers, "webhook_secret": secret}  # type: ignore[typeddict-item]
        )
        assert verified["type"] == "email.sent"


def signed(secret: str, text: str) -> str:
    """A signature as the standard has it, made without our code."""
    key = b64decode(secret.removeprefix("whsec_"), validate=True)
    return "v1," + b64encode(digest(key, text.encode(), sha256)).decode()
