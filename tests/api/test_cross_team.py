"""Another team's id answers as an unknown one, on every route, for ever (TEN-02, API-07, design 6.4).

The matrix is made from the route table, so a new route joins by itself. What it needs to know about a
route stands in the tables below; a route that lacks an entry fails with a message that says which.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from kit.client import error
from kit.dumps import rows_of
from kit.mailroom import still
from kit.world import Team, World
from pillarbox.app import ROUTES
from pillarbox.domains.claims import queries as claim_queries
from pillarbox.domains.claims.policy import Status
from pillarbox.domains.claims.queries import Claim, Options
from pillarbox.kernel.paging import well_formed
from pillarbox.kernel.routing import Access, Route
from pillarbox.mail.smtp_intake import Content
from pillarbox.receiving.arrival import Arrival, Fate, Recipient
from pillarbox.webhooks.publish import Event

MARK = "belongs-to-harbor"
"""Stands in everything that the first team makes, so that it can be looked for in other teams' answers."""

Made = dict[str, str]


async def an_email(team: Team, made: Made) -> str:
    """Scheduled, so that it can be moved and canceled; with an attachment."""
    return await team.send(
        subject=MARK,
        scheduled_at="in 1 hour",
        attachments=[{"content": "aGk=", "filename": f"{MARK}.txt"}],
        tags=[{"name": "team", "value": MARK}],
    )


async def an_attachment(team: Team, made: Made) -> str:
    listed = (await team.get(f"/emails/{made['email_id']}/attachments")).json()
    return str(listed["data"][0]["id"])


async def an_api_key(team: Team, made: Made) -> str:
    return str((await team.post("/api-keys", {"name": MARK})).json()["id"])


async def a_domain(team: Team, made: Made) -> str:
    """One that the team has claimed from somebody, so that there is a claim to be seen as well."""
    made_domain = (await team.post("/domains", {"name": f"{MARK}-{uuid4().hex[:8]}.example"})).json()
    now = team.world.clock.now()
    claim = Claim(
        id=team.world.app.house.ids.new(),
        name=made_domain["name"],
        domain_id=UUID(made_domain["id"]),
        token=MARK,
        options=Options("us-east-1", "send", None, False, False),
        status=Status.COMPLETED,
        blocked_reason=None,
        failure_reason=None,
        created_at=now,
        expires_at=now,
        checking_since=None,
        blocked_since=None,
    )
    await claim_queries.insert(team.db, claim)
    return str(made_domain["id"])


async def a_webhook(team: Team, made: Made) -> str:
    wanted = {"endpoint": f"https://{MARK}.example/in", "events": ["domain.updated"]}
    return str((await team.post("/webhooks", wanted)).json()["id"])


async def an_event(team: Team, made: Made) -> str:
    """Of a domain, which the webhook that was made before is told of."""
    house = team.world.app.house
    event = Event(team.id, "domain.updated", house.ids.stamp().at, {"name": MARK})
    async with team.db.transaction() as inner:
        await house.publisher.publish(inner.connection, [event])
    return str((await team.get(f"/webhooks/{made['webhook_id']}/events")).json()["data"][0]["id"])


async def a_received_email(team: Team, made: Made) -> str:
    """With an attachment."""
    lines = (
        f"From: {MARK}@quay.example",
        f"Subject: {MARK}",
        f"Content-Disposition: attachment; filename={MARK}.txt",
        "Content-Type: text/x-mark",
        "",
        f"hi {uuid4()}",
    )
    raw = "\r\n".join(lines).encode()
    arrival = Arrival("", "", "LMTP", None, "", (Recipient(team.id, f"{MARK}@harbor.example"),))
    outcome = await team.world.app.house.receiving.take(arrival, Content(raw, None, len(raw)))
    assert outcome.fate is Fate.STORED
    return str(outcome.ids[0])


async def a_received_attachment(team: Team, made: Made) -> str:
    listed = (await team.get(f"/emails/receiving/{made['email_id']}/attachments")).json()
    return str(listed["data"][0]["id"])


async def a_log(team: Team, made: Made) -> str:
    """The row of a write, which is there with the write."""
    return str((await team.post("/api-keys", {"name": MARK})).headers["x-request-id"])


RECEIVED = "/emails/receiving"

RECEIVED_BUILDERS: dict[str, Callable[[Team, Made], Awaitable[str]]] = {
    "email_id": a_received_email,
    "attachment_id": a_received_attachment,
}
"""The same for paths below `RECEIVED`, where the names mean other things."""

BUILDERS: dict[str, Callable[[Team, Made], Awaitable[str]]] = {
    "email_id": an_email,
    "attachment_id": an_attachment,
    "api_key_id": an_api_key,
    "domain_id": a_domain,
    "webhook_id": a_webhook,
    "event": an_event,
    "log_id": a_log,
}
"""How to make the thing that a path parameter names; the parameters before it are made already."""

BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", "/emails/{email_id}"): {"scheduled_at": "in 2 hours"},
    ("POST", "/emails/{email_id}/share"): {"expires_in": "1h"},
    ("PATCH", "/api-keys/{api_key_id}"): {"name": "Mine now"},
    ("PATCH", "/domains/{domain_id}"): {"open_tracking": True},
    ("PATCH", "/webhooks/{webhook_id}"): {"events": ["domain.created"]},
}
"""A valid body for each route with path parameters that declares one."""

REFERENCES: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("POST", "/api-keys"): {"domain_id": {"name": "x", "permission": "sending_access"}},
}
"""Body fields that hold the id of a resource, each with the rest of a valid body. Where the resource
itself is not built yet (`topic_id`, `template`), there is no foreign id that could be given."""

CAPABILITY_LINKS = ("/files/{token}", "/shared", "/capture", "/t/", "/unsubscribe/")
"""Public routes whose signed token, or whose operator's token, is the credential (conventions section 3)."""

GUARDED = [entry for entry in ROUTES if entry.needs is not Access.PUBLIC]
MATRIX = [entry for entry in GUARDED if entry.parameters]


async def test_a_foreign_id_answers_as_an_unknown_one_and_changes_nothing(
    database_url: str, tmp_path: Path
) -> None:
    async with still(database_url, tmp_path) as pillarbox:
        harbor, quay = await two_teams(pillarbox)
        for entry in MATRIX:
            theirs = await made_for(harbor, entry)
            before = await rows_of(pillarbox.pool, harbor.id)
            for method in ("GET", "HEAD") if entry.method == "GET" else (entry.method,):
                foreign = await ask(quay, method, entry, theirs)
                unknown = await ask(quay, method, entry, {name: str(uuid4()) for name in theirs})
                assert unknown.status_code == 404, f"{label(entry)}: {unknown.text}; is BODIES right?"
                assert seen(foreign) == seen(unknown), label(entry)
            assert await rows_of(pillarbox.pool, harbor.id) == before, label(entry)
            own = await ask(harbor, entry.method, entry, theirs)
            assert own.status_code < 300, f"{label(entry)}: the builder made nothing real: {own.text}"


async def test_a_foreign_part_of_an_own_thing_is_unknown_too(database_url: str, tmp_path: Path) -> None:
    """Routes with several ids: mine first, theirs after."""
    async with still(database_url, tmp_path) as pillarbox:
        harbor, quay = await two_teams(pillarbox)
        for entry in (entry for entry in MATRIX if len(entry.parameters) > 1):
            mine, theirs = await made_for(quay, entry), await made_for(harbor, entry)
            for at in range(1, len(entry.parameters)):
                name = entry.parameters[at]
                foreign = await ask(quay, entry.method, entry, mine | {name: theirs[name]})
                unknown = await ask(quay, entry.method, entry, mine | {name: str(uuid4())})
                assert unknown.status_code == 404, label(entry)
                assert seen(foreign) == seen(unknown), label(entry)


async def test_references_in_bodies_are_looked_up_in_the_own_team(database_url: str, tmp_path: Path) -> None:
    async with still(database_url, tmp_path) as pillarbox:
        harbor, quay = await two_teams(pillarbox)
        for (method, path), fields in REFERENCES.items():
            for name, rest in fields.items():
                theirs = await BUILDERS[name](harbor, {})
                before = [await rows_of(pillarbox.pool, team.id) for team in (harbor, quay)]
                foreign = await quay.call(method, path, rest | {name: theirs})
                unknown = await quay.call(method, path, rest | {name: str(uuid4())})
                assert error(unknown)[:2] == (404, "not_found")
                assert seen(foreign) == seen(unknown), (method, path, name)
                assert [await rows_of(pillarbox.pool, team.id) for team in (harbor, quay)] == before
                own = await quay.call(method, path, rest | {name: await BUILDERS[name](quay, {})})
                assert own.status_code < 300, own.text


async def test_lists_show_nothing_of_another_team(database_url: str, tmp_path: Path) -> None:
    """Also with the other team's ids as cursors (decision 5: a cursor is only a position)."""
    async with still(database_url, tmp_path) as pillarbox:
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


async def test_links_name_their_team_and_no_other(database_url: str, tmp_path: Path) -> None:
    """A file link is a capability: it works without a credential and shows what its own team stored."""
    async with still(database_url, tmp_path) as pillarbox:
        harbor, quay = await two_teams(pillarbox)
        email = await an_email(harbor, {})
        [item] = (await harbor.get(f"/emails/{email}/attachments")).json()["data"]
        files = pillarbox.app.house.files
        crossed, _ = files.link("attachment", quay.id, UUID(item["id"]))
        anyone = pillarbox.client(None)
        assert (await anyone.get(item["download_url"])).content == b"hi"
        assert error(await anyone.get(crossed)) == (404, "not_found", "File not found")


def test_public_routes_with_parameters_are_known_capability_links() -> None:
    for entry in ROUTES:
        if entry.needs is Access.PUBLIC and (entry.parameters or "token" in entry.query):
            assert entry.path.startswith(CAPABILITY_LINKS), (
                f"{label(entry)} is public and has parameters: if what it shows hangs on a signed token, "
                "name it in CAPABILITY_LINKS, else give it an Access"
            )


def test_every_route_has_what_the_matrix_needs() -> None:
    for entry in MATRIX:
        for name in entry.parameters:
            assert name in BUILDERS, (
                f"{label(entry)}: add to BUILDERS in {Path(__file__).name} a function that makes, "
                f"for a team, what `{name}` names"
            )
        if entry.body is not None:
            key = (entry.method, entry.path)
            assert key in BODIES, f"{label(entry)}: add a valid body to BODIES in {Path(__file__).name}"


# How the matrix asks ------------------------------------------------------------------------------


async def two_teams(pillarbox: World) -> tuple[Team, Team]:
    return await pillarbox.team("Harbor"), await pillarbox.team("Quay")


async def made_for(team: Team, entry: Route) -> Made:
    made: Made = {}
    for name in entry.parameters:
        builders = RECEIVED_BUILDERS if entry.path.startswith(RECEIVED) else BUILDERS
        made[name] = await builders[name](team, made)
    return made


async def ask(team: Team, method: str, entry: Route, ids: Made) -> httpx.Response:
    body = BODIES.get((entry.method, entry.path), {})
    return await team.call(method, entry.path.format(**ids), body if entry.takes_body else None)


def seen(answer: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    """All that a client can see of an answer, but for what names the request itself."""
    headers = [(name, text) for name, text in answer.headers.items() if name not in ("x-request-id", "date")]
    return answer.status_code, answer.content, sorted(headers)


def label(entry: Route) -> str:
    return f"{entry.method} {entry.path}"
