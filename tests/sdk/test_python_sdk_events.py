"""The official Python SDK's events: every method, in both of its styles."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("sdk-events"), roles="api,jobs", processes="1") as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def test_every_method(sdk: Server) -> None:
    name = "user.signed/up now"
    made = resend.Events.create({"name": name, "schema": {"plan": "string", "seats": "number"}})
    assert made["object"] == "event"
    for identifier in (made["id"], name):
        found = resend.Events.get(identifier)
        assert (found["id"], found["name"]) == (made["id"], name)
        assert found["schema"] == {"plan": "string", "seats": "number"}
        assert found["updated_at"] == found["created_at"]
    assert resend.Events.update({"identifier": name, "schema": {"plan": "string"}})["id"] == made["id"]
    assert resend.Events.get(name)["schema"] == {"plan": "string"}
    assert resend.Events.update({"identifier": made["id"], "schema": None})["object"] == "event"
    assert resend.Events.get(name)["schema"] is None
    other = resend.Events.create({"name": "other"})
    page = resend.Events.list({"limit": 1})
    assert (page["object"], page["has_more"]) == ("list", True)
    assert page["data"][0]["id"] == other["id"]
    rest = resend.Events.list({"after": other["id"]})
    assert [item["name"] for item in rest["data"]] == [name]
    back = resend.Events.list({"before": made["id"], "limit": 10})
    assert [item["name"] for item in back["data"]] == ["other"]
    sent = resend.Events.send({"event": name, "email": "ada@quay.example", "payload": {"plan": "pro"}})
    assert (sent["object"], sent["event"]) == ("event", name)
    contact = resend.Contacts.create({"email": "bo@quay.example"})["id"]
    assert resend.Events.send({"event": "never.defined", "contact_id": contact})["event"] == "never.defined"
    removed = resend.Events.remove(name)
    assert (removed["object"], removed["id"], removed["deleted"]) == ("event", made["id"], True)
    assert resend.Events.remove(other["id"])["deleted"] is True
    assert resend.Events.list()["data"] == []


def test_every_method_without_waiting(sdk: Server) -> None:
    async def run() -> None:
        made = await resend.Events.create_async({"name": "async"})
        assert (await resend.Events.get_async("async"))["id"] == made["id"]
        await resend.Events.update_async({"identifier": "async", "schema": {"n": "number"}})
        page = await resend.Events.list_async()
        assert [item["schema"] for item in page["data"]] == [{"n": "number"}]
        sent = await resend.Events.send_async({"event": "async", "email": "ada@quay.example"})
        assert sent["event"] == "async"
        assert (await resend.Events.remove_async("async"))["deleted"] is True

    asyncio.run(run())


def test_refusals_arrive_as_errors(sdk: Server) -> None:
    with pytest.raises(exceptions.ResendError, match="Event not found"):
        resend.Events.get("unknown")
    with pytest.raises(exceptions.ResendError, match="Contact not found"):
        resend.Events.send({"event": "x", "contact_id": "9f8e7d6c-5b4a-4938-8271-605f4e3d2c1b"})
    with pytest.raises(exceptions.ResendError, match="reserved"):
        resend.Events.create({"name": "resend:x"})
    resend.Events.create({"name": "typed", "schema": {"n": "number"}})
    with pytest.raises(exceptions.ResendError, match=r"payload\.n"):
        resend.Events.send({"event": "typed", "email": "ada@quay.example", "payload": {"n": "x"}})
