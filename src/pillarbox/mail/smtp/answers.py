"""The replies of the SMTP server: a code, an enhanced code, a text (RFC 5321 4.2, RFC 2034, RFC 3463)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import NamedTuple


class SessionReply(NamedTuple):
    """One reply as it goes over the wire; `closes` ends the session after it. With LMTP `wire` may have a
    reply for each recipient, `replies` of them."""

    code: int
    wire: bytes
    closes: bool = False
    replies: int = 1

    @property
    def is_yes(self) -> bool:
        return self.code < 400


Verdict = SessionReply | Awaitable[SessionReply]
"""The result of a handler: its reply, or an awaitable where it needs time."""


def answer(code: int, enhanced: str | None, text: str, *, closes: bool = False) -> SessionReply:
    """Return a reply of one line. What a client wrote may stand in `text`: it is cut and made plain ASCII."""
    plain = text.encode("ascii", "replace").translate(_VISIBLE)[:400]
    status = f"{code} {enhanced} " if enhanced else f"{code} "
    return SessionReply(code, status.encode("ascii") + plain + b"\r\n", closes)


def lines(code: int, texts: Iterable[str]) -> SessionReply:
    """Return a reply of several lines without enhanced codes (EHLO, HELP)."""
    rows = [text.encode("ascii", "replace") for text in texts]
    head, last = b"%d-" % code, b"%d " % code
    wire = b"".join(
        (last if number == len(rows) else head) + row + b"\r\n" for number, row in enumerate(rows, 1)
    )
    return SessionReply(code, wire)


def each(answers: Sequence[SessionReply]) -> SessionReply:
    """Return a reply for each recipient, in their order (RFC 2033, 4.2); a yes where one of them is."""
    return SessionReply(
        min([said.code for said in answers]), b"".join([said.wire for said in answers]), replies=len(answers)
    )


_VISIBLE = bytes(byte if 32 <= byte < 127 else 63 for byte in range(256))

OK = answer(250, "2.0.0", "Ok")
SENDER_OK = answer(250, "2.1.0", "Ok")
RECIPIENT_OK = answer(250, "2.1.5", "Ok")
HELP = lines(214, ["EHLO HELO MAIL RCPT DATA RSET NOOP QUIT VRFY HELP STARTTLS AUTH"])
LMTP_HELP = lines(214, ["LHLO MAIL RCPT DATA RSET NOOP QUIT VRFY HELP"])
GO_AHEAD = answer(354, None, "End data with <CR><LF>.<CR><LF>")
BYE = answer(221, "2.0.0", "Bye", closes=True)
CANNOT_VERIFY = answer(252, "2.1.5", "Send some mail, it will be tried")
START_TLS = answer(220, "2.0.0", "Ready to start TLS")
AUTHENTICATED = answer(235, "2.7.0", "Authentication successful")

STOPPING = answer(421, "4.3.2", "The service is shutting down", closes=True)
TIMED_OUT = answer(421, "4.4.2", "The session was idle for too long", closes=True)
TOO_MANY_SESSIONS = answer(421, "4.7.0", "Too many connections, try again later", closes=True)
TOO_MANY_ERRORS = answer(421, "4.7.0", "Too many errors", closes=True)
TOO_MANY_COMMANDS = answer(421, "4.7.0", "Too many commands without a message", closes=True)
TOO_MANY_LOGINS = answer(421, "4.7.0", "Too many failed logins, try again later", closes=True)
TROUBLE = answer(451, "4.3.0", "The message could not be stored, try again later")
TOO_MANY_RECIPIENTS = answer(452, "4.5.3", "Too many recipients")
LATER = answer(451, "4.3.2", "The service is busy, try again later")

SAY_LHLO = answer(500, "5.5.1", "This is LMTP, say LHLO")
UNKNOWN = answer(500, "5.5.2", "The command is not known")
TOO_LONG = answer(500, "5.5.2", "The line is too long")
BAD_LINE = answer(500, "5.5.2", "A line ends with CR LF, and neither stands alone")
BAD_ARGUMENT = answer(501, "5.5.4", "The argument is not valid")
BAD_PATH = answer(501, "5.1.7", "The sender's address is not valid")
CANCELED = answer(501, "5.7.0", "Authentication was canceled")
BAD_RESPONSE = answer(501, "5.5.2", "The response is not valid base64")
RESPONSE_TOO_LONG = answer(500, "5.5.6", "The response is too long")
NOT_IMPLEMENTED = answer(502, "5.5.1", "The command is not implemented")
OUT_OF_ORDER = answer(503, "5.5.1", "The command is out of order")
HELLO_FIRST = answer(503, "5.5.1", "Say EHLO or HELO first")
LHLO_FIRST = answer(503, "5.5.1", "Say LHLO first")
NOBODY_ACCEPTED = answer(503, "5.5.1", "No recipient was accepted")
ALREADY_IN = answer(503, "5.5.1", "The session is authenticated already")
NO_MECHANISM = answer(504, "5.5.4", "The mechanism is not known")
NEEDS_TLS = answer(530, "5.7.0", "Issue a STARTTLS command first")
NEEDS_LOGIN = answer(530, "5.7.0", "Authentication required")
BAD_LOGIN = answer(535, "5.7.8", "The credentials are not valid")
BAD_RECIPIENT = answer(553, "5.1.3", "The recipient's address is not valid")
NEEDS_UTF8 = answer(553, "5.6.7", "The address needs SMTPUTF8")
EARLY_TALKER = answer(554, "5.5.0", "Text came before it was asked for", closes=True)
NO_RECIPIENTS = answer(554, "5.5.1", "No valid recipients")
BAD_PARAMETER = answer(555, "5.5.4", "The parameter is not known")
BARE_LINE_ENDS = answer(550, "5.5.2", "The message has a bare CR, a bare LF or a NUL")
TOO_BIG = answer(552, "5.3.4", "The message is too big")
