"""What may have gone out says so, however it ends."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from kit.captured import settled
from pillarbox.delivery.reports import refuse, refused, suppressed
from pillarbox.timeline.rules import EventDetail, EventKind

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("is_uncertain", [False, True])
def test_an_end_without_an_attempt_keeps_the_doubt_of_an_earlier_one(is_uncertain: bool) -> None:
    """OUT-08: a process died between the server's 250 and its outcome; then the broadcast was canceled."""
    item = settled(UUID(int=1), UUID(int=2), to=["ada@quay.example"]).item
    item.uncertain = is_uncertain
    targets = [target._replace(origin="manual", refusal="key_deleted") for target in item.targets]
    ends = [
        *refuse(item, EventKind.CANCELED, EventDetail(reason="broadcast_canceled"), NOW).entries,
        *suppressed(item, targets, NOW),
        *refused(item, targets, NOW),
    ]
    assert [entry.detail.uncertain for entry in ends] == [is_uncertain] * 3
