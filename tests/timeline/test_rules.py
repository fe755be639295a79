"""The state machine of a recipient (emails.md section 6; BNC-04): all interleavings, no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.timeline.rules import OPEN, RANK, RULES, STATES, Bounce, Detail, Entry, Fate, Kind, step

START = datetime(2026, 10, 3, tzinfo=UTC)
NOBODY = UUID(int=0)
BOUNCED = Detail(bounce=Bounce("Permanent", "NoEmail"))


def entry(kind: Kind, minute: int = 0) -> Entry:
    return Entry(NOBODY, NOBODY, 0, kind, START + timedelta(minutes=minute), BOUNCED)


def applied(kinds: list[Kind], fate: Fate | None = None) -> tuple[Fate, list[str], list[Kind]]:
    """The fate after these events, the metrics they added and the events that showed."""
    fate = fate or Fate(Kind.QUEUED)
    counts: list[str] = []
    shown: list[Kind] = []
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
        ([Kind.SENT, Kind.DELIVERED], Kind.DELIVERED),
        ([Kind.DELIVERY_DELAYED, Kind.SENT, Kind.DELIVERED], Kind.DELIVERED),
        ([Kind.SENT, Kind.DELIVERED, Kind.BOUNCED], Kind.BOUNCED),
        ([Kind.SENT, Kind.BOUNCED, Kind.DELIVERED], Kind.BOUNCED),
        ([Kind.SENT, Kind.BOUNCED, Kind.DELIVERY_DELAYED], Kind.BOUNCED),
        ([Kind.SENT, Kind.DELIVERED, Kind.CLICKED, Kind.OPENED], Kind.OPENED),
        ([Kind.SENT, Kind.OPENED, Kind.DELIVERED], Kind.OPENED),
        ([Kind.SENT, Kind.DELIVERED, Kind.OPENED, Kind.CLICKED, Kind.BOUNCED], Kind.BOUNCED),
        ([Kind.SENT, Kind.DELIVERED, Kind.OPENED, Kind.BOUNCED, Kind.OPENED], Kind.BOUNCED),
        ([Kind.SENT, Kind.DELIVERED, Kind.COMPLAINED, Kind.OPENED], Kind.COMPLAINED),
        ([Kind.SUPPRESSED, Kind.SENT], Kind.SUPPRESSED),
        ([Kind.FAILED, Kind.DELIVERED], Kind.FAILED),
        ([Kind.OPENED], Kind.QUEUED),
    ],
)
def test_events_lead_to_the_state_of_the_contract(kinds: list[Kind], state: Kind) -> None:
    assert applied(kinds)[0].state is state


def test_a_delay_before_the_first_server_counts_sent_later_but_does_not_show_it() -> None:
    """Contract decisions 12 and 24: `sent` is late bookkeeping behind a delay that came first."""
    fate, counts, shown = applied([Kind.DELIVERY_DELAYED, Kind.SENT])
    assert fate.state is Kind.DELIVERY_DELAYED
    assert counts == ["delivery_delayed", "sent"]
    assert shown == [Kind.DELIVERY_DELAYED]


def test_repeats_are_counted_as_the_metrics_say() -> None:
    """metrics.md section 4: delays once, opens every time, unique opens once."""
    _, counts, _ = applied(
        [Kind.SENT, Kind.DELIVERY_DELAYED, Kind.DELIVERY_DELAYED, Kind.DELIVERED, Kind.OPENED, Kind.OPENED]
    )
    assert counts.count("delivery_delayed") == 1
    assert counts.count("opened") == 2
    assert counts.count("unique_opened") == 1


@given(st.lists(st.sampled_from(sorted(RULES, key=RANK.__getitem__)), max_size=12))
def test_no_interleaving_gives_two_outcomes(kinds: list[Kind]) -> None:
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


@pytest.mark.parametrize("kind", [Kind.DELIVERED, Kind.BOUNCED, Kind.FAILED, Kind.SUPPRESSED])
def test_an_outcome_that_is_settled_twice_counts_once(kind: Kind) -> None:
    """A settlement is repeated when its connection was lost in the commit."""
    first = [kind] if kind in {Kind.FAILED, Kind.SUPPRESSED} else [Kind.SENT, kind]
    fate, counts, _ = applied(first)
    again, repeated, shown = applied(first, fate)
    assert counts
    assert (again, repeated, shown) == (fate, [], [])


@pytest.mark.parametrize("state", STATES)
def test_unsubscribing_counts_once_and_changes_no_state(state: Kind) -> None:
    """topics.md 4: the metric of the recipient, and no event of its delivery."""
    fate, counts, shown = applied([Kind.UNSUBSCRIBED, Kind.UNSUBSCRIBED, Kind.UNSUBSCRIBED], Fate(state))
    assert (fate, counts, shown) == (Fate(state, unsubscribed_at=START), ["unsubscribed"], [])
