"""Putting addresses on the list and taking them off, with the events of both (suppressions.md 5 and 6).

Whatever the cause is, rows are locked in the order of team and address, those that are there already too:
two that change the list at once never wait for each other crosswise, and who finds an entry finds it still
there when he commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Protocol
from uuid import UUID

from msgspec import Struct

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb, after_commit
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.suppressions import queries
from pillarbox.suppressions.prometheus import ENTRIES
from pillarbox.suppressions.queries import SuppressionRow
from pillarbox.webhooks.publish import Publisher, WebhookEvent

Origin = Literal["bounce", "complaint", "manual"]
ORIGINS: Final = ("bounce", "complaint", "manual")

ADDED: Final = "suppression.added"
REMOVED: Final = "suppression.removed"


class SuppressionCause(NamedTuple):
    """An address that is not to be written to, and why; `given` as in `kernel.wire.email_address`."""

    team_id: UUID
    address: str
    origin: str
    source_id: UUID | None
    at: datetime
    given: str | None = None


class SuppressionData(Struct, kw_only=True):
    """The data of the events (webhooks.md 7.4)."""

    id: UUID
    email: str
    origin: Origin
    source_id: UUID | None
    created_at: IsoTime


SHAPES: Final = {ADDED: SuppressionData, REMOVED: SuppressionData}
"""The type of the data, by the kind of event."""


class HasAddress(Protocol):
    """An address in its two forms."""

    @property
    def address(self) -> str: ...

    @property
    def given(self) -> str | None: ...


async def add(
    conn: Connection, causes: Sequence[SuppressionCause], ids: Ids, publisher: Publisher
) -> list[SuppressionRow]:
    """Insert these addresses, of any teams, and publish and return the new ones; one on the list already
    keeps its first cause."""
    if not causes:
        return []
    rows = [(c.team_id, ids.new(), c.address, c.given, c.origin, c.source_id, c.at) for c in causes]
    added = sorted(await queries.insert(conn, rows), key=lambda entry: entry.id)
    await publisher.publish(
        conn, [WebhookEvent(entry.team_id, ADDED, entry.created_at, data_of(entry)) for entry in added]
    )
    _count(conn, "added", added)
    return added


async def suppress(
    db: TeamDb, asked: Iterable[HasAddress], now: datetime, ids: Ids, publisher: Publisher
) -> list[UUID]:
    """Put these addresses on the list, with the origin `manual` where they are new. Return the ids of their
    entries, each once in the order of its first mention."""
    wanted: dict[str, SuppressionCause] = {}
    for one in asked:
        wanted.setdefault(
            one.address,
            SuppressionCause(
                team_id=db.team_id,
                address=one.address,
                origin="manual",
                source_id=None,
                at=now,
                given=one.given,
            ),
        )
    await add(db.connection, list(wanted.values()), ids, publisher)
    return await queries.ids_of(db, list(wanted))


async def remove(
    db: TeamDb, named: Sequence[UUID | str], now: datetime, publisher: Publisher
) -> list[SuppressionRow]:
    """Take entries off the list that are named by their ids or by their compared addresses; returns what was
    on it, each once in the order of the request."""
    ids = [one for one in named if isinstance(one, UUID)]
    addresses = [one for one in named if isinstance(one, str)]
    removed = [
        *(await queries.remove_by_id(db, ids) if ids else ()),
        *(await queries.remove_by_address(db, addresses) if addresses else ()),
    ]
    by_name: dict[UUID | str, SuppressionRow] = {entry.id: entry for entry in removed}
    by_name |= {entry.address: entry for entry in removed}
    removed = [by_name[one] for one in dict.fromkeys(named) if one in by_name]
    await publisher.publish(
        db.connection, [WebhookEvent(db.team_id, REMOVED, now, data_of(entry)) for entry in removed]
    )
    _count(db.connection, "removed", removed)
    return removed


async def find(db: TeamDb, named: UUID | str | None) -> SuppressionRow | None:
    """Return the entry of this id or compared address."""
    if isinstance(named, UUID):
        return await queries.by_id(db, named)
    return None if named is None else await queries.by_address(db, named)


def data_of(entry: SuppressionRow) -> SuppressionData:
    """Return the `data` of an event about this entry."""
    origin: Any = entry.origin
    return SuppressionData(
        id=entry.id,
        email=entry.shown,
        origin=origin,
        source_id=entry.source_id,
        created_at=iso_style(entry.created_at),
    )


def _count(conn: Connection, change: str, changed: Sequence[SuppressionRow]) -> None:
    """Count what was changed once it is committed."""
    counts = Counter(entry.origin for entry in changed)
    if counts:
        after_commit(conn, partial(_add_counts, change, counts))


def _add_counts(change: str, counts: Mapping[str, int]) -> None:
    for origin, count in counts.items():
        ENTRIES.add(count, (change, origin))
