"""The official Python SDK's segments, topics and audiences: every method, and the older form of contacts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import resend
from resend import exceptions

from kit.served import Server, sdk_at, serving

NOBODY = "00000000-0000-7000-8000-000000000000"

_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("sdk-segments"), roles="api,jobs", processes="1") as running:
        yield running
        assert running.stopped() == 0


@pytest.fixture
def sdk(server: Server) -> Iterator[Server]:
    with sdk_at(server.url):
        yield server


def ids(listed: Any) -> list[str]:
    return [item["id"] for item in listed["data"]]


def address() -> str:
    return f"lin+{next(_numbers)}@orchard.example"


def test_segments(sdk: Server) -> None:
    made = resend.Segments.create({"name": "Beta testers"})
    assert (made["object"], made["name"]) == ("segment", "Beta testers")
    other = resend.Segments.create({"name": "Early birds"})["id"]
    shown = resend.Segments.get(made["id"])
    assert (shown["object"], shown["name"]) == ("segment", "Beta testers")
    assert resend.Segments.update(made["id"], {"name": "Testers"})["id"] == made["id"]
    assert resend.Segments.get(made["id"])["name"] == "Testers"
    assert ids(resend.Segments.list())[:2] == [other, made["id"]]
    page = resend.Segments.list({"limit": 1, "after": other})
    assert ids(page) == [made["id"]]
    for _ in range(2):
        removed = resend.Segments.remove(made["id"])
        assert (removed["object"], removed["id"], removed["deleted"]) == ("segment", made["id"], True)
    with pytest.raises(exceptions.ResendError, match="Segment not found"):
        resend.Segments.get(made["id"])
    with pytest.raises(exceptions.MissingRequiredFieldsError, match="Missing `name` field"):
        resend.Segments.create({"name": " "})


def test_topics(sdk: Server) -> None:
    wanted: Any = {"name": "Release notes", "default_subscription": "opt_in", "description": "Each week"}
    made = resend.Topics.create(wanted)["id"]
    other = resend.Topics.create({"name": "Tides", "default_subscription": "opt_out"})["id"]
    shown = resend.Topics.get(made)
    assert {name: shown[name] for name in wanted} == wanted  # type: ignore[literal-required]
    assert resend.Topics.update(made, {"description": "Each month"})["id"] == made
    assert resend.Topics.get(made)["description"] == "Each month"
    assert ids(resend.Topics.list())[:2] == [other, made]
    page = resend.Topics.list({"limit": 1, "before": made})
    assert (ids(page), page["has_more"]) == ([other], False)
    removed = resend.Topics.remove(made)
    assert (removed["object"], removed["id"], removed["deleted"]) == ("topic", made, True)
    with pytest.raises(exceptions.ResendError, match="Topic not found"):
        resend.Topics.remove(made)
    with pytest.raises(exceptions.ValidationError, match="default_subscription"):
        resend.Topics.create({"name": "Tides", "default_subscription": "maybe"})


@pytest.mark.filterwarnings("ignore:Audiences is deprecated")
def test_audiences(sdk: Server) -> None:
    """This SDK calls the newer path; the rows are the same."""
    made = resend.Audiences.create({"name": "Newsletter"})["id"]
    assert resend.Audiences.get(made)["name"] == "Newsletter"
    assert made in ids(resend.Audiences.list())
    assert len(ids(resend.Audiences.list({"limit": 1}))) == 1
    assert resend.Audiences.remove(made)["deleted"] is True


def test_contacts_of_an_audience(sdk: Server) -> None:
    """The older form of each method: with `audience_id`."""
    audience, email = resend.Segments.create({"name": "Newsletter"})["id"], address()
    contact = resend.Contacts.create({"audience_id": audience, "email": email, "first_name": "Lin"})["id"]
    assert resend.Contacts.get(audience_id=audience, email=email)["first_name"] == "Lin"
    assert resend.Contacts.get(audience_id=audience, id=contact)["email"] == email
    assert ids(resend.Contacts.list(audience_id=audience)) == [contact]
    changed = resend.Contacts.update({"audience_id": audience, "email": email, "unsubscribed": True})
    assert changed["id"] == contact
    assert resend.Contacts.get(email=email)["unsubscribed"] is True
    assert ids(resend.Contacts.Segments.list({"email": email})) == [audience]
    removed: Any = resend.Contacts.remove(audience_id=audience, email=email)
    assert (removed["object"], removed["contact"], removed["deleted"]) == ("contact", email, True)
    with pytest.raises(exceptions.ResendError, match="Contact not found"):
        resend.Contacts.get(audience_id=audience, email=email)
    assert resend.Contacts.get(email=email)["id"] == contact
    with pytest.raises(exceptions.ResendError, match="Audience not found"):
        resend.Contacts.list(audience_id=NOBODY)


@pytest.mark.filterwarnings("ignore:Audiences is deprecated")
def test_the_same_without_blocking(sdk: Server) -> None:
    """The methods for asyncio."""

    async def everything() -> None:
        segment = (await resend.Segments.create_async({"name": "Beta"}))["id"]
        await resend.Segments.update_async(segment, {"name": "Testers"})
        assert (await resend.Segments.get_async(segment))["name"] == "Testers"
        assert segment in ids(await resend.Segments.list_async())
        email = address()
        await resend.Contacts.create_async({"audience_id": segment, "email": email})
        await resend.Contacts.update_async({"audience_id": segment, "email": email, "last_name": "Moss"})
        found = await resend.Contacts.get_async(audience_id=segment, email=email)
        assert found["last_name"] == "Moss"
        assert ids(await resend.Contacts.list_async(audience_id=segment)) == [found["id"]]
        assert (await resend.Contacts.remove_async(audience_id=segment, email=email))["deleted"] is True
        assert (await resend.Segments.remove_async(segment))["deleted"] is True
        topic = (await resend.Topics.create_async({"name": "Tides", "default_subscription": "opt_in"}))["id"]
        await resend.Topics.update_async(topic, {"name": "Floods"})
        assert (await resend.Topics.get_async(topic))["name"] == "Floods"
        assert topic in ids(await resend.Topics.list_async())
        assert (await resend.Topics.remove_async(topic))["deleted"] is True
        audience = (await resend.Audiences.create_async({"name": "Newsletter"}))["id"]
        assert (await resend.Audiences.get_async(audience))["name"] == "Newsletter"
        assert audience in ids(await resend.Audiences.list_async())
        assert (await resend.Audiences.remove_async(audience))["deleted"] is True

    asyncio.run(everything())
