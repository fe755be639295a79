"""The emails that fit a filter, newest first.

The candidates are a list of ranges of ids: blocks that seem to have every term and the emails behind the last
block, or single emails that the history or the queue names. Ranges are read from the newest on, more at a
time the longer it takes, until nothing unread can be newer than what the page has. A page takes at most
`MOST_BLOCKS` blocks or `MOST_NAMED` emails, and `MOST_READS` statements: then it ends where it is, with a
cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pillarbox.emails.search import queries
from pillarbox.emails.search.filters import NEWEST, OLDEST, EmailFilter, EmailPage
from pillarbox.emails.search.queries import CandidateEmail, EmailRange
from pillarbox.kernel.postgres.database import Source
from pillarbox.timeline.rules import STATES, EventKind

MOST_BLOCKS = 128
FEW_BLOCKS = 32
"""So few are read rather than emails that the history names."""

MOST_NAMED = 2000
"""Emails that the history or the queue names for one page."""

MOST_READS = 40
BLOCKS_AT_ONCE, NAMED_AT_ONCE = (2, 32), (50, 500)
"""Ranges that the first statement reads, and the last ones; each reads twice as many as the one before."""

CANDIDATES = 60
"""Of one range at once; a range that has more is read on."""

PART, MOST_WHOLE = 12, 8
"""Words that are shorter may be parts of others, and so many are looked for as whole words."""

BY_WORK = frozenset({EventKind.QUEUED, EventKind.SCHEDULED, EventKind.SENT, EventKind.DELIVERY_DELAYED})
BY_EVENT = frozenset(STATES) - BY_WORK - {EventKind.DELIVERED}
"""States whose emails are named by the queue, and by the history. `delivered` is what most emails are."""


async def find(
    source: Source, team_id: UUID | None, email_filter: EmailFilter, *, limit: int, after: UUID | None = None
) -> EmailPage:
    """Return a page of the team's emails that fit, or with None of every team's. `after` is the cursor of the
    page before it: the id of any email, or the page's `following`."""
    upper = email_filter.upper if after is None else min(email_filter.upper, UUID(int=max(0, after.int - 1)))
    reading = _SearchState(source, email_filter, limit, email_filter.lower)
    await reading.begin(team_id, upper)
    await reading.read()
    kept = sorted(reading.found, key=lambda email: email[1], reverse=True)
    following = None
    if (end := reading.unread()) > email_filter.lower:
        kept = [email for email in kept if email[1] > end]
        following = UUID(int=min(end.int + 1, NEWEST.int))
    if len(kept) > limit:
        kept = kept[:limit]
        following = kept[-1][1]
    return EmailPage(await queries.shown(source, kept), following)


@dataclass
class _SearchState:
    """The progress of one search: the ranges that are left to read, and the emails found in the rest."""

    source: Source
    wanted: EmailFilter
    limit: int
    lower: UUID
    ranges: list[EmailRange] = field(default_factory=list)
    """The ranges to read, the newest last."""
    unknown: UUID = OLDEST
    """Nothing is known of emails up to here: there are more ranges than were read."""
    found: list[tuple[UUID, UUID]] = field(default_factory=list)
    several: int = BLOCKS_AT_ONCE[0]
    most: int = BLOCKS_AT_ONCE[1]

    async def begin(self, team_id: UUID | None, upper: UUID) -> None:
        """Look for the ranges."""
        if upper <= self.lower:
            return
        if (email_id := self.wanted.possible_id) is not None and self.lower < email_id <= upper:
            by_id = await queries.with_id(self.source, team_id, email_id)
            if by_id:
                self._take_named(by_id)
                return
        named = await self._named(team_id, upper)
        if named is not None and (len(named) < MOST_NAMED or not self.wanted.numbers):
            self._take_named(named)
            return
        blocks, rest = await self._blocks(team_id, upper)
        if named is None or len(blocks) < FEW_BLOCKS:
            self._take_blocks(blocks, rest, upper)
        else:
            self._take_named(named)

    async def _named(self, team_id: UUID | None, upper: UUID) -> list[tuple[UUID, UUID]] | None:
        """Return the newest emails that the queue or the history names; None where the state is any, or a
        frequent one."""
        state = self.wanted.state
        if state in BY_WORK:
            return await queries.with_work(self.source, team_id, upper, self.lower, MOST_NAMED)
        if state in BY_EVENT:
            return await queries.with_event(self.source, team_id, state.value, upper, self.lower, MOST_NAMED)
        return None

    def _take_named(self, named: Sequence[tuple[UUID, UUID]]) -> None:
        if len(named) == MOST_NAMED:
            self.unknown = UUID(int=named[-1][1].int - 1)
        self.ranges = [EmailRange(team, UUID(int=one.int - 1), one) for team, one in reversed(named)]
        self.several, self.most = NAMED_AT_ONCE

    async def _blocks(self, team_id: UUID | None, upper: UUID) -> tuple[list[EmailRange], list[EmailRange]]:
        """Return the newest blocks that seem to have every term, and what no block has."""
        numbers = self.wanted.numbers
        return await queries.blocks(self.source, team_id, upper, self.lower, numbers, MOST_BLOCKS)

    def _take_blocks(self, blocks: Sequence[EmailRange], rest: Sequence[EmailRange], upper: UUID) -> None:
        if len(blocks) == MOST_BLOCKS:
            self.unknown = UUID(int=blocks[-1].last_id.int - 1)
        self.ranges = [
            EmailRange(found.team_id, max(found.after_id, self.lower), min(found.last_id, upper))
            for found in (*blocks, *rest)
        ]
        self.ranges.sort(key=lambda found: found.last_id)

    def unread(self) -> UUID:
        """Return the newest email that may fit and was not read; the lower end where there is none."""
        newest = self.ranges[-1].last_id if self.ranges else OLDEST
        return max(newest, self.unknown, self.lower)

    async def read(self) -> None:
        """Read ranges until the page is full and nothing newer can come, or it takes too long."""
        for _ in range(MOST_READS):
            if not self.ranges or self.ranges[-1].last_id < self.unknown or self._is_full():
                return
            # Ranges of all teams that end alike are read together.
            newest = self.ranges[-1].last_id
            together = sum(found.last_id == newest for found in self.ranges)
            batch = self.ranges[-max(self.several, together) :]
            self.several = min(self.several * 2, self.most)
            del self.ranges[-len(batch) :]
            batch.reverse()
            self._keep(batch, await self._candidates(batch))

    def _is_full(self) -> bool:
        """Return whether all that is unread is older than what the page, and one email more, has."""
        end = self.unread()
        return sum(found > end for _, found in self.found) > self.limit

    async def _candidates(self, batch: Sequence[EmailRange]) -> list[CandidateEmail]:
        wanted, most = self.wanted, max(self.limit + 1, CANDIDATES)
        if wanted.to is not None:
            is_domain = wanted.to.startswith("@")
            address, domain = (None, wanted.to) if is_domain else (wanted.to, None)
            return await queries.by_recipient(
                self.source, batch, address, domain, wanted.state, most, wanted.origin
            )
        if not (wanted.words or wanted.sender):
            most = self.limit + 1
        local, _, of_sender = (wanted.sender or "").rpartition("@")
        # PostgreSQL folds the case of ASCII alone.
        sender = pattern(f"{local}@") if local.isascii() and local else None
        domain = wanted.domain or of_sender or None
        # What a subject hardly has is compared first.
        known = sorted(wanted.words, key=len, reverse=True)
        # A word that is not ASCII is only in subjects that are not, and those are all read.
        subject = [pattern(word) if word.isascii() else "" for word in known] if known else None
        whole = [f"(^|[^a-z0-9]){word}($|[^a-z0-9])" for word in known if word.isascii() and len(word) < PART]
        return await queries.by_email(
            self.source,
            batch,
            domain,
            sender,
            subject,
            whole[-MOST_WHOLE:],
            wanted.state,
            most,
            wanted.origin,
        )

    def _keep(self, batch: Sequence[EmailRange], candidates: Sequence[CandidateEmail]) -> None:
        """Keep the candidates that fit. A range that gave as many as were asked for is read on."""
        last: dict[int, list[UUID]] = {}
        for one in candidates:
            last.setdefault(one.place, []).append(one.id)
            if one.has_origin and self.wanted.fits(one.sender, one.domain_name, one.subject):
                self.found.append((one.team_id, one.id))
        least = self.limit + 1 if self._is_exact() else max(self.limit + 1, CANDIDATES)
        for place, ids in last.items():
            if len(ids) >= least:
                whole = batch[place - 1]
                self.ranges.append(whole._replace(last_id=UUID(int=min(ids).int - 1)))
        self.ranges.sort(key=lambda found: found.last_id)

    def _is_exact(self) -> bool:
        """Return whether every candidate fits."""
        return self.wanted.to is None and not self.wanted.words and self.wanted.sender is None


def pattern(text: str) -> str:
    """Return the LIKE pattern of all texts that contain this one."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
