"""The report of a transport on one attempt, and the decision that follows from it; nothing but values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pillarbox.delivery.items import Item, Target
from pillarbox.delivery.queries import Retry
from pillarbox.delivery.rate_control import Signal
from pillarbox.delivery.retries import next_attempt
from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.suppressions.changes import Cause
from pillarbox.timeline.rules import Bounce, Detail, Entry, Kind

REPLY_KEPT = 2000

PLAIN = {
    "internal_error": "An error of our own; the server's log tells which.",
    "tls_required": "The mail may only leave with the encryption that its domain or the recipient's wants.",
}
"""Reasons of the contract, as sentences for the operator; other reasons are sentences already."""


class Result(NamedTuple):
    """What one recipient got: delivered, bounced, delivery_delayed, failed, suppressed, complained."""

    position: int
    kind: Kind
    detail: Detail


@dataclass(slots=True)
class Report:
    """One attempt. `offered`: a server was reached and the mail was offered to it.

    `abandoned`: the lease ran out before the final dot, nothing was sent and nothing may be settled.
    `held`: the relay refused us, so nothing may be settled either. `captured`: the message that the route
    `capture` keeps. `after`: called once the outcome is committed (a connection goes back to its pool only
    then). `instead`: called where it never will be.
    """

    started_at: datetime
    ended_at: datetime
    offered: bool = False
    results: Sequence[Result] = ()
    host: str | None = None
    abandoned: bool = False
    held: RelayFault | None = None
    captured: bytes | None = None
    mail_from: str = ""
    keeps_suppression: bool = True
    signal: Signal = Signal.SILENT
    after: Callable[[], None] | None = None
    instead: Callable[[], None] | None = None


@dataclass(slots=True)
class Settlement:
    """What is written when an attempt is over: history, and the next attempt or (without one) an end."""

    item: Item
    entries: list[Entry]
    retry: Retry | None
    causes: list[Cause] = field(default_factory=list)
    report: Report | None = None

    @property
    def weight(self) -> int:
        return 1 + len(self.report.captured or b"") if self.report else 1


def decide(item: Item, report: Report, window: timedelta, chance: Callable[[], float]) -> Settlement:
    """Turn a report into rows (emails.md section 6; contract decisions 12, 23, 24)."""
    entries: list[Entry] = []
    causes: list[Cause] = []
    reached = item.reached or report.offered
    due = None
    if any(result.kind is Kind.DELIVERY_DELAYED for result in report.results):
        due = next_attempt(item.tries + 1, item.first_attempt_at, report.ended_at, window, chance)
    waiting: Result | None = None
    by_position = {target.position: target for target in item.targets}
    if report.offered and not item.reached:
        entries += _sent(item, report)
    for result in report.results:
        target = by_position[result.position]
        kind, detail = result.kind, result.detail
        if kind is Kind.DELIVERY_DELAYED:
            if due is None:
                kind, detail = _final(detail, reached=reached)
            else:
                waiting = result
                detail = _with_next(detail, due)
        entries.append(_entry(item, result.position, kind, report.ended_at, _with_attempt(item, detail)))
        if report.keeps_suppression and _is_bad_address(kind, detail):
            causes.append(Cause(item.team_id, target.address, "bounce", item.email_id, report.ended_at))
    retry = None
    if waiting is not None and due is not None:
        retry = _retry(item, report, waiting, due, reached=reached)
    return Settlement(item, entries, retry, causes, report)


def refuse(item: Item, kind: Kind, detail: Detail, at: datetime) -> Settlement:
    """End every recipient of an item that may not leave."""
    entries = [_entry(item, target.position, kind, at, detail) for target in item.targets]
    return Settlement(item, entries, None)


def suppressed(item: Item, targets: Sequence[Target], at: datetime) -> list[Entry]:
    """The events of recipients that are skipped because their address is suppressed."""
    return [
        _entry(item, t.position, Kind.SUPPRESSED, at, Detail(suppressed=SUPPRESSED_REASON[t.origin or ""]))
        for t in targets
    ]


def refused(item: Item, targets: Sequence[Target], at: datetime) -> list[Entry]:
    """The events of recipients who may not get this mail, each for its own reason."""
    return [_entry(item, t.position, Kind.FAILED, at, Detail(reason=t.refusal)) for t in targets]


SUPPRESSED_REASON = {
    "bounce": "previous_bounce",
    "complaint": "previous_complaint",
    "manual": "manual",
    "": "manual",
}


OFFERED = frozenset({Kind.DELIVERED, Kind.BOUNCED, Kind.DELIVERY_DELAYED})


def _sent(item: Item, report: Report) -> list[Entry]:
    detail = Detail(host=report.host, attempt=item.attempt)
    return [
        _entry(item, result.position, Kind.SENT, report.started_at, detail)
        for result in report.results
        if result.kind in OFFERED
    ]


def _entry(item: Item, position: int, kind: Kind, at: datetime, detail: Detail) -> Entry:
    """An event of an item; where an earlier attempt may have reached the server, whatever ends it says so."""
    if item.uncertain and kind is not Kind.SENT:
        detail = _replace(detail, uncertain=True)
    return Entry(item.team_id, item.email_id, position, kind, at, detail)


def _final(detail: Detail, *, reached: bool) -> tuple[Kind, Detail]:
    """The window is over: what the recipient ends as (contract decision 24, emails.md section 6)."""
    if detail.reason == "tls_required":
        return Kind.FAILED, detail
    if reached:
        sub_type = detail.bounce.sub_type if detail.bounce else "General"
        return Kind.BOUNCED, _replace(detail, bounce=Bounce("Transient", sub_type))
    return Kind.FAILED, _replace(detail, reason="delivery_window_over")


def _is_bad_address(kind: Kind, detail: Detail) -> bool:
    return kind is Kind.BOUNCED and detail.bounce is not None and detail.bounce.type == "Permanent"


def _with_next(detail: Detail, due: datetime) -> Detail:
    return _replace(detail, next_attempt_at=due, bounce=None)


def _with_attempt(item: Item, detail: Detail) -> Detail:
    return _replace(detail, attempt=item.attempt)


def _replace(detail: Detail, **changes: object) -> Detail:
    return msgspec.structs.replace(detail, **changes)


def _description(reason: str | None) -> str:
    """Why an item waits, as its row says it to the operator; the events keep the reason of the contract."""
    if reason is None:
        return "The mail server asked to try again later."
    return PLAIN.get(reason, reason)


def _retry(item: Item, report: Report, waiting: Result, due: datetime, *, reached: bool) -> Retry:
    reply = waiting.detail.reply
    return Retry(
        item.team_id,
        item.email_id,
        item.grp,
        item.attempt,
        due,
        reached,
        report.host,
        reply[:REPLY_KEPT] if reply else None,
        _description(waiting.detail.reason),
    )
