"""The records that a domain needs in DNS, beside those that the last check saw there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.domains import keys, queries
from pillarbox.domains.checks import inspection
from pillarbox.domains.checks.check_queries import CheckState
from pillarbox.domains.checks.inspection import ExpectedRecords, wanted_of
from pillarbox.domains.checks.record_results import RecordResult, RecordResults, decoded
from pillarbox.domains.claims import queries as claim_queries
from pillarbox.domains.claims.queries import DomainClaim
from pillarbox.domains.dns.zone import ZoneLine, zone_lines
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.keys import PublishedKey
from pillarbox.domains.names import registrable
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import Domain
from pillarbox.kernel.postgres.database import TeamDb


@dataclass(frozen=True, slots=True)
class ReportedRecord:
    """One record to publish. `label` is its name as DNS providers want it entered; `result` is what the last
    check saw, None where that was about another value or nothing was looked for."""

    line: ZoneLine
    label: str
    result: RecordResult | None


@dataclass(frozen=True, slots=True)
class DomainReport:
    """A domain with its records, keys and abilities. `claim` is the open claim of a placeholder."""

    domain: Domain
    state: CheckState
    records: list[ReportedRecord]
    keys: list[PublishedKey]
    claim: DomainClaim | None
    is_owned_elsewhere: bool

    @property
    def lines(self) -> list[ZoneLine]:
        """The lines of a zone file."""
        return [record.line for record in self.records]


async def report_of(
    db: TeamDb, domain_id: UUID, here: MailInstallation, now: datetime
) -> DomainReport | None:
    """Return what the slice knows of a domain; None where the team has no such domain."""
    domain = await queries.get(db, domain_id)
    state = await inspection.checked(db, domain_id)
    if domain is None or state is None:
        return None
    proof = await proof_needed(db, here)
    expected_records = wanted_of(domain, await inspection.keys(db, domain_id), here, proof=proof)
    seen = results_by_name(expected_records, decoded(state.findings))
    claim = await _open_claim(db, domain)
    listed = await keys.listed(db, domain_id, now)
    lines = zone_lines(domain, listed, here, proof=proof, claim=claim)
    return DomainReport(
        domain=domain,
        state=state,
        records=[
            ReportedRecord(line, label_of(line, domain.name), seen.get((line.owner, line.type)))
            for line in lines
        ],
        keys=listed,
        claim=claim,
        is_owned_elsewhere=state.owner is not None and state.owner != db.team_id,
    )


async def lines_of(db: TeamDb, domain: Domain, here: MailInstallation, now: datetime) -> list[ZoneLine]:
    """Return everything that should be in DNS for the domain now."""
    listed, claim = await keys.listed(db, domain.id, now), await _open_claim(db, domain)
    return zone_lines(domain, listed, here, proof=await proof_needed(db, here), claim=claim)


async def _open_claim(db: TeamDb, domain: Domain) -> DomainClaim | None:
    return None if domain.claim_id is None else await claim_queries.get(db, domain.claim_id)


def results_by_name(
    expected_records: ExpectedRecords, results: RecordResults
) -> dict[tuple[str, str], RecordResult]:
    """Return the results about what is expected now, by the full name and the type of the record."""
    return {
        (expected.owner, expected.type): results[key]
        for key, expected in expected_records.records.items()
        if key in results and results[key].answers(expected)
    }


def label_of(line: ZoneLine, domain: str) -> str:
    """Return the name of a record relative to the registrable domain, `@` for that domain itself."""
    above = registrable(domain)
    return "@" if line.owner == above else line.owner.removesuffix(f".{above}")
