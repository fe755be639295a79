"""An SMTP client: sessions that are opened, used for several mails, and closed.

Nothing here raises for what a server or the network does. Opening gives a `SmtpConnection` or a
`ConnectFailed`; sending gives a `Transaction` in which every recipient has an answer. ValueError means
that the caller broke the contract: content that is not clean CRLF, a path that is no path.

Cancelling a call drops its connection, never half of a message with its dot.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from pillarbox.mail.message.long_content import LongContent
from pillarbox.mail.smtp.connection import Timeouts
from pillarbox.mail.smtp.content import SmtpContent
from pillarbox.mail.smtp.opening import (
    Connect,
    ConnectFailed,
    Extensions,
    OpenedSession,
    SessionOpening,
    tcp_connect,
)
from pillarbox.mail.smtp.reply import SmtpReply, SmtpStage
from pillarbox.mail.smtp.tls import TlsInfo, TlsMode
from pillarbox.mail.smtp.transaction import (
    Envelope,
    Fence,
    Observe,
    RecipientReply,
    Transaction,
    TransactionRun,
)

__all__ = [
    "Connect",
    "ConnectFailed",
    "Extensions",
    "Fence",
    "LongContent",
    "Observe",
    "RecipientReply",
    "SmtpConnection",
    "SmtpContent",
    "SmtpReply",
    "SmtpStage",
    "Timeouts",
    "TlsInfo",
    "TlsMode",
    "Transaction",
    "tcp_connect",
]


class SmtpConnection:
    """A session with a server that greeted us. One task at a time uses it."""

    def __init__(self, opened: OpenedSession, opening: SessionOpening) -> None:
        self._wire = opened.wire
        self._timeouts = opening.timeouts
        self._needs_reset = False
        self._is_busy = False
        self._exchange: TransactionRun | None = None
        self.host = opening.server_name
        self.address = opening.address
        self.banner = opened.banner
        self.extensions = opened.extensions
        self.tls: TlsInfo | None = opened.tls
        self.transactions = 0
        """How many transactions were begun here."""

    @classmethod
    async def open(
        cls,
        address: tuple[str, int],
        *,
        server_name: str,
        hello: str,
        tls: TlsMode = TlsMode.OPPORTUNISTIC,
        timeouts: Timeouts | None = None,
        login: tuple[str, str] | None = None,
        trust: ssl.SSLContext | None = None,
        connect: Connect = tcp_connect,
    ) -> SmtpConnection | ConnectFailed:
        """Greet the server at `address`; `server_name` is the name that TLS asks for and checks.

        `login` is sent over TLS or to a loopback address only. `trust` replaces the system's
        authorities where the mode verifies certificates.
        """
        opening = SessionOpening(
            address=address,
            server_name=server_name,
            hello=hello,
            tls=tls,
            timeouts=timeouts or Timeouts(),
            login=login,
            trust=trust,
            connect=connect,
        )
        opened = await opening.run()
        return opened if isinstance(opened, ConnectFailed) else cls(opened, opening)

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, by us or by the server."""
        return self._wire.failure is not None

    @property
    def is_reusable(self) -> bool:
        """Whether another mail may be sent: no 421, time-out or nonsense so far, and nothing owed."""
        return not self._is_busy and self._wire.is_idle

    async def send(
        self,
        mail_from: str,
        recipients: Sequence[str],
        content: bytes | SmtpContent | LongContent,
        *,
        smtputf8: bool = False,
        before_final_dot: Fence | None = None,
        observe: Observe | None = None,
    ) -> Transaction:
        """Offer `content` (clean CRLF, not dot-stuffed) to `recipients` in one transaction.

        `before_final_dot` is asked right before the final dot is written; its no drops the connection.
        `observe` is told how far the transaction is.
        """
        if self._is_busy:
            raise RuntimeError("the connection is in use")
        envelope = Envelope(mail_from, recipients, smtputf8)
        exchange = TransactionRun(
            self._wire,
            self.extensions,
            self._timeouts,
            envelope,
            SmtpContent(content) if isinstance(content, bytes) else content,
            before_final_dot,
            observe,
        )
        self._is_busy = True
        self._exchange = exchange
        try:
            done = await exchange.run(reset=self._needs_reset, reused=self.transactions > 0)
        except BaseException:
            self.abort()
            raise
        finally:
            self._is_busy = False
            self._exchange = None
        self._needs_reset = exchange.leaves_open
        self.transactions += 1
        return done

    async def reset(self) -> bool:
        """Send RSET: whether the server is still there and ready for another mail."""
        if not self.is_reusable:
            return False
        self._wire.write(b"RSET\r\n", answers=1)
        if (await self._wire.reply(self._timeouts.mail, within_budget=False)).is_yes:
            self._needs_reset = False
            return True
        self.abort()
        return False

    def abort_if_silent(self, seconds: float) -> None:
        """Give up on the transaction that is under way if the server has been silent for so long; never
        between the final dot and its answer."""
        if self._exchange is not None:
            self._exchange.abort_if_silent(seconds)

    async def quit(self) -> None:
        """Send QUIT and close; waits for the answer for a few seconds at most."""
        if self.is_reusable:
            self._wire.write(b"QUIT\r\n", answers=1)
            await self._wire.reply(self._timeouts.quit, within_budget=False)
            self._wire.close()
        self.abort()

    def abort(self) -> None:
        """Drop the connection at once."""
        self._wire.end("the connection was dropped")
