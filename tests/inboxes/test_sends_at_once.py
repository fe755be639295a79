"""Several processes get the same send of a draft at once: its key decides, not the state of the draft."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kit.inbox_rows import an_inbox
from kit.world import world
from pillarbox.kernel.process import faults
from pillarbox.kernel.security.secrets import KeyRing


async def test_a_send_that_another_process_was_faster_with_has_its_answer(
    database_url: str, tmp_path: Path
) -> None:
    """conventions 9: the key was looked up before the other process committed; then the draft is sent."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    ring = KeyRing.generate_text()
    async with (
        world(database_url, folders[0], secret_key=ring) as one,
        world(database_url, folders[1], secret_key=ring, started=False) as two,
    ):
        team = await one.team()
        await team.domain()
        inbox = (await an_inbox(team)).id
        body = {"to": "iris@quay.example", "subject": "Order 88", "text": "It is on its way."}
        draft = (await team.post(f"/inboxes/{inbox}/drafts", body)).json()["id"]
        path = f"/inboxes/{inbox}/drafts/{draft}/send"
        slow, fast = one.client(team.token), two.client(team.token)
        headers = {"idempotency-key": "send 88"}
        with faults.armed("idempotency.looked_up=delay:1.0@1"):
            late = asyncio.create_task(slow.post(path, json={}, headers=headers))
            await asyncio.sleep(0.2)
            first = await fast.post(path, json={}, headers=headers)
            second = await late
        assert (first.status_code, second.status_code) == (200, 200), second.text
        assert second.json() == first.json()
        assert "idempotent-replayed" in second.headers
        without_key = await fast.post(path, json={})
        assert (without_key.status_code, without_key.json()["name"]) == (409, "conflict")
        other_key = await fast.post(path, json={}, headers={"idempotency-key": "another"})
        assert other_key.json()["name"] == "conflict"
