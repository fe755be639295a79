"""One LMTP session: its own words, and an answer for each recipient (RFC 2033); the rest is `smtp_server`'s.

An LMTP client is a mail server of ours: many errors are those of its senders, and it is not slowed
for them.
"""

from __future__ import annotations

from pillarbox.mail.smtp import answers as say
from pillarbox.mail.smtp.answers import Answer
from pillarbox.mail.smtp.session import Session


class LmtpSession(Session):
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

    def _error(self, said: Answer) -> None:
        self._answer(said)

    def _not_here(self, _: bytes) -> None:
        """HELO and EHLO (4.1)."""
        self._error(say.SAY_LHLO)

    def _done(self, said: Answer) -> None:
        """An answer that is not one for each is that of everybody (4.2)."""
        if said.replies == 1:
            said = said._replace(wire=said.wire * len(self.recipients))
        super()._done(said)


LmtpSession.COMMANDS = {
    **Session.COMMANDS,
    b"LHLO": LmtpSession._ehlo,
    b"EHLO": LmtpSession._not_here,
    b"HELO": LmtpSession._not_here,
}
