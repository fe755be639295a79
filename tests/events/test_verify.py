"""`pillarbox verify` names what is wrong with events."""

from __future__ import annotations

from kit.world import World
from pillarbox.events.invariants import INVARIANTS


async def violations(pillarbox: World) -> set[str]:
    found = set()
    for invariant in INVARIANTS:
        if await pillarbox.pool.fetch(invariant.sql, 10, *invariant.args):
            found.add(invariant.name)
    return found


async def test_an_event_without_a_job_and_one_in_another_partition_are_named(pillarbox: World) -> None:
    team = await pillarbox.team()
    for _ in range(2):
        await team.post("/events/send", {"event": "x", "email": "ada@quay.example"})
    assert await violations(pillarbox) == set()
    await pillarbox.pool.execute(
        "UPDATE events SET partition = (partition + 1) % 16 WHERE number = (SELECT max(number) FROM events)"
    )
    assert await violations(pillarbox) == {"event_without_job", "event_in_two_partitions"}
    await pillarbox.pool.execute("DELETE FROM events WHERE number = (SELECT max(number) FROM events)")
    assert await violations(pillarbox) == set()
    await pillarbox.pool.execute("UPDATE jobs SET attempt = 4, begun = 3 WHERE kind = 'events.distribute'")
    assert await violations(pillarbox) == {"event_without_job"}
    await pillarbox.pool.execute("UPDATE events SET failed_at = now(), reason = 'internal_error'")
    assert await violations(pillarbox) == set()
