"""Broadcasts as rows, with copies whose fates are written through the timeline as the product writes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from kit.world import Team
from pillarbox.kernel.ids import EPOCH, MICROSECOND, Ids, uuid7
from pillarbox.kernel.postgres.database import transaction
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import Bounce, ClickDetail, EventDetail, EventKind, FirstEntry, TimelineEntry

INSERT_BROADCAST = """
    INSERT INTO broadcasts (team_id, id, name, sender, subject, html, status, created_at, queued_at,
                            resolved_at, sent_at, domain_name, recipients)
    VALUES ($1, $2, $3, 'Harbor <news@harbor.example>', 'Tides', '<p>Tides</p>', $4, $5, $6, $6, $7,
            'harbor.example', $8)
"""

COPIES = """
    WITH contact AS (
        INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
        SELECT $1, k.contact_id, k.address, false, $6, $6
          FROM unnest($3::uuid[], $4::text[]) AS k (contact_id, address)
    ), recipient AS (
        INSERT INTO broadcast_recipients (team_id, broadcast_id, contact_id, email_id)
        SELECT $1, $2, k.contact_id, k.email_id
          FROM unnest($3::uuid[], $5::uuid[]) AS k (contact_id, email_id)
    ), email AS (
        INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                            domain_name, broadcast_id, last_event, last_event_at)
        SELECT $1, k.id, $6, $2, '', '', '[]', '', 'harbor.example', $2, 'queued', $6
          FROM unnest($5::uuid[]) AS k (id)
    )
    INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state)
    SELECT $1, k.id, 0, 'to', k.address, k.address, 0, 'queued'
      FROM unnest($5::uuid[], $4::text[]) AS k (id, address)
"""


@dataclass(slots=True)
class Copy:
    """One recipient of a broadcast."""

    contact_id: UUID
    email_id: UUID
    address: str


@dataclass(slots=True)
class Mailing:
    """A broadcast that has been sent, with its copies."""

    team: Team
    id: UUID
    started: datetime
    copies: list[Copy] = field(default_factory=list)

    async def happens(
        self, *events: tuple[int, EventKind, datetime, EventDetail | None]
    ) -> list[TimelineEntry]:
        """Let events of copies happen, by their place in the list; return those that took effect."""
        entries = [
            TimelineEntry(
                team_id=self.team.id,
                email_id=self.copies[at].email_id,
                position=0,
                kind=kind,
                at=when,
                detail=detail,
            )
            for at, kind, when, detail in events
        ]
        async with transaction(self.team.world.pool) as conn:
            return await self.team.world.app.need(Timeline).record(conn, entries)

    async def report(self, **params: Any) -> dict[str, Any]:
        """Return a page of its recipients."""
        return await self._asked("recipients", params)

    async def links(self, **params: Any) -> dict[str, Any]:
        """Return a page of the links that were followed."""
        return await self._asked("clicked-links", params)

    async def whole(self, **params: Any) -> list[dict[str, Any]]:
        """Return all rows of a report, page by page."""
        rows: list[dict[str, Any]] = []
        while True:
            at = {"after": rows[-1]["id"]} if rows else {}
            page = await self.report(limit=100, **params, **at)
            rows += page["data"]
            if not page["has_more"]:
                return rows

    async def metrics(self) -> dict[str, int]:
        """Return what the metrics say of it, over the whole time."""
        params = {"broadcast_id": str(self.id), "start_date": "2020-01-01"}
        answer = await self.team.http.get("/emails/metrics", params=params)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["totals"])

    async def _asked(self, what: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = await self.team.http.get(f"/broadcasts/{self.id}/{what}", params=params)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


async def a_mailing(
    team: Team,
    addresses: Sequence[str] = ("ada@orchard.example", "bo@orchard.example", "cy@orchard.example"),
    *,
    started: datetime | None = None,
    status: str = "sent",
    name: str | None = None,
) -> Mailing:
    """Return a broadcast whose copies were just handed over; nothing became of them yet."""
    ids = team.world.app.need(Ids)
    started = started or datetime.now(UTC) - timedelta(hours=2)
    made = Mailing(team, UUID(int=ids.new().int), started)
    begun = None if status in ("draft", "scheduled") else started
    ended = started + timedelta(minutes=5) if status == "sent" else None
    await team.world.pool.execute(
        INSERT_BROADCAST,
        *(team.id, made.id, name, status, started, begun, ended),
        None if begun is None else len(addresses),
    )
    first = (started - EPOCH) // MICROSECOND
    for number, address in enumerate(addresses if begun else ()):
        email_id = uuid7(first + number, os.urandom(8))
        made.copies.append(Copy(UUID(int=ids.new().int), UUID(int=email_id.int), address))
    if made.copies:
        await _handed_over(made)
    return made


async def _handed_over(made: Mailing) -> None:
    team = made.team
    async with transaction(team.world.pool) as conn:
        await conn.execute(
            COPIES,
            *(team.id, made.id),
            [copy.contact_id for copy in made.copies],
            [copy.address for copy in made.copies],
            [copy.email_id for copy in made.copies],
            made.started,
        )
        openings = [
            FirstEntry(
                team_id=team.id,
                email_id=copy.email_id,
                kind=EventKind.QUEUED,
                at=made.started,
                recipients=1,
                domain_id=None,
                domain_name="harbor.example",
                broadcast_id=made.id,
            )
            for copy in made.copies
        ]
        await team.world.app.need(Timeline).record(conn, openings=openings)


def clicked(url: str, at: datetime) -> EventDetail:
    """Return what is kept of a click."""
    return EventDetail(click=ClickDetail("192.0.2.7", url, at, "Lynx"))


def bounced(kind: str = "Permanent") -> EventDetail:
    return EventDetail(bounce=Bounce(kind))


def shown(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the addresses of rows."""
    return [row["email"] for row in rows]
