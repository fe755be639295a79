"""Looks up the sender's domain of a mail, cached for a moment."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.domains import queries
from pillarbox.domains.queries import SenderRow
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.postgres.time_limit import TimeLimit, retrieve_exception, shared, unlimited

REMEMBERED_SECONDS = 0.25
ASKED_AHEAD = 0.1
"""As with keys (`api_keys.credentials`): asked for again before it ends, so that nobody waits for it."""

MOST_REMEMBERED = 10_000


class DkimSigningKey(NamedTuple):
    """A DKIM key; the key ring opens `sealed` for `context`."""

    domain: str
    selector: str
    sealed: bytes
    context: bytes


@dataclass(frozen=True, slots=True)
class SenderDomain:
    """A domain of the team, as a sender sees it. `tracking_host` is None where tracking is not active;
    `has_policies` says whether an inbox of the team has a policy."""

    id: UUID
    name: str
    return_path: str
    sending: bool
    sending_ok: bool
    trusted: bool
    tls: str
    signing: DkimSigningKey
    open_tracking: bool
    click_tracking: bool
    tracking_host: str | None
    has_policies: bool = False

    @property
    def may_send(self) -> bool:
        """True when the capability is enabled and DNS (or the operator) has verified it."""
        return self.sending and self.sending_ok


class Senders:
    """Finds sender domains by team and exact name; an answer is at most a quarter of a second old."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._known: dict[tuple[UUID, str], tuple[float, SenderDomain | None]] = {}
        self._asking: dict[tuple[UUID, str], asyncio.Task[SenderDomain | None]] = {}

    async def find(self, team_id: UUID, name: str) -> SenderDomain | None:
        """Return the team's domain of exactly this name (lower-case A-labels), or None."""
        place = (team_id, name)
        known = self._known.get(place)
        if known is not None:
            left = known[0] - self._clock.boottime()
            if left > ASKED_AHEAD:
                return known[1]
            if left > 0:
                self._asked(place)
                return known[1]
        return await shared(self._asked(place))

    def _asked(self, place: tuple[UUID, str]) -> asyncio.Task[SenderDomain | None]:
        asking = self._asking.get(place)
        if asking is None:
            asking = self._asking[place] = asyncio.create_task(self._ask(place), context=unlimited())
            asking.add_done_callback(retrieve_exception)
        return asking

    def forget(self, team_id: UUID) -> None:
        """Ask the database again for every name of the team; call it after the commit of a change."""
        for place in [place for place in self._known if place[0] == team_id]:
            del self._known[place]
        self._asking.clear()

    async def _ask(self, place: tuple[UUID, str]) -> SenderDomain | None:
        me = asyncio.current_task()
        until = self._clock.boottime() + REMEMBERED_SECONDS
        try:
            with TimeLimit():
                row = await queries.sender(TeamDb(self._pool, place[0]), place[1])
            found = None if row is None else _sender_domain(row)
            if self._asking.get(place) is me:
                self._remember(place, until, found)
        finally:
            if self._asking.get(place) is me:
                del self._asking[place]
        return found

    def _remember(self, place: tuple[UUID, str], until: float, sender_domain: SenderDomain | None) -> None:
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[place] = (until, sender_domain)


def seal_context(key_id: UUID) -> bytes:
    """Return the context to which the private half of a DKIM key is bound."""
    return b"dkim_keys" + key_id.bytes


def _sender_domain(row: SenderRow) -> SenderDomain:
    tracks = row.tracking_subdomain and row.tracking_ok
    return SenderDomain(
        id=row.id,
        name=row.name,
        return_path=row.return_path,
        sending=row.sending,
        sending_ok=row.sending_ok,
        trusted=row.trusted,
        tls=row.tls,
        signing=DkimSigningKey(row.name, row.selector, row.sealed, seal_context(row.dkim_id)),
        open_tracking=row.open_tracking,
        click_tracking=row.click_tracking,
        tracking_host=f"{row.tracking_subdomain}.{row.name}" if tracks else None,
        has_policies=row.has_policies,
    )
