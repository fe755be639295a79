"""One domain: its records with what was seen in DNS, its keys, its claim, and the files for a name server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.dashboard.domains.domain_list import HERE
from pillarbox.dashboard.frame.screens import act, download, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t, translated
from pillarbox.domains import keys
from pillarbox.domains.checks.report import DomainReport, ReportedRecord, report_of
from pillarbox.domains.context import DomainContext
from pillarbox.domains.dns.advice import Advice
from pillarbox.domains.dns.advice_values import merged_spf
from pillarbox.domains.dns.matching import SPF_VERSION
from pillarbox.domains.dns.zone import UNCHECKED, ZoneLine, nsupdate_script, snippet
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.keys import KeyState
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.mail.authentication import spf_record
from pillarbox.people import audit
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right

ONE: Final = f"{HERE}/{{domain_id}}"
TEXT: Final = "text/plain; charset=utf-8"


class RecordRow(NamedTuple):
    """One record as the screen shows it. `status` is a state, or None where `note` says all there is.
    `merges` names the value that is wanted, where `value` joins it to a record that is there already."""

    purpose: str
    type: str
    label: str
    owner: str
    value: str
    priority: int | None
    status: str | None
    note: str
    merges: str | None
    dotless: str | None
    seen: Sequence[str]
    server: str
    seen_at: str | None
    problems: Sequence[tuple[str, str]]


@screen(ONE, title="domain.title", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    return await domain_page(visit)


@act(
    f"{ONE}/verify",
    title="domain.verify",
    right=Right.MANAGE,
    back=HERE,
    records=Act.DOMAIN_CHECK_ASKED,
)
async def verify(visit: Visit, _: Form) -> Reply[Html]:
    return await _done(visit, "verify", "domain_verifying")


@act(
    f"{ONE}/claim/verify",
    title="domain.claim.verify",
    right=Right.MANAGE,
    back=HERE,
    records=Act.DOMAIN_CLAIM_CHECK_ASKED,
)
async def verify_claim(visit: Visit, _: Form) -> Reply[Html]:
    return await _done(visit, "claim/verify", "claim_verifying")


@act(f"{ONE}/rotate", title="domain.rotate", right=Right.MANAGE, back=HERE)
async def rotate(visit: Visit, _: Form) -> Reply[Html]:
    """Make a DKIM key, which signs once its record has been seen."""
    report = await report_or_404(visit)
    try:
        rotation = await keys.rotate(visit.db, report.domain.id, visit.request.use(DomainContext))
    except Problem as problem:
        return await domain_page(visit, status=problem.status, problem=problem.message)
    if not rotation.new:
        return visit.to(here(visit), done="domain_key_waits")
    await audit.record(
        visit.request.use(asyncpg.Pool),
        visit.request.at,
        Act.DOMAIN_KEY_ROTATED,
        team_id=visit.team_id,
        actor=visit.actor,
        target=report.domain.name,
        details={"selector": rotation.key.selector},
    )
    return visit.to(here(visit), done="domain_rotated")


@act(f"{ONE}/delete", title="domain.delete", right=Right.MANAGE, back=HERE)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    domain = await visit.get(_api(visit))
    if form.get("typed_name").strip().lower() != domain["name"]:
        return await domain_page(visit, status=422, problem=t("domain.delete.not_so", name=domain["name"]))
    try:
        await visit.delete(_api(visit))
    except Problem as problem:
        return await domain_page(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="domain_deleted")


@download(f"{ONE}/zone", title="domain.zone")
async def zone(visit: Visit) -> Reply[Html]:
    """Send the records as lines of a zone file."""
    report = await report_or_404(visit)
    return visit.save(f"{report.domain.name}.zone", f"{snippet(lines_to_publish(report))}\n".encode(), TEXT)


@download(f"{ONE}/nsupdate", title="domain.nsupdate")
async def nsupdate(visit: Visit) -> Reply[Html]:
    """Send the records as commands of `nsupdate`."""
    report = await report_or_404(visit)
    return visit.save(
        f"{report.domain.name}.nsupdate.txt", nsupdate_script(lines_to_publish(report)).encode(), TEXT
    )


def here(visit: Visit) -> str:
    """Return the path of the domain's screen."""
    return f"{HERE}/{visit.request.param('domain_id')}"


async def report_or_404(visit: Visit) -> DomainReport:
    """Return what the slice knows of the domain of the path, or raise NotFound."""
    domain_id: UUID = visit.request.uuid("domain_id")
    installation = visit.request.use(MailInstallation)
    report = await report_of(visit.db, domain_id, installation, visit.request.at)
    if report is None:
        raise NotFound("Domain")
    return report


async def domain_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the screen of one domain."""
    domain = await visit.get(_api(visit))
    report = await report_or_404(visit)
    return await visit.draw(
        "domains/one.html",
        status=status,
        problem=problem,
        domain=domain,
        here=here(visit),
        report=report,
        rows=[record_row(record) for record in report.records],
        signing=next((key for key in report.keys if key.state is KeyState.SIGNING), None),
        is_rotating=any(key.state is KeyState.WAITING for key in report.keys),
        claim=None if report.claim is None else await visit.find(f"{_api(visit)}/claim"),
        may_manage=visit.may(Right.MANAGE),
    )


def lines_to_publish(report: DomainReport) -> list[ZoneLine]:
    """Return the lines of the domain's records; one that is merged with a record in DNS replaces it."""
    merged = {record.line.owner: record for record in report.records if is_spf(record.line)}
    return [_merged_line(line, merged.get(line.owner)) if is_spf(line) else line for line in report.lines]


def _merged_line(line: ZoneLine, record: ReportedRecord | None) -> ZoneLine:
    found = () if record is None or record.result is None else record.result.found
    value = merged_spf(found, line.value) or line.value
    old = [text for text in found if spf_record.is_spf(text) and text != value]
    return replace(line, value=value, replaces=old)


def record_row(record: ReportedRecord) -> RecordRow:
    """Return a record with what was seen of it."""
    line, result = record.line, record.result
    merged = merged_spf(() if result is None else result.found, line.value) if is_spf(line) else None
    return RecordRow(
        purpose=line.purpose,
        type=line.type,
        label=record.label,
        owner=line.owner,
        value=merged or line.value,
        priority=line.priority,
        status=None if line.status == UNCHECKED else line.status,
        note=translated(line.note),
        merges=line.value if merged not in (None, line.value) else None,
        dotless=dotless_host(line),
        seen=() if result is None else result.found,
        server="" if result is None else result.where,
        seen_at=None if result is None else result.at,
        problems=()
        if result is None
        else [(translated(advice.problem), translated(advice.step)) for advice in result.advice],
    )


def _advice(advice: Advice) -> tuple[str, str]:
    return translated(advice.problem), translated(advice.step)


def is_spf(line: ZoneLine) -> bool:
    """Return whether the record is an SPF record."""
    return line.type == "TXT" and line.value.startswith(f"{SPF_VERSION} ")


def dotless_host(line: ZoneLine) -> str | None:
    """Return the host of an MX or SPF record that has no dot in its name: nobody else finds it in DNS."""
    hosts = [line.value] if line.type == "MX" else []
    if is_spf(line):
        hosts = [term.partition(":")[2] for term in line.value.split() if term.startswith("a:")]
    return next((host for host in hosts if "." not in host), None)


async def _done(visit: Visit, what: str, done: str) -> Reply[Html]:
    try:
        visit.acts_on((await visit.get(_api(visit), shown=False))["name"])
        await visit.post(f"{_api(visit)}/{what}")
    except Problem as problem:
        if problem.status == 404:
            raise
        return await domain_page(visit, status=problem.status, problem=problem.message)
    return visit.to(here(visit), done=done)


def _api(visit: Visit) -> str:
    return f"/domains/{visit.request.param('domain_id')}"
