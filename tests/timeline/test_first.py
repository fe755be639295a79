"""First events are written without reading what was before; the result must be the same as with reading."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from kit.manual_world import clock_of
from kit.world import Team, World, mail
from pillarbox.kernel.postgres.database import TeamDb, transaction
from pillarbox.timeline.record import FirstEventConflict, Timeline
from pillarbox.timeline.rules import Bounce, EventDetail, EventKind, TimelineEntry

BOUNCED = EventDetail(code=550, bounce=Bounce("Permanent", "NoEmail"))
DELAYED = EventDetail(code=451, reply="451 later", attempt=1)

STORIES: dict[str, list[tuple[EventKind, EventDetail | None]]] = {
    "delivered": [(EventKind.SENT, EventDetail(host="mx")), (EventKind.DELIVERED, EventDetail(code=250))],
    "bounced": [(EventKind.SENT, None), (EventKind.BOUNCED, BOUNCED)],
    "delayed": [(EventKind.SENT, None), (EventKind.DELIVERY_DELAYED, DELAYED)],
    "never reached": [(EventKind.DELIVERY_DELAYED, DELAYED)],
    "failed": [(EventKind.FAILED, EventDetail(reason="tls_required"))],
    "suppressed": [(EventKind.SUPPRESSED, EventDetail(suppressed="manual"))],
    "complained": [(EventKind.SENT, None), (EventKind.DELIVERED, None), (EventKind.COMPLAINED, None)],
    "opened before": [(EventKind.OPENED, None), (EventKind.SENT, None), (EventKind.DELIVERED, None)],
}


async def record_story(
    pillarbox: World, team: Team, email: UUID, story: str, *, first: bool, position: int = 0
) -> int:
    """Record a story of one recipient; returns how many of its events took effect."""
    at = clock_of(pillarbox).now() + timedelta(seconds=1)
    entries = [
        TimelineEntry(
            team_id=team.id,
            email_id=email,
            position=position,
            kind=kind,
            at=at + timedelta(milliseconds=turn),
            detail=detail,
        )
        for turn, (kind, detail) in enumerate(STORIES[story])
    ]
    async with transaction(pillarbox.pool) as conn:
        taken = await pillarbox.app.need(Timeline).record(conn, entries, first={email} if first else ())
    return len(taken)


async def rows(pillarbox: World, team: Team, email: UUID) -> list[Any]:
    """All that the timeline writes about an email, without ids."""
    found: list[Any] = []
    for statement in (
        "SELECT last_event, last_event_at, sent_at FROM emails WHERE team_id = $1 AND id = $2",
        "SELECT position, state, sent_at, delayed_at, bounce_type, opened_at, complained_at "
        "FROM recipients WHERE team_id = $1 AND email_id = $2 ORDER BY position",
        "SELECT at, kind, position, detail FROM timeline "
        "WHERE team_id = $1 AND email_id = $2 AND kind <> 'queued' ORDER BY at, kind",
    ):
        found += [tuple(row) for row in await pillarbox.pool.fetch(statement, team.id, email)]
    return found


async def counted(pillarbox: World, team: Team) -> dict[str, int]:
    """The team's metrics so far, all but `received`."""
    row = await TeamDb(pillarbox.pool, team.id).source.fetchrow(
        "SELECT sum(sent) AS sent, sum(delivered) AS delivered, sum(delivery_delayed) AS delayed,"
        " sum(bounced_permanent) AS bounced, sum(failed) AS failed, sum(suppressed) AS suppressed,"
        " sum(complained) AS complained FROM metric_increments WHERE team_id = $1",
        team.id,
    )
    return {name: int(value or 0) for name, value in row.items()}


@pytest.mark.parametrize("story", STORIES)
async def test_first_events_leave_what_a_read_would_have_left(pillarbox: World, story: str) -> None:
    team = await pillarbox.team()
    read_first, assumed = [UUID(await team.send()) for _ in range(2)]
    before = await counted(pillarbox, team)
    effects = await record_story(pillarbox, team, read_first, story, first=False)
    between = await counted(pillarbox, team)
    assert await record_story(pillarbox, team, assumed, story, first=True) == effects
    after = await counted(pillarbox, team)
    assert await rows(pillarbox, team, assumed) == await rows(pillarbox, team, read_first)
    assert {n: after[n] - between[n] for n in after} == {n: between[n] - before[n] for n in before}


async def test_a_wrong_assumption_costs_a_read_and_nothing_else(pillarbox: World) -> None:
    """An email that was delivered to its first recipient already, and its second one's first events."""
    team = await pillarbox.team()
    to = ["delivered@simulator.example", "ann@quay.example"]
    read_first, assumed = [UUID(await team.send(to=to)) for _ in range(2)]
    for email, first in ((read_first, False), (assumed, True)):
        await record_story(pillarbox, team, email, "delivered", first=first)
    clock_of(pillarbox).advance(5)
    for email, first in ((read_first, False), (assumed, True)):
        assert await record_story(pillarbox, team, email, "bounced", first=first, position=1) == 2
        assert await record_story(pillarbox, team, email, "delivered", first=first, position=1) == 0
    assert await rows(pillarbox, team, assumed) == await rows(pillarbox, team, read_first)


async def test_a_recipient_that_is_further_than_its_email_rolls_everything_back(pillarbox: World) -> None:
    """Such rows are not written by Pillarbox; the assumption must not cover them up."""
    team = await pillarbox.team()
    email = UUID(await team.send())
    await pillarbox.pool.execute("UPDATE recipients SET state = 'bounced' WHERE email_id = $1", email)
    before = await rows(pillarbox, team, email)
    with pytest.raises(FirstEventConflict):
        await record_story(pillarbox, team, email, "delivered", first=True)
    assert await rows(pillarbox, team, email) == before


async def test_a_batch_settles_emails_that_were_met_and_others(pillarbox: World) -> None:
    """One call with emails of both kinds; each ends as its own story says."""
    team = await pillarbox.team()
    answer = await team.post("/emails/batch", [mail()] * 6)
    emails = [UUID(one["id"]) for one in answer.json()["data"]]
    await record_story(pillarbox, team, emails[1], "delayed", first=False)
    at = clock_of(pillarbox).now() + timedelta(seconds=1)
    entries = [
        TimelineEntry(team_id=team.id, email_id=email, position=0, kind=kind, at=at)
        for email in emails
        for kind in (EventKind.SENT, EventKind.DELIVERED)
    ]
    async with transaction(pillarbox.pool) as conn:
        taken = await pillarbox.app.need(Timeline).record(conn, entries, first=set(emails[:4]))
    assert len(taken) == 11
    states = await pillarbox.pool.fetch("SELECT state, sent_at FROM recipients")
    assert {row["state"] for row in states} == {"delivered"}
