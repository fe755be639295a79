"""The handler for mail from other servers: which recipients exist, and the answers to the sender
(receiving.md 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import GONE
from pillarbox.kernel.postgres.time_limit import TimeLimit
from pillarbox.mail.message.address import LONGEST_LOCAL, wire_local
from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply, Verdict
from pillarbox.mail.smtp.commands import MailCommand, Path
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.mail.smtp.session import SmtpSession
from pillarbox.receiving.addresses import AddressLookup, AddressRefusalReason, ForBounces, ForTeam, Place
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival, ArrivalFate, ArrivalOutcome
from pillarbox.receiving.receive import MOST_OCTETS, MessageReceiver
from pillarbox.receiving.reports.bounce_mail import BounceMail, Bounces
from pillarbox.receiving.reports.return_path import TooManyReports

log = get("smtp")

MOST_RECIPIENTS: Final = 100
MOST_OF_REPORT: Final = 4 * 1024 * 1024
"""The fields of a report stand at its beginning; the returned mail follows."""

NO_RELAY = say.answer(550, "5.7.1", "We do not relay for this domain")
NO_SUCH_ADDRESS = say.answer(550, "5.1.1", "There is no such address here")
ONE_AT_A_TIME = say.answer(452, "4.5.3", "A report goes to one recipient at a time")

BLOCKED = say.answer(550, "5.7.1", "This address takes no mail from this sender")
FULL = say.answer(452, "4.2.2", "The mailbox is full, try again later")

REFUSALS: Final = {
    AddressRefusalReason.RELAY: NO_RELAY,
    AddressRefusalReason.UNKNOWN: NO_SUCH_ADDRESS,
    AddressRefusalReason.FULL: FULL,
}

ANSWERS: Final = {
    ArrivalFate.REPEATED: say.answer(250, "2.0.0", "Ok, it was stored before"),
    ArrivalFate.LOOPING: say.answer(554, "5.4.6", "The message has passed too many servers"),
    ArrivalFate.FORGED: say.answer(
        550, "5.7.1", "The message is refused by the DMARC policy of its author's domain"
    ),
    ArrivalFate.NO_ROOM: say.answer(452, "4.3.1", "There is no room for the message, try again later"),
    ArrivalFate.BUSY: say.LATER,
    ArrivalFate.TROUBLE: say.TROUBLE,
}


class InboundHandler:
    """Answers sessions that are not logged in. While `is_closed`, every transaction gets a temporary
    failure."""

    def __init__(
        self,
        receiving: MessageReceiver,
        addresses: AddressLookup,
        bounces: Bounces,
        clock: Clock,
        *,
        is_closed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._receiving = receiving
        self._addresses = addresses
        self._bounces = bounces
        self._clock = clock
        self._is_closed = is_closed

    def mail(self, session: SmtpSession, mail: MailCommand) -> Verdict:
        if mail.size is not None and mail.size > MOST_OCTETS:
            return say.TOO_BIG
        if self._is_closed():
            return say.LATER
        refusal = self._receiving.refusal
        if refusal is not None:
            return ANSWERS[refusal]
        session.notes = self._receiving.expect()
        return say.SENDER_OK

    def recipient(self, session: SmtpSession, path: Path) -> Verdict:
        if len(session.recipients) >= MOST_RECIPIENTS:
            return say.TOO_MANY_RECIPIENTS
        if len(path.local.encode("utf-8", "replace")) > LONGEST_LOCAL:
            return say.BAD_RECIPIENT
        place = self._addresses.at_hand(path.local, path.domain)
        if place is None or (isinstance(place, ForTeam) and place.refuses):
            return self._find(session, path)
        return self._recipient_answer(session, place)

    def message(self, session: SmtpSession, content: ReceivedText) -> Verdict:
        report = session.recipients[0]
        if isinstance(report, ForBounces):
            return self._report(session, report, content)
        return self._store(session, content)

    def login(self, session: SmtpSession, user: str, password: str) -> Verdict:
        return say.BAD_LOGIN

    def ended(self, session: SmtpSession) -> None:
        """Drop the state of the transaction."""
        session.notes.gone()
        session.notes = None

    async def _find(self, session: SmtpSession, path: Path) -> SessionReply:
        try:
            with TimeLimit():
                place = await self._addresses.find(path.local, path.domain)
                if isinstance(place, ForTeam) and place.refuses:
                    sender = _sender(session)
                    if sender and await self._addresses.refuses(place, sender):
                        return BLOCKED
        except GONE as trouble:
            log.warning("smtp.no_directory", trouble=type(trouble).__name__)
            return say.LATER
        return self._recipient_answer(session, place)

    def _recipient_answer(self, session: SmtpSession, place: Place) -> SessionReply:
        """Return the answer to RCPT; accepted recipients are recorded. A report has one recipient
        alone (SMTP-15)."""
        if isinstance(place, AddressRefusalReason):
            return REFUSALS[place]
        if session.recipients and (
            isinstance(place, ForBounces) or isinstance(session.recipients[0], ForBounces)
        ):
            return ONE_AT_A_TIME
        session.recipients.append(place)
        return say.RECIPIENT_OK

    async def _store(self, session: SmtpSession, content: ReceivedText) -> SessionReply:
        if content.size > MOST_OCTETS:
            return say.TOO_BIG
        outcome = await self._receive(session, arrival_of(session), content)
        return ANSWERS[outcome.fate] if outcome.fate is not ArrivalFate.STORED else stored_as(outcome.ids[0])

    async def _receive(self, session: SmtpSession, arrival: Arrival, content: ReceivedText) -> ArrivalOutcome:
        return await self._receiving.take(arrival, content, session.notes)

    async def _report(self, session: SmtpSession, report: ForBounces, content: ReceivedText) -> SessionReply:
        if content.size > MOST_OCTETS:
            return say.TOO_BIG
        raw = _beginning(content)
        try:
            with TimeLimit():
                await self._bounces(
                    BounceMail(
                        token=report.token,
                        recipient=report.address,
                        sender=_sender(session),
                        raw=raw,
                        at=self._clock.now(),
                        client=session.peer,
                        helo=session.helo or "",
                    )
                )
        except TooManyReports:
            return say.LATER
        except Exception:
            log.exception("smtp.report_failed", octets=len(raw))
            return say.TROUBLE
        return say.OK


def arrival_of(session: SmtpSession) -> Arrival:
    places = [place for place in session.recipients if isinstance(place, ForTeam)]
    return Arrival(
        client=session.peer,
        helo=session.helo or "",
        protocol=session.protocol,
        tls=session.tls,
        mail_from=_sender(session),
        recipients=tuple([AcceptedRecipient(place.team_id, place.address) for place in places]),
    )


def _sender(session: SmtpSession) -> str:
    sender = None if session.sender is None else session.sender.sender
    return "" if sender is None or sender.is_null else f"{wire_local(sender.local)}@{sender.domain}"


def _beginning(content: ReceivedText) -> bytes:
    """Return all of a report, unless the mail that it sends back is very large."""
    if content.in_memory:
        return content.read()
    blocks, octets = [], 0
    for block in content.blocks():
        blocks.append(block)
        octets += len(block)
        if octets >= MOST_OF_REPORT:
            break
    return b"".join(blocks)


def stored_as(email_id: UUID) -> SessionReply:
    return say.answer(250, "2.0.0", f"Ok, stored as {email_id}")
