"""Copies that are tried again, and what comes back of those that were delivered."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from kit.audience import a_property
from kit.broadcasts import crew, made, recipients, sent, status_of
from kit.brought import INVARIANTS
from kit.manual_world import clock_of, parsed, relayed_world, run_jobs
from kit.reports import about, bounce, came_back, complaint, token_of
from kit.world import Team, World
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.receiving.reports.return_path import ReportOutcome

URL = "https://mail.harbor.example"

EMAILS = """
    SELECT e.id::text AS id, r.address
      FROM emails e
      JOIN recipients r ON r.team_id = e.team_id AND r.email_id = e.id
     WHERE e.broadcast_id = $1
     ORDER BY r.address
"""


async def copies(team: Team, broadcast_id: str) -> list[tuple[str, str]]:
    """Email and address of each."""
    return [tuple(row) for row in await team.world.pool.fetch(EMAILS, UUID(broadcast_id))]


async def test_another_attempt_has_the_same_bytes(database_url: str, tmp_path: Path) -> None:
    """Whatever has become of its contact, the property, the segment and the broadcast meanwhile, and in
    another process."""
    async with relayed_world(database_url, tmp_path, public_url=URL) as (pillarbox, sink):
        team = await pillarbox.team()
        await team.domain()
        await a_property(team, "plan")
        segment_id = await crew(team, 1)
        broadcast_id = await made(
            team,
            segment_id,
            subject="{{{FIRST_NAME|Sailor}}}: {{{plan}}}",
            html="<body><p>{{{FIRST_NAME}}} {{{plan|none}}} {{{UNSUBSCRIBE_URL}}}</p></body>",
            preview_text="To {{{EMAIL}}}",
            reply_to=["crew@harbor.example"],
        )
        await sent(team, broadcast_id)
        await run_jobs(pillarbox)
        [contact] = await recipients(team, broadcast_id)
        await team.call(
            "PATCH", f"/contacts/{contact}", {"first_name": "Ada", "properties": {"plan": "gold"}}
        )
        sink.script("DOT", "451 4.3.0 later", "451 4.3.0 later")
        await pillarbox.turn()
        await team.call("PATCH", f"/contacts/{contact}", {"first_name": "Eve", "properties": {"plan": "tin"}})
        [known] = (await team.get("/contact-properties")).json()["data"]
        assert (await team.call("DELETE", f"/contact-properties/{known['id']}")).status_code == 200
        assert (await team.call("DELETE", f"/segments/{segment_id}")).status_code == 200
        await team.call("PATCH", f"/broadcasts/{broadcast_id}", {"name": "Other"})
        for seconds in (100, 400):
            clock_of(pillarbox).advance(seconds)
            await run_jobs(pillarbox)
            await pillarbox.turn()
        [message] = await sink.messages(1)
        contents = [content for session in sink.sessions for content in session.refused] + [message.content]
        assert len(contents) == 3
        assert len(set(contents)) == 1
        assert parsed(message)["subject"] == "Ada: gold"
        assert await status_of(team, broadcast_id) == "sent"


@pytest.mark.parametrize("kind", ["bounced", "complained"])
async def test_what_comes_back_counts_for_the_broadcast_and_for_the_next_one(
    pillarbox: World, kind: str
) -> None:
    team = await pillarbox.team()
    segment_id = await crew(team, 3)
    first, second = await made(team, segment_id), await made(team, segment_id)
    await sent(team, first)
    await run_jobs(pillarbox)
    await pillarbox.turn()
    [(email, address), *others] = await copies(team, first)
    token = await token_of(pillarbox, email)
    if kind == "bounced":
        raw = bounce(about(address, status="5.1.1", said="550 5.1.1 no such user"))
        assert await came_back(pillarbox, token, raw) is ReportOutcome.RECORDED
    else:
        raw = complaint(original=f"Return-Path: <{token}@send.harbor.example>\nSubject: The tides")
        assert await came_back(pillarbox, "", raw) is ReportOutcome.RECORDED
    assert (await team.kinds(email))[-1] == kind
    found = (await team.get(f"/broadcasts/{first}/recipients?type={kind}")).json()["data"]
    assert [one["email"] for one in found] == [address]
    await sent(team, second)
    await run_jobs(pillarbox)
    await pillarbox.turn()
    clock_of(pillarbox).advance(2)
    await run_jobs(pillarbox)
    assert await status_of(team, second) == "sent"
    ends = {to: (await team.kinds(of))[-1] for of, to in await copies(team, second)}
    assert ends == {address: "suppressed"} | {to: "delivered" for _, to in others}
    gaps = (await reconcile(pillarbox.pool, 10, INVARIANTS)).gaps
    assert gaps == []
