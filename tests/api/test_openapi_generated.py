"""Requests that schemathesis makes up from `/openapi.json`, valid and invalid ones, and whether the answers
are such as the document says: their status, media type, headers and every field; and never a 5xx (API-01).

A small number for each route runs always; `--slow` makes many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from kit.brought import CAPTURE_ROUTES, ROUTES
from kit.builders import label, made_for
from kit.page_answers import is_page_of_people
from kit.people import SESSION
from kit.programs import a_member
from kit.seed_data import CAPTURE_TOKEN, seed_team
from kit.world import Team, World
from pillarbox.kernel.http.routing import Access, Route
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import sessions
from pillarbox.people.roles import TeamRole
from pillarbox.people.sessions import SessionOrigin

pytestmark = pytest.mark.sweep

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

MODES = {
    GenerationMode.POSITIVE: CHECKS,
    GenerationMode.NEGATIVE: [*CHECKS, negative_data_rejection],
}
PROFILE = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
FEW, MANY = 2, 50
PAGES_OF_PEOPLE = ("/team", "/account")


async def test_a_few_requests_of_each_route(pillarbox: World) -> None:
    wrong = await sweep(pillarbox, FEW)
    assert not wrong, "\n\n".join(f"{route}: {said}" for route, said in wrong.items())


@pytest.mark.slow
async def test_many_requests_of_each_route(pillarbox: World) -> None:
    wrong = await sweep(pillarbox, MANY)
    assert not wrong, "\n\n".join(f"{route}: {said}" for route, said in wrong.items())


async def sweep(pillarbox: World, examples: int) -> dict[str, str]:
    """What was wrong, by route. What deletes comes last."""
    team = await seed_team(pillarbox)
    schema = schemathesis.openapi.from_dict((await team.get("/openapi.json")).json())
    schema.config.update(base_url=pillarbox.url)
    wrong: dict[str, str] = {}
    for entry in sorted([*ROUTES, *CAPTURE_ROUTES], key=lambda one: one.method == "DELETE"):
        ids = await ids_of(pillarbox, team, entry) if entry.parameters else {}
        for known in (ids, {}) if ids and examples > FEW else (ids,):
            modes = MODES if has_faults(entry, known) else {GenerationMode.POSITIVE: CHECKS}
            headers = await headers_of(team, entry)
            trial = Trial(
                operation=schema[entry.path][entry.method],
                known=known,
                headers=headers,
                modes=modes,
                examples=examples,
            )
            fault = await asyncio.to_thread(trial.fault)
            if fault:
                wrong[label(entry)] = fault
    return wrong


async def headers_of(team: Team, entry: Route) -> dict[str, str]:
    """Who asks: a key, the operator, or somebody who has logged in."""
    if entry.path.startswith("/capture"):
        return {"authorization": f"Bearer {CAPTURE_TOKEN}"}
    if entry.path.startswith(PAGES_OF_PEOPLE):
        return {"cookie": f"{SESSION}={await a_session(team)}"}
    return {} if entry.needs is Access.PUBLIC else {"authorization": f"Bearer {team.token}"}


async def a_session(team: Team) -> str:
    """The cookie of an owner of the team who has logged in just now."""
    at = team.world.clock.now()
    person_id = await a_member(team, TeamRole.OWNER)
    async with transaction(team.world.pool) as conn:
        token = await sessions.begin(conn, at, uuid4(), person_id, ["password"], SessionOrigin(None, None))
    assert token is not None
    return token


async def ids_of(pillarbox: World, team: Team, entry: Route) -> dict[str, str]:
    """The parameters of the path, of things that exist."""
    if entry.path.startswith("/capture"):
        found = await pillarbox.client(CAPTURE_TOKEN).get("/capture.json")
        mail = found.json()["data"][0]["id"] if found.json()["data"] else str(team.id)
        return {name: "1" if name == "number" else mail for name in entry.parameters}
    if entry.needs is Access.PUBLIC:
        return dict.fromkeys(entry.parameters, "x")
    return await made_for(team, entry)


def has_faults(entry: Route, known: dict[str, str]) -> bool:
    """Whether there is anything in a request that may be refused as invalid. A page of people sends whoever
    has not logged in to the login, whatever it was asked."""
    if is_page_of_people(entry):
        return False
    return bool(entry.query or entry.body or entry.headers or (entry.parameters and not known))


@dataclass(frozen=True, slots=True)
class Trial:
    """Some requests to one operation."""

    operation: Any
    known: dict[str, str]
    headers: dict[str, str]
    modes: dict[GenerationMode, list[Any]]
    examples: int

    def fault(self) -> str:
        """What schemathesis has to say against the answers; "" for nothing."""
        fixed = {
            "path_parameters": self.known or None,
            "headers": self.headers,
            "query": {"wait": 0} if self.operation.path == "/capture.json" else None,
        }
        with requests.Session() as session:
            for mode, checks in self.modes.items():
                made = self.operation.as_strategy(generation_mode=mode, **fixed)
                ask = settings(PROFILE, max_examples=self.examples)(asking(session, checks))
                try:
                    given(case=made)(ask)()
                except Unsatisfiable:
                    continue  # nothing in it can be invalid
                except (Exception, FailureGroup) as wrong:
                    return f"{mode.value}: {type(wrong).__name__}: {wrong}"
        return ""


def asking(session: requests.Session, checks: list[Any]) -> Callable[[Any], None]:
    def ask(case: Any) -> None:
        case.call_and_validate(session=session, checks=checks)

    return ask
