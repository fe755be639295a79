"""Sent emails as messages: kept ones as they left, others composed once more."""

from __future__ import annotations

import base64
import email
from email.message import Message
from typing import Any
from uuid import UUID

import httpx
import pytest

from kit.people import a_person, logged_in, text_of
from kit.world import Team, World
from pillarbox.emails.own_mail.redaction import MARK, REDACTED_TEXT
from pillarbox.emails.raw_mail.messages import SentMessages
from pillarbox.kernel.postgres.time_limit import TimeLimit
from pillarbox.kernel.process.byte_budget import OwnedBudget
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import ServerOverloaded

SMALL, LARGE = b"%PDF-1.7", bytes(range(256)) * 3000
FILES = [
    {"filename": "map.pdf", "content": base64.b64encode(SMALL).decode()},
    {"filename": "plan.bin", "content": base64.b64encode(LARGE).decode()},
]
WRITTEN: dict[str, Any] = {
    "to": ["Ada <ada@quay.example>"],
    "cc": ["bo@pier.example"],
    "subject": "Überfahrt",
    "html": "<p>Ready</p>",
    "headers": {"X-Berth": "12"},
    "attachments": FILES,
}


async def link(team: Team, email_id: str) -> dict[str, Any]:
    answer = await team.get(f"/emails/{email_id}/raw")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    assert list(found) == ["object", "id", "is_original", "download_url", "expires_at"]
    return found


async def download(team: Team, found: dict[str, Any], **headers: str) -> httpx.Response:
    path = "/files/" + found["download_url"].rpartition("/")[2]
    return await team.http.get(path, headers=headers)


def parts(raw: bytes) -> tuple[Message, list[Any]]:
    message = email.message_from_bytes(raw)
    return message, [part.get_payload(decode=True) for part in message.walk() if not part.is_multipart()]


async def test_a_message_that_is_not_kept_is_composed_as_it_leaves(pillarbox: World) -> None:
    """But for its signature, and for the attachments too, which are read as they are downloaded."""
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    email_id = await team.send(**WRITTEN)
    before = await link(team, email_id)
    assert before["is_original"] is False
    answer = await download(team, before)
    composed = answer.content
    assert answer.headers["content-length"] == str(len(composed))
    assert answer.headers["content-type"] == "message/rfc822"
    assert f"{email_id}.eml" in answer.headers["content-disposition"]
    middle = await download(team, before, range="bytes=1000-500000")
    assert middle.content == composed[1000:500001]
    message, bodies = parts(composed)
    shown = (await team.get(f"/emails/{email_id}")).json()
    assert message["message-id"] == shown["message_id"]
    assert message["x-berth"] == "12"
    assert message["dkim-signature"] is None
    assert SMALL in bodies
    assert LARGE in bodies
    await pillarbox.turn()
    after = await link(team, email_id)
    assert after["is_original"] is True
    kept = (await download(team, after)).content
    assert kept.endswith(composed)
    assert kept.startswith(b"DKIM-Signature:") or kept == composed


async def test_what_mail_to_people_says_is_withheld(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    email_id = await team.send(html=None, text="the secret link", tags=[MARK._asdict()])
    raw = (await download(team, await link(team, email_id))).content
    assert REDACTED_TEXT.encode() in raw
    assert b"secret link" not in raw
    await pillarbox.turn()
    await pillarbox.pool.execute("UPDATE captured SET sealed = true")
    found = await link(team, email_id)
    assert found["is_original"] is False
    assert b"secret link" not in (await download(team, found)).content


async def test_another_teams_message_is_not_there(pillarbox: World) -> None:
    team, other = await pillarbox.team("Harbor"), await pillarbox.team("Quay")
    await team.domain("harbor.example")
    email_id = await team.send()
    assert (await other.get(f"/emails/{email_id}/raw")).status_code == 404
    assert (await team.get(f"/emails/{UUID(int=1)}/raw")).status_code == 404
    found = await link(team, email_id)
    await pillarbox.pool.execute("DELETE FROM emails")
    assert (await download(team, found)).status_code == 404


async def test_the_page_shows_the_message_and_its_header_fields(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    ada = await logged_in(pillarbox, await a_person(team, "ada@raw.example"))
    email_id = await team.send(**{**WRITTEN, "headers": {"X-Berth": "<b>12</b>"}})
    page = await ada.get(f"/dashboard/emails/{email_id}?view=raw")
    assert "Composed from what is stored" in text_of(page)
    assert "X-Berth: &lt;b&gt;12&lt;/b&gt;" in page.text
    assert "This is only the beginning" in text_of(page)
    assert "/files/" in page.text
    headers = await ada.get(f"/dashboard/emails/{email_id}?view=headers")
    assert "MIME-Version" in text_of(headers)
    assert "&lt;b&gt;12&lt;/b&gt;" in headers.text
    await pillarbox.turn()
    assert "The message as it left" in text_of(await ada.get(f"/dashboard/emails/{email_id}?view=raw"))


async def test_slow_readers_hold_up_nobody(pillarbox: World) -> None:
    """A reader that has begun and takes nothing more leaves the memory for composing to the others."""
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    email_id = UUID(await team.send(**{**WRITTEN, "html": "<p>" + "x" * 400_000}))
    messages = SentMessages(pillarbox.pool, pillarbox.app.need(BlobStore), None)
    messages._budget = OwnedBudget(1, 1)
    slow = []
    for _ in range(6):
        found = await messages.file(team.id, email_id)
        assert found is not None
        assert found.read is not None
        reading = found.read(0, found.size)
        assert len(await anext(reading)) > 0
        slow.append(reading)
    assert messages._read_now[team.id] > 6 * 400_000
    for reading in slow:
        await reading.aclose()
    assert not messages._read_now


async def test_readers_of_one_team_are_bounded(pillarbox: World, monkeypatch: pytest.MonkeyPatch) -> None:
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    email_id = UUID(await team.send(**WRITTEN))
    messages = SentMessages(pillarbox.pool, pillarbox.app.need(BlobStore), None)
    monkeypatch.setattr("pillarbox.emails.raw_mail.messages.READ_OF_TEAM", 1)
    found = await messages.file(team.id, email_id)
    assert found is not None
    assert found.read is not None
    reading = found.read(0, found.size)
    await anext(reading)
    with pytest.raises(ServerOverloaded):
        await messages.file(team.id, email_id)
    await reading.aclose()
    assert await messages.file(team.id, email_id) is not None


async def test_no_memory_in_time_is_told(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    email_id = UUID(await team.send(**WRITTEN))
    messages = SentMessages(pillarbox.pool, pillarbox.app.need(BlobStore), None)
    async with messages._budget.of(team.id, 1 << 40):
        with TimeLimit(0.2), pytest.raises(ServerOverloaded):
            await messages.file(team.id, email_id)
    assert await messages.file(team.id, email_id) is not None
