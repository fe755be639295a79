"""The records of one domain: expected, found, next step."""

from __future__ import annotations

from typing import Final

from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.outside import Outside
from pillarbox.doctor.tracking_host import tracking_host_check
from pillarbox.domains.checks import check_queries
from pillarbox.domains.checks.inspection import Inspector, wanted_of
from pillarbox.domains.checks.record_results import NEXT_KEY, RecordResult
from pillarbox.domains.dns.answers import AnswerKind
from pillarbox.domains.dns.zone import DMARC
from pillarbox.domains.installation import Installation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import Domain
from pillarbox.kernel.postgres.database import TeamDb

LEVELS: Final = {
    "match": Level.OK,
    "different": Level.PROBLEM,
    "absent": Level.PROBLEM,
    "unknown": Level.WARNING,
}

ABLE: Final = {
    "sending": "the domain may send",
    "receiving": "the domain may receive",
}


async def domain_checks(
    outside: Outside, db: TeamDb, domain: Domain, here: Installation, public_url: str
) -> list[Check]:
    """What the domain may do, each of its records as DNS shows it now, and whether its tracked links open."""
    checked = await check_queries.checked(db, domain.id)
    keys = await check_queries.keys(db, domain.id)
    wanted = wanted_of(domain, keys, here, proof=await proof_needed(db, here))
    results = await Inspector(outside.dns, outside.clock).inspect(wanted)
    checks = [_record(name, result) for name, result in results.items()]
    if checked is not None:
        able = {"sending": checked.sending_ok, "receiving": checked.receiving_ok}
        enabled = {"sending": domain.sending, "receiving": domain.receiving}
        checks += [_ability(domain, what, able[what]) for what in able if enabled[what]]
    if checked is not None and checked.tracking_ok and domain.tracking_subdomain is not None:
        host = f"{domain.tracking_subdomain}.{domain.name}"
        checks.append(await tracking_host_check(outside, host, public_url))
    if domain.sending:
        checks.append(await _dmarc(outside, domain))
    return checks


def _record(name: str, found: RecordResult) -> Check:
    level = LEVELS[found.match]
    if name == NEXT_KEY and level is Level.PROBLEM:
        level = Level.WARNING
    advice = found.advice[0] if found.advice else None
    if level is Level.OK and advice is not None:
        level = Level.WARNING
    seen = " | ".join(found.found) or "nothing"
    where = f" (says {found.where})" if found.where else ""
    problem = f"{advice.problem} " if advice else ""
    return Check(
        f"record.{name}",
        level,
        f"{found.type} {found.name}",
        f"{problem}Found: {seen}{where}",
        found.expected,
        advice.step if advice else None,
    )


def _ability(domain: Domain, what: str, able: bool) -> Check:
    title = f"{domain.name}: {what} works"
    if able:
        return Check(f"domain.{what}", Level.OK, title, ABLE[what])
    return Check(
        f"domain.{what}",
        Level.PROBLEM,
        title,
        f"{what} has not been verified",
        ABLE[what],
        f"Publish the records that are missing, then run `pillarbox domains verify {domain.name}`.",
    )


async def _dmarc(outside: Outside, domain: Domain) -> Check:
    """Large receivers want a DMARC record; none is needed for verification."""
    owner = f"_dmarc.{domain.name}"
    seen = await outside.look_up(owner, "TXT")
    records = [value for value in seen.values if value.lower().startswith("v=dmarc1")]
    title, expected = f"TXT {owner}", f"one record that starts with v=DMARC1, for example {DMARC}"
    if len(records) == 1:
        return Check("record.dmarc", Level.OK, title, records[0], expected)
    found = seen.detail if seen.kind is AnswerKind.TROUBLE else " | ".join(records) or "nothing"
    step = "Keep one of the records." if records else f"Publish: {owner} TXT {DMARC}"
    return Check("record.dmarc", Level.WARNING, title, found, expected, step)
