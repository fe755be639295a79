"""Broadcasts of a team, by the API, with an audience by rows."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kit.audience import a_contact, a_segment, joins
from kit.manual_world import run_jobs
from kit.world import Team

WANTED = {
    "from": "Harbor <news@harbor.example>",
    "subject": "{{{FIRST_NAME|Sailor}}}, the tides of October",
    "html": '<p>Hello {{{contact.first_name|sailor}}}</p><a href="{{{PILLARBOX_UNSUBSCRIBE_URL}}}">Leave</a>',
}


async def crew(team: Team, count: int = 3) -> UUID:
    """Make a segment with so many members; return its id."""
    segment_id = await a_segment(team)
    names = [f"c{n}-{segment_id.hex[-8:]}" for n in range(count)]
    await joins(team, segment_id, [await a_contact(team, f"{name}@quay.example") for name in names])
    return segment_id


async def made(team: Team, segment_id: UUID | str | None = None, **fields: Any) -> str:
    """Make a new broadcast, right but for `fields`; return its id."""
    wanted = {**WANTED, "segment_id": str(segment_id or await crew(team)), **fields}
    answer = await team.post("/broadcasts", {name.rstrip("_"): value for name, value in wanted.items()})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def shown(team: Team, broadcast_id: str) -> dict[str, Any]:
    answer = await team.get(f"/broadcasts/{broadcast_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def status_of(team: Team, broadcast_id: str) -> str:
    return str((await shown(team, broadcast_id))["status"])


async def sent(team: Team, broadcast_id: str, **body: Any) -> None:
    """Send it, or schedule it with `scheduled_at`."""
    answer = await team.post(f"/broadcasts/{broadcast_id}/send", body)
    assert answer.status_code == 200, answer.text


async def recipients(team: Team, broadcast_id: str) -> list[UUID]:
    """Return the contacts that get it, as the snapshot found them."""
    rows = await team.world.pool.fetch(
        "SELECT contact_id FROM broadcast_recipients WHERE team_id = $1 AND broadcast_id = $2 ORDER BY 1",
        team.id,
        UUID(broadcast_id),
    )
    return [row["contact_id"] for row in rows]


async def in_status(team: Team, status: str) -> str:
    """Make a broadcast that has come to this status as it would anywhere; return its id."""
    segment_id = await crew(team, 0 if status == "sent" else 2)
    broadcast_id = await made(team, segment_id)
    if status == "scheduled":
        await sent(team, broadcast_id, scheduled_at="in 1 hour")
    elif status != "draft":
        await sent(team, broadcast_id)
    if status == "canceled":
        assert (await team.post(f"/broadcasts/{broadcast_id}/cancel")).status_code == 200
    if status == "failed":
        assert (await team.call("DELETE", f"/segments/{segment_id}")).status_code == 200
    if status in ("sent", "failed", "queued"):
        await run_jobs(team.world)
    assert await status_of(team, broadcast_id) == status
    return broadcast_id
