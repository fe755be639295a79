"""What the OpenAPI document says of requests holds: bodies that must be there, words of parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.brought import ROUTES, WEBHOOKS
from kit.builders import NEEDED_QUERY, label, made_for
from kit.client import error
from kit.manual_world import manual_world
from kit.page_answers import is_page_of_people
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
