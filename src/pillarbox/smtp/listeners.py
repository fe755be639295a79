"""The SMTP listeners of one process: opening, closing, and their shared limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from socket import socket

from pillarbox.kernel.network.listeners import LMTP, SMTP, submission_names, with_duplicates
from pillarbox.kernel.security.certificates import Certificate, watch_expiry
from pillarbox.kernel.settings.kinds import SubmissionListener
from pillarbox.mail.smtp.listener import ListenerOptions, SmtpListener
from pillarbox.mail.smtp.session import SessionHandler
from pillarbox.receiving.receive import MOST_OCTETS as MOST_RECEIVED
from pillarbox.smtp import prometheus
from pillarbox.smtp.clients import Clients
from pillarbox.smtp.handler_choice import INBOUND, LOCAL, SUBMISSION, CountingHandler, HandlerChoice

MOST_OCTETS = 52_428_800


class SmtpListeners:
    """Opens a listener for every SMTP socket that this process was given, and ends them all.

    `clients` limits the listeners that other hosts reach, `local_clients` the one of this machine (LMTP),
    which has neither TLS nor logins.
    """

    def __init__(
        self,
        *,
        sockets: Mapping[str, int],
        submission: SessionHandler,
        inbound: SessionHandler | None,
        local: SessionHandler,
        manner: ListenerOptions,
        asked: tuple[SubmissionListener, ...],
        certificate: Certificate,
        clients: Clients,
        local_clients: Clients,
    ) -> None:
        self._sockets = sockets
        self._certificate = certificate
        self._clients = clients
        self._local_clients = local_clients
        self._tasks: list[asyncio.Task[None]] = []
        submitted = CountingHandler(SUBMISSION, submission)
        both = submitted if inbound is None else HandlerChoice(submitted, CountingHandler(INBOUND, inbound))
        self._listeners: dict[str, SmtpListener] = {}
        if SMTP in sockets:
            self._add_listener(SMTP, both, replace(manner, needs_login=inbound is None))
        for name, listener in zip(submission_names(asked), asked, strict=True):
            if name in sockets:
                own = replace(manner, needs_login=True, implicit_tls=listener.implicit_tls)
                self._add_listener(name, submitted, own)
        if LMTP in sockets:
            own = replace(manner, lmtp=True, offers_login=False, most_octets=MOST_RECEIVED)
            self._listeners[LMTP] = SmtpListener(CountingHandler(LOCAL, local), own, local_clients)

    def _add_listener(self, name: str, handler: SessionHandler, manner: ListenerOptions) -> None:
        self._listeners[name] = SmtpListener(handler, manner, self._clients, self._certificate)

    async def open(self) -> None:
        """Return when connections are accepted."""
        for name, listener in self._listeners.items():
            bound = socket(fileno=self._sockets[name])
            await listener.open(*(with_duplicates(bound) if listener.implicit_tls else [bound]))
        self._tasks = [
            asyncio.create_task(self._certificate.watch()),
            asyncio.create_task(self._clients.keep_sharing()),
        ]
        prometheus.SESSIONS.read = lambda: {(): self._clients.total + self._local_clients.total}
        watch_expiry("smtp", self._certificate)

    def close(self) -> None:
        """Accept nothing more; sessions in which nothing is under way end now."""
        for listener in self._listeners.values():
            listener.close()

    def reload(self) -> None:
        """Look for a renewed certificate now."""
        self._certificate.refresh()

    async def stop(self, grace: float) -> None:
        """Close; what is under way may end within `grace` seconds."""
        await asyncio.gather(*[listener.stop(grace) for listener in self._listeners.values()])
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
