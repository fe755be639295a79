"""Which routes let in which key for one inbox, made from the route table, so that a new route joins by itself
(api-keys.md 8)."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from uuid import UUID

import httpx

from kit.brought import ROUTES
from kit.builders import NEEDED_QUERY, Made, body_of, label, made_for
from kit.client import error
from kit.dumps import rows_of
from kit.inbox_rows import an_inbox
from kit.manual_world import manual_world
from kit.world import Team
from pillarbox.api_keys import keys
from pillarbox.api_keys.keys import InboxLimit
from pillarbox.kernel.http.routing import Access, InboxRight, Route
from pillarbox.kernel.ids import Ids

READ, LABEL, DRAFT, SEND = InboxRight
GUARDED = [entry for entry in ROUTES if entry.needs is not Access.PUBLIC]

INBOX = "/inboxes/{inbox}"
THREAD = f"{INBOX}/threads/{{thread_id}}"
EMAIL = f"{THREAD}/emails/{{email_id}}"
DRAFTS = f"{INBOX}/drafts/{{draft_id}}"

LETS_IN: dict[str, set[InboxRight]] = {
    "GET /inboxes": set(),
    f"GET {INBOX}": set(),
    f"GET {INBOX}/labels": set(),
    f"GET {INBOX}/agent": {READ},
    f"GET {INBOX}/policy": {READ},
    f"GET {INBOX}/threads": {READ},
    f"GET {INBOX}/threads/search": {READ},
    f"GET {THREAD}": {READ},
    f"GET {THREAD}/emails": {READ},
    f"GET {EMAIL}": {READ},
    f"GET {EMAIL}/attachments": {READ},
    f"GET {EMAIL}/attachments/{{attachment_id}}": {READ},
    f"GET {EMAIL}/verdicts": {READ},
    f"GET {EMAIL}/safe-text": {READ},
    f"GET {EMAIL}/trust": {READ},
    f"POST {INBOX}/labels": {LABEL},
    f"PATCH {INBOX}/labels/{{label_id}}": {LABEL},
    f"DELETE {INBOX}/labels/{{label_id}}": {LABEL},
    f"PATCH {THREAD}": {LABEL},
    f"DELETE {THREAD}": {LABEL},
    f"POST {THREAD}/labels": {LABEL},
    f"PUT {THREAD}/labels": {LABEL},
    f"DELETE {THREAD}/labels/{{label_id}}": {LABEL},
    f"GET {INBOX}/drafts": {DRAFT},
    f"POST {INBOX}/drafts": {DRAFT},
    f"GET {DRAFTS}": {DRAFT},
    f"PATCH {DRAFTS}": {DRAFT},
    f"DELETE {DRAFTS}": {DRAFT},
    f"GET {DRAFTS}/attachments/{{attachment_id}}": {DRAFT},
    f"POST {DRAFTS}/send": {SEND},
    f"POST {EMAIL}/reply": {SEND},
    f"POST {EMAIL}/forward": {READ, SEND},
}
"""What a key for one inbox may call, and with which rights. No other route lets one in."""

MAY_NOT = (
    403,
    "invalid_permission",
    "This API key or token is for one inbox, and its rights do not allow this.",
)
UNKNOWN = (404, "not_found", "Inbox not found")
KINDS = [frozenset(some) for size in (1, 2, 3, 4) for some in combinations(InboxRight, size)]


def test_the_route_table_says_what_the_contract_says() -> None:
    found = {label(entry): set(entry.inbox_rights) for entry in ROUTES if entry.inbox_rights is not None}
    assert found == LETS_IN


def test_what_lets_a_key_in_names_the_inbox_in_its_path() -> None:
    without = [label(entry) for entry in ROUTES if entry.inbox_rights is not None and INBOX not in entry.path]
    assert without == ["GET /inboxes"]


async def test_each_route_lets_in_and_refuses_each_kind_of_key(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        harbor = await pillarbox.team("Harbor")
        other = (await an_inbox(harbor, "other")).id
        elsewhere = {kind: await key_for(harbor, other, kind) for kind in KINDS}
        for entry in GUARDED:
            made = await made_for(harbor, entry)
            is_open, is_of_inbox = label(entry) in LETS_IN, "{inbox}" in entry.path
            own = (
                {kind: await key_for(harbor, UUID(made["inbox"]), kind) for kind in KINDS}
                if is_open and is_of_inbox
                else {}
            )
            before = await rows_of(pillarbox.pool, harbor.id)
            for kind in KINDS:
                what = f"{label(entry)} with {sorted(right.value for right in kind)}"
                has_right = is_open and LETS_IN[label(entry)] <= kind
                if not has_right or is_of_inbox:
                    answer = await ask(elsewhere[kind], entry, made)
                    assert error(answer) == (UNKNOWN if has_right else MAY_NOT), what
                if kind in own and not has_right:
                    assert error(await ask(own[kind], entry, made)) == MAY_NOT, what
            assert await rows_of(pillarbox.pool, harbor.id) == before, label(entry)
            for kind, team in own.items():
                if LETS_IN[label(entry)] <= kind:
                    answer = await ask(team, entry, made)
                    assert answer.status_code < 500, (label(entry), answer.text[:200])
                    assert answer.json().get("name") != "invalid_permission", (
                        label(entry),
                        answer.text[:200],
                    )


async def key_for(team: Team, inbox_id: UUID, rights: frozenset[InboxRight]) -> Team:
    """Return the team through a new key for this inbox."""
    async with team.db.transaction() as db:
        made = await keys.create(
            db, team.world.app.need(Ids), name="agent", inbox=InboxLimit(inbox_id, rights)
        )
    return team.using(made.token)


async def ask(team: Team, entry: Route, ids: Made) -> httpx.Response:
    body = body_of(entry.method, entry.path, ids)
    path = entry.path.format(**ids) + NEEDED_QUERY.get(entry.path, "")
    return await team.call(entry.method, path, body if entry.takes_body else None)
