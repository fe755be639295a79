"""Writes the outcome of a check in one transaction, against the domain as it is by then.

DNS decides the states of the records, who owns the name, what the domain may do and which key signs. One
event tells all of it; then the next check is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from msgspec.structs import replace as restruct

from pillarbox.directory import domains as directory
from pillarbox.domains import keys, queries
from pillarbox.domains.checks import check_queries
from pillarbox.domains.checks.check_queries import CheckState, KeyRow
from pillarbox.domains.checks.inspection import ExpectedRecords, wanted_of
from pillarbox.domains.checks.record_results import NEXT_KEY, RecordResult, encoded
from pillarbox.domains.checks.start import shown
from pillarbox.domains.checks.transitions import (
    CHECKED,
    PATIENCE,
    RecordOutcome,
    able,
    advanced,
    daily,
    next_check,
    recheck_after,
)
from pillarbox.domains.context import DomainContext
from pillarbox.domains.dns.advice import not_ours
from pillarbox.domains.dns.records import needed
from pillarbox.domains.domain_events import UPDATED, publish
from pillarbox.domains.ownership import proof_asked
from pillarbox.domains.queries import Domain
from pillarbox.domains.status import SENDING_RECORDS, DomainState, RecordKey, receiving_records, state_of
from pillarbox.kernel.postgres.database import TeamDb


class Inspection(NamedTuple):
    """When an inspection began, and its result for each record."""

    began: datetime
    results: Mapping[str, RecordResult]


@dataclass(frozen=True, slots=True)
class CurrentDomain:
    """The domain as it is when the outcome is written; nobody else changes it meanwhile."""

    domain: Domain
    checked: CheckState
    keys: Sequence[KeyRow]
    proof: bool
    wanted: ExpectedRecords
    at: datetime

    @property
    def needed(self) -> list[RecordKey]:
        return needed(self.domain, proof=self.proof)

    @property
    def waiting(self) -> KeyRow | None:
        return next((key for key in self.keys if key.waiting), None)


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """Writes the outcome of checks. `window` is how long delivery is tried."""

    context: DomainContext
    window: timedelta

    async def settle(
        self, db: TeamDb, name: str, domain_id: UUID, inspection: Inspection, instant: datetime, chance: float
    ) -> datetime | None:
        """Write the outcome in the transaction that `db` stands for; when the next check is due, or None
        where no check could change anything."""
        await directory.hold_name(db, name)
        now = await self._read(db, domain_id, instant)
        if now is None:
            return None
        found = {
            key: result
            for key, expected in now.wanted.records.items()
            if (result := inspection.results.get(key)) is not None and result.answers(expected)
        }
        ours = await self._owns_name(db, now, found)
        after = replace(now.domain, states=advanced(now.domain.states, _outcomes(found), instant, ours=ours))
        if ours:
            after, found = await self._with_key_switched(db, now, after, found)
        else:
            found = {key: _with_not_owned_advice(result, name) for key, result in found.items()}
        await self._store(db, now, after, found)
        return self._next_due(now, after, inspection.began, chance)

    async def _read(self, db: TeamDb, domain_id: UUID, now: datetime) -> CurrentDomain | None:
        """Return the domain as it is now; None where there is nothing to check any more."""
        domain = await queries.lock(db, domain_id)
        checked = await check_queries.checked(db, domain_id)
        if domain is None or checked is None or domain.claim_id is not None:
            return None
        rows = await check_queries.keys(db, domain_id)
        proof = proof_asked(self.context.here, several_teams=checked.several_teams)
        return CurrentDomain(
            domain=domain,
            checked=checked,
            keys=rows,
            proof=proof,
            wanted=wanted_of(domain, rows, self.context.here, proof=proof),
            at=now,
        )

    async def _owns_name(
        self, db: TeamDb, now: CurrentDomain, record_results: Mapping[str, RecordResult]
    ) -> bool:
        """Return whether no other team owns the name; the team owns it from the first proof on."""
        if now.checked.owner is not None:
            return now.checked.owner == db.team_id
        proofs = {RecordKey.DKIM} if now.proof else {RecordKey.DKIM, RecordKey.RECEIVING}
        for record in proofs:
            result = record_results.get(record.value)
            proven = result is not None and result.outcome is RecordOutcome.MATCH
            if proven and state_of(record, now.domain.states) in CHECKED:
                return await directory.take_ownership(db, now.domain.name, now.at)
        return True

    async def _with_key_switched(
        self, db: TeamDb, now: CurrentDomain, after: Domain, record_results: dict[str, RecordResult]
    ) -> tuple[Domain, dict[str, RecordResult]]:
        """Let a waiting key whose record is published sign from now on; that verifies the DKIM record."""
        waiting, result = now.waiting, record_results.get(NEXT_KEY)
        if waiting is None or result is None or result.outcome is not RecordOutcome.MATCH:
            return after, record_results
        await keys.switch(db, after.id, waiting, now.at, self.window)
        states = now.domain.states
        dkim = {RecordKey.DKIM: RecordOutcome.MATCH}
        return (
            replace(
                after,
                selector=waiting.selector,
                public_key=waiting.public_key,
                states={**after.states, **_entry(advanced(states, dkim, now.at, ours=True))},
            ),
            {
                **{key: kept for key, kept in record_results.items() if key != NEXT_KEY},
                RecordKey.DKIM.value: result,
            },
        )

    async def _store(
        self, db: TeamDb, now: CurrentDomain, after: Domain, record_results: Mapping[str, RecordResult]
    ) -> None:
        abilities = able(
            now.checked.abilities,
            after.states,
            sending=SENDING_RECORDS if after.sending else (),
            receiving=receiving_records(proof=now.proof) if after.receiving else (),
            tracking=(RecordKey.TRACKING,) if after.tracking_subdomain else (),
            trusted=now.checked.trusted,
        )
        await check_queries.store(db, after.id, after.states, abilities, encoded(record_results), now.at)
        if any(key.retires_at is not None and key.retires_at <= now.at for key in now.keys):
            await check_queries.drop_retired(db, after.id, now.at)
        if self._has_lost_proof(now, after):
            await directory.release_ownership(db, after.name)
        if shown(now.domain, proof=now.proof) != shown(after, proof=now.proof):
            await publish(db, self.context, UPDATED, after)

    def _has_lost_proof(self, now: CurrentDomain, after: Domain) -> bool:
        """Return whether the record that proves ownership has failed in this check."""
        proof = RecordKey.DKIM if RecordKey.DKIM in now.needed else RecordKey.RECEIVING
        before = state_of(proof, now.domain.states)
        failed = state_of(proof, after.states) is DomainState.FAILED and before is not DomainState.FAILED
        return failed and not now.checked.trusted

    def _next_due(self, now: CurrentDomain, after: Domain, began: datetime, chance: float) -> datetime | None:
        found = []
        if any(state_of(key, after.states) is DomainState.PENDING for key in now.needed):
            found.append(next_check(now.checked.verifying_since or began, began))
        gap = recheck_after(after.states, now.needed, chance)
        if gap is not None:
            found.append(began + gap)
        if now.waiting is not None and now.waiting.selector != after.selector:
            young = now.at - now.waiting.created_at < PATIENCE
            found.append(next_check(now.waiting.created_at, began) if young else began + daily(chance))
        retiring = [key.retires_at for key in now.keys if key.retires_at and key.retires_at > now.at]
        return min([*found, *retiring], default=None)


def _outcomes(record_results: Mapping[str, RecordResult]) -> dict[RecordKey, RecordOutcome]:
    return {RecordKey(key): result.outcome for key, result in record_results.items() if key != NEXT_KEY}


def _entry(states: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    dkim = states.get(RecordKey.DKIM.value)
    return {} if dkim is None else {RecordKey.DKIM.value: dkim}


def _with_not_owned_advice(result: RecordResult, name: str) -> RecordResult:
    """Return the result with the advice that another team owns the name."""
    return restruct(result, advice=(not_ours(name), *result.advice))
