"""The state machine of a recipient (emails.md section 6; BNC-04): all interleavings, no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.timeline.rules import (
    OPEN,
    RANK,
    RULES,
    STATES,
    Bounce,
    EventDetail,
    EventKind,
    RecipientFate,
    TimelineEntry,
    step,
)

START = datetime(2026, 10, 3, tzinfo=UTC)
NOBODY = UUID(int=0)
BOUNCED = EventDetail(bounce=Bounce("Permanent", "NoEmail"))


def entry(kind: EventKind, minute: int = 0) -> TimelineEntry:
    return TimelineEntry(
        team_id=NOBODY,
        email_id=NOBODY,
        position=0,
        kind=kind,
        at=START + timedelta(minutes=minute),
        detail=BOUNCED,
    )


def applied(
    kinds: list[EventKind], fate: RecipientFate | None = None
) -> tuple[RecipientFate, list[str], list[EventKind]]:
    """The fate after these events, the metrics they added and the events that showed."""
    fate = fate or RecipientFate(EventKind.QUEUED)
    counts: list[str] = []
    shown: list[EventKind] = []
    for minute, kind in enumerate(kinds):
        moved = step(fate, entry(kind, minute))
        if moved is not None:
            fate = moved.fate
            counts += moved.counts
            shown += [kind] if moved.shows else []
    return fate, counts, shown


@pytest.mark.parametrize(
    ("kinds", "state"),
    [
        ([EventKind.SENT, EventKind.DELIVERED], EventKind.DELIVERED),
        ([EventKind.DELIVERY_DELAYED, EventKind.SENT, EventKind.DELIVERED], EventKind.DELIVERED),
        ([EventKind.SENT, EventKind.DELIVERED, EventKind.BOUNCED], EventKind.BOUNCED),
        ([EventKind.SENT, EventKind.BOUNCED, EventKind.DELIVERED], EventKind.BOUNCED),
        ([EventKind.SENT, EventKind.BOUNCED, EventKind.DELIVERY_DELAYED], EventKind.BOUNCED),
        ([EventKind.SENT, EventKind.DELIVERED, EventKind.CLICKED, EventKind.OPENED], EventKind.OPENED),
        ([EventKind.SENT, EventKind.OPENED, EventKind.DELIVERED], EventKind.OPENED),
        (
            [EventKind.SENT, EventKind.DELIVERED, EventKind.OPENED, EventKind.CLICKED, EventKind.BOUNCED],
            EventKind.BOUNCED,
        ),
        (
            [EventKind.SENT, EventKind.DELIVERED, EventKind.OPENED, EventKind.BOUNCED, EventKind.OPENED],
            EventKind.BOUNCED,
        ),
        ([EventKind.SENT, EventKind.DELIVERED, EventKind.COMPLAINED, EventKind.OPENED], EventKind.COMPLAINED),
        ([EventKind.SUPPRESSED, EventKind.SENT], EventKind.SUPPRESSED),
        ([EventKind.FAILED, EventKind.DELIVERED], EventKind.FAILED),
        ([EventKind.OPENED], EventKind.QUEUED),
    ],
)
def test_events_lead_to_the_state_of_the_contract(kinds: list[EventKind], state: EventKind) -> None:
    assert applied(kinds)[0].state is state


def test_a_delay_before_the_first_server_counts_sent_later_but_does_not_show_it() -> None:
    """Contract decisions 12 and 24: `sent` is late bookkeeping behind a delay that came first."""
    fate, counts, shown = applied([EventKind.DELIVERY_DELAYED, EventKind.SENT])
    assert fate.state is EventKind.DELIVERY_DELAYED
    assert counts == ["delivery_delayed", "sent"]
    assert shown == [EventKind.DELIVERY_DELAYED]


def test_repeats_are_counted_as_the_metrics_say() -> None:
    """metrics.md section 4: delays once, opens every time, unique opens once."""
    _, counts, _ = applied(
        [
            EventKind.SENT,
            EventKind.DELIVERY_DELAYED,
            EventKind.DELIVERY_DELAYED,
            EventKind.DELIVERED,
            EventKind.OPENED,
            EventKind.OPENED,
        ]
    )
    assert counts.count("delivery_delayed") == 1
    assert counts.count("opened") == 2
    assert counts.count("unique_opened") == 1


@given(st.lists(st.sampled_from(sorted(RULES, key=RANK.__getitem__)), max_size=12))
def test_no_interleaving_gives_two_outcomes(kinds: list[EventKind]) -> None:
    """BNC-04: at most one bounce, at most one delivery, and never both delivered after an end."""
    fate, counts, _ = applied(kinds)
    bounces = [count for count in counts if count.startswith("bounced_")]
    assert len(bounces) <= 1
    assert counts.count("delivered") <= 1
    assert counts.count("sent") <= 1
    assert counts.count("complained") <= 1
    ends = len(bounces) + counts.count("failed") + counts.count("suppressed")
    assert ends <= 1
    if fate.state in OPEN:
        assert ends == 0


@pytest.mark.parametrize(
    "kind", [EventKind.DELIVERED, EventKind.BOUNCED, EventKind.FAILED, EventKind.SUPPRESSED]
)
def test_an_outcome_that_is_settled_twice_counts_once(kind: EventKind) -> None:
    """A settlement is repeated when its connection was lost in the commit."""
    first = [kind] if kind in {EventKind.FAILED, EventKind.SUPPRESSED} else [EventKind.SENT, kind]
    fate, counts, _ = applied(first)
    again, repeated, shown = applied(first, fate)
    assert counts
    assert (again, repeated, shown) == (fate, [], [])


@pytest.mark.parametrize("state", STATES)
def test_unsubscribing_counts_once_and_changes_no_state(state: EventKind) -> None:
    """topics.md 4: the metric of the recipient, and no event of its delivery."""
    fate, counts, shown = applied(
        [EventKind.UNSUBSCRIBED, EventKind.UNSUBSCRIBED, EventKind.UNSUBSCRIBED], RecipientFate(state)
    )
    assert (fate, counts, shown) == (RecipientFate(state, unsubscribed_at=START), ["unsubscribed"], [])
