"""Recording events: one call, in the caller's transaction, for a whole batch.

Order of locks everywhere: work items, then emails, then recipients, each in key order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.kernel import faults
from pillarbox.kernel.db import Connection
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.together import Expected, Statement
from pillarbox.timeline import queries
from pillarbox.timeline.queries import Belongs, Crossed, First, Wanted
from pillarbox.timeline.rules import RANK, Detail, Entry, Fate, Kind, Opening, Step, step

__all__ = ["Belongs", "Crossed", "Publish", "Published", "Timeline"]

QUARTER = 15
SLOT = 10
"""Seconds: increments are kept apart no finer than ranges can ask cheaply (`rollups`)."""


class Published(NamedTuple):
    """An event that subscribers may want; `positions` are the recipients it is about (None: all)."""

    team_id: UUID
    email_id: UUID
    positions: tuple[int, ...] | None
    kind: Kind
    at: datetime
    detail: Detail | None


Publish = Callable[[Connection, Sequence[Published]], Awaitable[None]]
"""The webhook hook: writes the deliveries of every subscribed endpoint in the same transaction. It is not
called for a team that has no webhook: the statement that appends the history tells who has one, so looking
costs no statement of its own."""

EVENT_OF = {kind: f"email.{kind.value}" for kind in Kind}
"""What the webhooks call them."""


async def publish_to_nobody(_conn: Connection, _events: Sequence[Published]) -> None:
    """The hook of an installation without webhooks."""


def _is_wanted(event: Published, wanted: Wanted) -> bool:
    return EVENT_OF[event.kind] in wanted.get(event.team_id, ())


class Opened(NamedTuple):
    """What the first entries of emails write, and what is to be published of them where it is wanted."""

    writes: list[Statement]
    published: list[Published]


class Settled(NamedTuple):
    """What the first events of some emails write, all or nothing."""

    writes: list[Expected]
    taken: list[Entry]


class _Counted(NamedTuple):
    team_id: UUID
    start: datetime
    domain_id: UUID | None
    domain_name: str
    broadcast_id: UUID | None


class Timeline:
    """Writes the fate of emails. It remembers nothing but which teams have webhooks, of those it met."""

    def __init__(self, ids: Ids, publish: Publish = publish_to_nobody) -> None:
        self._ids = ids
        self._publish = publish
        self._told: frozenset[UUID] = frozenset()

    async def record(
        self,
        conn: Connection,
        entries: Sequence[Entry] = (),
        openings: Sequence[Opening] = (),
        *,
        first: Collection[UUID] = (),
    ) -> list[Entry]:
        """Write these events and all that follows from them; returns the entries that took effect.

        `entries` are events of recipients, in order of time per recipient. `openings` are first
        entries of emails that this same transaction inserts.

        `first` names emails (of one recipient) that nobody else has anything to say about, as far as the
        caller knows: theirs are written at once, and looked at before only where that turns out wrong.
        `Crossed` means that the transaction has to be repeated without `first`.
        """
        batch = _Batch(self._ids)
        for opening in openings:
            batch.open(opening)
        if first and entries:
            hoped = [entry for entry in entries if entry.email_id in first]
            entries = [entry for entry in entries if entry.email_id not in first]
            entries += await self._settle_first(conn, hoped, batch)
        if entries:
            await self._settle(conn, entries, batch)
        if batch.fates or batch.heads:
            await queries.write(conn, batch.fate_rows(), batch.head_rows())
        await faults.point("timeline.events")
        wanted: Wanted = {}
        if batch.lines:
            wanted = await queries.append(conn, batch.lines, batch.increments())
            self._told = self._told - {line["team_id"] for line in batch.lines} | wanted.keys()
        if batch.published:
            await self.publish(conn, batch.published, wanted)
        return batch.taken

    def opened(self, openings: Sequence[Opening]) -> Opened:
        """What the first entries of emails write, for a transaction that inserts the emails."""
        batch = _Batch(self._ids)
        for opening in openings:
            batch.open(opening)
        return Opened(queries.appends(batch.lines, batch.increments()), batch.published)

    def settled(
        self, entries: Sequence[Entry], belongs: Mapping[tuple[UUID, UUID], Belongs]
    ) -> Settled | None:
        """What these events write as the first ones of their emails, in a statement of its own.

        `belongs` says where each email does. None where they cannot be the first, or where a webhook may want
        them.
        """
        batch = _Batch(self._ids)
        rows = []
        for email, said in _by_email(entries).items():
            made = _first(said) if email[0] not in self._told else None
            if made is None:
                return None
            first, steps = made
            rows.append((first, belongs[email]))
            batch.adopt(belongs[email]._asdict(), steps)
        appends = [Expected(*write) for write in queries.appends(batch.lines, batch.increments())]
        nobody = queries.nobody_told({team for team, _ in belongs})
        return Settled([*queries.firsts(rows), nobody, *appends], batch.taken)

    async def publish(self, conn: Connection, events: Sequence[Published], wanted: Wanted) -> None:
        """Hand the events that are wanted to the webhooks, in the transaction that has written them."""
        await faults.point("webhooks.rows")
        if wanted:
            await self._publish(conn, [e for e in events if _is_wanted(e, wanted)])

    async def release(
        self, conn: Connection, team_id: UUID, email_ids: Sequence[UUID], at: datetime
    ) -> set[UUID]:
        """Take scheduled emails into the queue; returns those that were still scheduled."""
        return await self._move(conn, team_id, email_ids, Kind.QUEUED, at)

    async def cancel(self, conn: Connection, team_id: UUID, email_id: UUID, at: datetime) -> bool:
        """Cancel a scheduled email; False where it is not scheduled any more."""
        return bool(await self._move(conn, team_id, [email_id], Kind.CANCELED, at))

    async def _move(
        self, conn: Connection, team_id: UUID, email_ids: Sequence[UUID], kind: Kind, at: datetime
    ) -> set[UUID]:
        moved = await queries.move_emails(conn, team_id, sorted(email_ids), kind.value, at)
        if moved:
            lines = [
                {
                    "team_id": team_id,
                    "id": self._ids.new(),
                    "email_id": email_id,
                    "at": at,
                    "kind": kind.value,
                }
                for email_id in moved
            ]
            await queries.append(conn, lines, ())
        return set(moved)

    async def _settle_first(self, conn: Connection, entries: Sequence[Entry], batch: _Batch) -> list[Entry]:
        """Settle first events without a look at what was before; returns those of which that is not known."""
        left: list[Entry] = []
        firsts: dict[tuple[UUID, UUID], tuple[First, list[tuple[Entry, Step]]]] = {}
        for email, said in _by_email(entries).items():
            made = _first(said)
            if made is None:
                left += said
            else:
                firsts[email] = made
        if firsts:
            met = await queries.write_first(conn, [first for first, _ in firsts.values()])
            for email, (_, steps) in firsts.items():
                row = met.get(email)
                if row is None:
                    left += [entry for entry, _ in steps]
                else:
                    batch.adopt(row, steps)
        return left

    async def _settle(self, conn: Connection, entries: Sequence[Entry], batch: _Batch) -> None:
        keys = {(e.team_id, e.email_id, e.position) for e in entries if e.position is not None}
        for row in await queries.lock(conn, list(keys)):
            batch.meet(row)
        for entry in entries:
            batch.apply(entry)


def _by_email(entries: Sequence[Entry]) -> dict[tuple[UUID, UUID], list[Entry]]:
    found: dict[tuple[UUID, UUID], list[Entry]] = {}
    for entry in entries:
        found.setdefault((entry.team_id, entry.email_id), []).append(entry)
    return found


def _first(entries: Sequence[Entry]) -> tuple[First, list[tuple[Entry, Step]]] | None:
    """What these events make of an email that was queued and no more; None where they are not its first, or
    not of one recipient."""
    position = entries[0].position
    fate = Fate(Kind.QUEUED)
    head: tuple[Kind, datetime] = (Kind.QUEUED, entries[0].at)
    steps = []
    for entry in entries:
        moved = step(fate, entry)
        if moved is None or position is None or entry.position != position:
            return None
        fate = moved.fate
        if moved.shows and (entry.at, RANK[entry.kind]) > (head[1], RANK[head[0]]):
            head = (entry.kind, entry.at)
        steps.append((entry, moved))
    if position is None or any(fate[4:]):
        return None
    since = min(entry.at for entry in entries)
    team_id, email_id = entries[0][:2]
    return First(team_id, email_id, position, fate, head[0].value, head[1], fate.sent_at, since), steps


_encode = msgspec.json.Encoder().encode


class _Batch:
    """The changes of one `record`, gathered before anything is written."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._known: dict[tuple[UUID, UUID, int], Fate] = {}
        self._emails: dict[tuple[UUID, UUID], Any] = {}
        self._counts: dict[_Counted, dict[str, int]] = {}
        self.fates: dict[tuple[UUID, UUID, int], Fate] = {}
        self.heads: dict[tuple[UUID, UUID], tuple[Kind, datetime, datetime | None]] = {}
        self.lines: list[queries.Row] = []
        self.published: list[Published] = []
        self.taken: list[Entry] = []

    def open(self, opening: Opening) -> None:
        self._line(opening.team_id, opening.email_id, opening.at, opening.kind, None, None)
        where = _Counted(
            opening.team_id,
            slot(opening.at),
            opening.domain_id,
            opening.domain_name,
            opening.broadcast_id,
        )
        self._count(where, "received", opening.recipients)
        if opening.kind is Kind.SCHEDULED:
            self.published.append(
                Published(opening.team_id, opening.email_id, None, opening.kind, opening.at, None)
            )

    def meet(self, row: Any) -> None:
        email = (row["team_id"], row["email_id"])
        self._emails[email] = row
        self._known[(*email, row["position"])] = Fate(
            Kind(row["state"]),
            row["sent_at"],
            row["delayed_at"],
            row["bounce_type"],
            row["opened_at"],
            row["clicked_at"],
            row["complained_at"],
            row["unsubscribed_at"],
        )

    def apply(self, entry: Entry) -> None:
        if entry.position is None:
            raise ValueError("an event of a whole email goes through release or cancel")
        key = (entry.team_id, entry.email_id, entry.position)
        fate = self._known.get(key)
        moved = step(fate, entry) if fate is not None else None
        if moved is None:
            return
        self._known[key] = self.fates[key] = moved.fate
        row = self._emails[key[:2]]
        self._note(entry, moved, row, first_sent=self._head(key[:2], row, entry, shows=moved.shows))

    def adopt(self, row: Any, steps: Sequence[tuple[Entry, Step]]) -> None:
        """Steps of an email's first events, which are written already."""
        for entry, moved in steps:
            self._note(entry, moved, row, first_sent=entry.kind is Kind.SENT)

    def _note(self, entry: Entry, moved: Step, row: Any, *, first_sent: bool) -> None:
        """History, metrics and webhooks of one event that took effect."""
        self.taken.append(entry)
        detail = entry.detail
        if not moved.publishes and detail is not None:
            detail = msgspec.structs.replace(detail, repeated=True)
        self._line(entry.team_id, entry.email_id, entry.at, entry.kind, entry.position, detail)
        where = _Counted(
            entry.team_id, slot(entry.at), row["domain_id"], row["domain_name"], row["broadcast_id"]
        )
        for metric in moved.counts:
            self._count(where, metric, 1)
        if moved.publishes:
            self._announce(entry, first_sent)

    def _head(self, email: tuple[UUID, UUID], row: Any, entry: Entry, *, shows: bool) -> bool:
        """Bring the email's own columns up to date; True for the event that makes it `sent`."""
        kind, at, sent_at = self.heads.get(email) or (
            Kind(row["last_event"]),
            row["last_event_at"],
            row["email_sent_at"],
        )
        first_sent = entry.kind is Kind.SENT and sent_at is None
        if first_sent:
            sent_at = entry.at
        if shows and (entry.at, RANK[entry.kind]) > (at, RANK[kind]):
            kind, at = entry.kind, entry.at
        self.heads[email] = (kind, at, sent_at)
        return first_sent

    def _announce(self, entry: Entry, first_sent: bool) -> None:
        if entry.kind is Kind.SENT:
            if first_sent:
                self.published.append(
                    Published(entry.team_id, entry.email_id, None, entry.kind, entry.at, entry.detail)
                )
            return
        positions = (entry.position,) if entry.position is not None else None
        self.published.append(
            Published(entry.team_id, entry.email_id, positions, entry.kind, entry.at, entry.detail)
        )

    def _line(
        self,
        team_id: UUID,
        email_id: UUID,
        at: datetime,
        kind: Kind,
        position: int | None,
        detail: Detail | None,
    ) -> None:
        self.lines.append(
            {
                "team_id": team_id,
                "id": self._ids.new(),
                "email_id": email_id,
                "at": at,
                "kind": kind.value,
                "position": position,
                "detail": None if detail is None else _encode(detail).decode(),
            }
        )

    def _count(self, where: _Counted, metric: str, amount: int) -> None:
        counts = self._counts.setdefault(where, {})
        counts[metric] = counts.get(metric, 0) + amount

    def fate_rows(self) -> list[tuple[UUID, UUID, int, Fate]]:
        return [(*key, fate) for key, fate in self.fates.items()]

    def head_rows(self) -> list[tuple[UUID, UUID, str, datetime, datetime | None]]:
        return [(*key, kind.value, at, sent_at) for key, (kind, at, sent_at) in self.heads.items()]

    def increments(self) -> list[queries.Row]:
        return [
            {
                **_ZEROS,
                **counts,
                "team_id": where.team_id,
                "id": self._ids.new(),
                "start": where.start,
                "domain_id": where.domain_id,
                "domain_name": where.domain_name,
                "broadcast_id": where.broadcast_id,
            }
            for where, counts in self._counts.items()
        ]


_ZEROS = dict.fromkeys(queries.METRICS, 0)


def quarter(at: datetime) -> datetime:
    """The quarter hour that an instant lies in, in UTC."""
    utc = at.astimezone(UTC)
    return utc.replace(minute=utc.minute - utc.minute % QUARTER, second=0, microsecond=0)


def slot(at: datetime) -> datetime:
    """The ten seconds that an instant lies in, in UTC."""
    utc = at.astimezone(UTC)
    return utc.replace(second=utc.second - utc.second % SLOT, microsecond=0)
