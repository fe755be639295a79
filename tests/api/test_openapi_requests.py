"""What the OpenAPI document says of requests holds: bodies that must be there, words of parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.brought import ROUTES, WEBHOOKS
from kit.builders import NEEDED_QUERY, a_segment, a_wanted_broadcast, body_of, label, made_for
from kit.client import error
from kit.inboxes import inbox_domain
from kit.manual_world import manual_world
from kit.openapi_document import OpenApiDocument
from kit.page_answers import is_page_of_people
from kit.seed_data import POSTED, rival
from kit.world import Team, World
from pillarbox.kernel.http.openapi import document
from pillarbox.kernel.http.routing import Access, Route

DOCUMENT = document(ROUTES, events=WEBHOOKS)


def operation(entry: Route) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][entry.path][entry.method.lower()]
    return found


def is_asked(entry: Route) -> bool:
    """Whether it is a route of the API for teams."""
    return entry.needs is not Access.PUBLIC and not is_page_of_people(entry) and "/capture" not in entry.path


WITH_BODY = [entry for entry in ROUTES if is_asked(entry) and "requestBody" in operation(entry)]
WORDS = [
    pytest.param(entry, parameter["name"], id=f"{label(entry)} {parameter['name']}")
    for entry in ROUTES
    if is_asked(entry)
    for parameter in operation(entry).get("parameters", ())
    if parameter["in"] == "query" and "enum" in parameter["schema"]
]


async def test_a_body_is_required_where_the_route_refuses_to_go_without(
    database_url: str, tmp_path: Path
) -> None:
    async with manual_world(database_url, tmp_path, route="capture") as pillarbox:
        wrong = []
        for entry in WITH_BODY:
            team = await pillarbox.team(label(entry)[:40])
            path = entry.path.format(**await made_for(team, entry))
            answer = await team.http.request(entry.method, path)
            is_required = operation(entry)["requestBody"].get("required", False)
            if is_required != (answer.status_code >= 400):
                wrong.append(f"{label(entry)}: {answer.status_code} {answer.text[:100]}")
        assert not wrong, "\n".join(wrong)


CONDITIONAL = {
    "POST /emails": {"subject", "from", "html"},  # needed unless a template has them
    "POST /broadcasts": {"segment_id", "html"},  # or audience_id, and text
    "POST /contacts/bulk-acts": {"all"},  # or contacts
    "POST /events/send": {"email"},  # or contact_id
    "POST /templates": {"variables"},  # what the html uses must be declared
}
"""Fields that are needed for what else a body has."""


def body_schema(entry: Route) -> dict[str, Any]:
    """The schema of one object that the route takes; of another kind where it takes only arrays."""
    description = OpenApiDocument(DOCUMENT)
    content: Any
    [content, *_] = operation(entry)["requestBody"]["content"].values()
    found = description.resolved(content["schema"])
    for choice in found.get("anyOf", ()):
        if (shown := description.resolved(choice)).get("type") == "object":
            return shown
    return found


async def good_body(team: Team, entry: Route, made: dict[str, str]) -> Any:
    if label(entry) == "POST /broadcasts":
        return a_wanted_broadcast(await a_segment(team, made))
    return body_of(entry.method, entry.path, made) or POSTED[entry.path]


async def test_the_fields_that_are_required_are_those_that_a_route_refuses_to_go_without(
    database_url: str, tmp_path: Path
) -> None:
    """Without each field of a good body, and with the required ones alone."""
    wrong: list[str] = []
    async with manual_world(database_url, tmp_path, route="capture") as pillarbox:
        await rival(pillarbox, POSTED["/domains/claim"]["name"])
        for entry in WITH_BODY:
            schema = body_schema(entry)
            if schema.get("type") == "object" and entry.media == "application/json":
                trial = FieldTrial(pillarbox, entry, schema)
                wrong += [f"{label(entry)} {fault}" for fault in await trial.faults()]
    assert not wrong, "\n".join(wrong)


class FieldTrial:
    """Bodies of one route with fields left out."""

    def __init__(self, pillarbox: World, entry: Route, schema: dict[str, Any]) -> None:
        self.pillarbox = pillarbox
        self.entry = entry
        self.names, self.required = set(schema["properties"]), set(schema["required"])
        self.conditional = CONDITIONAL.get(label(entry), set())
        self.least = schema.get("minProperties", 0)
        self.number = 0

    async def prepared(self) -> tuple[Team, dict[str, str], Any]:
        """A team that has what the body names, the ids of the path, and the good body."""
        self.number += 1
        entry, team = self.entry, await self.pillarbox.team(f"{label(self.entry)[:40]} {self.number}")
        if entry.path in ("/events/send", "/automations"):
            await team.post("/events", {"name": "described", "schema": {"plan": "string"}})
        made = await made_for(team, entry)
        body = await good_body(team, entry, made)
        if entry.path == "/inboxes":
            await inbox_domain(team, name := f"desk{self.number}.example")
            body = {**body, "email_address": f"berth@{name}"}
        return team, made, body

    async def is_refused(self, keep: Callable[[str], bool]) -> bool:
        team, made, whole = await self.prepared()
        body = {name: value for name, value in whole.items() if keep(name)}
        answer = await team.http.request(self.entry.method, self.entry.path.format(**made), json=body)
        assert answer.status_code in (200, 201, 202, 400, 404, 422), f"{label(self.entry)} {answer.text}"
        return answer.status_code >= 400

    async def faults(self) -> list[str]:
        """How the document differs from what the route does."""
        _, _, whole = await self.prepared()
        if not isinstance(whole, dict):
            return []
        assert not await self.is_refused(lambda name: True), f"{label(self.entry)}: the good body is refused"
        found = [] if len(self.names) > self.least or self.required == self.names else ["has one field"]
        for name in whole:
            is_refused = await self.is_refused(lambda one, left_out=name: one != left_out)  # type: ignore[misc]
            is_needed = name in self.required or len(whole) <= self.least
            if is_refused != is_needed and name not in self.conditional:
                found.append(f"without {name}: {'refused' if is_refused else 'taken'}")
        kept = self.required | self.conditional
        if len(kept) >= self.least and await self.is_refused(lambda one: one in kept):
            found.append(f"with {sorted(kept)} alone: refused")
        return found


NEEDED = [
    (entry, parameter["name"])
    for entry in ROUTES
    if is_asked(entry)
    for parameter in operation(entry).get("parameters", ())
    if parameter["in"] == "query" and parameter["required"]
]


async def test_parameters_are_required_where_the_route_refuses_to_go_without(
    database_url: str, tmp_path: Path
) -> None:
    async with manual_world(database_url, tmp_path, route="capture") as pillarbox:
        refusing = set()
        for entry in [one for one in ROUTES if is_asked(one) and one.method == "GET"]:
            team = await pillarbox.team(label(entry)[:40])
            answer = await team.get(entry.path.format(**await made_for(team, entry)))
            if answer.status_code == 422 and "Missing" in answer.text:
                refusing.add(label(entry))
        assert refusing == {label(entry) for entry, _ in NEEDED} != set()


async def test_allow_names_the_methods_that_the_document_has(database_url: str, tmp_path: Path) -> None:
    """RFC 9110 10.2.1, for each path of the document: OPTIONS, and the refusal of another method."""
    async with manual_world(database_url, tmp_path, route="capture") as pillarbox:
        team, wrong = await pillarbox.team(), []
        document = (await team.get("/openapi.json")).json()
        for path, operations in document["paths"].items():
            concrete = re.sub(r"\{[a-z_]+\}", "0199a3b8-51c0-7e22-9f03-7a1d4c8be650", path)
            methods = {method.upper() for method in operations}
            methods |= {"HEAD"} & ({"HEAD"} if "GET" in methods else set())
            answers = [await team.http.request("OPTIONS", concrete)]
            other = next(one for one in ("PUT", "DELETE", "PATCH", "POST") if one not in methods)
            answers.append(await team.http.request(other, concrete))
            assert answers[1].status_code == 405, f"{other} {path}: {answers[1].status_code}"
            for answer in answers:
                allowed = set(answer.headers["allow"].split(", "))
                if allowed != methods:
                    wrong.append(f"{path}: {sorted(allowed)} instead of {sorted(methods)}")
        assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("word", ["", "nonsense"])
@pytest.mark.parametrize(("entry", "name"), WORDS)
async def test_a_parameter_with_words_refuses_all_others(
    entry: Route, name: str, word: str, database_url: str, tmp_path: Path
) -> None:
    """conventions section 2: an empty one is no word either."""
    async with manual_world(database_url, tmp_path, route="capture") as pillarbox:
        team = await pillarbox.team()
        path = entry.path.format(**await made_for(team, entry))
        needed = "" if name == "type" else NEEDED_QUERY.get(entry.path, "").removeprefix("?")
        answer = await team.http.get(f"{path}?{needed}&{name}={word}")
        assert answer.status_code == 422, answer.text
        assert f"`{name}`" in error(answer)[2]
