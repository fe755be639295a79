"""The return path: mail to the signed bounce addresses of mail that we sent, and to the feedback address.

    if local_part == FEEDBACK or return_path.knows(local_part): …accept the recipient…
    await return_path.take(BounceMail(…))       # committed when it returns; then say 250

An address counts only when its MAC holds and its mail is not older than 90 days; nothing in a report can
name other mail than its own address does (BNC-02, BNC-06), except that a report to the feedback address
names it by such an address. Whatever comes, nothing is sent back and nothing is stored but what follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import EPOCH, Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.security import rate_limit
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.mail.authentication import spf
from pillarbox.mail.authentication.spf import SpfLookup
from pillarbox.mail.message.parse import parse
from pillarbox.mail.reports import arf, dsn
from pillarbox.mail.reports.arf import FeedbackReport
from pillarbox.mail.reports.dsn import DeliveryReport
from pillarbox.mail.reports.verp import BouncedItem, VerpSigner
from pillarbox.receiving.reports import bounce_queries, bounces, complaints
from pillarbox.receiving.reports.bounce_mail import BounceMail
from pillarbox.receiving.reports.bounce_queries import SentTo
from pillarbox.receiving.reports.consequences import ReportEffects
from pillarbox.receiving.reports.prometheus import REPORTS
from pillarbox.suppressions import changes
from pillarbox.timeline.record import Timeline
from pillarbox.webhooks.publish import Publisher

SECONDS: Final = 10.0


async def is_from_authorised_host(mail: BounceMail, domain: str, lookup: SpfLookup) -> bool:
    """Return whether the report has the null sender and came from a host that may send mail of this domain by
    its SPF record: people with a mailbox there cannot send that. False where it cannot be found out."""
    if "@" in mail.sender or not mail.client:
        return False
    try:
        async with asyncio.timeout(SECONDS):
            found = await spf.check(mail.client, mail.helo, f"postmaster@{domain}", lookup)
    except TimeoutError:
        return False
    return found.result == "pass"


log = get("reports")

FEEDBACK: Final = "fbl"
"""The local part of the address that is registered for complaints; its host is ours or a return path."""

VALID_FOR: Final = timedelta(days=90)
"""Since the email was made: 30 days of waiting for its time, 4 of delivery here, 5 at the next server, and
weeks until somebody complains."""

LONGEST_READ: Final = 1024 * 1024
"""The report stands before the copy of the mail, so no more than this is read."""

LARGE: Final = 64 * 1024
"""From here on a report is read in a thread."""

REPORTS_PER_ADDRESS: Final = 200
FEEDBACK_PER_SECOND: Final = 50
HOUR: Final = 3600.0


class ReportOutcome(Enum):
    """The outcome of a report that arrived."""

    RECORDED = "recorded"
    UNCHANGED = "nothing new"
    NOT_A_REPORT = "not a report"
    AUTOMATIC = "automatic reply"
    NO_COMPLAINT = "not a complaint"
    NOBODY = "no recipient found"
    UNSIGNED = "no signed address"
    FORGOTTEN = "email removed"
    TOO_MANY = "too many for one address"


class TooManyReports(Exception):  # noqa: N818 - the sender's doing, not a fault of ours
    """The feedback address gets more than is read in a second; the sender is to come back later."""


class ReturnPath:
    """Reads reports and records what follows from them, in one transaction each."""

    def __init__(
        self,
        *,
        pool: asyncpg.Pool,
        clock: Clock,
        signer: VerpSigner,
        timeline: Timeline,
        ids: Ids,
        publisher: Publisher,
        windows: Windows,
        lookup: SpfLookup,
        simulators: Collection[str] = frozenset(),
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._signer = signer
        self._timeline = timeline
        self._ids = ids
        self._publisher = publisher
        self._windows = windows
        self._lookup = lookup
        self._simulators = simulators

    def knows(self, local_part: str) -> bool:
        """Return whether a local part is a bounce address that we made, for mail that is not too old."""
        return self._named(local_part) is not None

    async def take(self, mail: BounceMail) -> ReportOutcome:
        """Record what follows from this mail; on return it is committed. Raises where that failed, and
        TooManyReports where the sender is to try again later."""
        outcome = await self._take(mail)
        REPORTS.add(1, (outcome.value,))
        return outcome

    async def _take(self, mail: BounceMail) -> ReportOutcome:
        own = self._named(mail.token) if mail.token else None
        if mail.token and own is None:
            return ReportOutcome.UNSIGNED
        if own is not None and not self._allows(mail.token.lower(), REPORTS_PER_ADDRESS, HOUR):
            log.warning("reports.too_many", email=own.email_id)
            return ReportOutcome.TOO_MANY
        if own is None and not self._allows(FEEDBACK, FEEDBACK_PER_SECOND, 1.0):
            raise TooManyReports("too many reports at once")
        head = mail.raw[:LONGEST_READ]
        read = await asyncio.to_thread(_read, head) if len(head) > LARGE else _read(head)
        if read.complaint is not None:
            about = own or self._first_named(read.complaint.bounce_tokens)
            return await self._complain(read.complaint, about, mail)
        if own is None:
            # The feedback address takes complaints only: a bounce comes to the address that it is about.
            return ReportOutcome.NOT_A_REPORT
        if read.bounce is None:
            log.info("reports.no_bounce", email=own.email_id, outcome=read.otherwise.value)
            return read.otherwise
        return await self._bounce(read.bounce, own, mail)

    async def _bounce(self, report: DeliveryReport, about: BouncedItem, mail: BounceMail) -> ReportOutcome:
        recipients = await self._recipients(about)
        if not recipients:
            return ReportOutcome.FORGOTTEN
        found = bounces.consequences(report, recipients, mail.at, self._simulators)
        # A text names its recipients in any sentence; only fields say surely whom a server means.
        if found.causes and not (await self._is_trusted(mail, recipients, is_exact=report.is_structured)):
            found = bounces.consequences(report, recipients, mail.at, self._simulators, is_trusted=False)
        return await self._record(found, about)

    async def _complain(
        self, report: FeedbackReport, about: BouncedItem | None, mail: BounceMail
    ) -> ReportOutcome:
        if about is None:
            log.info("reports.unsigned_complaint", kind=report.feedback_type)
            return ReportOutcome.UNSIGNED
        if not report.is_complaint:
            log.info("reports.no_complaint", email=about.email_id, kind=report.feedback_type)
            return ReportOutcome.NO_COMPLAINT
        recipients = await self._recipients(about)
        if not recipients:
            return ReportOutcome.FORGOTTEN
        found = complaints.consequences(report, recipients, mail.at, self._simulators)
        if found.causes and not await self._is_trusted(mail, recipients, is_exact=True):
            found = complaints.consequences(report, recipients, mail.at, self._simulators, is_trusted=False)
        return await self._record(found, about)

    async def _is_trusted(self, mail: BounceMail, recipients: Sequence[SentTo], *, is_exact: bool) -> bool:
        """Return whether a report may suppress: of a single recipient always, since only they could have
        forged it."""
        if len(recipients) == 1:
            return True
        domain = recipients[0].address.rpartition("@")[2]
        return is_exact and await is_from_authorised_host(mail, domain, self._lookup)

    async def _record(self, report_effects: ReportEffects, about: BouncedItem) -> ReportOutcome:
        if not report_effects.entries:
            log.info("reports.nobody", email=about.email_id, grp=about.group)
            return ReportOutcome.NOBODY
        async with transaction(self._pool) as conn:
            taken = await self._timeline.record(conn, report_effects.entries)
            await changes.add(conn, report_effects.causes_of(taken), self._ids, self._publisher)
        for entry in taken:
            log.info("reports.recorded", email=entry.email_id, position=entry.position, kind=str(entry.kind))
        return ReportOutcome.RECORDED if taken else ReportOutcome.UNCHANGED

    async def _recipients(self, about: BouncedItem) -> list[SentTo]:
        return await bounce_queries.recipients(self._pool, about.team_number, about.email_id, about.group)

    def _first_named(self, local_parts: Collection[str]) -> BouncedItem | None:
        return next(filter(None, map(self._named, local_parts)), None)

    def _named(self, local_part: str) -> BouncedItem | None:
        about = self._signer.read(local_part)
        if about is None or self._clock.now() - _made_at(about) > VALID_FOR:
            return None
        return about

    def _allows(self, who: str, limit: int, seconds: float) -> bool:
        return self._windows.take(rate_limit.key_for(f"reports {who}"), limit, seconds).allowed


class _ReadReport(NamedTuple):
    """A mail to a return path, as it was read: a complaint, a bounce, or neither; then `otherwise` is its
    outcome."""

    complaint: FeedbackReport | None
    bounce: DeliveryReport | None
    otherwise: ReportOutcome = ReportOutcome.NOT_A_REPORT


def _read(raw: bytes) -> _ReadReport:
    message = parse(raw)
    complaint = arf.read(message)
    bounce = dsn.read(message) if complaint is None else None
    if complaint is None and bounce is None and dsn.is_automatic_reply(message):
        return _ReadReport(None, None, ReportOutcome.AUTOMATIC)
    return _ReadReport(complaint, bounce)


def _made_at(about: BouncedItem) -> datetime:
    """Return when the email was made, by its id (RFC 9562, 5.7)."""
    return EPOCH + timedelta(milliseconds=about.email_id.int >> 80)
