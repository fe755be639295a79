"""Every order of what can be told about one recipient ends in one outcome (BNC-04)."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from kit.reports import about, bounce, complaint
from pillarbox.mail.message.parse import parse
from pillarbox.mail.reports import arf, dsn
from pillarbox.receiving.reports import bounces, complaints
from pillarbox.receiving.reports.bounce_queries import SentTo
from pillarbox.timeline.rules import Bounce, EventDetail, EventKind, RecipientFate, TimelineEntry, step

AT = datetime(2026, 10, 3, 8, 15, tzinfo=UTC)
TO = SentTo(UUID(int=1), UUID(int=2), 0, "ada@quay.example")
OURS = (EventKind.DELIVERY_DELAYED, EventKind.DELIVERED)
"""What our own engine finds out, in this order; somebody else's report may come before, between and after."""


def told(raw: bytes) -> list[TimelineEntry]:
    message = parse(raw)
    feedback, report = arf.read(message), dsn.read(message)
    if feedback is not None:
        return complaints.consequences(feedback, [TO], AT).entries
    assert report is not None
    return bounces.consequences(report, [TO], AT).entries


OUTCOMES = frozenset({EventKind.DELIVERED, EventKind.BOUNCED, EventKind.COMPLAINED})


REPORTS = {
    "failed": told(bounce(about(TO.address))),
    "failed for now": told(bounce(about(TO.address, status="5.2.2", said="552 5.2.2 full"))),
    "delayed": told(bounce(about(TO.address, action="delayed", status="4.4.1", said="451 4.4.1 later"))),
    "delivered": told(bounce(about(TO.address, action="delivered", status="2.1.5", said="250 ok"))),
    "complained": told(complaint()),
}
ENGINE = {
    kind.value: [
        TimelineEntry(*TO[:3], EventKind.SENT, AT, EventDetail()),
        TimelineEntry(*TO[:3], kind, AT, EventDetail(bounce=Bounce("Transient", "General"))),
    ]
    for kind in (*OURS, EventKind.BOUNCED)
}


def histories() -> set[tuple[RecipientFate, tuple[EventKind, ...]]]:
    """How it can end, with the events that took effect, over every order of everything."""
    happenings = [*REPORTS.values(), *ENGINE.values()]
    reached = {(frozenset(range(len(happenings))), RecipientFate(EventKind.QUEUED), ())}
    for _ in happenings:
        reached = {
            (left - {which}, *applied(happenings[which], fate, taken))
            for left, fate, taken in reached
            for which in left
        }
    return {(fate, taken) for _, fate, taken in reached}


def applied(
    entries: list[TimelineEntry], fate: RecipientFate, taken: tuple[EventKind, ...]
) -> tuple[RecipientFate, tuple[EventKind, ...]]:
    for entry in entries:
        moved = step(fate, entry)
        if moved is not None:
            fate = moved.fate
            taken += (entry.kind,) if moved.publishes else ()
    return fate, taken


def test_all_orders_of_all_reports_and_outcomes() -> None:
    """BNC-04: 40,320 orders of eight; each event at most once, and nothing follows the last outcome."""
    ends = set()
    for fate, taken in histories():
        assert len(taken) == len(set(taken))
        assert taken[0] is EventKind.SENT
        final = tuple(kind for kind in taken if kind in OUTCOMES)
        assert final[-1] is fate.state
        ends.add(final)
    assert ends == {
        (EventKind.BOUNCED,),
        (EventKind.DELIVERED, EventKind.BOUNCED),
        (EventKind.DELIVERED, EventKind.COMPLAINED),
    }
