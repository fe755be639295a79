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
from pillarbox.mail.reports.replies import BounceType, Outcome, SubType, Verdict
from pillarbox.receiving.reports.bounce_queries import SentTo
from pillarbox.receiving.reports.consequences import Consequences, may_be_suppressed, named
from pillarbox.suppressions.changes import Cause
from pillarbox.timeline.rules import Bounce, Detail, Entry, Kind

KINDS: Final = {
    Outcome.BOUNCED: Kind.BOUNCED,
    Outcome.DELAYED: Kind.DELIVERY_DELAYED,
    Outcome.DELIVERED: Kind.DELIVERED,
}
SEVERITY: Final = {Outcome.BOUNCED: 2, Outcome.DELAYED: 1, Outcome.DELIVERED: 0}
"""Which of several reports about one recipient counts: an alias may lead to two mailboxes."""

UNTRUSTED: Final = (
    "A report that another recipient of the mail could have written says that the address is bad."
)


def consequences(
    report: DeliveryReport,
    recipients: Sequence[SentTo],
    at: datetime,
    simulators: Collection[str] = frozenset(),
    *,
    is_trusted: bool = True,
) -> Consequences:
    """The events of those recipients that the report is about, and the bad addresses among them: none of
    several recipients where the report is not trusted."""
    found = Consequences(shown_by=Kind.BOUNCED)
    for recipient, part in _most_severe(report, recipients):
        if not is_trusted and part.verdict.suppresses:
            part = replace(part, verdict=_undetermined(part.verdict))
        found.entries += _entries(recipient, part, report, at)
        if part.verdict.suppresses and may_be_suppressed(recipient, simulators):
            found.causes[recipient.position] = Cause(
                recipient.team_id, recipient.address, "bounce", recipient.email_id, at
            )
    return found


def _undetermined(verdict: Verdict) -> Verdict:
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


def _entries(recipient: SentTo, part: RecipientReport, report: DeliveryReport, at: datetime) -> list[Entry]:
    """The event; before it `sent`, for the server was offered the mail (contract decision 12)."""
    key = (recipient.team_id, recipient.email_id, recipient.position)
    host = part.remote_host or report.reporting_host
    kind = KINDS[part.verdict.outcome]
    return [
        Entry(*key, Kind.SENT, at, Detail(host=host)),
        Entry(*key, kind, at, _detail(part, host, kind)),
    ]


def _detail(part: RecipientReport, host: str | None, kind: Kind) -> Detail:
    verdict = part.verdict
    bounce = None
    if kind is Kind.BOUNCED:
        bounce = Bounce(str(verdict.bounce_type or "Undetermined"), str(verdict.sub_type or "General"))
    return Detail(
        host=host,
        code=part.reply.code,
        enhanced=part.reply.enhanced or part.status,
        reply=part.diagnostic,
        reason=verdict.reason,
        bounce=bounce,
    )
