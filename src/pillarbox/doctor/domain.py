"""The records of one domain: expected, found, next step."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.outside import OutsideWorld
from pillarbox.domains.checks import inspection
from pillarbox.domains.checks.inspection import Inspector, wanted_of
from pillarbox.domains.checks.record_results import NEXT_KEY, RecordResult
from pillarbox.domains.dns.zone import DMARC
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.ownership import proof_needed
from pillarbox.domains.queries import Domain
from pillarbox.kernel.network.dns_answers import AnswerKind
from pillarbox.kernel.postgres.database import TeamDb

NAME: Final = "tracking_host"
MOST_ADDRESSES: Final = 4

CERTIFICATE: Final = "Let the proxy before Pillarbox show a valid certificate for {host}, and its chain."
AWAY: Final = "Let {host} port {port} lead to Pillarbox: check its address, the proxy and the firewall."


async def tracking_host_check(outside: OutsideWorld, host: str, public_url: str) -> Check:
    """Check that links open at the tracking host. Every address is tried: a recipient may be led to any of
    them."""
    public = urlsplit(public_url)
    is_tls = public.scheme == "https"
    port = public.port or (443 if is_tls else 80)
    title = f"{host}: tracked links open"
    expected = f"port {port} answers" + (" with a valid certificate" if is_tls else "")
    addresses = (await outside.addresses(host))[:MOST_ADDRESSES]
    if not addresses:
        return Check(
            name=f"{NAME}.no_dns",
            level=Level.PROBLEM,
            title=title,
            found=await outside.why_no_address(host),
            expected=expected,
            step=AWAY.format(host=host, port=port),
        )
    for address in addresses:
        if not (await outside.connect(address, port, False)).connected:
            found, step = f"{address} port {port} does not answer", AWAY.format(host=host, port=port)
            return Check(
                name=f"{NAME}.away",
                level=Level.PROBLEM,
                title=title,
                found=found,
                expected=expected,
                step=step,
            )
        fault = await outside.handshake(address, port, host) if is_tls else None
        if fault is not None:
            found, step = f"{address} port {port}: {fault}", CERTIFICATE.format(host=host)
            return Check(
                name=f"{NAME}.certificate",
                level=Level.PROBLEM,
                title=title,
                found=found,
                expected=expected,
                step=step,
            )
    return Check(
        name=NAME, level=Level.OK, title=title, found=f"{', '.join(addresses)}: answers", expected=expected
    )


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
    outside: OutsideWorld, db: TeamDb, domain: Domain, here: MailInstallation, public_url: str
) -> list[Check]:
    """Return the checks of a domain: its records as DNS has them now, what it may do, its tracking host, its
    DMARC policy."""
    checked = await inspection.checked(db, domain.id)
    keys = await inspection.keys(db, domain.id)
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


def _record(name: str, record_result: RecordResult) -> Check:
    level = LEVELS[record_result.match]
    if name == NEXT_KEY and level is Level.PROBLEM:
        level = Level.WARNING
    advice = record_result.advice[0] if record_result.advice else None
    if level is Level.OK and advice is not None:
        level = Level.WARNING
    seen = " | ".join(record_result.found) or "nothing"
    where = f" (says {record_result.where})" if record_result.where else ""
    problem = f"{advice.problem} " if advice else ""
    return Check(
        name=f"record.{name}",
        level=level,
        title=f"{record_result.type} {record_result.name}",
        found=f"{problem}Found: {seen}{where}",
        expected=record_result.expected,
        step=advice.step if advice else None,
    )


def _ability(domain: Domain, what: str, able: bool) -> Check:
    title = f"{domain.name}: {what} works"
    if able:
        return Check(f"domain.{what}", Level.OK, title, ABLE[what])
    return Check(
        name=f"domain.{what}",
        level=Level.PROBLEM,
        title=title,
        found=f"{what} has not been verified",
        expected=ABLE[what],
        step=f"Publish the records that are missing, then run `pillarbox domains verify {domain.name}`.",
    )


async def _dmarc(outside: OutsideWorld, domain: Domain) -> Check:
    """Check the DMARC record: large receivers want one, and none is needed for verification."""
    owner = f"_dmarc.{domain.name}"
    seen = await outside.look_up(owner, "TXT")
    records = [value for value in seen.values if value.lower().startswith("v=dmarc1")]
    title, expected = f"TXT {owner}", f"one record that starts with v=DMARC1, for example {DMARC}"
    if len(records) == 1:
        return Check(name="record.dmarc", level=Level.OK, title=title, found=records[0], expected=expected)
    found = seen.detail if seen.kind is AnswerKind.TROUBLE else " | ".join(records) or "nothing"
    step = "Keep one of the records." if records else f"Publish: {owner} TXT {DMARC}"
    return Check(
        name="record.dmarc", level=Level.WARNING, title=title, found=found, expected=expected, step=step
    )
