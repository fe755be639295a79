"""Why an address is suppressed: the event that shows it, and the mail that caused it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from pillarbox.emails import overview_queries
from pillarbox.emails.overview_queries import EmailOverview
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.suppressions.queries import SuppressionRow
from pillarbox.timeline import history
from pillarbox.timeline.history_queries import HistoryEvent
from pillarbox.timeline.rules import EventDetail

SHOWN_BY: Final = {"bounce": "bounced", "complaint": "complained"}
"""The kind of event that shows an origin."""


@dataclass(frozen=True, slots=True)
class SuppressionExplanation:
    """An entry with what caused it, as far as it is still there."""

    entry: SuppressionRow
    event: HistoryEvent | None
    email: EmailOverview | None

    @property
    def detail(self) -> EventDetail:
        """Host, reply and reason of the event, and the kind of a bounce, as far as they are known."""
        if self.event is None or self.event.detail is None:
            return EventDetail()
        return msgspec.json.decode(self.event.detail, type=EventDetail)


async def explanation_of(db: TeamDb, entry: SuppressionRow) -> SuppressionExplanation:
    """Return the entry with its event and its mail."""
    if entry.source_id is None:
        return SuppressionExplanation(entry, None, None)
    event = await history.last_of(db, entry.source_id, entry.address, SHOWN_BY[entry.origin])
    return SuppressionExplanation(entry, event, await overview_queries.get(db, entry.source_id))
