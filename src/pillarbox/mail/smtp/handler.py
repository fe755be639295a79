"""Between a session of the SMTP server and those who decide: the desk, the house, the guard."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pillarbox.mail.smtp.answers import Answer

if TYPE_CHECKING:
    from pillarbox.mail.smtp.commands import Mail, Path
    from pillarbox.mail.smtp.conversation import Conversation
    from pillarbox.mail.smtp.intake import Content
    from pillarbox.mail.smtp.session import Session

Verdict = Answer | Awaitable[Answer]


class SessionHandler(Protocol):
    """Who decides. Every method may answer at once or later; what it raises becomes 451 4.3.0."""

    def mail(self, session: Session, mail: Mail) -> Verdict:
        """A sender was named."""

    def recipient(self, session: Session, path: Path) -> Verdict:
        """A recipient was named; with a yes the desk has put one thing, what it needs, into
        `session.recipients`."""

    def message(self, session: Session, content: Content) -> Verdict:
        """The text is complete. A yes says that it is stored for good. The session closes the content.

        By LMTP each recipient hears this answer, or one of its own where the desk gives `each` of them one.
        """

    def login(self, session: Session, user: str, password: str) -> Verdict:
        """Credentials were given; with a yes the desk has set `session.user`. 535 counts as a failure."""

    def ended(self, session: Session) -> None:
        """The transaction is over, however it ended."""


class ClientLimits(Protocol):
    """Who counts the clients."""

    def admit(self, peer: str) -> bool:
        """Take one more session from this address, or refuse it."""

    def left(self, peer: str) -> None:
        """A session that was admitted is over."""

    def may_login(self, peer: str) -> bool:
        """False while this address has failed too often."""

    def login_failed(self, peer: str) -> None:
        """One more failure of this address."""


class CurrentCertificate(Protocol):
    """A certificate that may be renewed while sessions run; `context` is the one for the next handshake."""

    @property
    def context(self) -> ssl.SSLContext: ...


@dataclass(frozen=True, slots=True)
class SessionTimeouts:
    """How many seconds a session waits for what (RFC 5321 4.5.3.2.7; standards, section 0)."""

    greeting: float = 0.001
    """Whoever speaks before it does not wait for answers (SMTP-03)."""
    handshake: float = 30.0
    command: float = 300.0
    text: float = 180.0
    """For the next piece of a message's text …"""
    message: float = 1800.0
    """… and for all of it; …"""
    free: float = 60.0
    """… after so long …"""
    octets_per_second: float = 500.0
    """… it must have come at this rate."""
    slow: float = 1.0
    """Before the answer to one who makes many mistakes."""
    last_word: float = 20.0
    """Until a client has taken the last answer."""
    look_every: float = 1.0


class ListenerContext(Protocol):
    """What a session needs of its listener."""

    desk: SessionHandler
    hostname: str
    most_octets: int
    most_commands: int
    patience: SessionTimeouts
    folder: str | None
    offers_login: bool
    login_needs_tls: bool
    needs_login: bool
    normalize: bool
    stopping: bool

    @property
    def tls(self) -> ssl.SSLContext | None:
        """For the next handshake; None where there is no certificate."""

    def greet_later(self, session: Conversation) -> None:
        """Have the session greeted when its client has been silent for as long as it has to."""

    def admit(self, session: Conversation) -> bool:
        """Take the session in, or refuse it."""

    def left(self, session: Conversation) -> None:
        """The connection is gone."""

    def may_login(self, session: Session) -> bool:
        """False while its address has failed too often."""

    def login_failed(self, session: Session) -> None:
        """One more failure of its address."""
