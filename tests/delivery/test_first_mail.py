"""The shortest story: an email is accepted and captured, and every step can be read."""

from __future__ import annotations

from kit.world import World


async def test_an_accepted_email_is_captured_and_every_step_is_readable(running: World) -> None:
    team = await running.team()
    email = await team.send()
    assert (await team.settled(email))["last_event"] == "delivered"
    assert await team.kinds(email) == ["queued", "sent", "delivered"]
