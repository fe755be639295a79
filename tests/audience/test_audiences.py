"""Audiences: segments under their older name (audiences.md), all ten routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.client import error
from kit.manual_world import manual_world
from kit.webhook_events import published_events, published_kinds, subscribe
from kit.world import Team
from pillarbox.contacts.event_data import SHAPES

MISSING = (404, "not_found", "Audience not found")
NO_CONTACT = (404, "not_found", "Contact not found")
LIN = "lin@orchard.example"


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    """A team that hears of its contacts."""
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        await subscribe(team, list(SHAPES))
        yield team


async def made(team: Team, name: str = "Newsletter", path: str = "/audiences") -> str:
    answer = await team.post(path, {"name": name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def added(team: Team, audience: str, **fields: Any) -> str:
    answer = await team.post(f"/audiences/{audience}/contacts", {"email": LIN, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def contacts_of(team: Team, audience: str) -> list[str]:
    found = (await team.get(f"/audiences/{audience}/contacts")).json()
    return [item["id"] for item in found["data"]]


async def test_audiences_and_segments_are_the_same_rows_with_another_word(team: Team) -> None:
    """segments.md section 4, point 5, in both directions."""
    first, second = await made(team), await made(team, "Beta", path="/segments")
    for one in (first, second):
        audience = (await team.get(f"/audiences/{one}")).json()
        segment = (await team.get(f"/segments/{one}")).json()
        assert list(audience) == list(segment) == ["object", "id", "name", "created_at"]
        assert (audience.pop("object"), segment.pop("object")) == ("audience", "segment")
        assert audience == segment
    assert (await team.get("/audiences")).content == (await team.get("/segments")).content
    [item, _] = (await team.get("/audiences?limit=2")).json()["data"]
    assert list(item) == ["id", "name", "created_at"]
    created = (await team.post("/audiences", {"name": " Third "})).json()
    assert list(created.items())[::2] == [("object", "audience"), ("name", "Third")]
    renamed = (await team.call("PATCH", f"/audiences/{second}", {"name": "Monthly letter"})).json()
    assert list(renamed.items()) == [("object", "audience"), ("id", second)]
    assert (await team.get(f"/segments/{second}")).json()["name"] == "Monthly letter"


async def test_an_audience_is_deleted_however_often_and_its_contacts_stay(team: Team) -> None:
    audience = await made(team)
    contact = await added(team, audience)
    for wanted in (audience, audience, str(uuid4())):
        answer = await team.call("DELETE", f"/audiences/{wanted}", {})
        assert answer.status_code == 200
        expected = [("object", "audience"), ("id", wanted), ("deleted", True)]
        assert list(answer.json().items()) == expected
    assert (await team.get(f"/contacts/{contact}")).status_code == 200
    assert (await team.get(f"/contacts/{contact}/segments")).json()["data"] == []


async def test_what_is_not_there_is_called_an_audience(team: Team) -> None:
    contact = await added(team, await made(team))
    for path, methods in (("", ("GET", "PATCH")), ("/contacts", ("GET", "POST"))):
        for method in methods:
            body = {"name": "x", "email": "new@orchard.example"}
            answer = await team.call(method, f"/audiences/{uuid4()}{path}", body)
            assert error(answer) == MISSING
            assert error(await team.call(method, f"/audiences/letters{path}", body)) == (
                422,
                "invalid_parameter",
                "The `audience_id` must be a valid UUID.",
            )
    for method in ("GET", "PATCH", "DELETE"):
        for named in (LIN, contact, "nobody@orchard.example"):
            answer = await team.call(method, f"/audiences/{uuid4()}/contacts/{named}", {})
            assert error(answer) == MISSING
    assert error(await team.get("/contacts/new@orchard.example")) == NO_CONTACT


async def test_a_bad_name_or_contact_is_refused(team: Team) -> None:
    audience = await made(team)
    for method, path in (("POST", "/audiences"), ("PATCH", f"/audiences/{audience}")):
        answer = await team.call(method, path, {"name": " "})
        assert error(answer) == (422, "missing_required_field", "Missing `name` field.")
        assert error(await team.call(method, path, {"name": "x" * 256}))[:2] == (422, "validation_error")
    path = f"/audiences/{audience}/contacts"
    for body in ({}, {"email": " "}, {"email": None}):
        answer = await team.post(path, body)
        assert error(answer) == (422, "missing_required_field", "Missing `email` field.")
    for body in (
        {"email": "Lin <lin@orchard.example>"},
        {"email": LIN, "unsubscribed": "no"},
        {"email": LIN, "properties": {"plan": "pro"}},
        {"email": LIN, "first_name": "x" * 256},
    ):
        assert error(await team.post(path, body))[:2] == (422, "validation_error")
    assert await contacts_of(team, audience) == []
    assert (await team.get("/contacts")).json()["data"] == []
    assert await published_kinds(team) == []


async def test_a_contact_is_found_or_made_and_added(team: Team) -> None:
    """Members that the newer route takes (`segments`, `topics`, `audience_id`) are not read here."""
    audience, other = await made(team), await made(team)
    ignored = {"segments": "x", "topics": 5, "audience_id": "not an id"}
    answer = await team.post(
        f"/audiences/{audience}/contacts",
        {"email": " Lin@Orchard.example", "first_name": "Lin", **ignored},
    )
    assert answer.status_code == 201
    assert list(answer.json()) == ["object", "id"]
    contact = answer.json()["id"]
    assert await added(team, other, unsubscribed=True) == contact
    assert await added(team, other) == contact
    shown = (await team.get(f"/audiences/{other}/contacts/{LIN}")).json()
    assert (shown["first_name"], shown["unsubscribed"]) == ("Lin", True)
    assert await published_kinds(team) == ["contact.created", "contact.updated"]
    events = await published_events(team)
    assert [event["data"]["segment_ids"] for event in events] == [[audience], [audience, other]]


async def test_contacts_of_an_audience_are_listed_and_shown_like_others(team: Team) -> None:
    audience = await made(team)
    contact = await added(team, audience)
    outside = (await team.post("/contacts", {"email": "out@orchard.example"})).json()["id"]
    below = f"/audiences/{audience}/contacts"
    assert (await team.get(below)).content == (await team.get(f"/segments/{audience}/contacts")).content
    for named in (contact, LIN, "lin%40orchard.example", "LIN@orchard.example"):
        found = await team.get(f"{below}/{named}")
        assert found.content == (await team.get(f"/contacts/{contact}")).content
    for named in (outside, "out@orchard.example", "nobody@orchard.example", str(uuid4()), "lin"):
        assert error(await team.get(f"{below}/{named}")) == NO_CONTACT
        assert error(await team.call("PATCH", f"{below}/{named}", {"first_name": "x"})) == NO_CONTACT


async def test_the_contact_itself_is_changed(team: Team) -> None:
    """Also its `unsubscribed`, for all audiences; the rules are those of PATCH /contacts/{contact}."""
    audience = await made(team)
    contact = await added(team, audience)
    path = f"/audiences/{audience}/contacts/{LIN}"
    body = {"audience_id": audience, "id": contact, "last_name": "Moss", "unsubscribed": True}
    answer = await team.call("PATCH", path, body)
    assert (answer.status_code, list(answer.json().items())) == (
        200,
        [("object", "contact"), ("id", contact)],
    )
    shown = (await team.get(f"/contacts/{contact}")).json()
    assert (shown["last_name"], shown["unsubscribed"]) == ("Moss", True)
    assert (await team.call("PATCH", path, {"email": " LIN@orchard.example"})).status_code == 200
    other = await team.call("PATCH", path, {"email": "moss@orchard.example"})
    assert error(other)[:2] == (422, "validation_error")
    assert error(await team.call("PATCH", path, {"unsubscribed": None}))[:2] == (422, "validation_error")
    assert await published_kinds(team) == ["contact.created", "contact.updated"]


async def test_removing_a_contact_ends_the_membership_alone(team: Team) -> None:
    """The contact stays. Who never was a member, or a contact, is removed as well."""
    audience, other = await made(team), await made(team)
    contact = await added(team, audience)
    await added(team, other)
    for named, decoded in (
        ("lin%40orchard.example", LIN),
        (LIN, LIN),
        (contact, contact),
        ("nobody@orchard.example", "nobody@orchard.example"),
        ("Nobody%2Bx@orchard.example", "Nobody+x@orchard.example"),
        ("not-an-id", "not-an-id"),
        (str(uuid4()), None),
    ):
        answer = await team.call("DELETE", f"/audiences/{audience}/contacts/{named}", {})
        assert answer.status_code == 200
        expected = [("object", "contact"), ("contact", decoded or named), ("deleted", True)]
        assert list(answer.json().items()) == expected
    assert (await team.get(f"/contacts/{contact}")).status_code == 200
    assert await contacts_of(team, audience) == []
    assert await contacts_of(team, other) == [contact]
    assert await published_kinds(team) == ["contact.created", "contact.updated", "contact.updated"]
    [*_, last] = await published_events(team)
    assert last["data"]["segment_ids"] == [other]


async def test_adding_contacts_while_the_audience_is_deleted(team: Team) -> None:
    """Either the contact is made and leaves with the audience, or nothing is made: no 500, no deadlock."""
    for number in range(15):
        audience = await made(team)
        addresses = [f"c{number}-{one}@orchard.example" for one in range(4)]
        answers = await asyncio.gather(
            *[team.post(f"/audiences/{audience}/contacts", {"email": one}) for one in addresses[:2]],
            team.call("DELETE", f"/audiences/{audience}"),
            *[team.post(f"/audiences/{audience}/contacts", {"email": one}) for one in addresses[2:]],
        )
        assert answers.pop(2).status_code == 200
        for address, answer in zip(addresses, answers, strict=True):
            found = await team.get(f"/contacts/{address}")
            if answer.status_code == 201:
                assert found.json()["id"] == answer.json()["id"]
            else:
                assert error(answer)[:2] == (404, "not_found")
                assert found.status_code == 404
