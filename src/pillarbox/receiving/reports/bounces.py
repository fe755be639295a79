"""Bounces: what a delivery report makes of the recipients of the mail that it came back for.

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
from pillarbox.suppressions.automatic import Cause
from pillarbox.timeline.rules import Bounce, Detail, Entry, Kind

KINDS: Final = {
    Outcome.BOUNCED: Kind.BOUNCED,
    Outcome.DELAYED: Kind.DELIVERY_DELAYED,
    Outcome.DELIVERED: Kind.DELIVERED,
}
WEIGHT: Final = {Outcome.BOUNCED: 2, Outcome.DELAYED: 1, Outcome.DELIVERED: 0}
"""Which of several words about one recipient counts: an alias may lead to two mailboxes."""

UNVOUCHED: Final = (
    "A report that another recipient of the mail could have written says that the address is bad."
)


def consequences(
    report: DeliveryReport,
    recipients: Sequence[SentTo],
    at: datetime,
    simulators: Collection[str] = frozenset(),
    *,
    is_vouched: bool = True,
) -> Consequences:
    """The events of those recipients that the report is about, and the bad addresses among them: none of
    several that a report names for which nobody vouches."""
    found = Consequences(shown_by=Kind.BOUNCED)
    for recipient, said in _weightiest(report, recipients):
        if not is_vouched and said.verdict.suppresses:
            said = replace(said, verdict=_doubted(said.verdict))
        found.entries += _entries(recipient, said, report, at)
        if said.verdict.suppresses and may_be_suppressed(recipient, simulators):
            found.causes[recipient.position] = Cause(
                recipient.team_id, recipient.address, "bounce", recipient.email_id, at
            )
    return found


def _doubted(verdict: Verdict) -> Verdict:
    return replace(
        verdict, bounce_type=BounceType.UNDETERMINED, sub_type=SubType.UNDETERMINED, reason=UNVOUCHED
    )


def _weightiest(report: DeliveryReport, recipients: Sequence[SentTo]) -> list[tuple[SentTo, RecipientReport]]:
    words: dict[SentTo, RecipientReport] = {}
    for said in report.recipients:
        recipient = named(recipients, (said.recipient, said.final_recipient))
        if recipient is None:
            continue
        before = words.get(recipient)
        if before is None or WEIGHT[said.verdict.outcome] > WEIGHT[before.verdict.outcome]:
            words[recipient] = said
    return sorted(words.items(), key=lambda pair: pair[0].position)


def _entries(recipient: SentTo, said: RecipientReport, report: DeliveryReport, at: datetime) -> list[Entry]:
    """The event; before it `sent`, for the server was offered the mail (contract decision 12)."""
    key = (recipient.team_id, recipient.email_id, recipient.position)
    host = said.remote_host or report.reporting_host
    kind = KINDS[said.verdict.outcome]
    return [
        Entry(*key, Kind.SENT, at, Detail(host=host)),
        Entry(*key, kind, at, _detail(said, host, kind)),
    ]


def _detail(said: RecipientReport, host: str | None, kind: Kind) -> Detail:
    verdict = said.verdict
    bounce = None
    if kind is Kind.BOUNCED:
        bounce = Bounce(str(verdict.bounce_type or "Undetermined"), str(verdict.sub_type or "General"))
    return Detail(
        host=host,
        code=said.reply.code,
        enhanced=said.reply.enhanced or said.status,
        reply=said.diagnostic,
        reason=verdict.reason,
        bounce=bounce,
    )
