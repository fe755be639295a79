"""The slice of SMTP: the servers for mail of other servers, for submission and for LMTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.emails.accept import Accept
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.idempotency import IdempotencyRows
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.listeners import LMTP, SMTP, submission_names
from pillarbox.kernel.security.certificates import Certificate, self_made
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.team_rate import TeamRate
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.slices import Background, Container, Slice, StartOrder, Stop
from pillarbox.mail.smtp.listener import ListenerOptions
from pillarbox.receiving.addresses import AddressLookup
from pillarbox.receiving.receive import MessageReceiver
from pillarbox.receiving.reports.return_path import ReturnPath
from pillarbox.smtp.clients import Allowance, Clients
from pillarbox.smtp.inbound import InboundHandler
from pillarbox.smtp.listeners import MOST_OCTETS, SmtpListeners
from pillarbox.smtp.local import LmtpHandler
from pillarbox.smtp.settings import (
    SMTP_CLIENT_RATE,
    SMTP_CLIENT_SESSIONS,
    SMTP_LOGIN_NEEDS_TLS,
    SMTP_SESSIONS,
)
from pillarbox.smtp.submission import SubmissionHandler


def smtp_options(settings: Settings) -> ListenerOptions:
    """Return the protocol options of the SMTP servers: name, size limit, and how logins are offered."""
    return ListenerOptions(
        settings.hostname,
        MOST_OCTETS,
        offers_login=True,
        login_needs_tls=settings[SMTP_LOGIN_NEEDS_TLS],
        folder=str(settings.data),
    )


def smtp_certificate(settings: Settings, clock: Clock) -> Certificate:
    """Return the operator's certificate, or one that we make."""
    if settings.tls_cert is not None and settings.tls_key is not None:
        return Certificate(settings.tls_cert, settings.tls_key, clock)
    made = self_made(settings.data, settings.hostname, clock.now())
    return Certificate(made, made, clock)


def _submission(kit: Container) -> SubmissionHandler:
    return SubmissionHandler(
        accept=kit.need(Accept),
        credentials=kit.need(KeyCredentials),
        idempotency=kit.need(IdempotencyRows),
        team_rate=kit.need(TeamRate),
        rate_limit=kit.settings.rate_limit,
        clock=kit.clock,
        ids=kit.need(Ids),
        is_closed=_closed(kit),
    )


def _closed(kit: Container) -> Callable[[], bool]:
    maintenance = kit.need(Maintenance)
    return lambda: maintenance.is_on


def _listeners(kit: Container) -> SmtpListeners | None:
    """Return the SMTP servers, where this process has any."""
    settings, runtime, windows = kit.settings, kit.runtime, kit.need(Windows)
    if not {SMTP, LMTP, *submission_names(settings.submission)} & runtime.listeners.keys():
        return None
    sessions = ceil(settings[SMTP_SESSIONS] / runtime.count)
    allowance = Allowance(sessions, settings[SMTP_CLIENT_SESSIONS], settings[SMTP_CLIENT_RATE])
    parts = (kit.need(MessageReceiver), kit.need(AddressLookup), kit.need(ReturnPath).take, kit.clock)
    return SmtpListeners(
        sockets=runtime.listeners,
        submission=kit.need(SubmissionHandler),
        inbound=InboundHandler(*parts, is_closed=_closed(kit)),
        local=LmtpHandler(*parts, is_closed=_closed(kit)),
        manner=smtp_options(settings),
        asked=settings.submission,
        certificate=smtp_certificate(settings, kit.clock),
        clients=Clients(windows, kit.clock, allowance, index=runtime.index, count=runtime.count),
        local_clients=Clients(windows, kit.clock, Allowance(sessions, None, None)),
    )


def _background(kit: Container) -> Sequence[Background]:
    smtp = kit.find(SmtpListeners)
    if smtp is None:
        return ()
    return [Background((StartOrder.SERVERS, smtp.open), smtp.close, (Stop.SERVERS, smtp.stop), smtp.reload)]


SLICE = Slice(
    name="smtp",
    provides={SubmissionHandler: _submission, SmtpListeners: _listeners},
    background=_background,
)
