"""The shortest story: an email is accepted and captured, and every step can be read."""

from __future__ import annotations

from pathlib import Path

from kit.world import world


async def test_an_accepted_email_is_captured_and_every_step_is_readable(
    database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        email = await team.send()
        assert (await team.settled(email))["last_event"] == "delivered"
        assert await team.kinds(email) == ["queued", "sent", "delivered"]
