"""Keys for one inbox: what they are made with, when they end, and how they do not reach another inbox
(api-keys.md 8)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.client import error
from kit.inbox_rows import Inbox, Thread, an_inbox, inbox_world
from kit.smtp_listener import dialog
from kit.submission import message_bytes, plain, submission
from kit.world import Team
from pillarbox.inboxes.inbox.changes import Inboxes
from pillarbox.kernel.http.pipeline import Api, RouteCall
from pillarbox.kernel.security.authentication import Caller, InboxKeyMayNot, InboxRight, Permission

ALL = ["read", "label", "draft", "send"]
MAY_NOT = (
    403,
    "invalid_permission",
    "This API key or token is for one inbox, and its rights do not allow this.",
)
UNKNOWN = (404, "not_found", "Inbox not found")
QUESTION = (
    b"From: iris@customer.example\r\nTo: help@harbor.example\r\nSubject: Refund\r\n\r\nWhere is it?\r\n"
)
WITH_FILE = (
    b"From: iris@customer.example\r\nTo: help@harbor.example\r\nSubject: Secret\r\n"
    b"Content-Disposition: attachment; filename=s.txt\r\nContent-Type: text/plain\r\n\r\nhush\r\n"
)


async def agent_of(inbox: Inbox, *rights: str) -> Team:
    token = await inbox.team.key(inbox_id=str(inbox.id), rights=list(rights or ALL))
    return inbox.team.using(token)


# Making -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"rights": ["read"]}, (422, "missing_required_field", "Missing `inbox_id` field.")),
        (
            {"inbox_id": None, "rights": ["read"]},
            (422, "missing_required_field", "Missing `inbox_id` field."),
        ),
        ({"inbox_id": "{own}"}, (422, "missing_required_field", "Missing `rights` field.")),
        ({"inbox_id": "{own}", "rights": None}, (422, "missing_required_field", "Missing `rights` field.")),
        (
            {"inbox_id": "{own}", "rights": []},
            (422, "validation_error", "Invalid `rights` field. Use at least 1 item."),
        ),
        (
            {"inbox_id": "{own}", "rights": ["read", "write"]},
            (422, "validation_error", "Invalid `rights[1]` field. Use `draft`, `label`, `read` or `send`."),
        ),
        (
            {"inbox_id": "{own}", "rights": "read"},
            (422, "validation_error", "Invalid `rights` field. It must be an array."),
        ),
        (
            {"inbox_id": "x", "rights": ["read"]},
            (422, "invalid_parameter", "The `inbox_id` must be a valid UUID."),
        ),
        ({"inbox_id": "{foreign}", "rights": ["read"]}, UNKNOWN),
        ({"inbox_id": str(uuid4()), "rights": ["read"]}, UNKNOWN),
        (
            {"permission": "inbox_access"},
            (422, "invalid_access", "Invalid `permission` field. Use `full_access` or `sending_access`."),
        ),
    ],
)
async def test_bad_fields_make_no_key(
    fields: dict[str, Any], expected: tuple[int, str, str], database_url: str, tmp_path: Path
) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        foreign = await an_inbox(await inbox.team.world.team("Quay"), "theirs")
        named = {"{own}": str(inbox.id), "{foreign}": str(foreign.id)}
        body = {key: named.get(str(value), value) for key, value in fields.items()}
        assert error(await inbox.team.post("/api-keys", {"name": "agent", **body})) == expected
        assert len((await inbox.team.get("/api-keys")).json()["data"]) == 1


async def test_the_answers_about_keys_have_the_shape_that_they_had(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        body = {"name": "agent", "inbox_id": str(inbox.id).upper(), "rights": ["send", "read", "read"]}
        made = await inbox.team.post("/api-keys", body)
        assert made.status_code == 201
        assert list(made.json()) == ["id", "token"]
        [first, _] = (await inbox.team.get("/api-keys")).json()["data"]
        assert list(first) == ["id", "name", "created_at", "last_used_at"]
        row = await inbox.team.world.pool.fetchrow(
            "SELECT permission, domain_id, rights FROM api_keys WHERE name = 'agent'"
        )
        assert tuple(row) == ("inbox_access", None, ["read", "send"])


@pytest.mark.parametrize("permission", ["full_access", "sending_access"])
async def test_a_permission_beside_the_inbox_gives_nothing(
    permission: str, database_url: str, tmp_path: Path
) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        token = await inbox.team.key(permission=permission, inbox_id=str(inbox.id), rights=["read"])
        agent = inbox.team.using(token)
        assert error(await agent.get("/emails")) == MAY_NOT
        assert error(await agent.get("/usage")) == MAY_NOT
        assert (await agent.get(inbox.url)).status_code == 200


async def test_a_key_for_an_inbox_makes_no_key(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        agent = await agent_of(inbox)
        assert error(await agent.post("/api-keys", {"name": "more"})) == MAY_NOT


# Its end ------------------------------------------------------------------------------------------


async def test_a_key_ends_with_its_inbox(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        other = await an_inbox(inbox.team, "other")
        agent, spared = await agent_of(inbox), await agent_of(other)
        assert (await inbox.team.call("DELETE", inbox.url)).status_code == 200
        status = "SELECT status FROM api_keys WHERE inbox_id = $1"
        assert await inbox.team.world.pool.fetchval(status, inbox.id) == "inactive"
        assert await inbox.team.world.pool.fetchval(status, other.id) == "active"
        async with asyncio.timeout(5):
            while (answer := await agent.get("/inboxes")).status_code != 403:
                assert answer.json()["data"] == []
                await asyncio.sleep(0.05)
        assert error(answer) == (403, "restricted_api_key", "This API key is not active.")
        assert (await spared.get(other.url)).status_code == 200


async def test_a_key_ends_with_the_domain_of_its_inbox(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        agent = await agent_of(inbox)
        assert (await agent.get(inbox.url)).status_code == 200
        [domain] = (await inbox.team.get("/domains")).json()["data"]
        assert (await inbox.team.call("DELETE", f"/domains/{domain['id']}")).status_code == 200
        status = "SELECT status FROM api_keys WHERE inbox_id = $1"
        assert await inbox.team.world.pool.fetchval(status, inbox.id) == "inactive"
        async with asyncio.timeout(5):
            while (answer := await agent.get(inbox.url)).status_code != 403:
                assert answer.status_code == 404
                await asyncio.sleep(0.05)


async def test_a_new_inbox_of_the_same_address_is_not_that_of_the_key(
    database_url: str, tmp_path: Path
) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        agent = await agent_of(inbox)
        await inbox.team.call("DELETE", inbox.url)
        again = await an_inbox(inbox.team)
        assert again.address == inbox.address
        assert (await agent.get(f"/inboxes/{again.address}")).status_code in (403, 404)
        await asyncio.sleep(0.3)
        assert (await agent.get(f"/inboxes/{again.address}")).status_code == 403


async def test_an_inbox_that_is_deleted_meanwhile_leaves_no_active_key(
    database_url: str, tmp_path: Path
) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        changes = inbox.team.world.app.need(Inboxes)
        async with inbox.team.db.transaction() as db:
            await changes.delete(db, inbox.id)
            body = {"name": "late", "inbox_id": str(inbox.id), "rights": ["read"]}
            late = asyncio.create_task(inbox.team.post("/api-keys", body))
            await asyncio.sleep(0.3)
            assert not late.done()
        assert error(await late) == UNKNOWN


# Another inbox ------------------------------------------------------------------------------------


async def test_lists_show_the_inbox_of_the_key_alone(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        before = inbox
        newer = await an_inbox(inbox.team, "newer")
        for mine, theirs in ((before, newer), (newer, before)):
            agent = await agent_of(mine, "label")
            for query in ("", "?limit=1", f"?after={theirs.id}", f"?before={theirs.id}"):
                found = (await agent.get(f"/inboxes{query}")).json()
                assert {item["id"] for item in found["data"]} <= {str(mine.id)}
                assert found["has_more"] is False
            listed = (await agent.get("/inboxes")).json()["data"]
            assert [item["id"] for item in listed] == [str(mine.id)]


async def test_each_way_to_name_an_inbox_is_compared(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        other = await an_inbox(inbox.team, "other")
        agent = await agent_of(inbox)
        for name in (
            inbox.id,
            str(inbox.id).upper(),
            inbox.address,
            "HELP%40Harbor.Example",
            "help@harbor.EXAMPLE",
        ):
            assert (await agent.get(f"/inboxes/{name}/threads")).status_code == 200, name
        for name in (other.id, str(other.id).upper(), other.address, "OTHER%40harbor.example", uuid4()):
            assert error(await agent.get(f"/inboxes/{name}/threads")) == UNKNOWN, name
        for name in ("x", "help@", f"{inbox.id}%2F..%2F{other.id}", f"{other.id}%00"):
            assert (await agent.get(f"/inboxes/{name}/threads")).status_code in (404, 422), name
        for path in (f"{inbox.url}/../{other.id}/threads", f"{inbox.url}%2F..%2F{other.id}/threads"):
            answer = await agent.get(path)
            assert answer.status_code in (403, 404, 422), path


async def test_ids_of_another_inbox_mean_nothing_in_the_own_one(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        other = await an_inbox(inbox.team, "other")
        own, theirs = await inbox.thread("Mine"), await other.thread("Theirs")
        email_id = await theirs.received(WITH_FILE)
        own_email = await own.received(QUESTION)
        label_id = await other.label("Theirs")
        made = await inbox.team.post(f"{other.url}/drafts", {"to": "iris@customer.example", "text": "Secret"})
        draft_id = made.json()["id"]
        agent = await agent_of(inbox)
        for path in (
            f"/threads/{theirs.id}",
            f"/threads/{theirs.id}/emails",
            f"/threads/{theirs.id}/emails/{email_id}",
            f"/threads/{own.id}/emails/{email_id}",
            f"/threads/{theirs.id}/emails/{email_id}/attachments",
            f"/threads/{own.id}/emails/{email_id}/attachments",
            f"/drafts/{draft_id}",
        ):
            assert (await agent.get(inbox.url + path)).status_code == 404, path
        for method, path, body in (
            ("POST", f"/threads/{theirs.id}/emails/{email_id}/forward", {"to": "eve@stranger.example"}),
            ("POST", f"/threads/{own.id}/emails/{email_id}/forward", {"to": "eve@stranger.example"}),
            ("POST", f"/threads/{own.id}/emails/{email_id}/reply", {"text": "Hi"}),
            ("POST", f"/drafts/{draft_id}/send", {}),
            ("PATCH", f"/drafts/{draft_id}", {"to": "eve@stranger.example"}),
            ("DELETE", f"/drafts/{draft_id}", None),
            ("POST", "/drafts", {"thread_id": str(theirs.id), "reply_to_email_id": email_id, "text": "x"}),
            ("POST", "/drafts", {"thread_id": str(own.id), "reply_to_email_id": email_id, "text": "x"}),
            ("PATCH", f"/threads/{theirs.id}", {"read": True}),
            ("PATCH", f"/threads/{own.id}", {"label_id": label_id}),
            ("POST", f"/threads/{own.id}/labels", {"labels": [label_id]}),
            ("PUT", f"/threads/{own.id}/labels", {"labels": [label_id]}),
            ("PATCH", f"/labels/{label_id}", {"name": "Mine"}),
            ("DELETE", f"/labels/{label_id}", None),
        ):
            answer = await agent.call(method, inbox.url + path, body)
            assert answer.status_code in (404, 422), (method, path, answer.text)
        assert (await agent.get(f"{own.url}/emails/{own_email}")).status_code == 200
        found = (await agent.get(f"{inbox.url}/threads/search?query=Secret")).json()
        assert found["data"] == []


async def test_the_same_email_by_its_other_roads_is_closed(database_url: str, tmp_path: Path) -> None:
    """An email of the inbox is also an email of the team; what shows that one is not for the key."""
    async with inbox_world(database_url, tmp_path) as inbox:
        thread = await inbox.thread("Refund")
        email_id = await thread.received(QUESTION)
        agent = await agent_of(inbox)
        for path in (
            f"/emails/receiving/{email_id}",
            f"/emails/receiving/{email_id}/raw",
            f"/emails/receiving/{email_id}/attachments",
            "/emails/receiving",
            f"/emails/{email_id}",
            "/logs",
            "/webhooks",
            "/events",
        ):
            assert (await agent.get(path)).status_code in (403, 404), path
        for path in ("/emails", "/emails/batch", "/email/sending", "/webhooks"):
            body = {"from": inbox.address, "to": "iris@customer.example", "subject": "x", "text": "x"}
            assert error(await agent.post(path, body)) == MAY_NOT, path


async def test_an_answer_that_is_kept_is_not_told_to_a_key_of_another_inbox(
    database_url: str, tmp_path: Path
) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        other = await an_inbox(inbox.team, "other")
        body = {"to": "iris@customer.example", "text": "Secret"}
        made = await inbox.team.post(f"{other.url}/drafts", body, idempotency_key="k")
        assert made.status_code == 201
        agent = await agent_of(inbox)
        for name in (other.id, other.address):
            again = await agent.post(f"/inboxes/{name}/drafts", body, idempotency_key="k")
            assert error(again) == UNKNOWN
        weak = await agent_of(other, "read", "send")
        assert error(await weak.post(f"{other.url}/drafts", body, idempotency_key="k")) == MAY_NOT
        assert (await inbox.team.post(f"{other.url}/drafts", body, idempotency_key="k")).json() == made.json()


async def test_nobody_waits_for_another_inbox(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        other = await an_inbox(inbox.team, "other")
        agent = await agent_of(inbox)
        assert error(await agent.get(f"{other.url}/threads?wait=20")) == UNKNOWN
        sender = await agent_of(inbox, "send")
        assert error(await sender.get(f"{inbox.url}/threads?wait=20")) == MAY_NOT


async def test_a_call_from_within_the_program_is_held_to_the_inbox_too(
    database_url: str, tmp_path: Path
) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        other = await an_inbox(inbox.team, "other")
        caller = Caller(
            team_id=inbox.team.id,
            team_number=1,
            key_id=None,
            permission=Permission.FULL,
            inbox_id=inbox.id,
            inbox_address=inbox.address,
            inbox_rights=frozenset(InboxRight),
        )
        api = inbox.team.world.app.need(Api)
        page = _Page()
        with pytest.raises(InboxKeyMayNot):
            await api.call(page, RouteCall(caller=caller, method="GET", path="/emails"))  # type: ignore[arg-type]
        with pytest.raises(Exception, match="Inbox not found"):
            await api.call(page, RouteCall(caller=caller, method="GET", path=other.url))  # type: ignore[arg-type]


class _Page:
    """As much of the request of a page as a call needs until it is refused."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {"type": "http", "client": ("127.0.0.1", 1)}
        self.cycle = None


# Sending ------------------------------------------------------------------------------------------


async def answered(thread: Thread) -> str:
    return f"{thread.url}/emails/{await thread.received(QUESTION)}"


async def test_an_agent_answers_in_its_inbox(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        await inbox.team.domain()
        agent = await agent_of(inbox)
        email = await answered(await inbox.thread("Refund"))
        sent = await agent.post(f"{email}/reply", {"text": "Soon."})
        assert sent.status_code == 200, sent.text
        stored = await inbox.team.email(sent.json()["id"])
        assert stored["from"] == inbox.address
        draft = await agent.post(
            f"{inbox.url}/drafts", {"to": "iris@customer.example", "subject": "x", "text": "x"}
        )
        done = await agent.post(f"{inbox.url}/drafts/{draft.json()['id']}/send")
        assert done.status_code == 200, done.text


async def test_by_smtp_a_key_sends_from_its_inbox_alone(database_url: str, tmp_path: Path) -> None:
    async with submission(database_url, tmp_path) as (team, ports):
        await team.domain()
        inbox = await an_inbox(team)
        await an_inbox(team, "other")
        token = await team.key(inbox_id=str(inbox.id), rights=["send"])
        async with ports.program(token) as client:
            for sender in (inbox.address, "Help <HELP@Harbor.Example>"):
                said = await client.send(message_bytes(sender=sender), to=("ada@quay.example",))
                assert said.code == 250, said.text
            for sender in ("other@harbor.example", "a@harbor.example", "help+x@harbor.example"):
                said = await client.send(message_bytes(sender=sender), to=("ada@quay.example",))
                assert str(said) == "550 5.7.1"
                assert f"It may not send from {sender}." in said.text
            await team.call("DELETE", inbox.url)
            await asyncio.sleep(0.3)
            said = await client.send(message_bytes(sender=inbox.address), to=("ada@quay.example",))
            assert str(said) == "550 5.7.1"


async def test_by_smtp_a_key_without_the_right_does_not_log_in(database_url: str, tmp_path: Path) -> None:
    async with submission(database_url, tmp_path) as (team, ports):
        inbox = await an_inbox(team)
        token = await team.key(inbox_id=str(inbox.id), rights=["read", "label", "draft"])
        async with dialog(ports.submission) as client:
            await client.ask("EHLO program.example")
            assert (await client.ask(f"AUTH PLAIN {plain(token)}")).code == 535
