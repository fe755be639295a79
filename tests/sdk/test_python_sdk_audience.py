"""The official Python SDK's contacts, their segments and topics, and their properties: every method."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving

_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("sdk-audience"), roles="api,jobs", processes="1") as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def address() -> str:
    return f"ada+{next(_numbers)}@quay.example"


def a_segment() -> str:
    return str(resend.Segments.create({"name": "Beta testers"})["id"])


def a_topic(default: Any = "opt_in") -> str:
    return str(resend.Topics.create({"name": "Release notes", "default_subscription": default})["id"])


def a_property() -> tuple[str, str]:
    key = f"plan_{next(_numbers)}"
    made = resend.ContactProperties.create({"key": key, "type": "string", "fallback_value": "free"})
    return str(made["id"]), key


def test_a_contact_by_id_and_by_address(sdk: Server) -> None:
    email, (_, key), segment, topic = address(), a_property(), a_segment(), a_topic()
    new: Any = {
        "email": email,
        "first_name": "Ada",
        "unsubscribed": False,
        "properties": {key: "pro"},
        "segments": [{"id": segment}],
        "topics": [{"id": topic, "subscription": "opt_out"}],
    }
    made = resend.Contacts.create(new)
    assert made["object"] == "contact"
    by_id = resend.Contacts.get(id=made["id"])
    assert resend.Contacts.get(email=email)["id"] == made["id"]
    assert (by_id["email"], by_id["first_name"], by_id["last_name"]) == (email, "Ada", None)
    assert by_id["properties"] == {key: {"value": "pro", "type": "string"}}  # type: ignore[typeddict-item,comparison-overlap]
    assert resend.Contacts.update({"id": made["id"], "last_name": "King"})["id"] == made["id"]
    changes: Any = {"email": email, "unsubscribed": True, "properties": {key: None}}
    assert resend.Contacts.update(changes)["id"] == made["id"]
    found = resend.Contacts.get(email=email)
    assert (found["last_name"], found["unsubscribed"], found["properties"]) == ("King", True, {})
    listed = resend.Contacts.list()
    assert made["id"] in [item["id"] for item in listed["data"]]
    members = resend.Contacts.list(segment_id=segment)
    assert [item["id"] for item in members["data"]] == [made["id"]]
    assert len(resend.Contacts.list(params={"limit": 1})["data"]) == 1
    removed = resend.Contacts.remove(email=email)
    assert (removed["contact"], removed["deleted"]) == (made["id"], True)
    with pytest.raises(exceptions.ResendError, match="Contact not found"):
        resend.Contacts.get(id=made["id"])


def test_a_contact_of_an_audience(sdk: Server) -> None:
    """The older spelling: an audience is a segment."""
    audience, email = a_segment(), address()
    made = resend.Contacts.create({"audience_id": audience, "email": email, "first_name": "Lin"})
    assert resend.Contacts.get(audience_id=audience, email=email)["id"] == made["id"]
    resend.Contacts.update({"audience_id": audience, "id": made["id"], "last_name": "Moss"})
    assert resend.Contacts.get(email=email)["last_name"] == "Moss"
    assert [item["id"] for item in resend.Contacts.list(audience_id=audience)["data"]] == [made["id"]]
    assert resend.Contacts.remove(audience_id=audience, email=email)["deleted"] is True
    assert resend.Contacts.list(audience_id=audience)["data"] == []
    assert resend.Contacts.get(email=email)["id"] == made["id"]


@pytest.mark.parametrize("named_by", ["email", "contact_id"])
def test_segments_of_a_contact(sdk: Server, named_by: str) -> None:
    email, segment, other = address(), a_segment(), a_segment()
    contact = resend.Contacts.create({"email": email})["id"]
    who: Any = {named_by: {"email": email, "contact_id": contact}[named_by]}
    for one in (segment, other):
        assert resend.Contacts.Segments.add({**who, "segment_id": one})["id"] == one
    listed = resend.Contacts.Segments.list(who)
    assert [item["id"] for item in listed["data"]] == [other, segment]
    page = resend.Contacts.Segments.list(who, {"limit": 1, "after": other})
    assert [item["id"] for item in page["data"]] == [segment]
    assert resend.Contacts.Segments.remove({**who, "segment_id": segment})["deleted"] is True
    assert [item["id"] for item in resend.Contacts.Segments.list(who)["data"]] == [other]


@pytest.mark.parametrize("named_by", ["email", "id"])
def test_topics_of_a_contact(sdk: Server, named_by: str) -> None:
    email, topic = address(), a_topic("opt_out")
    contact = resend.Contacts.create({"email": email})["id"]
    who: Any = {"email": email} if named_by == "email" else {"id": contact}
    reader: Any = {"email": email} if named_by == "email" else {"contact_id": contact}
    choice: Any = [{"id": topic, "subscription": "opt_in"}]
    assert resend.Contacts.Topics.update({**who, "topics": choice})["id"] == contact
    listed = resend.Contacts.Topics.list(**reader)
    assert listed["data"][0] == {
        "id": topic,
        "name": "Release notes",
        "description": None,
        "subscription": "opt_in",
    }
    assert len(resend.Contacts.Topics.list(**reader, params={"limit": 1})["data"]) == 1


def test_contact_properties(sdk: Server) -> None:
    made, key = a_property()
    shown = resend.ContactProperties.get(made)
    assert (shown["key"], shown["type"], shown["fallback_value"]) == (key, "string", "free")
    assert resend.ContactProperties.update({"id": made, "fallback_value": "starter"})["id"] == made
    assert resend.ContactProperties.get(made)["fallback_value"] == "starter"
    assert made in [item["id"] for item in resend.ContactProperties.list()["data"]]
    assert len(resend.ContactProperties.list({"limit": 1})["data"]) == 1
    assert resend.ContactProperties.remove(made)["deleted"] is True
    with pytest.raises(exceptions.ResendError, match="Contact property not found"):
        resend.ContactProperties.get(made)


def test_the_same_without_blocking(sdk: Server) -> None:
    """The methods for asyncio."""

    async def everything() -> None:
        email, segment, topic = address(), a_segment(), a_topic()
        contact = (await resend.Contacts.create_async({"email": email}))["id"]
        await resend.Contacts.update_async({"id": contact, "first_name": "Ada"})
        assert (await resend.Contacts.get_async(email=email))["first_name"] == "Ada"
        assert (await resend.Contacts.list_async(params={"limit": 1}))["data"]
        await resend.Contacts.Segments.add_async({"email": email, "segment_id": segment})
        assert len((await resend.Contacts.Segments.list_async({"email": email}))["data"]) == 1
        await resend.Contacts.Segments.remove_async({"email": email, "segment_id": segment})
        choice: Any = [{"id": topic, "subscription": "opt_out"}]
        await resend.Contacts.Topics.update_async({"email": email, "topics": choice})
        listed = await resend.Contacts.Topics.list_async(email=email)
        assert {item["id"]: item["subscription"] for item in listed["data"]}[topic] == "opt_out"
        key = f"seats_{next(_numbers)}"
        made = (await resend.ContactProperties.create_async({"key": key, "type": "number"}))["id"]
        await resend.ContactProperties.update_async({"id": made, "fallback_value": 2})
        assert (await resend.ContactProperties.get_async(made))["fallback_value"] == 2
        assert (await resend.ContactProperties.list_async())["data"]
        assert (await resend.ContactProperties.remove_async(made))["deleted"] is True
        assert (await resend.Contacts.remove_async(email=email))["deleted"] is True

    asyncio.run(everything())


def test_what_is_wrong_is_told(sdk: Server) -> None:
    with pytest.raises(exceptions.MissingRequiredFieldsError, match="Missing `email` field"):
        resend.Contacts.create({"email": ""})
    with pytest.raises(exceptions.ValidationError, match="There is no property `nowhere`"):
        resend.Contacts.create({"email": address(), "properties": {"nowhere": "x"}})
    email = address()
    resend.Contacts.create({"email": email})
    unknown: Any = [{"id": "00000000-0000-7000-8000-000000000000", "subscription": "opt_in"}]
    with pytest.raises(exceptions.ResendError, match="Topic not found"):
        resend.Contacts.Topics.update({"email": email, "topics": unknown})
