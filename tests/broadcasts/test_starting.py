"""How a broadcast begins (broadcasts.md sections 6 and 8)."""

from __future__ import annotations

from pathlib import Path

from kit.broadcasts import made, recipients, sent, shown, status_of
from kit.manual_world import manual_world, run_jobs


async def test_sending_a_draft_writes_a_row_for_each_member(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        broadcast_id = await made(team)
        assert await status_of(team, broadcast_id) == "draft"
        await sent(team, broadcast_id)
        assert await status_of(team, broadcast_id) == "queued"
        await run_jobs(pillarbox)
        assert len(await recipients(team, broadcast_id)) == 3
        found = await shown(team, broadcast_id)
        assert (found["status"], found["sent_at"], found["scheduled_at"]) == ("queued", None, None)
        row = await pillarbox.pool.fetchrow("SELECT * FROM broadcasts")
        assert (row["recipients"], row["domain_name"]) == (3, "harbor.example")
        shared = await pillarbox.pool.fetchrow("SELECT * FROM contents WHERE id = $1", row["content_id"])
        assert (shared["sender"], shared["subject"]) == (found["from"], found["subject"])
