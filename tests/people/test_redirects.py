"""No address of ours sends a browser to a place that whoever wrote the address has chosen (UI-07, OA-02)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest

from kit.brought import CAPTURE_ROUTES, ROUTES
from kit.people import PASSWORD, Visit, a_person, logged_in, visit
from kit.world import world
from pillarbox.kernel.http.routing import Access

SOURCE = Path(__file__).parents[2] / "src" / "pillarbox"

PLACES = {
    "capture/routes.py": "the same path without its token, and the list",
    "dashboard/consent/pages.py": "to the program that somebody with a session has decided about",
    "dashboard/people/openid.py": "to the provider that the operator has named",
    "dashboard/people/page_visits.py": "`local_path` alone",
    "forms/public_routes.py": "an address that the team gave its form, for who signed up",
    "oauth/routes.py": "our own page; a program that is verified, for somebody with a session",
    "tracking/routes.py": "where the link led in a mail of ours, which its token signs",
}
"""Modules that send browsers on, and where to."""

NAMES = (
    *("to", "next", "back", "return", "return_to", "redirect", "redirect_uri", "url", "uri", "continue"),
    *("done", "target", "goto", "r", "u", "from", "after", "before"),
)
"""Parameters and fields: those that we have, and those that attackers try."""

FOREIGN = (
    *("https://evil.example/", "//evil.example/", "/\\evil.example/", "\\/evil.example", "///evil.example"),
    *("https:evil.example", "/%2f/evil.example", "/%5cevil.example", "/.//evil.example", "/@evil.example"),
    *("javascript:alert(1)", "/a/..//evil.example", "/\t/evil.example", "/login?to=//evil.example"),
    *("/\r\nlocation: https://evil.example", "https://localhost@evil.example/", "data:text/html,evil"),
)
TOKEN = "x" * 43


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("redirects")
    databases.drop(url)


def test_every_module_that_sends_browsers_on_is_known() -> None:
    """A new one needs a line that says where to."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            keys = node.keys if isinstance(node, ast.Dict) else []
            if any(isinstance(key, ast.Constant) and str(key.value).lower() == "location" for key in keys):
                found.add(str(path.relative_to(SOURCE)))
    assert found - {"kernel/http/response_headers.py"} == PLACES.keys()


def is_ours(answer: httpx.Response, ours: str) -> bool:
    """Whether a browser that follows the answer stays here."""
    location = answer.headers.get("location")
    if location is None:
        return True
    for read in (location, location.replace("\\", "/")):
        parts = urlsplit(str(httpx.URL(ours).join(read)))
        if f"{parts.scheme}://{parts.netloc}" != ours or read.startswith("//"):
            return False
    return True


STREAM = "/dashboard/live"
"""Has no end: tests/dashboard/test_live.py has it."""


def paths(method: str) -> list[str]:
    """Each page for everybody, with something unknown in its path."""
    return sorted(
        {
            route.path.format(
                **{name: UUID(int=7) if name.endswith("_id") else TOKEN for name in route.parameters}
            )
            for route in [*ROUTES, *CAPTURE_ROUTES]
            if route.needs is Access.PUBLIC and route.method == method and route.path != STREAM
        }
    )


@pytest.mark.parametrize("who", ["nobody", "somebody"])
async def test_no_page_leads_away(place: tuple[str, Path], who: str) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        person = await a_person(team, f"{who}@redirects.example")
        browser: Visit = visit(here) if who == "nobody" else await logged_in(here, person)
        wrong = []
        for foreign in FOREIGN:
            for path in paths("GET"):
                answer = await browser.ask("GET", path, params=dict.fromkeys(NAMES, foreign))
                if not is_ours(answer, here.url):
                    wrong.append((path, foreign, answer.headers["location"]))
        for path in paths("POST"):
            if path.startswith("/logout") or path == "/account/sessions/end":
                continue
            for foreign in FOREIGN[:4]:
                fields = {**dict.fromkeys(NAMES, foreign), "email": person.email, "password": PASSWORD}
                answer = await browser.post(path, None, **fields)
                if not is_ours(answer, here.url):
                    wrong.append((path, foreign, answer.headers["location"]))
        assert wrong == []


async def test_a_login_leads_to_a_path_of_ours_alone(place: tuple[str, Path]) -> None:
    async with world(*place, started=False) as here:
        person = await a_person(await here.team(), "lou@redirects.example")
        for foreign in FOREIGN:
            browser = visit(here)
            await browser.ask("GET", "/login", params={"to": foreign})
            answer = await browser.post("/login", None, email=person.email, password=PASSWORD, to=foreign)
            assert answer.status_code == 303, foreign
            assert is_ours(answer, here.url), (foreign, answer.headers["location"])
