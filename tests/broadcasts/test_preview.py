"""Previews: the mail as a contact would get it, and test copies (docs/decisions/0076)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import dkim
import pytest

from kit.audience import a_contact, a_property, a_segment, joins
from kit.broadcasts import made, sent, shown
from kit.client import error
from kit.manual_world import parsed, relayed_world, run_jobs
from kit.smtp_sink import Sink
from kit.world import Team

URL = "https://mail.harbor.example"
HTML = (
    "<html><body><p>Hi {{{contact.first_name|sailor}}} of {{{contact.properties.port|Quay}}} &amp; crew</p>"
    '<a href="https://harbor.example/tides?a=1&amp;b=%2F">Tides</a>'
    '<a href="{{{PILLARBOX_UNSUBSCRIBE_URL}}}">Leave</a></body></html>'
)
KEYS = [
    *("object", "broadcast_id", "contact_id", "from", "to", "reply_to", "subject", "html", "text"),
    *("message", "email_id"),
]


@pytest.fixture
@asynccontextmanager
async def harbor(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[Team, Sink]]:
    """A team whose mail goes to a server in the test."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        yield team, sink


async def a_draft(team: Team, **fields: Any) -> tuple[str, UUID]:
    """A broadcast to one contact, with a name and a property; the ids of both."""
    await a_property(team, "port")
    contact = await a_contact(team, "ada@quay.example")
    body = {"first_name": "<b>Ada</b>", "properties": {"port": "Brest"}}
    assert (await team.call("PATCH", f"/contacts/{contact}", body)).status_code == 200
    segment = await a_segment(team)
    await joins(team, segment, [contact])
    wanted = {"html": HTML, "preview_text": "High water at noon", "reply_to": "crew@harbor.example", **fields}
    return await made(team, segment, **wanted), contact


async def previewed(team: Team, broadcast_id: str, **body: Any) -> dict[str, Any]:
    answer = await team.post(f"/broadcasts/{broadcast_id}/preview", {"contact": "ada@quay.example", **body})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def mail_of(preview: dict[str, Any]) -> EmailMessage:
    mail = BytesParser(policy=default).parsebytes(preview["message"].encode())
    assert isinstance(mail, EmailMessage)
    return mail


def same_but_for_ids(message: str) -> str:
    """A message without what is new each time: ids, tokens, boundaries, dates and the signature."""
    head, _, body = message.partition("\r\n\r\n")
    head = re.sub(r"\r\n[ \t]+", " ", head)
    kept = [
        line
        for line in head.split("\r\n")
        if not line.lower().startswith(("dkim-signature:", "message-id:", "date:", "feedback-id:", "x-"))
    ]
    whole = "\n".join(kept) + "\n\n" + body.replace("=\r\n", "")
    return re.sub(r"[A-Za-z0-9_-]{22,}|=_[A-Za-z0-9_.-]+", "ID", whole)


async def test_a_preview_is_what_is_sent_afterwards(harbor: tuple[Team, Sink]) -> None:
    """But for ids and the token of the link; signed, with preview text and values of the contact."""
    team, sink = harbor
    broadcast_id, contact = await a_draft(team)
    preview = await previewed(team, broadcast_id)
    assert list(preview) == KEYS
    assert (preview["object"], preview["contact_id"]) == ("broadcast_preview", str(contact))
    assert (preview["to"], preview["email_id"]) == ("ada@quay.example", None)
    assert preview["subject"] == "<b>Ada</b>, the tides of October"
    assert "Hi &lt;b&gt;Ada&lt;/b&gt; of Brest &amp; crew" in preview["html"]
    assert "High water at noon" in preview["html"]
    assert "Hi <b>Ada</b> of Brest & crew" in preview["text"]
    await sent(team, broadcast_id)
    await run_jobs(team.world)
    await team.world.turn()
    [message] = await sink.messages(1)
    raw = message.content.decode()
    assert same_but_for_ids(preview["message"]) == same_but_for_ids(raw)
    [domain] = (await team.get("/domains")).json()["data"]
    records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
    keys = {f"{r['name']}.harbor.example.": r["value"] for r in records if r["record"] == "DKIM"}
    found = dkim.verify(
        preview["message"].encode(), dnsfunc=lambda name, timeout=5: keys[name.decode()].encode()
    )
    assert found


async def test_a_preview_changes_nothing(harbor: tuple[Team, Sink]) -> None:
    """No email, no event, no count; and its link to unsubscribe removes nobody."""
    team, _ = harbor
    broadcast_id, contact = await a_draft(team)
    before = await shown(team, broadcast_id)
    preview = await previewed(team, broadcast_id)
    [link] = re.findall(rf"{re.escape(URL)}(/unsubscribe/[^\"]+)", preview["html"])
    assert (await team.http.post(link, data={"List-Unsubscribe": "One-Click"})).status_code == 404
    assert (await team.get(f"/contacts/{contact}")).json()["unsubscribed"] is False
    assert await shown(team, broadcast_id) == before
    assert (await team.get("/emails")).json()["data"] == []
    totals = (await team.get("/emails/metrics?metrics=received")).json()["totals"]
    assert totals == {"received": 0}
    assert await team.world.pool.fetchval("SELECT count(*) FROM emails") == 0


async def test_a_test_copy_is_mail_of_its_own(harbor: tuple[Team, Sink]) -> None:
    """It goes to whom it is sent, with the values of the contact, and is not counted for the broadcast."""
    team, sink = harbor
    broadcast_id, contact = await a_draft(team)
    preview = await previewed(team, broadcast_id, send_to="me@pier.example")
    await team.world.turn()
    [message] = await sink.messages(1)
    mail = parsed(message)
    assert (message.recipients, mail["to"]) == (["me@pier.example"], "me@pier.example")
    assert mail["subject"] == preview["subject"]
    assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    [html] = [p for p in mail.walk() if p.get_content_type() == "text/html"]
    link = re.compile(r"/unsubscribe/[^\"]+")
    assert link.sub("", html.get_content().strip()) == link.sub("", preview["html"])
    email = await team.email(preview["email_id"])
    assert (email["to"], email["last_event"]) == (["me@pier.example"], "delivered")
    assert email["tags"] == [{"name": "broadcast_test", "value": broadcast_id}]
    totals = (await team.get(f"/emails/metrics?broadcast_id={broadcast_id}")).json()["totals"]
    assert not any(totals.values())
    assert (await team.get(f"/broadcasts/{broadcast_id}/recipients?type=sent")).json()["data"] == []
    [found] = re.findall(r"(/unsubscribe/[^\"]+)\"", html.get_content())
    assert (await team.http.post(found, data={"List-Unsubscribe": "One-Click"})).status_code == 404
    assert (await team.get(f"/contacts/{contact}")).json()["unsubscribed"] is False


async def test_a_preview_of_what_was_sent(harbor: tuple[Team, Sink]) -> None:
    """In any state; and the name may be changed meanwhile."""
    team, _ = harbor
    broadcast_id, _ = await a_draft(team)
    await sent(team, broadcast_id)
    await run_jobs(team.world)
    preview = await previewed(team, broadcast_id)
    assert preview["subject"] == "<b>Ada</b>, the tides of October"


REFUSED: list[tuple[dict[str, Any], tuple[int, str], str]] = [
    ({}, (422, "missing_required_field"), "`contact`"),
    ({"contact": None}, (422, "missing_required_field"), "`contact`"),
    ({"contact": 7}, (422, "validation_error"), "`contact`"),
    ({"contact": "ada"}, (422, "validation_error"), "`contact`"),
    ({"contact": "Ada <ada@quay.example>"}, (422, "validation_error"), "`contact`"),
    ({"contact": "ada@quay.example", "send_to": "me"}, (422, "validation_error"), "`send_to`"),
    ({"contact": "ada@quay.example", "send_to": ["me@x.example"]}, (422, "validation_error"), "`send_to`"),
    ({"contact": "nobody@quay.example"}, (404, "not_found"), "Contact not found"),
]


@pytest.mark.parametrize(("body", "answer", "says"), REFUSED)
async def test_what_is_wrong_is_named(
    harbor: tuple[Team, Sink], body: dict[str, Any], answer: tuple[int, str], says: str
) -> None:
    team, _ = harbor
    broadcast_id, _ = await a_draft(team)
    found = await team.post(f"/broadcasts/{broadcast_id}/preview", body)
    assert error(found)[:2] == answer
    assert says in found.json()["message"]


async def test_who_may_not_preview_or_send(harbor: tuple[Team, Sink]) -> None:
    team, _ = harbor
    broadcast_id, _ = await a_draft(team)
    contact = {"contact": "ada@quay.example"}
    assert (await team.post(f"/broadcasts/{uuid4()}/preview", contact)).status_code == 404
    stranger = await team.world.team("Quay")
    assert (await stranger.post(f"/broadcasts/{broadcast_id}/preview", contact)).status_code == 404
    sending = team.using(await team.key(permission="sending_access"))
    assert (await sending.post(f"/broadcasts/{broadcast_id}/preview", contact)).status_code == 401
    answer = await team.call("PATCH", f"/broadcasts/{broadcast_id}", {"from": "news@pier.example"})
    assert answer.status_code == 200, answer.text
    unsigned = await previewed(team, broadcast_id)
    assert "dkim-signature" not in unsigned["message"].lower()
    wanted = {**contact, "send_to": "me@pier.example"}
    refused = await team.post(f"/broadcasts/{broadcast_id}/preview", wanted)
    assert error(refused)[:2] == (403, "validation_error")
    assert await team.world.pool.fetchval("SELECT count(*) FROM emails") == 0
