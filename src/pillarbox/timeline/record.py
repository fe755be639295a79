"""Recording events: one call, in the caller's transaction, for a whole batch.

Order of locks everywhere: work items, then emails, then recipients, each in key order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.combined_statement import ExpectedRowCount, Statement
from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.kernel.process import faults
from pillarbox.timeline import queries
from pillarbox.timeline.batch import PublishedEvent, TimelineBatch
from pillarbox.timeline.queries import FirstEventColumns, FirstEventConflict, MetricDimensions, Wanted
from pillarbox.timeline.rules import (
    EventEffect,
    EventKind,
    FirstEntry,
    RecipientFate,
    TimelineEntry,
    place,
    step,
)

__all__ = ["FirstEventConflict", "MetricDimensions", "PublishedEvent", "Timeline", "TimelineHook"]


class TimelineHook(Protocol):
    """The webhook hook: the deliveries of every subscribed endpoint are written with the event.

    It is not called for a team that has no webhook: the statement that appends the history returns who has
    one, so finding out costs no statement of its own.
    """

    async def publish(self, conn: Connection, events: Sequence[PublishedEvent]) -> None:
        """Write them in this transaction."""
        ...

    def statement(self, events: Sequence[PublishedEvent]) -> Statement:
        """Return the statement that writes the events, as part of a larger one. Call `committed` after its
        commit."""
        ...

    def committed(self) -> None:
        """Wake whoever delivers."""
        ...


KNOWN_SECONDS = 1.0
"""How long what was learned of a team's webhooks counts as known."""

MOST_LEARNED = 10_000

EVENT_OF = {kind: f"email.{kind.value}" for kind in EventKind}
"""The names of events in webhooks."""


def _is_wanted(event: PublishedEvent, is_subscribed: Wanted) -> bool:
    return EVENT_OF[event.kind] in is_subscribed.get(event.team_id, ())


class FirstEntries(NamedTuple):
    """The statements that write the first entries of emails, and the events to publish where a webhook wants
    them."""

    writes: list[Statement]
    published: list[PublishedEvent]


class OpenedBeside(NamedTuple):
    """As `FirstEntries`, for a statement that writes the lines of history with the emails: `ids` are
    theirs."""

    ids: list[UUID]
    writes: list[Statement]
    published: list[PublishedEvent]


class FirstEventsWritten(NamedTuple):
    """The statements that write the first events of some emails, all or nothing. `announces`: webhooks want
    some."""

    writes: list[ExpectedRowCount]
    taken: list[TimelineEntry]
    announces: bool


class Timeline:
    """Writes the events of emails. Its only state is which webhooks teams had lately."""

    def __init__(self, ids: Ids, announcer: TimelineHook) -> None:
        self._ids = ids
        self._announcer = announcer
        self._subscribed: dict[UUID, Counter[str]] = {}
        self._learned: dict[UUID, float] = {}

    async def record(
        self,
        conn: Connection,
        entries: Sequence[TimelineEntry] = (),
        openings: Sequence[FirstEntry] = (),
        *,
        first: Collection[UUID] = (),
    ) -> list[TimelineEntry]:
        """Write these events and all that follows from them; returns the entries that took effect.

        `entries` are events of recipients, in order of time per recipient. `openings` are first
        entries of emails that this same transaction inserts.

        `first` names emails (of one recipient) that nobody else has anything to say about, as far as the
        caller knows: theirs are written at once, and read before only where that turns out wrong.
        `FirstEventConflict` means that the transaction has to be repeated without `first`.
        """
        batch = TimelineBatch(self._ids)
        for opening in openings:
            batch.open(opening)
        if first and entries:
            expected_first = [entry for entry in entries if entry.email_id in first]
            entries = [entry for entry in entries if entry.email_id not in first]
            entries += await self._settle_first(conn, expected_first, batch)
        if entries:
            await self._settle(conn, entries, batch)
        if batch.fates or batch.heads:
            await queries.write(conn, batch.fate_rows(), batch.head_rows())
        await faults.point("timeline.events")
        wanted: Wanted = {}
        if rows := batch.rows():
            wanted = await queries.append(conn, rows, batch.increments())
            self._note_webhooks({row["team_id"] for row in rows}, wanted)
        if batch.published:
            await self.publish(conn, batch.published, wanted)
        return batch.taken

    def opened(self, openings: Sequence[FirstEntry]) -> FirstEntries:
        """Return the statements of the first entries, for the transaction that inserts the emails."""
        batch = TimelineBatch(self._ids)
        for opening in openings:
            batch.open(opening)
        return FirstEntries(queries.appends(batch.rows(), batch.increments()), batch.published)

    def opened_beside(self, openings: Sequence[FirstEntry]) -> OpenedBeside:
        """Return the first entries for a statement that inserts the emails together with their lines of
        history. Each line has the id at its place here, the time of its email, and as its kind the email's
        `last_event`."""
        batch = TimelineBatch(self._ids)
        for opening in openings:
            batch.count_opening(opening)
        writes = queries.counts_received(batch.received())
        return OpenedBeside(self._ids.several(len(openings)), writes, batch.published)

    def settled(
        self, entries: Sequence[TimelineEntry], dimensions: Mapping[tuple[UUID, UUID], MetricDimensions]
    ) -> FirstEventsWritten | None:
        """Return the statements that write these events as the first of their emails; None where they cannot
        be the first. `dimensions` has those of each email. The writes fail (RowCountMismatch) where a team
        has a webhook that is not known here.
        """
        batch = TimelineBatch(self._ids)
        rows = []
        for email, events in _by_email(entries).items():
            made = _first(events)
            if made is None:
                return None
            first, steps = made
            rows.append((first, dimensions[email]))
            batch.adopt(dimensions[email], steps)
        appends = queries.appends(batch.rows(), batch.increments())
        announced = [event for event in batch.published if event.team_id in self._subscribed]
        if announced:
            appends.append(self._announcer.statement(announced))
        nobody = queries.none_subscribed({team for team, _ in dimensions} - self._subscribed.keys())
        writes = [*queries.firsts(rows), nobody, *[ExpectedRowCount(*write) for write in appends]]
        return FirstEventsWritten(writes, batch.taken, bool(announced))

    async def learn(self, source: Source, teams: Collection[UUID], boottime: float) -> None:
        """Read which webhooks these teams have, if the last reading is old."""
        before = boottime - KNOWN_SECONDS
        teams = {team for team in teams if self._learned.get(team, before) <= before}
        if not teams:
            return
        self._note_webhooks(teams, await queries.wanted(source, teams))
        if len(self._learned) > MOST_LEARNED:
            self._learned.clear()
        self._learned.update(dict.fromkeys(teams, boottime))

    def has_webhooks(self, team_id: UUID) -> bool:
        """Return whether the team had any when it was last met."""
        return team_id in self._subscribed

    def fan_out(self, team_id: UUID, kinds: Iterable[EventKind]) -> int:
        """Return how many deliveries to webhooks events of these kinds cause, by what is known of the
        team."""
        wanted = self._subscribed.get(team_id)
        return 0 if wanted is None else sum([wanted[EVENT_OF[kind]] for kind in kinds])

    def _note_webhooks(self, teams: Collection[UUID], is_subscribed: Wanted) -> None:
        for team_id in teams:
            if team_id in is_subscribed:
                self._subscribed[team_id] = is_subscribed[team_id]
            else:
                self._subscribed.pop(team_id, None)

    def committed(self) -> None:
        """Wake the dispatchers of webhooks, once the events of `settled` are committed."""
        self._announcer.committed()

    async def publish(
        self, conn: Connection, events: Sequence[PublishedEvent], is_subscribed: Wanted
    ) -> None:
        """Hand the events that are wanted to the webhooks, in the transaction that has written them."""
        await faults.point("webhooks.rows")
        if is_subscribed:
            await self._announcer.publish(conn, [e for e in events if _is_wanted(e, is_subscribed)])

    async def release(
        self, conn: Connection, team_id: UUID, email_ids: Sequence[UUID], now: datetime
    ) -> set[UUID]:
        """Take scheduled emails into the queue; returns those that were still scheduled."""
        return await self._move(conn, team_id, email_ids, EventKind.QUEUED, now)

    async def cancel(self, conn: Connection, team_id: UUID, email_id: UUID, now: datetime) -> bool:
        """Cancel a scheduled email; False where it is not scheduled any more."""
        return bool(await self._move(conn, team_id, [email_id], EventKind.CANCELED, now))

    async def _move(
        self, conn: Connection, team_id: UUID, email_ids: Sequence[UUID], kind: EventKind, now: datetime
    ) -> set[UUID]:
        moved = await queries.move_emails(conn, team_id, sorted(email_ids), kind.value, now)
        if moved:
            rows = [
                {
                    "team_id": team_id,
                    "id": self._ids.new(),
                    "email_id": email_id,
                    "at": now,
                    "kind": kind.value,
                }
                for email_id in moved
            ]
            await queries.append(conn, rows, ())
        return set(moved)

    async def _settle_first(
        self, conn: Connection, entries: Sequence[TimelineEntry], batch: TimelineBatch
    ) -> list[TimelineEntry]:
        """Write first events without reading what was before. Return the entries for `_settle`: those that
        cannot be the first, or whose email has events already. Raises FirstEventConflict."""
        left: list[TimelineEntry] = []
        firsts: dict[
            tuple[UUID, UUID], tuple[FirstEventColumns, list[tuple[TimelineEntry, EventEffect]]]
        ] = {}
        for email, events in _by_email(entries).items():
            made = _first(events)
            if made is None:
                left += events
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

    async def _settle(self, conn: Connection, entries: Sequence[TimelineEntry], batch: TimelineBatch) -> None:
        keys = {(e.team_id, e.email_id, e.position) for e in entries if e.position is not None}
        for row in await queries.lock(conn, list(keys)):
            batch.add_known(row)
        for entry in entries:
            batch.apply(entry)


def _by_email(entries: Sequence[TimelineEntry]) -> dict[tuple[UUID, UUID], list[TimelineEntry]]:
    found: dict[tuple[UUID, UUID], list[TimelineEntry]] = {}
    for entry in entries:
        found.setdefault((entry.team_id, entry.email_id), []).append(entry)
    return found


def _first(
    entries: Sequence[TimelineEntry],
) -> tuple[FirstEventColumns, list[tuple[TimelineEntry, EventEffect]]] | None:
    """Return the columns and effects of these events, as the first of a queued email. None where they are not
    its first, or not of one recipient."""
    position = entries[0].position
    fate = RecipientFate(EventKind.QUEUED)
    head: tuple[EventKind, datetime] = (EventKind.QUEUED, entries[0].at)
    steps = []
    for entry in entries:
        moved = step(fate, entry)
        if moved is None or position is None or entry.position != position:
            return None
        fate = moved.fate
        if moved.shows and place(entry.kind, entry.at) > place(*head):
            head = (entry.kind, entry.at)
        steps.append((entry, moved))
    if position is None or any(fate[4:]):
        return None
    team_id, email_id = entries[0][:2]
    return FirstEventColumns(
        team_id=team_id,
        email_id=email_id,
        position=position,
        fate=fate,
        last_event=head[0].value,
        last_event_at=head[1],
        sent_at=fate.sent_at,
    ), steps
