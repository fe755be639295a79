"""The official Python SDK's templates: every method, and mail that is sent of one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving

WANTED: Any = {
    "name": "Order shipped",
    "from": "Harbor <orders@harbor.example>",
    "subject": "Order {{{ORDER_NO}}}",
    "html": "<p>Hi {{{CUSTOMER}}}, {{{COUNT}}} left.</p>",
    "variables": [
        {"key": "ORDER_NO", "type": "string"},
        {"key": "CUSTOMER", "type": "string", "fallback_value": "there"},
        {"key": "COUNT", "type": "number", "fallback_value": 1},
    ],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("sdk-templates"), roles="api,jobs", processes="1") as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def test_every_method(sdk: Server) -> None:
    made = resend.Templates.create({**WANTED, "alias": "order-shipped"})
    assert made["object"] == "template"
    shown = resend.Templates.get("order-shipped")
    assert (shown["id"], shown["status"], shown["alias"]) == (made["id"], "draft", "order-shipped")
    assert [one["key"] for one in shown["variables"]] == ["ORDER_NO", "CUSTOMER", "COUNT"]
    assert resend.Templates.publish(made["id"])["id"] == made["id"]
    changed = resend.Templates.update({"id": made["id"], "name": "Shipped", "subject": "No {{{ORDER_NO}}}"})
    assert changed["id"] == made["id"]
    shown = resend.Templates.get(made["id"])
    assert (shown["status"], shown["has_unpublished_versions"], shown["name"]) == (
        "published",
        True,
        "Shipped",
    )
    copy = resend.Templates.duplicate(made["id"])
    listed = resend.Templates.list()
    assert [one["id"] for one in listed["data"]][:2] == [copy["id"], made["id"]]
    assert listed["data"][0]["name"] == "Shipped (Copy)"
    page = resend.Templates.list({"limit": 1, "after": copy["id"]})
    assert [one["id"] for one in page["data"]] == [made["id"]]
    removed = resend.Templates.remove(copy["id"])
    assert (removed["object"], removed["id"], removed["deleted"]) == ("template", copy["id"], True)
    with pytest.raises(exceptions.ResendError, match="Template not found"):
        resend.Templates.get(copy["id"])
    with pytest.raises(exceptions.MissingRequiredFieldsError, match="Missing `html` field"):
        resend.Templates.create({"name": "x"})  # type: ignore[typeddict-item]


def test_mail_of_a_template(sdk: Server) -> None:
    made = resend.Templates.create(WANTED)
    resend.Templates.publish(made["id"])
    use: Any = {"id": made["id"], "variables": {"ORDER_NO": "H-204", "COUNT": 3}}
    sent = resend.Emails.send({"to": "kai@customer.example", "template": use})
    email = resend.Emails.get(sent["id"])
    assert (email["subject"], email["from"]) == ("Order H-204", WANTED["from"])
    assert email["html"] == "<p>Hi there, 3 left.</p>"
    batch = resend.Batch.send([{"to": "kai@customer.example", "template": use}])
    assert resend.Emails.get(batch["data"][0]["id"])["subject"] == "Order H-204"
    del use["variables"]["ORDER_NO"]
    with pytest.raises(exceptions.ResendError, match="ORDER_NO"):
        resend.Emails.send({"to": "kai@customer.example", "template": use})


def test_every_method_in_its_asynchronous_form(sdk: Server) -> None:
    async def walk() -> None:
        templates = resend.Templates
        made = await templates.create_async(WANTED)
        assert (await templates.get_async(made["id"]))["name"] == "Order shipped"
        await templates.update_async({"id": made["id"], "name": "Other"})
        await templates.publish_async(made["id"])
        copy = await templates.duplicate_async(made["id"])
        assert (await templates.list_async({"limit": 1}))["data"][0]["id"] == copy["id"]
        assert (await templates.remove_async(copy["id"]))["deleted"] is True

    asyncio.run(walk())
