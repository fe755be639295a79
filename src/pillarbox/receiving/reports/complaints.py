"""Complaints: the events and suppressions that follow from an abuse report (BNC-05, BNC-06).

The mail that is complained about is known by our signed envelope sender and by nothing else: a Message-ID
or an address can be quoted by anybody. `not-spam` is no complaint, nor is failed authentication.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from pillarbox.mail.reports.arf import FeedbackReport
from pillarbox.receiving.reports.bounce_queries import SentTo
from pillarbox.receiving.reports.consequences import ReportEffects, may_be_suppressed, named
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.timeline.rules import EventDetail, EventKind, TimelineEntry

REASONS: Final = {
    "opt-out": "The recipient asked for no more mail of this kind.",
    "opt-out-list": "The recipient asked for no more mail of this kind.",
}
REPORTED: Final = "The recipient reported the mail as spam."
ARRIVED: Final = "The recipient has reported the mail, so it has arrived."


def consequences(
    report: FeedbackReport,
    recipients: Sequence[SentTo],
    instant: datetime,
    simulators: Collection[str] = frozenset(),
    *,
    is_trusted: bool = True,
) -> ReportEffects:
    """Return the complaint of the recipient whom the report names, or of the only one where it names nobody.
    Where nobody vouches for it, none of several is suppressed."""
    found = ReportEffects(shown_by=EventKind.COMPLAINED)
    recipient = named(recipients, report.recipients) if report.is_complaint else None
    if recipient is not None:
        key = (recipient.team_id, recipient.email_id, recipient.position)
        detail = EventDetail(
            host=(report.reporter or "")[:255] or None, reason=REASONS.get(report.feedback_type, REPORTED)
        )
        # Who complains about a mail has got it, whatever we know of that (metrics: complained of delivered).
        arrived = EventDetail(reason=ARRIVED)
        found.entries += [
            TimelineEntry(*key, EventKind.SENT, instant, arrived),
            TimelineEntry(*key, EventKind.DELIVERED, instant, arrived),
            TimelineEntry(*key, EventKind.COMPLAINED, instant, detail),
        ]
        if is_trusted and may_be_suppressed(recipient, simulators):
            found.causes[recipient.position] = SuppressionCause(
                team_id=recipient.team_id,
                address=recipient.address,
                origin="complaint",
                source_id=recipient.email_id,
                at=instant,
            )
    return found
