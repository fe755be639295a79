"""The report of a transport on one attempt, and the decision that follows from it; nothing but values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pillarbox.delivery.items import Item, OpenRecipient
from pillarbox.delivery.queries import Retry
from pillarbox.delivery.rate_control import SiteSignal
from pillarbox.delivery.retries import next_attempt
from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.timeline.rules import Bounce, EventDetail, EventKind, TimelineEntry

REPLY_KEPT = 2000

PLAIN = {
    "internal_error": "An error of our own; the server's log tells which.",
    "tls_required": "The mail may only leave with the encryption that its domain or the recipient's wants.",
}
"""Reasons of the contract, as sentences for the operator; other reasons are sentences already."""


class RecipientResult(NamedTuple):
    """The result for one recipient: delivered, bounced, delivery_delayed, failed, suppressed, complained."""

    position: int
    kind: EventKind
    detail: EventDetail


@dataclass(slots=True)
class Report:
    """One attempt. `offered`: a server was reached and the mail was offered to it.

    `abandoned`: nothing was sent, as the lease ran out before the final dot, or as the last check stopped a
    copy, which `LastCheck.end` settles then.
    `held`: the relay refused us, so nothing may be settled either. `captured`: the message that the route
    `capture` keeps. `on_settled`: called once the outcome is committed (a connection goes back to its pool
    only then). `on_settle_failed`: called where it never will be.
    """

    started_at: datetime
    ended_at: datetime
    offered: bool = False
    results: Sequence[RecipientResult] = ()
    host: str | None = None
    abandoned: bool = False
    held: RelayFault | None = None
    captured: bytes | None = None
    mail_from: str = ""
    keeps_suppression: bool = True
    signal: SiteSignal = SiteSignal.SILENT
    on_settled: Callable[[], None] | None = None
    on_settle_failed: Callable[[], None] | None = None


@dataclass(slots=True)
class AttemptSettlement:
    """The writes that end an attempt: history, and the next attempt or (without one) an end."""

    item: Item
    entries: list[TimelineEntry]
    retry: Retry | None
    causes: list[SuppressionCause] = field(default_factory=list)
    report: Report | None = None

    @property
    def weight(self) -> int:
        return 1 + len(self.report.captured or b"") if self.report else 1


def decide(item: Item, report: Report, window: timedelta, chance: Callable[[], float]) -> AttemptSettlement:
    """Turn a report into rows (emails.md section 6; contract decisions 12, 23, 24)."""
    entries: list[TimelineEntry] = []
    causes: list[SuppressionCause] = []
    reached = item.reached or report.offered
    due = None
    if any(result.kind is EventKind.DELIVERY_DELAYED for result in report.results):
        due = next_attempt(item.tries + 1, item.first_attempt_at, report.ended_at, window, chance)
    waiting: RecipientResult | None = None
    by_position = {target.position: target for target in item.targets}
    if report.offered and not item.reached:
        entries += _sent(item, report)
    for result in report.results:
        target = by_position[result.position]
        kind, detail = result.kind, result.detail
        if kind is EventKind.DELIVERY_DELAYED:
            if due is None:
                kind, detail = _final(detail, reached=reached)
            else:
                waiting = result
                detail = _with_next(detail, due)
        entries.append(_entry(item, result.position, kind, report.ended_at, _with_attempt(item, detail)))
        if report.keeps_suppression and _is_bad_address(kind, detail):
            causes.append(
                SuppressionCause(
                    team_id=item.team_id,
                    address=target.address,
                    origin="bounce",
                    source_id=item.email_id,
                    at=report.ended_at,
                )
            )
    retry = None
    if waiting is not None and due is not None:
        retry = _retry(item, report, waiting, due, reached=reached)
    return AttemptSettlement(item=item, entries=entries, retry=retry, causes=causes, report=report)


def refuse(item: Item, kind: EventKind, detail: EventDetail, instant: datetime) -> AttemptSettlement:
    """End every recipient of an item that may not leave."""
    marked = _with_doubt(item, detail)
    entries = [_entry(item, target.position, kind, instant, marked) for target in item.targets]
    return AttemptSettlement(item, entries, None)


def suppressed(item: Item, targets: Sequence[OpenRecipient], instant: datetime) -> list[TimelineEntry]:
    """Return the events of recipients that are skipped because their address is suppressed."""
    return [
        _entry(
            item,
            t.position,
            EventKind.SUPPRESSED,
            instant,
            _with_doubt(item, EventDetail(suppressed=SUPPRESSED_REASON[t.origin or ""])),
        )
        for t in targets
    ]


def refused(item: Item, targets: Sequence[OpenRecipient], instant: datetime) -> list[TimelineEntry]:
    """Return the events of recipients who may not get this mail, each for its own reason."""
    return [
        _entry(item, t.position, EventKind.FAILED, instant, _with_doubt(item, EventDetail(reason=t.refusal)))
        for t in targets
    ]


SUPPRESSED_REASON = {
    "bounce": "previous_bounce",
    "complaint": "previous_complaint",
    "manual": "manual",
    "erased": "manual",
    "": "manual",
}


OFFERED = frozenset({EventKind.DELIVERED, EventKind.BOUNCED, EventKind.DELIVERY_DELAYED})


def _sent(item: Item, report: Report) -> list[TimelineEntry]:
    detail = EventDetail(host=report.host, attempt=item.attempt)
    return [
        _entry(item, result.position, EventKind.SENT, report.started_at, detail)
        for result in report.results
        if result.kind in OFFERED
    ]


def _entry(
    item: Item, position: int, kind: EventKind, instant: datetime, detail: EventDetail
) -> TimelineEntry:
    return TimelineEntry(
        team_id=item.team_id, email_id=item.email_id, position=position, kind=kind, at=instant, detail=detail
    )


def _final(detail: EventDetail, *, reached: bool) -> tuple[EventKind, EventDetail]:
    """Return what the recipient ends as once the window is over (contract decision 24, emails.md
    section 6)."""
    if detail.reason == "tls_required":
        return EventKind.FAILED, detail
    if reached:
        sub_type = detail.bounce.sub_type if detail.bounce else "General"
        return EventKind.BOUNCED, _replace(detail, bounce=Bounce("Transient", sub_type))
    return EventKind.FAILED, _replace(detail, reason="delivery_window_over")


def _is_bad_address(kind: EventKind, detail: EventDetail) -> bool:
    return kind is EventKind.BOUNCED and detail.bounce is not None and detail.bounce.type == "Permanent"


def _with_next(detail: EventDetail, due: datetime) -> EventDetail:
    return _replace(detail, next_attempt_at=due, bounce=None)


def _with_doubt(item: Item, detail: EventDetail) -> EventDetail:
    """Return the detail of an end without an attempt: an earlier one may have reached the recipient all
    the same."""
    return _replace(detail, uncertain=True) if item.uncertain else detail


def _with_attempt(item: Item, detail: EventDetail) -> EventDetail:
    return _replace(detail, attempt=item.attempt, uncertain=detail.uncertain or item.uncertain)


def _replace(detail: EventDetail, **changes: object) -> EventDetail:
    return msgspec.structs.replace(detail, **changes)


def _description(reason: str | None) -> str:
    """Return why an item waits, as its row says it to the operator; the events keep the reason of
    the contract."""
    if reason is None:
        return "The mail server asked to try again later."
    return PLAIN.get(reason, reason)


def _retry(item: Item, report: Report, waiting: RecipientResult, due: datetime, *, reached: bool) -> Retry:
    reply = waiting.detail.reply
    return Retry(
        team_id=item.team_id,
        email_id=item.email_id,
        grp=item.grp,
        attempt=item.attempt,
        due_at=due,
        reached=reached,
        last_host=report.host,
        last_reply=reply[:REPLY_KEPT] if reply else None,
        reason=_description(waiting.detail.reason),
    )
