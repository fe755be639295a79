"""Contacts over the API (contacts.md 0 to 3), every point of section 7 that is theirs among it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.audience import a_property, a_segment, a_topic
from kit.client import error
from kit.webhook_events import published_kinds, subscribe
from kit.world import Team, world
from pillarbox.contacts.event_data import SHAPES

ADDRESS = "ada.king@analytical.example"
DATABASE_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")


@pytest.fixture
@asynccontextmanager
async def team(database_url: str, tmp_path: Path) -> AsyncIterator[Team]:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        yield await pillarbox.team()


async def made(team: Team, **fields: Any) -> str:
    answer = await team.post("/contacts", {"email": ADDRESS, **fields})
    assert answer.status_code == 201, answer.text
    assert list(answer.json()) == ["object", "id"]
    return str(answer.json()["id"])


async def shown(team: Team, contact: str) -> dict[str, Any]:
    answer = await team.get(f"/contacts/{contact}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def stored(team: Team) -> int:
    return int(await team.world.pool.fetchval("SELECT count(*) FROM contacts"))


# One contact --------------------------------------------------------------------------------------


async def test_a_contact_is_shown_as_the_contract_says(team: Team) -> None:
    for key, kind in (("plan", "string"), ("Seats", "number"), ("beta", "boolean"), ("a_b", "string")):
        await a_property(team, key, kind)
    given = {"plan": "", "Seats": 12.5, "beta": False}
    contact = await made(team, first_name=" Ada ", last_name="", unsubscribed=True, properties=given)
    found = await shown(team, contact)
    assert DATABASE_TIME.fullmatch(found.pop("created_at"))
    assert list(found.items()) == [
        ("object", "contact"),
        ("id", contact),
        ("email", ADDRESS),
        ("first_name", "Ada"),
        ("last_name", None),
        ("unsubscribed", True),
        (
            "properties",
            {
                "Seats": {"value": 12.5, "type": "number"},
                "beta": {"value": False, "type": "boolean"},
                "plan": {"value": "", "type": "string"},
            },
        ),
    ]
    assert list(found["properties"]) == ["Seats", "beta", "plan"]
    answer = await team.get(f"/contacts/{contact}")
    assert list(answer.json()) == [
        "object", "id", "email", "first_name", "last_name", "created_at", "unsubscribed", "properties"
    ]  # fmt: skip


async def test_7_1_another_case_of_the_address_is_the_same_contact(team: Team) -> None:
    """And nobody is subscribed again by being given once more."""
    contact = await made(team, unsubscribed=True, first_name="Ada")
    assert await made(team, email=f"  {ADDRESS.upper()} ", last_name="King") == contact
    found = await shown(team, contact)
    assert (found["unsubscribed"], found["first_name"], found["last_name"]) == (True, "Ada", "King")
    assert await stored(team) == 1


async def test_null_is_absent_and_an_empty_name_clears(team: Team) -> None:
    contact = await made(team, first_name="Ada", last_name="King", unsubscribed=True)
    absent = dict.fromkeys(("first_name", "unsubscribed", "properties", "segments", "topics"))
    assert await made(team, last_name=" ", audience_id=None, **absent) == contact
    found = await shown(team, contact)
    assert (found["first_name"], found["last_name"], found["unsubscribed"]) == ("Ada", None, True)


async def test_7_2_an_unknown_property_makes_no_contact(team: Team) -> None:
    await a_property(team, "plan")
    answer = await team.post("/contacts", {"email": ADDRESS, "properties": {"plan": "pro", "Plan": "x"}})
    assert error(answer) == (
        422,
        "validation_error",
        "Invalid `properties` field. There is no property `Plan`.",
    )
    assert await stored(team) == 0


async def test_a_domain_that_is_not_ascii_is_one_contact(team: Team) -> None:
    contact = await made(team, email="Ann@Köln.example")
    assert (await shown(team, contact))["email"] == "ann@köln.example"
    assert await made(team, email="ann@xn--kln-sna.example") == contact
    assert (await shown(team, "ann%40k%C3%B6ln.example"))["id"] == contact


async def test_7_3_plus_in_the_path_is_a_plus(team: Team) -> None:
    contact = await made(team, email="ada+news@quay.example")
    for path in (
        "ada+news@quay.example",
        "ada%2Bnews%40quay.example",
        "ADA+News%40quay.example",
        contact,
    ):
        assert (await shown(team, path))["id"] == contact
    for path in ("ada%252Bnews%2540quay.example", "ada%20news@quay.example", "adanews@quay.example"):
        assert error(await team.get(f"/contacts/{path}")) == (404, "not_found", "Contact not found")


async def test_7_4_imports_is_no_contact(team: Team) -> None:
    """A fixed segment wins over what it might name."""
    answer = await team.get("/contacts/imports")
    assert "Contact not found" not in answer.text or answer.status_code == 404
    assert error(await team.get("/contacts/neither"))[2] == "Contact not found"
    assert (await team.call("PATCH", "/contacts/imports", {"first_name": "x"})).status_code in (404, 405)


UNKNOWN = [
    "nobody@quay.example",
    str(uuid4()),
    "x",
    "@",
    "a@b",
    "1" * 3000,
    "Ada <a@b.example>",
]


@pytest.mark.parametrize("contact", UNKNOWN)
async def test_what_names_no_contact_is_not_found(team: Team, contact: str) -> None:
    segment = await a_segment(team)
    topic = [{"id": str(await a_topic(team)), "subscription": "opt_in"}]
    asked: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("PATCH", "", {}),
        ("PATCH", "", {"first_name": "x"}),
        ("DELETE", "", None),
        ("GET", "/segments", None),
        ("POST", f"/segments/{segment}", None),
        ("POST", f"/segments/{uuid4()}", None),
        ("DELETE", f"/segments/{uuid4()}", None),
        ("GET", "/topics", None),
        ("PATCH", "/topics", topic),
    ]
    for method, path, body in asked:
        answer = await team.call(method, f"/contacts/{contact}{path}", body)
        assert error(answer) == (404, "not_found", "Contact not found"), (method, path)


# Bad bodies ---------------------------------------------------------------------------------------

ID = "00000000-0000-7000-8000-000000000000"
NOT_MADE: dict[str, tuple[Any, tuple[int, str, str]]] = {
    "no address": ({}, (422, "missing_required_field", "Missing `email` field.")),
    "a blank one": ({"email": "  "}, (422, "missing_required_field", "Missing `email` field.")),
    "a number": ({"email": 7}, (422, "validation_error", "Invalid `email` field. It must be a string.")),
    "a display name": ({"email": "Ada <ada@x.example>"}, (422, "validation_error", "")),
    "no domain": ({"email": "ada"}, (422, "validation_error", "")),
    "a long local part": ({"email": "a" * 65 + "@x.example"}, (422, "validation_error", "")),
    "NUL": ({"email": "a\0@x.example"}, (422, "validation_error", "")),
    "an array": ([], (422, "validation_error", "The request body must be an object.")),
    "a long name": (
        {"first_name": "é" * 256},
        (422, "validation_error", "Invalid `first_name` field. Use at most 255 characters."),
    ),
    "a name that is none": ({"last_name": 1}, (422, "validation_error", "Invalid `last_name` field.")),
    "unsubscribed as text": ({"unsubscribed": "true"}, (422, "validation_error", "Invalid `unsubscribed`")),
    "properties as array": ({"properties": []}, (422, "validation_error", "Invalid `properties` field.")),
    "too many properties": (
        {"properties": {f"k{n}": 1 for n in range(1001)}},
        (422, "validation_error", "Invalid `properties` field. Use at most 1000 entries."),
    ),
    "a nested value": (
        {"properties": {"plan": {"a": 1}}},
        (422, "validation_error", "Invalid `properties.plan`"),
    ),
    "a list as value": (
        {"properties": {"plan": ["a"]}},
        (422, "validation_error", "Invalid `properties.plan`"),
    ),
    "a number for text": (
        {"properties": {"plan": 1}},
        (422, "validation_error", "Invalid `properties.plan`"),
    ),
    "a long text": (
        {"properties": {"plan": "x" * 2001}},
        (422, "validation_error", "Invalid `properties.plan` field. Use at most 2000 characters."),
    ),
    "text for a number": (
        {"properties": {"seats": "1"}},
        (422, "validation_error", "Invalid `properties.seats`"),
    ),
    "true for a number": (
        {"properties": {"seats": True}},
        (422, "validation_error", "Invalid `properties.seats`"),
    ),
    "a large number": (
        {"properties": {"seats": 2**53}},
        (422, "validation_error", "Invalid `properties.seats`"),
    ),
    "a huge number": (
        {"properties": {"seats": 1e308}},
        (422, "validation_error", "Invalid `properties.seats`"),
    ),
    "a number beyond every float": (
        {"properties": {"seats": 10**400}},
        (422, "validation_error", "Invalid `properties.seats`"),
    ),
    "1 for true": ({"properties": {"beta": 1}}, (422, "validation_error", "Invalid `properties.beta`")),
    "segments as object": ({"segments": {}}, (422, "validation_error", "Invalid `segments` field.")),
    "a segment as number": ({"segments": [1]}, (422, "validation_error", "Invalid `segments` field.")),
    "a segment without id": ({"segments": [{}]}, (422, "missing_required_field", "Missing `id` field.")),
    "a malformed segment": (
        {"segments": ["x"]},
        (422, "invalid_parameter", "The `id` must be a valid UUID."),
    ),
    "a malformed id": (
        {"segments": [{"id": "x"}]},
        (422, "invalid_parameter", "The `id` must be a valid UUID."),
    ),
    "101 segments": (
        {"segments": [ID] * 101},
        (422, "validation_error", "Invalid `segments` field. Use at most 100 items."),
    ),
    "an unknown segment": ({"segments": [ID]}, (404, "not_found", "Segment not found")),
    "an unknown audience": ({"audience_id": ID}, (404, "not_found", "Segment not found")),
    "a malformed audience": (
        {"audience_id": "x"},
        (422, "invalid_parameter", "The `audience_id` must be a valid UUID."),
    ),
    "audience and segments": ({"audience_id": ID, "segments": []}, (422, "invalid_parameter", "Use either")),
    "audience and topics": ({"audience_id": ID, "topics": []}, (422, "invalid_parameter", "Use either")),
    "topics as object": ({"topics": {}}, (422, "validation_error", "Invalid `topics` field.")),
    "a topic as text": ({"topics": [ID]}, (422, "validation_error", "Invalid `topics` field.")),
    "a topic without id": (
        {"topics": [{"subscription": "opt_in"}]},
        (422, "missing_required_field", "Missing `id` field."),
    ),
    "a topic without choice": (
        {"topics": [{"id": ID}]},
        (422, "missing_required_field", "Missing `subscription` field."),
    ),
    "another choice": (
        {"topics": [{"id": ID, "subscription": "maybe"}]},
        (422, "validation_error", "Invalid `subscription` field. Use `opt_in` or `opt_out`."),
    ),
    "an unknown topic": (
        {"topics": [{"id": ID, "subscription": "opt_in"}]},
        (404, "not_found", "Topic not found"),
    ),
    "101 topics": (
        {"topics": [{"id": ID, "subscription": "opt_in"}] * 101},
        (422, "validation_error", "Invalid `topics` field. Use at most 100 items."),
    ),
}


async def test_a_bad_body_makes_nothing(team: Team) -> None:
    for key, kind in (("plan", "string"), ("seats", "number"), ("beta", "boolean")):
        await a_property(team, key, kind)
    for case, (fields, expected) in NOT_MADE.items():
        ours = not isinstance(fields, dict) or case in ("no address",)
        answer = await team.post("/contacts", fields if ours else {"email": ADDRESS, **fields})
        found = error(answer)
        assert found[:2] == expected[:2], (case, answer.text)
        assert found[2].startswith(expected[2]), (case, answer.text)
    assert await stored(team) == 0
    assert await team.world.pool.fetchval("SELECT count(*) FROM segment_members") == 0


async def test_the_longest_values_are_taken(team: Team) -> None:
    await a_property(team, "plan")
    await a_property(team, "seats", "number")
    name, text = "é" * 255, "🙂" * 2000
    contact = await made(
        team, first_name=f" {name} ", properties={"plan": text, "seats": -(2**53) + 1}, surprise=[1]
    )
    found = await shown(team, contact)
    assert found["first_name"] == name
    assert found["properties"]["plan"]["value"] == text
    assert found["properties"]["seats"]["value"] == -(2**53) + 1


# Changing -----------------------------------------------------------------------------------------


async def test_a_change_merges_and_clears(team: Team) -> None:
    await a_property(team, "plan")
    await a_property(team, "seats", "number")
    contact = await made(team, first_name="Ada", last_name="King", properties={"plan": "pro", "seats": 1})
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"unsubscribed": True}, {"unsubscribed": True}),
        ({"first_name": None}, {"first_name": None}),
        ({"last_name": " "}, {"last_name": None}),
        ({"email": f" {ADDRESS.upper()}"}, {}),
        (
            {"properties": {"seats": 12, "plan": None}, "segments": 7, "topics": "x"},
            {"properties": {"seats": {"value": 12, "type": "number"}}},
        ),
    ]
    expected = await shown(team, contact)
    for body, difference in changes:
        answer = await team.call("PATCH", f"/contacts/{ADDRESS}", body)
        assert (answer.status_code, answer.json()) == (200, {"object": "contact", "id": contact}), body
        expected |= difference
        assert await shown(team, contact) == expected, body


NOT_CHANGED: list[tuple[Any, tuple[int, str]]] = [
    ({"email": "eve@quay.example"}, (422, "validation_error")),
    ({"email": "x"}, (422, "validation_error")),
    ({"email": None}, (422, "validation_error")),
    ({"unsubscribed": None}, (422, "validation_error")),
    ({"properties": None}, (422, "validation_error")),
    ({"properties": {"unknown": None}}, (422, "validation_error")),
    ({"first_name": "x" * 256}, (422, "validation_error")),
    ([], (422, "validation_error")),
]


async def test_a_bad_change_changes_nothing(team: Team) -> None:
    contact = await made(team, first_name="Ada")
    before = await shown(team, contact)
    for body, expected in NOT_CHANGED:
        sent = {"last_name": "Other", **body} if isinstance(body, dict) else body
        answer = await team.call("PATCH", f"/contacts/{contact}", sent)
        assert error(answer)[:2] == expected, body
    assert await shown(team, contact) == before


async def test_events_are_told_only_of_differences(team: Team) -> None:
    await subscribe(team, list(SHAPES))
    await a_property(team, "plan")
    contact = await made(team)
    for body in ({}, {"unsubscribed": False}, {"first_name": None}, {"properties": {"plan": None}}):
        await team.call("PATCH", f"/contacts/{contact}", body)
    assert await published_kinds(team) == ["contact.created"]
    await team.call("PATCH", f"/contacts/{contact}", {"properties": {"plan": "pro"}})
    await made(team, unsubscribed=True)
    await team.call("DELETE", f"/contacts/{contact}")
    assert (await published_kinds(team))[1:] == ["contact.updated", "contact.updated", "contact.deleted"]


async def test_a_deleted_contact_is_gone_and_comes_back_anew(team: Team) -> None:
    segment = await a_segment(team)
    contact = await made(team, unsubscribed=True, segments=[str(segment)])
    answer = await team.call("DELETE", f"/contacts/{ADDRESS}")
    assert list(answer.json().items()) == [
        ("object", "contact"),
        ("id", contact),
        ("contact", contact),
        ("deleted", True),
    ]
    assert error(await team.call("DELETE", f"/contacts/{contact}"))[2] == "Contact not found"
    again = await made(team)
    assert again != contact
    assert (await shown(team, again))["unsubscribed"] is False
    assert (await team.get(f"/contacts/{again}/segments")).json()["data"] == []


# Lists --------------------------------------------------------------------------------------------


async def several(team: Team, count: int) -> list[str]:
    """Contacts, the newest first."""
    ids = [
        str((await team.post("/contacts", {"email": f"p{number}@quay.example"})).json()["id"])
        for number in range(count)
    ]
    return ids[::-1]


async def ids_of(team: Team, query: str = "") -> list[str]:
    answer = await team.get(f"/contacts{query}")
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["data"]]


async def test_7_6_a_list_without_limit_has_all(team: Team) -> None:
    ids = await several(team, 105)
    answer = (await team.get("/contacts")).json()
    assert (answer["object"], answer["has_more"]) == ("list", False)
    assert [item["id"] for item in answer["data"]] == ids
    assert list(answer["data"][0]) == [
        "id", "email", "first_name", "last_name", "created_at", "unsubscribed"
    ]  # fmt: skip
    assert await ids_of(team, f"?limit=3&after={ids[1]}") == ids[2:5]
    assert await ids_of(team, f"?limit=3&before={ids[5]}") == ids[2:5]
    assert await ids_of(team, f"?after={ids[100]}") == ids[101:]


async def test_a_list_of_a_segment_has_its_members(team: Team) -> None:
    ids, segment, other = await several(team, 5), await a_segment(team), await a_segment(team)
    for contact in (ids[3], ids[1]):
        await team.post(f"/contacts/{contact}/segments/{segment}")
    for query in (f"?segment_id={segment}", f"?audience_id={segment}&segment_id={str(segment).upper()}"):
        assert await ids_of(team, query) == [ids[1], ids[3]]
    assert await ids_of(team, f"?segment_id={segment}&limit=1&after={ids[2]}") == [ids[3]]
    assert await ids_of(team, f"?segment_id={segment}&before={ids[2]}") == [ids[1]]
    assert await ids_of(team, "?segment_id=") == ids
    for query, expected in (
        (f"segment_id={uuid4()}", (404, "not_found", "Segment not found")),
        (f"segment_id={segment}&audience_id={other}", (422, "validation_error")),
        ("segment_id=x", (422, "validation_error")),
        ("audience_id=x", (422, "validation_error")),
        ("segment_id=x&limit=0", (422, "validation_error", "Invalid `limit` parameter.")),
    ):
        found = error(await team.get(f"/contacts?{query}"))
        assert found[: len(expected)][:2] == expected[:2], query
        assert found[2].startswith("".join(expected[2:])), query


# Segments of a contact ----------------------------------------------------------------------------


async def test_joining_and_leaving_segments(team: Team) -> None:
    await subscribe(team, list(SHAPES))
    first, second = await a_segment(team, "First"), await a_segment(team, "Second")
    contact = await made(team)
    for segment in (second, first, second):
        answer = await team.http.post(f"/contacts/{ADDRESS}/segments/{segment}")
        assert (answer.status_code, answer.json()) == (200, {"id": str(segment)})
    listed = (await team.get(f"/contacts/{contact}/segments")).json()
    assert [list(item) for item in listed["data"]] == [["id", "name", "created_at"]] * 2
    assert [item["name"] for item in listed["data"]] == ["Second", "First"]
    paged = (await team.get(f"/contacts/{contact}/segments?limit=1&after={second}")).json()
    assert ([item["name"] for item in paged["data"]], paged["has_more"]) == (["First"], False)
    for _ in range(2):
        answer = await team.call("DELETE", f"/contacts/{contact}/segments/{second}")
        assert list(answer.json().items()) == [("id", str(second)), ("deleted", True)]
    assert await published_kinds(team) == ["contact.created", *["contact.updated"] * 3]
    for method in ("POST", "DELETE"):
        path = f"/contacts/{contact}/segments"
        assert error(await team.call(method, f"{path}/{uuid4()}"))[2] == "Segment not found"
        malformed = error(await team.call(method, f"{path}/x"))
        assert malformed[:2] == (422, "invalid_parameter")


async def test_segments_of_a_new_contact_in_both_spellings(team: Team) -> None:
    first, second, third = [str(await a_segment(team)) for _ in range(3)]
    contact = await made(team, segments=[{"id": first}, second, {"id": second}, first.upper()])
    await made(team, audience_id=third)
    listed = (await team.get(f"/contacts/{contact}/segments")).json()["data"]
    assert [item["id"] for item in listed] == [third, second, first]


# Topics of a contact ------------------------------------------------------------------------------


async def subscriptions(team: Team, contact: str) -> dict[str, str]:
    listed = (await team.get(f"/contacts/{contact}/topics")).json()["data"]
    return {item["id"]: item["subscription"] for item in listed}


async def test_7_7_choices_in_both_shapes(team: Team) -> None:
    news, tides = str(await a_topic(team, "opt_in")), str(await a_topic(team, "opt_out"))
    contact = await made(team)
    assert await subscriptions(team, contact) == {tides: "opt_out", news: "opt_in"}
    path = f"/contacts/{ADDRESS}/topics"
    answer = await team.call("PATCH", path, [{"id": news, "subscription": "opt_out"}])
    assert (answer.status_code, answer.json()) == (200, {"id": contact})
    wrapped = {"id": "ignored", "topics": [{"id": tides, "subscription": "opt_in"}]}
    assert (await team.call("PATCH", path, wrapped)).json() == {"id": contact}
    assert await subscriptions(team, contact) == {tides: "opt_in", news: "opt_out"}
    twice = [{"id": news, "subscription": word} for word in ("opt_out", "opt_in")]
    assert (await team.call("PATCH", path, twice)).status_code == 200
    assert (await subscriptions(team, contact))[news] == "opt_in"
    listed = (await team.get(f"{path}?limit=1")).json()
    assert list(listed["data"][0]) == ["id", "name", "description", "subscription"]
    assert (listed["data"][0]["id"], listed["has_more"]) == (tides, True)


async def test_only_effective_differences_of_topics_are_told(team: Team) -> None:
    await subscribe(team, ["contact.topics.updated"])
    news = str(await a_topic(team, "opt_in"))
    contact = await made(team, topics=[{"id": news, "subscription": "opt_in"}])
    assert await team.world.pool.fetchval("SELECT subscription FROM topic_choices") == "opt_in"
    assert await published_kinds(team) == []
    choice = [{"id": news, "subscription": "opt_out"}]
    for _ in range(2):
        await team.call("PATCH", f"/contacts/{contact}/topics", choice)
    assert await published_kinds(team) == ["contact.topics.updated"]


async def test_bad_choices_choose_nothing(team: Team) -> None:
    news = {"id": str(await a_topic(team)), "subscription": "opt_out"}
    gone = await a_topic(team)
    await team.world.pool.execute("UPDATE topics SET deleted_at = now() WHERE id = $1", gone)
    contact = await made(team)
    cases: list[tuple[Any, tuple[int, str, str]]] = [
        (None, (422, "missing_required_field", "Missing `topics` field.")),
        ({}, (422, "missing_required_field", "Missing `topics` field.")),
        ({"topics": None}, (422, "missing_required_field", "Missing `topics` field.")),
        ({"topics": {}}, (422, "validation_error", "Invalid `topics` field. It must be an array.")),
        ([], (422, "validation_error", "Invalid `topics` field. Use 1 to 100 items.")),
        ([news] * 101, (422, "validation_error", "Invalid `topics` field. Use 1 to 100 items.")),
        ("x", (422, "validation_error", "The request body must be an array or an object.")),
        ([news, 7], (422, "validation_error", "Invalid `topics` field.")),
        ([news, {"id": news["id"]}], (422, "missing_required_field", "Missing `subscription` field.")),
        ([news, {"subscription": "opt_in"}], (422, "missing_required_field", "Missing `id` field.")),
        ([news, {**news, "id": "x"}], (422, "invalid_parameter", "The `id` must be a valid UUID.")),
        ([news, {**news, "subscription": 1}], (422, "validation_error", "Invalid `subscription` field.")),
        ([news, {**news, "id": str(uuid4())}], (404, "not_found", "Topic not found")),
        ([news, {**news, "id": str(gone)}], (404, "not_found", "Topic not found")),
    ]
    for body, expected in cases:
        found = error(await team.http.request("PATCH", f"/contacts/{contact}/topics", json=body))
        assert found[:2] == expected[:2], body
        assert found[2].startswith(expected[2]), body
    assert await team.world.pool.fetchval("SELECT count(*) FROM topic_choices") == 0
    assert str(gone) not in await subscriptions(team, contact)


async def test_unsubscribing_leaves_choices_alone(team: Team) -> None:
    news = str(await a_topic(team, "opt_out"))
    contact = await made(team, topics=[{"id": news, "subscription": "opt_in"}], unsubscribed=True)
    assert await subscriptions(team, contact) == {news: "opt_in"}
    await team.call("PATCH", f"/contacts/{contact}", {"unsubscribed": False})
    assert await subscriptions(team, contact) == {news: "opt_in"}


async def test_usage_counts_contacts_and_segments(team: Team) -> None:
    await several(team, 3)
    await a_segment(team)
    found = (await team.get("/usage")).json()
    assert found["contacts"] == {"used": 3, "limit": 2**53 - 1}
    assert found["segments"] == {"used": 1, "limit": None}
