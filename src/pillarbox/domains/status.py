"""States of records, of capabilities and of a whole domain (domains.md sections 2 and 3).

The column `domains.records` holds one entry for each record that is not in its first state:

    {"dkim": {"status": "pending", "since": "2026-10-03T07:40:00.000Z"}, …}

A record without an entry is `not_started`. Its name and value are not stored: they follow from the
domain and the installation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any


class RecordKey(Enum):
    """The records of a domain, in the order in which they are shown."""

    SPF_MX = "spf_mx"
    SPF_TXT = "spf_txt"
    DKIM = "dkim"
    RECEIVING = "receiving"
    TRACKING = "tracking"
    TRACKING_CAA = "tracking_caa"


class DomainState(Enum):
    """Of a record, a capability or a domain; the partial ones belong to domains alone."""

    NOT_STARTED = "not_started"
    PENDING = "pending"
    VERIFIED = "verified"
    TEMPORARY_FAILURE = "temporary_failure"
    FAILED = "failed"
    PARTIALLY_VERIFIED = "partially_verified"
    PARTIALLY_FAILED = "partially_failed"


PARTIAL = frozenset({DomainState.PARTIALLY_VERIFIED, DomainState.PARTIALLY_FAILED})
RECORD_STATES = tuple(state for state in DomainState if state not in PARTIAL)

States = Mapping[str, Mapping[str, Any]]

SENDING_RECORDS = (RecordKey.SPF_MX, RecordKey.SPF_TXT, RecordKey.DKIM)

# The first state that any record is in decides (section 3).
_DECIDING = (DomainState.PENDING, DomainState.FAILED, DomainState.NOT_STARTED)

_MIXED: Mapping[frozenset[DomainState], DomainState] = {
    frozenset({DomainState.VERIFIED, DomainState.PENDING}): DomainState.PARTIALLY_VERIFIED,
    frozenset({DomainState.VERIFIED, DomainState.NOT_STARTED}): DomainState.PARTIALLY_VERIFIED,
    frozenset({DomainState.VERIFIED, DomainState.FAILED}): DomainState.PARTIALLY_FAILED,
    frozenset({DomainState.PENDING, DomainState.FAILED}): DomainState.PENDING,
    frozenset({DomainState.PENDING, DomainState.NOT_STARTED}): DomainState.PENDING,
    frozenset({DomainState.FAILED, DomainState.NOT_STARTED}): DomainState.FAILED,
}


def state_of(record: RecordKey, states: States) -> DomainState:
    """Return the state of one record."""
    return DomainState(states.get(record.value, {}).get("status", DomainState.NOT_STARTED.value))


def receiving_records(*, proof: bool) -> tuple[RecordKey, ...]:
    """Return the records that the capability receiving rests on."""
    return (RecordKey.RECEIVING, RecordKey.DKIM) if proof else (RecordKey.RECEIVING,)


def capability_state(records: Collection[RecordKey], states: States) -> DomainState:
    """Return the state of a capability from the states of its records."""
    found = {state_of(record, states) for record in records}
    return next((state for state in _DECIDING if state in found), DomainState.VERIFIED)


def domain_state(*, sending: bool, receiving: bool, proof: bool, states: States) -> DomainState:
    """Return the status of a domain from its enabled capabilities."""
    found = set()
    if sending:
        found.add(capability_state(SENDING_RECORDS, states))
    if receiving:
        found.add(capability_state(receiving_records(proof=proof), states))
    return found.pop() if len(found) == 1 else _MIXED[frozenset(found)]
