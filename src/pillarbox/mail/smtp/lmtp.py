"""One LMTP session: its own words, and an answer for each recipient (RFC 2033); the rest is `smtp_server`'s.

An LMTP client is a mail server of ours: many errors are those of its senders, and it is not slowed
for them.
"""

from __future__ import annotations

from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import SessionReply
from pillarbox.mail.smtp.session import SmtpSession


class LmtpSession(SmtpSession):
    """The state of one LMTP session."""

    __slots__ = ()

    SPEAKS = "LMTP"
    HELP = say.LMTP_HELP
    HELLO_FIRST = say.LHLO_FIRST
    NO_RECIPIENTS = say.NOBODY_ACCEPTED

    @property
    def protocol(self) -> str:
        """How the message came, in the words of RFC 3848 and RFC 6531."""
        name = "UTF8LMTP" if self.sender is not None and self.sender.utf8 else "LMTP"
        return f"{name}{'S' if self.tls else ''}"

    def _error(self, session_reply: SessionReply) -> None:
        self._answer(session_reply)

    def _not_here(self, _: bytes) -> None:
        """HELO and EHLO (4.1)."""
        self._error(say.SAY_LHLO)

    def _done(self, session_reply: SessionReply) -> None:
        """An answer that is not one for each is that of everybody (4.2)."""
        if session_reply.replies == 1:
            session_reply = session_reply._replace(wire=session_reply.wire * len(self.recipients))
        super()._done(session_reply)


LmtpSession.COMMANDS = {
    **SmtpSession.COMMANDS,
    b"LHLO": LmtpSession._ehlo,
    b"EHLO": LmtpSession._not_here,
    b"HELO": LmtpSession._not_here,
}
