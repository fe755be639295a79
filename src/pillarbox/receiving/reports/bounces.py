"""Bounces: the events and suppressions that follow from a delivery report.

A report counts only for recipients of the group that its address names (contract decision 30).
Only `failed` bounces; a bad address is suppressed (23), which the table of answers decides, not this file.
`delayed`, `delivered`, `relayed` and `expanded` say something only while we do not know more ourselves: the
state machine of the timeline forbids the rest, and with it every repetition.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from pillarbox.mail.reports.dsn import DeliveryReport, RecipientReport
from pillarbox.mail.reports.replies import BounceType, DeliveryOutcome, ReplyVerdict, SubType
from pillarbox.receiving.reports.bounce_queries import SentTo
from pillarbox.receiving.reports.consequences import ReportEffects, may_be_suppressed, named
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.timeline.rules import Bounce, EventDetail, EventKind, TimelineEntry

KINDS: Final = {
    DeliveryOutcome.BOUNCED: EventKind.BOUNCED,
    DeliveryOutcome.DELAYED: EventKind.DELIVERY_DELAYED,
    DeliveryOutcome.DELIVERED: EventKind.DELIVERED,
}
SEVERITY: Final = {DeliveryOutcome.BOUNCED: 2, DeliveryOutcome.DELAYED: 1, DeliveryOutcome.DELIVERED: 0}
"""Which of several reports about one recipient counts: an alias may lead to two mailboxes."""

UNTRUSTED: Final = (
    "A report that another recipient of the mail could have written says that the address is bad."
)


def consequences(
    report: DeliveryReport,
    recipients: Sequence[SentTo],
    instant: datetime,
    simulators: Collection[str] = frozenset(),
    *,
    is_trusted: bool = True,
) -> ReportEffects:
    """Return the events of those recipients that the report is about, and the bad addresses among them: none
    of several recipients where the report is not trusted."""
    found = ReportEffects(shown_by=EventKind.BOUNCED)
    for recipient, part in _most_severe(report, recipients):
        if not is_trusted and part.verdict.suppresses:
            part = replace(part, verdict=_undetermined(part.verdict))
        found.entries += _entries(recipient, part, report, instant)
        if part.verdict.suppresses and may_be_suppressed(recipient, simulators):
            found.causes[recipient.position] = SuppressionCause(
                team_id=recipient.team_id,
                address=recipient.address,
                origin="bounce",
                source_id=recipient.email_id,
                at=instant,
            )
    return found


def _undetermined(verdict: ReplyVerdict) -> ReplyVerdict:
    return replace(
        verdict, bounce_type=BounceType.UNDETERMINED, sub_type=SubType.UNDETERMINED, reason=UNTRUSTED
    )


def _most_severe(
    report: DeliveryReport, recipients: Sequence[SentTo]
) -> list[tuple[SentTo, RecipientReport]]:
    reports: dict[SentTo, RecipientReport] = {}
    for part in report.recipients:
        recipient = named(recipients, (part.recipient, part.final_recipient))
        if recipient is None:
            continue
        before = reports.get(recipient)
        if before is None or SEVERITY[part.verdict.outcome] > SEVERITY[before.verdict.outcome]:
            reports[recipient] = part
    return sorted(reports.items(), key=lambda pair: pair[0].position)


def _entries(
    recipient: SentTo, part: RecipientReport, report: DeliveryReport, instant: datetime
) -> list[TimelineEntry]:
    """Return the event; before it `sent`, for the server was offered the mail (contract decision 12)."""
    key = (recipient.team_id, recipient.email_id, recipient.position)
    host = part.remote_host or report.reporting_host
    kind = KINDS[part.verdict.outcome]
    return [
        TimelineEntry(*key, EventKind.SENT, instant, EventDetail(host=host)),
        TimelineEntry(*key, kind, instant, _detail(part, host, kind)),
    ]


def _detail(part: RecipientReport, host: str | None, kind: EventKind) -> EventDetail:
    verdict = part.verdict
    bounce = None
    if kind is EventKind.BOUNCED:
        bounce = Bounce(str(verdict.bounce_type or "Undetermined"), str(verdict.sub_type or "General"))
    return EventDetail(
        host=host,
        code=part.reply.code,
        enhanced=part.reply.enhanced or part.status,
        reply=part.diagnostic,
        reason=verdict.reason,
        bounce=bounce,
    )
