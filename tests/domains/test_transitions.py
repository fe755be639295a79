"""States of records and abilities by the table of domains.md section 2, and the schedule of checks."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from kit.clock import START
from pillarbox.domains.checks.transitions import (
    PATIENCE,
    Abilities,
    RecordOutcome,
    able,
    advanced,
    begun,
    next_check,
    recheck_after,
)
from pillarbox.domains.status import SENDING_RECORDS, DomainState, RecordKey, state_of
from pillarbox.kernel.wire.instants import iso_style

DKIM = RecordKey.DKIM
HOUR = timedelta(hours=1)
MATCH, MISMATCH, UNKNOWN = RecordOutcome.MATCH, RecordOutcome.MISMATCH, RecordOutcome.UNKNOWN


def states(state: str) -> dict[str, dict[str, str]]:
    return {"dkim": {"status": state, "since": iso_style(START)}}


TABLE = [
    # from, outcome, hours in that state, to
    ("pending", MATCH, 0, "verified"),
    ("pending", MATCH, 80, "verified"),
    ("pending", MISMATCH, 71.9, "pending"),
    ("pending", MISMATCH, 72, "failed"),
    ("pending", UNKNOWN, 71.9, "pending"),
    ("pending", UNKNOWN, 72, "failed"),
    ("verified", MATCH, 1000, "verified"),
    ("verified", MISMATCH, 1000, "temporary_failure"),
    ("verified", UNKNOWN, 1000, "verified"),
    ("temporary_failure", MATCH, 80, "verified"),
    ("temporary_failure", MISMATCH, 71.9, "temporary_failure"),
    ("temporary_failure", MISMATCH, 72, "failed"),
    ("temporary_failure", UNKNOWN, 200, "temporary_failure"),
    *[("failed", outcome, 1000, "failed") for outcome in RecordOutcome],
    *[("not_started", outcome, 1000, "not_started") for outcome in RecordOutcome],
]


@pytest.mark.parametrize(("before", "outcome", "hours", "after"), TABLE)
def test_a_record_goes_from_state_to_state(
    before: str, outcome: RecordOutcome, hours: float, after: str
) -> None:
    known = {} if before == "not_started" else states(before)
    now = START + hours * HOUR
    found = advanced(known, {DKIM: outcome}, now, ours=True)
    assert state_of(DKIM, found).value == after
    if after == before:
        assert found == known, "the clock of a state that stays runs on"
    else:
        assert found["dkim"]["since"] == iso_style(now)


@pytest.mark.parametrize(
    ("before", "hours", "after"),
    [
        ("pending", 1, "pending"),
        ("pending", 72, "failed"),
        ("verified", 1, "verified"),
        ("temporary_failure", 72, "failed"),
    ],
)
def test_nothing_becomes_verified_while_another_team_owns_the_name(
    before: str, hours: float, after: str
) -> None:
    found = advanced(states(before), {DKIM: MATCH}, START + hours * HOUR, ours=False)
    assert state_of(DKIM, found).value == after


def test_a_verify_call_makes_every_record_pending_and_restarts_its_clock() -> None:
    for state in DomainState:
        found = begun(states(state.value), [DKIM, RecordKey.SPF_MX], START + HOUR)
        assert found == {
            key: {"status": "pending", "since": iso_style(START + HOUR)} for key in ("dkim", "spf_mx")
        }
    kept = {"tracking": {"status": "verified"}}
    assert begun(kept, [DKIM], START)["tracking"] == {"status": "verified"}


def sending(state: str, before: bool, *, trusted: bool = False) -> bool:
    known = {key.value: {"status": "verified"} for key in SENDING_RECORDS} | {"dkim": {"status": state}}
    abilities = Abilities(before, before, before)
    return able(abilities, known, sending=SENDING_RECORDS, receiving=(), tracking=(), trusted=trusted).sending


def test_an_ability_comes_with_verified_and_goes_only_with_failed() -> None:
    """Section 3: a new check of what works interrupts no mail."""
    for before, state in product((False, True), ("verified", "temporary_failure")):
        assert sending(state, before)
    for state in ("pending", "not_started"):
        assert (sending(state, False), sending(state, True)) == (False, True)
    assert (sending("failed", False), sending("failed", True)) == (False, False)
    assert sending("failed", True, trusted=True)


def test_an_ability_that_is_not_wanted_is_not_there() -> None:
    verified = {"tracking": {"status": "verified"}, "receiving": {"status": "verified"}}
    nothing = able(Abilities(True, True, True), verified, sending=(), receiving=(), tracking=(), trusted=True)
    assert nothing == Abilities(False, False, False)
    wanted = able(
        Abilities(False, False, False),
        verified,
        sending=(),
        receiving=(RecordKey.RECEIVING,),
        tracking=(RecordKey.TRACKING,),
        trusted=False,
    )
    assert wanted == Abilities(False, True, True)


def test_the_times_of_checks() -> None:
    """Section 4.6: 0 s, 1, 2, 5, 10, 30 min, 1 h, then hourly."""
    times = []
    at = START - timedelta(seconds=1)
    while at < START + PATIENCE:
        at = next_check(START, at)
        times.append((at - START).total_seconds() / 60)
    assert times[:7] == [0, 1, 2, 5, 10, 30, 60]
    assert times[7:] == [60 * hour for hour in range(2, 73)]


def test_what_stands_is_looked_at_again() -> None:
    day = timedelta(hours=24)
    assert recheck_after(states("verified"), [DKIM], 0.5) == day
    assert recheck_after(states("verified"), [DKIM], 0.0) == day * 0.9
    assert recheck_after(states("verified"), [DKIM], 1.0) == day * 1.1
    assert recheck_after(states("temporary_failure"), [DKIM, RecordKey.SPF_MX], 0.5) == HOUR
    for state in ("failed", "not_started"):
        assert recheck_after(states(state), [DKIM], 0.5) is None
