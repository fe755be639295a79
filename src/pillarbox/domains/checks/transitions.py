"""The states of records, and what a domain may do, after a check (domains.md sections 2 and 3); and when
the next check is due (sections 4.6 and 5.4).

Pure. A record leaves `not_started` and `failed` only by a verify call; trouble in DNS changes nothing by
itself, but time does: a record that was not found within 72 hours of the verify call has failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from pillarbox.domains.status import DomainState, RecordKey, States, capability_state, state_of
from pillarbox.kernel.wire.instants import iso_style, parse_instant

PATIENCE = timedelta(hours=72)
"""From the verify call, or from the first mismatch of what was verified, to `failed`."""

RECHECK = timedelta(hours=24)
RECHECK_JITTER = 0.1
RECHECK_BROKEN = timedelta(hours=1)

FIRST_CHECKS = tuple(timedelta(minutes=minutes) for minutes in (0, 1, 2, 5, 10, 30, 60))
"""After the request; from the last one on, hourly."""

HOUR = timedelta(hours=1)

CHECKED = (DomainState.PENDING, DomainState.VERIFIED, DomainState.TEMPORARY_FAILURE)
"""States that a check may change."""


class RecordOutcome(Enum):
    """The outcome of a check for one record."""

    MATCH = "match"
    MISMATCH = "mismatch"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a domain, apart from the status that is shown (section 3)."""

    sending: bool
    receiving: bool
    tracking: bool


def begun(states: States, records: Iterable[RecordKey], now: datetime) -> dict[str, Mapping[str, Any]]:
    """Return the states after a verify call: every record `pending`, with its clock started anew."""
    pending = {record.value: _entry(DomainState.PENDING, now) for record in records}
    return {**states, **pending}


def advanced(
    states: States, outcomes: Mapping[RecordKey, RecordOutcome], now: datetime, *, ours: bool
) -> dict[str, Mapping[str, Any]]:
    """Return the states after a check. `ours` false means that another team owns the name: then nothing
    becomes verified, whatever DNS shows."""
    after = dict(states)
    for record, outcome in outcomes.items():
        state = state_of(record, states)
        if state not in CHECKED:
            continue
        if outcome is RecordOutcome.MATCH and not ours:
            outcome = RecordOutcome.UNKNOWN if state is DomainState.VERIFIED else RecordOutcome.MISMATCH
        since = _since(states[record.value], now)
        becomes = _next(state, outcome, overdue=now - since >= PATIENCE)
        if becomes is not state:
            after[record.value] = _entry(becomes, now)
    return after


def _next(state: DomainState, outcome: RecordOutcome, *, overdue: bool) -> DomainState:
    if outcome is RecordOutcome.MATCH:
        return DomainState.VERIFIED
    if state is DomainState.PENDING:
        return DomainState.FAILED if overdue else state
    if outcome is RecordOutcome.UNKNOWN:
        return state
    if state is DomainState.VERIFIED:
        return DomainState.TEMPORARY_FAILURE
    return DomainState.FAILED if overdue else state


def able(
    before: Abilities,
    states: States,
    *,
    sending: Collection[RecordKey],
    receiving: Collection[RecordKey],
    tracking: Collection[RecordKey],
    trusted: bool,
) -> Abilities:
    """Return the domain's abilities after a check. The collections are the records that each ability rests
    on, empty where it is not wanted. A domain that the operator trusts (`trusted`) loses no ability by DNS.
    """
    return Abilities(
        _able(before.sending, states, sending, kept=trusted),
        _able(before.receiving, states, receiving, kept=trusted),
        _able(before.tracking, states, tracking, kept=trusted),
    )


def _able(before: bool, states: States, records: Collection[RecordKey], *, kept: bool) -> bool:
    if not records:
        return False
    if capability_state(records, states) is DomainState.VERIFIED:
        return True
    lost = any(state_of(record, states) is DomainState.FAILED for record in records)
    return before and (kept or not lost)


def recheck_after(states: States, records: Iterable[RecordKey], chance: float) -> timedelta | None:
    """Return how long the states may stand unchecked; None where a check could not change any. `chance` is
    from 0 to 1 and spreads the daily checks."""
    found = {state_of(record, states) for record in records}
    if DomainState.TEMPORARY_FAILURE in found:
        return RECHECK_BROKEN
    return daily(chance) if DomainState.VERIFIED in found else None


def next_check(since: datetime, after: datetime) -> datetime:
    """Return the first check later than `after` of a series that was requested at `since`.

    `after` is when the check before it began: a request that came later gets a check of its own at once.
    """
    for step in FIRST_CHECKS:
        if since + step > after:
            return since + step
    return since + ((after - since) // HOUR + 1) * HOUR


def daily(chance: float) -> timedelta:
    """Return a day, give or take a tenth."""
    return RECHECK * (1 + RECHECK_JITTER * (2 * chance - 1))


def statuses(states: States, records: Iterable[RecordKey]) -> tuple[DomainState, ...]:
    """Return the states alone, to see whether something has changed."""
    return tuple(state_of(record, states) for record in records)


def _entry(state: DomainState, since: datetime) -> dict[str, str]:
    return {"status": state.value, "since": iso_style(since)}


def _since(entry: Mapping[str, Any], now: datetime) -> datetime:
    """Return when the record came into its state; one that the operator trusts has no time yet."""
    since = entry.get("since")
    return now if since is None else parse_instant(since)
