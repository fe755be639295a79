"""Another team's id answers as an unknown one, on every route, for ever (TEN-02, API-07, architecture 6.4).

The matrix is made from the route table, so a new route joins by itself. What it needs to know about a
route stands in the tables below; a route that lacks an entry fails with a message that says which.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import httpx

from kit.brought import ROUTES
from kit.builders import (
    BODIES,
    BUILDERS,
    MARK,
    NEEDED_QUERY,
    Made,
    a_received_email,
    an_email,
    body_of,
    label,
    made_for,
)
from kit.client import error
from kit.dumps import rows_of
from kit.page_answers import is_page_of_people
from kit.world import Team, World, mail
from pillarbox.kernel.http.files import FileLinks
from pillarbox.kernel.http.routing import Access, Route
from pillarbox.kernel.wire.uuids import well_formed

A_BROADCAST = {"from": "news@harbor.example", "subject": "Tides", "text": "High"}

REFERENCES: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("POST", "/api-keys"): {"domain_id": {"name": "x", "permission": "sending_access"}},
    ("POST", "/contacts"): {"audience_id": {"email": "ann@quay.example"}},
    ("POST", "/emails"): {"topic_id": mail()},
    ("POST", "/broadcasts"): {
        "segment_id": A_BROADCAST,
        "audience_id": A_BROADCAST,
    },
}
"""Body fields that hold the id of a resource, each with the rest of a valid body. `template` holds its id in
an object: `templates/test_template_mail.py` gives a foreign one."""

UNKNOWN_IS_FINE = {
    "DELETE /segments/{segment_id}": "segment_id",
    "DELETE /audiences/{audience_id}": "audience_id",
    "DELETE /audiences/{audience_id}/contacts/{contact}": "contact",
}
"""Routes that answer 200 with the name that was asked for, whatever is behind it; which parameter has it."""

CAPABILITY_LINKS = (
    *("/files/{token}", "/shared", "/capture", "/t/", "/unsubscribe/"),
    *("/set-up/{token}", "/password/reset/{token}", "/invitation/{token}", "/i/{image}"),
    *("/sign-up/{form}", "/sign-up/confirm/{token}"),
)
"""Public routes whose signed token, whose operator's token, random name, or link that works once is the
credential (conventions section 3); and the page of a form, which its team makes for everybody."""

PAGES_OF_PEOPLE = ("/team/", "/oauth/authorize/", "/account/address/link/")
"""Pages that show what the session, or the cookie of the browser, lets them: `people/test_page_matrix.py`,
`oauth/test_consent.py` and `people/test_address_links.py` ask for things of others."""

GUARDED = [entry for entry in ROUTES if entry.needs is not Access.PUBLIC]
MATRIX = [entry for entry in GUARDED if entry.parameters]


async def test_a_foreign_id_answers_as_an_unknown_one_and_changes_nothing(pillarbox: World) -> None:
    harbor, quay = await two_teams(pillarbox)
    for entry in MATRIX:
        theirs = await made_for(harbor, entry)
        before = await rows_of(pillarbox.pool, harbor.id)
        for method in ("GET", "HEAD") if entry.method == "GET" else (entry.method,):
            nothing = {name: str(uuid4()) for name in theirs}
            foreign = await ask(quay, method, entry, theirs)
            unknown = await ask(quay, method, entry, nothing)
            expected = 200 if UNKNOWN_IS_FINE.get(label(entry)) == entry.parameters[0] else 404
            assert unknown.status_code == expected, f"{label(entry)}: {unknown.text}; is BODIES right?"
            assert seen(foreign, theirs) == seen(unknown, nothing), label(entry)
        assert await rows_of(pillarbox.pool, harbor.id) == before, label(entry)
        own = await ask(harbor, entry.method, entry, theirs)
        assert own.status_code < 300, f"{label(entry)}: the builder made nothing real: {own.text}"


async def test_a_foreign_part_of_an_own_thing_is_unknown_too(pillarbox: World) -> None:
    """Routes with several ids: mine first, theirs after."""
    harbor, quay = await two_teams(pillarbox)
    for entry in (entry for entry in MATRIX if len(entry.parameters) > 1):
        mine, theirs = await made_for(quay, entry), await made_for(harbor, entry)
        for at in range(1, len(entry.parameters)):
            name = entry.parameters[at]
            named, nothing = mine | {name: theirs[name]}, mine | {name: str(uuid4())}
            foreign = await ask(quay, entry.method, entry, named)
            unknown = await ask(quay, entry.method, entry, nothing)
            expected = 200 if UNKNOWN_IS_FINE.get(label(entry)) == name else 404
            assert unknown.status_code == expected, label(entry)
            assert seen(foreign, named) == seen(unknown, nothing), label(entry)


async def test_references_in_bodies_are_looked_up_in_the_own_team(pillarbox: World) -> None:
    harbor, quay = await two_teams(pillarbox)
    for (method, path), fields in REFERENCES.items():
        for name, rest in fields.items():
            theirs = await BUILDERS[name](harbor, {})
            before = [await rows_of(pillarbox.pool, team.id) for team in (harbor, quay)]
            foreign = await quay.call(method, path, rest | {name: theirs})
            unknown = await quay.call(method, path, rest | {name: str(uuid4())})
            assert error(unknown)[:2] == (404, "not_found")
            assert seen(foreign, {}) == seen(unknown, {}), (method, path, name)
            assert [await rows_of(pillarbox.pool, team.id) for team in (harbor, quay)] == before
            own = await quay.call(method, path, rest | {name: await BUILDERS[name](quay, {})})
            assert own.status_code < 300, own.text


async def test_lists_show_nothing_of_another_team(pillarbox: World) -> None:
    """Also with the other team's ids as cursors (contract decision 5: a cursor is only a position)."""
    harbor, quay = await two_teams(pillarbox)
    made: Made = {}
    for name, build in BUILDERS.items():
        made[name] = await build(harbor, made)
    made["received"] = await a_received_email(harbor, {})
    own = await quay.send(subject="mine")
    lists = [entry for entry in GUARDED if entry.method == "GET" and not entry.parameters]
    assert lists
    for entry in lists:
        paths = [entry.path]
        if "after" in entry.query:
            ids = [found for found in made.values() if well_formed(found)]
            paths += [f"{entry.path}?{way}={found}" for found in ids for way in ("after", "before")]
        for path in paths:
            answer = await quay.get(path)
            assert answer.status_code == 200, path
            assert MARK not in answer.text, path
            assert not [found for found in (*made.values(), str(harbor.id)) if found in answer.text], path
    assert [item["id"] for item in (await quay.get("/emails")).json()["data"]] == [own]
    assert (await quay.get(f"/emails?limit=1&before={made['email_id']}")).json()["has_more"] is False


async def test_links_name_their_team_and_no_other(pillarbox: World) -> None:
    """A file link is a capability: it works without a credential and shows what its own team stored."""
    harbor, quay = await two_teams(pillarbox)
    email = await an_email(harbor, {})
    [item] = (await harbor.get(f"/emails/{email}/attachments")).json()["data"]
    files = pillarbox.app.need(FileLinks)
    crossed, _ = files.link("attachment", quay.id, UUID(item["id"]))
    anyone = pillarbox.client(None)
    assert (await anyone.get(item["download_url"])).content == b"hi"
    assert error(await anyone.get(crossed)) == (404, "not_found", "File not found")


def test_public_routes_with_parameters_are_known_capability_links() -> None:
    for entry in ROUTES:
        # Pages of people hang on a session or on a link that works once: people/test_page_matrix.py.
        is_page = is_page_of_people(entry)
        if entry.needs is Access.PUBLIC and not is_page and (entry.parameters or "token" in entry.query):
            assert entry.path.startswith((*CAPABILITY_LINKS, *PAGES_OF_PEOPLE)), (
                f"{label(entry)} is public and has parameters: if what it shows hangs on a signed token, "
                "name it in CAPABILITY_LINKS, else give it an Access"
            )


def test_every_route_has_what_the_matrix_needs() -> None:
    for entry in MATRIX:
        for name in entry.parameters:
            assert name in BUILDERS, (
                f"{label(entry)}: add to BUILDERS in kit/builders.py a function that makes, "
                f"for a team, what `{name}` names"
            )
        if entry.body is not None:
            key = (entry.method, entry.path)
            assert key in BODIES, f"{label(entry)}: add a valid body to BODIES in kit/builders.py"


# How the matrix asks ------------------------------------------------------------------------------


async def two_teams(pillarbox: World) -> tuple[Team, Team]:
    return await pillarbox.team("Harbor"), await pillarbox.team("Quay")


async def ask(team: Team, method: str, entry: Route, ids: Made) -> httpx.Response:
    body = body_of(method, entry.path, ids)
    path = entry.path.format(**ids) + NEEDED_QUERY.get(entry.path, "")
    return await team.call(method, path, body if entry.takes_body else None)


def seen(answer: httpx.Response, ids: Made) -> tuple[int, bytes, list[tuple[str, str]]]:
    """All that a client can see of an answer, but for what names the request itself, as the ids in it do."""
    headers = [(name, text) for name, text in answer.headers.items() if name not in ("x-request-id", "date")]
    content = answer.content
    for name, found in ids.items():
        content = content.replace(found.encode(), name.encode())
    return answer.status_code, content, sorted(headers)
