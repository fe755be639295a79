"""What drafts leave behind: blobs, and drafts that were sent (inboxes.md 7; architecture 6.8)."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.file_server import file_server
from kit.inbox_rows import Inbox, inbox_world
from pillarbox.emails.integrity import blob_references
from pillarbox.inboxes.drafts import attachments, retention
from pillarbox.inboxes.sending.invariants import INVARIANTS
from pillarbox.kernel.storage.blobs import BlobStore

LARGE = {"content": b64encode(b"x" * 300_000).decode(), "filename": "large.bin"}
READY: dict[str, Any] = {"to": "iris@customer.example", "subject": "x", "text": "x", "attachments": [LARGE]}


async def drafted(inbox: Inbox) -> str:
    return str((await inbox.team.post(f"{inbox.url}/drafts", READY)).json()["id"])


def blobs_of(folder: Path) -> int:
    return len([path for path in folder.rglob("*") if path.is_file() and "drafts" in path.parts])


async def test_blobs_of_drafts_are_named_by_their_rows(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        await drafted(inbox)
        pool, blobs = inbox.team.world.pool, inbox.team.world.app.need(BlobStore)
        later = inbox.team.world.clock.now() + timedelta(days=3)
        found = await blob_references.take(pool, blobs, later, 10, collect=True)
        assert (found.named, found.unnamed, found.gaps) == (1, 0, [])
        assert blobs_of(tmp_path) == 1
        await pool.execute("DELETE FROM inbox_draft_attachments")
        found = await blob_references.take(pool, blobs, later, 10, collect=True)
        assert (found.named, found.collected) == (0, 1)
        assert blobs_of(tmp_path) == 0


async def test_a_change_that_is_refused_leaves_no_blob(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        body = {**READY, "thread_id": str(inbox.new_id()), "reply_to_email_id": str(inbox.new_id())}
        assert (await inbox.team.post(f"{inbox.url}/drafts", body)).status_code == 404
        body = {**READY, "attachments": [LARGE, {"path": "http://127.0.0.1:9/x", "filename": "x"}]}
        assert (await inbox.team.post(f"{inbox.url}/drafts", body)).status_code == 422
        assert blobs_of(tmp_path) == 0


async def test_replaced_and_sent_files_let_go_of_their_blobs(database_url: str, tmp_path: Path) -> None:
    async with inbox_world(database_url, tmp_path) as inbox:
        draft = await drafted(inbox)
        await inbox.team.call("PATCH", f"{inbox.url}/drafts/{draft}", {"attachments": [LARGE]})
        assert blobs_of(tmp_path) == 1
        assert (await inbox.team.post(f"{inbox.url}/drafts/{draft}/send")).status_code == 200
        assert blobs_of(tmp_path) == 0


async def test_a_draft_that_was_sent_goes_with_its_message(inbox: Inbox) -> None:
    unsent, sent = await drafted(inbox), await drafted(inbox)
    assert (await inbox.team.post(f"{inbox.url}/drafts/{sent}/send")).status_code == 200
    pool = inbox.team.world.pool
    assert await retention.purge(pool) == 0
    assert (await inbox.get(f"/drafts/{sent}")).status_code == 200
    await pool.execute("DELETE FROM inbox_messages")
    assert await retention.purge(pool) == 1
    assert (await inbox.get(f"/drafts/{sent}")).status_code == 404
    assert (await inbox.get(f"/drafts/{unsent}")).status_code == 200


async def test_a_path_is_downloaded_at_once(database_url: str, tmp_path: Path) -> None:
    """inboxes.md 7.2: what cannot be had is refused with the draft, and nothing is asked for later."""
    files = {"/map": b"map", "/moved": b"302 /map", "/empty": b"", "/large": b"x" * 300_000}
    async with (
        file_server(files) as (origin, asked),
        inbox_world(database_url, tmp_path, allow_private="127.0.0.0/8") as inbox,
    ):
        url = f"{inbox.url}/drafts"

        def given(path: str) -> dict[str, Any]:
            return {"attachments": [{"path": f"{origin}{path}", "filename": "map.png"}]}

        for path in ("/missing", "/empty"):
            answer = await inbox.team.post(url, given(path))
            assert (answer.status_code, answer.json()["name"]) == (422, "invalid_attachment")
            assert "`attachments[0].path`" in answer.json()["message"]
        draft = (await inbox.team.post(url, given("/moved"))).json()["id"]
        [attached] = (await inbox.get(f"/drafts/{draft}")).json()["attachments"]
        assert (attached["filename"], attached["content_type"], attached["size"]) == (
            "map.png",
            "image/png",
            3,
        )
        await inbox.team.call("PATCH", f"{url}/{draft}", {**READY, **given("/large")})
        asked.clear()
        sent = (await inbox.team.post(f"{url}/{draft}/send")).json()
        [file] = (await inbox.team.get(f"/emails/{sent['email_id']}/attachments")).json()["data"]
        assert (file["size"], asked) == (300_000, [])


async def test_a_server_that_says_nothing_is_not_waited_for(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "DOWNLOAD_SECONDS", 0.2)
    silent = await asyncio.start_server(lambda _, __: asyncio.sleep(30), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with inbox_world(database_url, tmp_path, allow_private="127.0.0.0/8") as inbox:
        path = {"path": f"http://127.0.0.1:{port}/x", "filename": "x"}
        answer = await inbox.team.post(f"{inbox.url}/drafts", {"attachments": [path, path]})
        assert (answer.status_code, answer.json()["name"]) == (422, "invalid_attachment")
    silent.close()


async def test_verify_finds_mail_that_no_inbox_shows(inbox: Inbox) -> None:
    sent, unsent = await drafted(inbox), await drafted(inbox)
    email = (await inbox.team.post(f"{inbox.url}/drafts/{sent}/send")).json()["email_id"]
    pool = inbox.team.world.pool

    async def broken() -> set[str]:
        return {one.name for one in INVARIANTS if await pool.fetch(one.sql, 5, *one.args)}

    assert await broken() == set()
    await pool.execute("UPDATE inbox_drafts SET email_id = $1 WHERE id = $2", email, unsent)
    assert await broken() == {"email_of_two_drafts"}
    await pool.execute("DELETE FROM inbox_drafts")
    await pool.execute("DELETE FROM inbox_messages")
    assert await broken() == {"email_without_message"}
