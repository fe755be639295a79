"""`Idempotency-Key` where another process answers between look-up and handler (conventions section 9).

The matrix is made from the route table: a new route with a key joins by failing until it has a request here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from kit.inbox_rows import Inbox, inbox_world
from kit.inboxes import inbox_domain
from kit.world import Team, mail, world
from pillarbox.kernel.http.idempotency import IdempotencyRows
from pillarbox.kernel.http.queries import StoredAnswer
from pillarbox.kernel.http.routing import RouteTable

ORIGINAL = (
    b"From: iris@customer.example\r\nTo: help@harbor.example\r\nSubject: Refund\r\n\r\nWhere is it?\r\n"
)
READY = {"to": "iris@customer.example", "subject": "Your order", "text": "Hi"}

Asking = tuple[str, Any]


async def _email(inbox: Inbox) -> Asking:
    return "/emails", mail()


async def _batch(inbox: Inbox) -> Asking:
    return "/emails/batch", [mail(), mail()]


async def _answered(inbox: Inbox) -> str:
    thread = await inbox.thread("Refund")
    return f"{thread.url}/emails/{await thread.received(ORIGINAL)}"


async def _reply(inbox: Inbox) -> Asking:
    return f"{await _answered(inbox)}/reply", {"text": "Soon."}


async def _forward(inbox: Inbox) -> Asking:
    return f"{await _answered(inbox)}/forward", {"to": "ola@customer.example"}


async def _draft(inbox: Inbox) -> Asking:
    return f"{inbox.url}/drafts", READY


async def _sending(inbox: Inbox) -> Asking:
    made = await inbox.team.post(f"{inbox.url}/drafts", READY)
    return f"{inbox.url}/drafts/{made.json()['id']}/send", {}


REQUESTS: dict[str, Callable[[Inbox], Awaitable[Asking]]] = {
    "/emails": _email,
    "/emails/batch": _batch,
    "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/reply": _reply,
    "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/forward": _forward,
    "/inboxes/{inbox}/drafts": _draft,
    "/inboxes/{inbox}/drafts/{draft_id}/send": _sending,
}


async def test_every_route_with_a_key_has_a_request_here(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as pillarbox:
        routes = pillarbox.app.need(RouteTable).routes
        assert {route.path for route in routes if route.idempotent} == REQUESTS.keys()


@pytest.mark.parametrize("path", REQUESTS)
async def test_who_comes_second_gets_the_answer_of_the_first(
    path: str, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second process has found no answer; the first one commits before the second one reads."""
    async with (
        inbox_world(database_url, tmp_path) as inbox,
        world(database_url, tmp_path, started=False) as second,
    ):
        await inbox_domain(inbox.team)
        here = inbox.team
        there = Team(second, here.id, here.token, second.client(here.token))
        url, body = await REQUESTS[path](inbox)
        key = {"idempotency-key": "k"}
        first: list[httpx.Response] = []
        find = IdempotencyRows.find

        async def overtaken(
            rows: IdempotencyRows, team_id: UUID, scope: str, name: str
        ) -> StoredAnswer | None:
            found = await find(rows, team_id, scope, name)
            if not first:
                monkeypatch.setattr(IdempotencyRows, "find", find)
                first.append(await here.http.post(url, json=body, headers=key))
            return found

        monkeypatch.setattr(IdempotencyRows, "find", overtaken)
        again = await there.http.post(url, json=body, headers=key)
        assert first[0].status_code in (200, 201), first[0].text
        assert "idempotent-replayed" not in first[0].headers
        assert (again.status_code, again.content) == (first[0].status_code, first[0].content), again.text
        assert again.headers["idempotent-replayed"] == "true"


async def test_an_error_without_an_answer_stays_that_error(inbox: Inbox) -> None:
    """Another key, or none, does not turn the refusal into an answer."""
    await inbox_domain(inbox.team)
    url, body = await _sending(inbox)
    first = await inbox.team.http.post(url, json=body, headers={"idempotency-key": "a"})
    assert first.status_code == 200
    for headers in ({}, {"idempotency-key": "b"}):
        answer = await inbox.team.http.post(url, json=body, headers=headers)
        assert (answer.status_code, answer.json()["name"]) == (409, "conflict")
