"""Which handler a session gets: submission after a login, inbound mail otherwise."""

from __future__ import annotations

import time
from collections.abc import Awaitable

from pillarbox.mail.smtp.answers import SessionReply, Verdict
from pillarbox.mail.smtp.session import MailCommand, Path, ReceivedText, SessionHandler, SmtpSession
from pillarbox.smtp import prometheus

SUBMISSION, INBOUND, LOCAL = "submission", "inbound", "lmtp"


class HandlerChoice:
    """The handler of a listener for both. Nobody can log in within a transaction, so its handler stays."""

    def __init__(self, submission: SessionHandler, inbound: SessionHandler) -> None:
        self._submission = submission
        self._inbound = inbound

    def _handler(self, session: SmtpSession) -> SessionHandler:
        return self._inbound if session.user is None else self._submission

    def mail(self, session: SmtpSession, mail: MailCommand) -> Verdict:
        return self._handler(session).mail(session, mail)

    def recipient(self, session: SmtpSession, path: Path) -> Verdict:
        return self._handler(session).recipient(session, path)

    def message(self, session: SmtpSession, content: ReceivedText) -> Verdict:
        return self._handler(session).message(session, content)

    def login(self, session: SmtpSession, user: str, password: str) -> Verdict:
        return self._submission.login(session, user, password)

    def ended(self, session: SmtpSession) -> None:
        self._handler(session).ended(session)


class CountingHandler:
    """A handler whose answers to messages are counted."""

    def __init__(self, kind: str, handler: SessionHandler) -> None:
        self._kind = kind
        self._handler = handler
        self.mail = handler.mail
        self.recipient = handler.recipient
        self.login = handler.login
        self.ended = handler.ended

    def message(self, session: SmtpSession, content: ReceivedText) -> Verdict:
        began = time.perf_counter()
        verdict = self._handler.message(session, content)
        if isinstance(verdict, SessionReply):
            return self._count(verdict, began)
        return self._later(verdict, began)

    async def _later(self, verdict: Awaitable[SessionReply], began: float) -> SessionReply:
        return self._count(await verdict, began)

    def _count(self, answer_given: SessionReply, began: float) -> SessionReply:
        prometheus.MESSAGES.add(1, (self._kind, str(answer_given.code)))
        prometheus.STORING.observe(time.perf_counter() - began, (self._kind,))
        return answer_given
