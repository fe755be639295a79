"""Conditions of contacts: who fits them, segments that are defined by them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from kit.audience import a_segment, a_topic, chooses, joins
from kit.broadcasts import made, recipients, sent
from kit.client import error
from kit.mailings import Mailing, a_mailing
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import Team
from pillarbox.contacts.conditions.language import DEEPEST, MOST_COMPARISONS, MOST_JOINS
from pillarbox.contacts.engagement.counting import BOUNDS, EngagementCounting
from pillarbox.contacts.invariants import INVARIANTS
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.segments.changes import MOST_WITH_CONDITIONS
from pillarbox.timeline.rules import Bounce, EventDetail, EventKind

Json = dict[str, Any]
NAMES = {
    "ada": "ada@quay.example",
    "bo": "bo@quay.example",
    "cy": "Cy@Harbor.example",
    "di": "di@pier.example",
}
EVERYBODY = {"ada", "bo", "cy", "di"}


def rule(field: str, operator: str, value: Any = None) -> Json:
    return {"type": "rule", "field": field, "operator": operator, "value": value}


def both(*rules: Json) -> Json:
    return {"type": "and", "rules": list(rules)}


def either(*rules: Json) -> Json:
    return {"type": "or", "rules": list(rules)}


def no(inner: Json) -> Json:
    return {"type": "not", "rule": inner}


class Crew:
    """Four contacts, each with something of its own, and the ids of what they have."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.ids: dict[str, UUID] = {}
        self.things: dict[str, str] = {}

    def named(self, condition: Json) -> Json:
        """The condition with ids in place of the names in it."""
        text = json.dumps(condition)
        for name, identifier in self.things.items():
            text = text.replace(f"<{name}>", identifier)
        return dict(json.loads(text))

    async def fit(self, condition: Json) -> set[str]:
        """Who is in a segment with this condition."""
        created = await self.team.post("/segments", {"name": "x", "conditions": self.named(condition)})
        assert created.status_code == 201, created.text
        path = f"/segments/{created.json()['id']}"
        listed = (await self.team.get(f"{path}/contacts?limit=100")).json()["data"]
        whole = (await self.team.get(f"{path}/contacts")).json()["data"]
        assert listed == whole
        found = {one["email"].split("@")[0].lower() for one in listed}
        for name, contact_id in self.ids.items():
            segments = (await self.team.get(f"/contacts/{contact_id}/segments")).json()["data"]
            assert (created.json()["id"] in [one["id"] for one in segments]) == (name in found)
        await self.team.call("DELETE", path, {})
        return found


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("conditions")
    databases.drop(url)


@pytest.fixture
@asynccontextmanager
async def team(place: tuple[str, Path]) -> AsyncIterator[Team]:
    async with manual_world(*place) as pillarbox:
        yield await pillarbox.team()


async def a_crew(team: Team) -> Crew:
    crew = Crew(team)
    await team.post("/contact-properties", {"key": "plan", "type": "string"})
    await team.post("/contact-properties", {"key": "seats", "type": "number", "fallback_value": 1})
    given: dict[str, Json] = {
        "ada": {"first_name": "Ada", "last_name": "Lovelace", "properties": {"plan": "pro", "seats": 12}},
        "bo": {"first_name": "Bo", "properties": {"plan": "", "seats": 3.5}},
        "cy": {"unsubscribed": True, "properties": {"plan": "Pro"}},
        "di": {"last_name": "Quote\"'\\$1 ünï"},
    }
    for name, members in given.items():
        answer = await team.post("/contacts", {"email": NAMES[name], **members})
        crew.ids[name] = UUID(answer.json()["id"])
    old = team.world.clock.now() - timedelta(days=100)
    await team.world.pool.execute("UPDATE contacts SET created_at = $1 WHERE id = $2", old, crew.ids["bo"])
    segment = await a_segment(team)
    await joins(team, segment, [crew.ids["ada"], crew.ids["di"]])
    tides, storms = await a_topic(team, "opt_in"), await a_topic(team, "opt_out", "Storms")
    await chooses(team, crew.ids["ada"], tides, "opt_out")
    await chooses(team, crew.ids["bo"], storms, "opt_in")
    crew.things = {"segment": str(segment), "tides": str(tides), "storms": str(storms)}
    return crew


CASES: list[tuple[Json, set[str]]] = [
    (rule("contact.first_name", "eq", "Ada"), {"ada"}),
    (rule("contact.first_name", "neq", "Ada"), {"bo", "cy", "di"}),
    (rule("contact.first_name", "eq", None), {"cy", "di"}),
    (rule("contact.first_name", "is_empty"), {"cy", "di"}),
    (rule("contact.first_name", "exists"), {"ada", "bo"}),
    (rule("contact.first_name", "contains", "da"), {"ada"}),
    (rule("contact.first_name", "contains", "%"), set()),
    (rule("contact.email", "ends_with", "@quay.example"), {"ada", "bo"}),
    (rule("contact.email", "starts_with", "cy@"), {"cy"}),
    (rule("contact.last_name", "contains", "\"'\\$1 ü"), {"di"}),
    (rule("contact.unsubscribed", "eq", True), {"cy"}),
    (rule("contact.unsubscribed", "neq", True), {"ada", "bo", "di"}),
    (rule("contact.created_at", "older_than_days", 30), {"bo"}),
    (rule("contact.created_at", "within_days", 30), {"ada", "cy", "di"}),
    (rule("contact.created_at", "gte", "2999-01-01"), set()),
    (rule("contact.created_at", "gt", 0), EVERYBODY),
    (rule("contact.properties.plan", "eq", "pro"), {"ada"}),
    (rule("contact.properties.plan", "neq", "pro"), {"bo", "cy", "di"}),
    (rule("contact.properties.plan", "is_empty"), {"bo", "di"}),
    (rule("contact.properties.plan", "exists"), {"ada", "bo", "cy"}),
    (rule("contact.properties.plan", "eq", None), {"di"}),
    (rule("contact.properties.plan", "contains", "ro"), {"ada", "cy"}),
    (rule("contact.properties.plan", "gt", 1), set()),
    (rule("contact.properties.seats", "gte", 3.5), {"ada", "bo"}),
    (rule("contact.properties.seats", "eq", 1), {"cy", "di"}),
    (rule("contact.properties.seats", "lt", 3.5), {"cy", "di"}),
    (rule("contact.properties.seats", "eq", "12"), set()),
    (rule("segments.<segment>", "eq", True), {"ada", "di"}),
    (rule("segments.<segment>", "eq", False), {"bo", "cy"}),
    (rule("topics.<tides>", "eq", "opt_in"), {"bo", "cy", "di"}),
    (rule("topics.<tides>", "neq", "opt_in"), {"ada"}),
    (rule("topics.<storms>", "eq", "opt_in"), {"bo"}),
    (rule("events.order.placed", "exists"), set()),
    (no(rule("engagement.opened", "within_days", 30)), EVERYBODY),
    (
        both(rule("contact.email", "contains", "quay"), no(rule("contact.properties.plan", "eq", "pro"))),
        {"bo"},
    ),
    (
        either(rule("contact.first_name", "eq", "Bo"), rule("segments.<segment>", "eq", True)),
        {"ada", "bo", "di"},
    ),
    (
        no(either(rule("topics.<storms>", "eq", "opt_in"), rule("topics.<tides>", "eq", "opt_out"))),
        {"cy", "di"},
    ),
]


async def test_who_fits_a_condition_is_in_its_segment_wherever_one_looks(team: Team) -> None:
    crew = await a_crew(team)
    for condition, expected in CASES:
        assert await crew.fit(condition) == expected, condition
    # What a condition names may go; then nobody has it.
    gone = crew.named(rule("segments.<segment>", "eq", True))
    segment = (await team.post("/segments", {"name": "x", "conditions": gone})).json()["id"]
    await team.call("DELETE", f"/segments/{crew.things['segment']}", {})
    assert (await team.get(f"/segments/{segment}/contacts")).json()["data"] == []


async def happened(
    mailing: Mailing, place: int, kind: EventKind, *, ago: timedelta = timedelta(0), **detail: Any
) -> None:
    now = mailing.team.world.clock.now() - ago
    sent_before = (place, EventKind.SENT, now, EventDetail())
    taken = await mailing.happens(sent_before, (place, kind, now, EventDetail(**detail)))
    assert taken


async def test_what_contacts_did_with_mail_and_events_is_read(team: Team) -> None:
    mailing = await a_mailing(team, ["ada@x.example", "bo@x.example", "cy@x.example", "di@x.example"])
    crew = Crew(team)
    crew.things = {"broadcast": str(mailing.id)}
    ada = (await team.get("/contacts/ada@x.example")).json()["id"]
    await happened(mailing, 0, EventKind.OPENED)
    await happened(mailing, 1, EventKind.OPENED, machine="Apple Mail Privacy Protection")
    await happened(mailing, 2, EventKind.BOUNCED, bounce=Bounce("Permanent"))
    await happened(mailing, 0, EventKind.CLICKED)
    clock_of(team.world).advance(2 * BOUNDS.late.total_seconds())
    counting = EngagementCounting(team.world.pool, team.world.clock)
    await counting.keep_up()
    clock_of(team.world).advance(BOUNDS.late.total_seconds())
    await counting.keep_up()
    assert await crew.fit(rule("engagement.opened", "within_days", 1)) == {"ada"}
    assert await crew.fit(rule("engagement.clicked", "exists")) == {"ada"}
    assert await crew.fit(rule("engagement.bounced", "exists")) == {"cy"}
    assert await crew.fit(no(rule("engagement.opened", "exists"))) == {"bo", "cy", "di"}
    assert await crew.fit(rule("broadcasts.<broadcast>", "eq", "sent")) == {"ada", "bo", "cy", "di"}
    assert await crew.fit(rule("broadcasts.<broadcast>", "eq", "opened")) == {"ada", "bo"}
    assert await crew.fit(rule("broadcasts.<broadcast>", "eq", "not_opened")) == {"cy", "di"}
    assert await crew.fit(rule("broadcasts.<broadcast>", "eq", "clicked")) == {"ada"}
    for _ in range(2):
        for address in ("ada@x.example", "nobody@x.example"):
            body = {"event": "order.placed", "email": address, "payload": {}}
            assert (await team.post("/events/send", body)).status_code == 202
    while await run_jobs(team.world):
        pass
    assert await crew.fit(rule("events.order.placed", "within_days", 3)) == {"ada"}
    noted = await team.world.pool.fetchrow("SELECT * FROM contact_events WHERE team_id = $1", team.id)
    assert noted is not None
    assert noted["occurrences"] == 2
    clock_of(team.world).advance(4 * 86400)
    assert await crew.fit(rule("events.order.placed", "older_than_days", 3)) == {"ada"}
    await team.call("DELETE", f"/contacts/{ada}", {})
    assert (await reconcile(team.world.pool, 10, INVARIANTS)).gaps == []
    assert await team.world.pool.fetchval("SELECT count(*) FROM contact_events") == 0


async def test_what_was_committed_late_is_read(team: Team) -> None:
    """Outcomes of before a pause of the database keep their time, and are committed behind it."""
    mailing = await a_mailing(team, ["ada@x.example"])
    clock, counting = clock_of(team.world), EngagementCounting(team.world.pool, team.world.clock)
    await counting.keep_up()
    clock.advance(BOUNDS.late.total_seconds())
    await counting.keep_up()
    clock.advance(600)
    await counting.keep_up()
    await happened(mailing, 0, EventKind.BOUNCED, ago=timedelta(minutes=9), bounce=Bounce("Permanent"))
    clock.advance(BOUNDS.late.total_seconds())
    await counting.keep_up()
    assert await Crew(team).fit(rule("engagement.bounced", "exists")) == {"ada"}


REFUSED: list[tuple[Any, str]] = [
    ([], "It must be an object."),
    ({"type": "xor"}, "`conditions.type`"),
    ({"type": "and", "rules": []}, "Use at least 1 item."),
    ({"type": "and"}, "Missing `conditions.rules` field."),
    ({"type": "not"}, "Missing `conditions.rule` field."),
    (rule("weather", "eq", 1), "It must begin with"),
    (rule("contact.shoe_size", "eq", 1), "There is no such field."),
    (rule("contact.properties.shoe", "eq", 1), "There is no property `shoe`."),
    (rule("topics.x", "eq", "opt_in"), "There is no such field."),
    (rule(f"topics.{uuid4()}", "eq", "opt_in"), "There is no topic"),
    (rule(f"segments.{uuid4()}", "eq", True), "There is no segment"),
    (rule(f"broadcasts.{uuid4()}", "eq", "sent"), "There is no broadcast"),
    (rule(f"broadcasts.{uuid4()}", "eq", "read"), "`conditions.value`"),
    (rule("contact.created_at", "eq", "2026-01-01"), "`conditions.operator`"),
    (rule("contact.created_at", "gt", "soon"), "Use a date"),
    (rule("engagement.opened", "within_days", 0), "Use a number of days"),
    (rule("engagement.opened", "within_days", "3"), "It must be a number."),
    (rule("contact.unsubscribed", "eq", "yes"), "`true` or `false`"),
    (rule("contact.email", "contains", 3), "It must be a string."),
    (rule("contact.email", "contains", "a" * 2001), "Use at most 2000 characters."),
    ({"type": "rule", "field": "contact.email", "operator": "eq"}, "Missing `conditions.value` field."),
    (either(*[both(*[rule("contact.email", "exists")] * 16)] * 2), f"at most {MOST_COMPARISONS} rules"),
    (both(*[rule(f"events.e{n}", "exists") for n in range(MOST_JOINS + 1)]), f"at most {MOST_JOINS}"),
    (both(*[rule("contact.email", "eq", "é" * 2000)] * 10), "octets"),
]


async def test_conditions_are_refused_with_the_place_of_what_is_wrong(team: Team) -> None:
    deep: Json = rule("contact.email", "exists")
    for _ in range(DEEPEST):
        deep = no(deep)
    for condition, reason in [*REFUSED, (deep, f"{DEEPEST} deep")]:
        status, name, message = error(await team.post("/segments", {"name": "x", "conditions": condition}))
        assert (status, reason in message) == (422, True), (condition, name, message)
    assert (await team.get("/segments")).json()["data"] == []


async def test_a_segment_with_conditions_is_read_as_any_other_and_its_members_are_not_written(
    team: Team,
) -> None:
    other = await team.world.team("Quay")
    contact = (await team.post("/contacts", {"email": "ada@quay.example", "first_name": "Ada"})).json()["id"]
    await other.post("/contacts", {"email": "ada@quay.example", "first_name": "Ada"})
    condition = rule("contact.first_name", "eq", "Ada")
    segment_id = (await team.post("/segments", {"name": "Adas", "conditions": condition})).json()["id"]
    path = f"/segments/{segment_id}"
    shown = (await team.get(path)).json()
    assert list(shown) == ["object", "id", "name", "created_at", "conditions"]
    assert shown["conditions"] == condition
    [listed] = (await team.get("/segments")).json()["data"]
    assert listed["conditions"] == condition
    assert [one["id"] for one in (await team.get(f"/contacts?segment_id={segment_id}")).json()["data"]] == [
        contact
    ]
    assert (await team.get(f"/audiences/{segment_id}/contacts/{contact}")).status_code == 200
    refused = "The members of this segment follow from its conditions."
    for method, where, body in (
        ("POST", f"/contacts/{contact}/segments/{segment_id}", {}),
        ("DELETE", f"/contacts/{contact}/segments/{segment_id}", {}),
        ("POST", "/contacts", {"email": "bo@quay.example", "segments": [segment_id]}),
        ("POST", f"/audiences/{segment_id}/contacts", {"email": "bo@quay.example"}),
        ("DELETE", f"/audiences/{segment_id}/contacts/{contact}", {}),
    ):
        status, name, message = error(await team.call(method, where, body))
        assert (status, name, message) == (422, "validation_error", refused), where
    nested = rule(f"segments.{segment_id}", "eq", True)
    message = error(await team.post("/segments", {"name": "x", "conditions": nested}))[2]
    assert "is defined by conditions itself" in message
    changed = {"conditions": rule("contact.first_name", "eq", "Bo")}
    assert (await team.call("PATCH", path, changed)).json() == {"object": "segment", "id": segment_id}
    assert (await team.get(f"{path}/contacts")).json()["data"] == []
    assert (await team.get(path)).json()["name"] == "Adas"
    by_hand = await a_segment(team)
    assert error(await team.call("PATCH", f"/segments/{by_hand}", changed))[0] == 422
    assert error(await team.call("PATCH", path, {"conditions": None}))[1] == "missing_required_field"
    assert error(await other.call("PATCH", path, changed))[0] == 404
    await team.world.pool.execute(
        """
        INSERT INTO segments (team_id, id, name, created_at, conditions)
        SELECT $1, gen_random_uuid(), 'x', now(), $2::text::json FROM generate_series(1, $3::int)
        """,
        team.id,
        json.dumps(condition),
        MOST_WITH_CONDITIONS - 1,
    )
    assert error(await team.post("/segments", {"name": "x", "conditions": condition}))[0] == 403
    assert len((await team.get(f"/contacts/{contact}/segments")).json()["data"]) == MOST_WITH_CONDITIONS - 1


async def test_a_broadcast_goes_to_those_who_fit_when_it_begins(team: Team) -> None:
    await team.domain()
    ids = {}
    for name, unsubscribed in (("ada", False), ("bo", True), ("cy", False)):
        body = {"email": f"{name}@orchard.example", "first_name": name, "unsubscribed": unsubscribed}
        ids[name] = UUID((await team.post("/contacts", body)).json()["id"])
    storms = await a_topic(team, "opt_out")
    await chooses(team, ids["cy"], storms, "opt_in")
    condition = no(rule("contact.first_name", "eq", "dee"))
    segment_id = (await team.post("/segments", {"name": "All", "conditions": condition})).json()["id"]
    everybody, some = await made(team, segment_id), await made(team, segment_id, topic_id=str(storms))
    for broadcast_id in (everybody, some):
        await sent(team, broadcast_id)
    await run_jobs(team.world)
    assert set(await recipients(team, everybody)) == {ids["ada"], ids["cy"]}
    assert set(await recipients(team, some)) == {ids["cy"]}
