"""One mail transaction: MAIL, RCPT…, DATA, the content and its final dot (RFC 5321, 3.3; RFC 2920).

What can fail, and what it means here:

- MAIL, a RCPT or DATA refused: each recipient gets the answer that decided it.
- 421 or a lost connection: every recipient that is not decided yet gets that answer.
- The answer to the dot is missing: `uncertain`. The server may have taken the mail.
- The fence (`before_final_dot`) says no: the connection is dropped without the dot; the server has
  to forget the mail (RFC 5321, 4.1.1.4). `abandoned`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple, cast

from pillarbox.mail.message.long_content import LongContent
from pillarbox.mail.smtp.connection import Timeouts, Wire
from pillarbox.mail.smtp.content import SmtpContent
from pillarbox.mail.smtp.opening import Extensions
from pillarbox.mail.smtp.reply import SmtpReply, SmtpStage, our_reply

Fence = Callable[[], bool]

Observe = Callable[[SmtpStage], Awaitable[None]]
"""Awaited as a transaction gets on: with RCPT once MAIL is accepted; with DATA when all but the final dot is
on its way or may go, and the fence is asked next; with DOT when the final dot is on the wire."""

# Paths come parsed; this only makes sure that none can end its command early.
_PATH = re.compile(
    r'(?:[^\x00-\x20\x7f<>"\\]+|"(?:[^"\\\x00-\x1f\x7f]|\\[\x20-\x7e])*"@[^\x00-\x20\x7f<>"\\]+)'
)

_TOO_LARGE = (552, "5.3.4", "the message is larger than this server takes")
_NEEDS_8BIT = (554, "5.6.3", "the message holds 8-bit text, which this server does not take")
_NEEDS_UTF8 = (553, "5.6.7", "the address is not ASCII, which this server does not take")
_MESSAGE_NEEDS_UTF8 = (554, "5.6.7", "the message needs SMTPUTF8, which this server does not offer")
_OUT_OF_STEP = (421, "4.5.0", "the server was not ready for another mail")
_ABANDONED = (421, "4.3.0", "the transfer was given up before its end")


class RecipientReply(NamedTuple):
    """The reply that decided one recipient, and its stage."""

    recipient: str
    stage: SmtpStage
    reply: SmtpReply


@dataclass(slots=True)
class Transaction:
    """The result of one transaction; `answers` has one entry per recipient, in the given order.

    `stage` is how far it went. `offered`: a server that had greeted us was offered the mail (also when
    its EHLO had already ruled the mail out). `uncertain`: the final dot was written and no answer came.
    `abandoned`: the fence stopped it before the dot. `stale`: a reused connection turned out to be dead
    or tired before its first answer; nothing was offered, a fresh connection may be tried at once.
    """

    answers: list[RecipientReply]
    stage: SmtpStage
    final: SmtpReply | None = None
    offered: bool = False
    uncertain: bool = False
    abandoned: bool = False
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Envelope:
    """Sender and recipients; `smtputf8` says that the header itself needs the extension (RFC 6531)."""

    mail_from: str
    recipients: Sequence[str]
    smtputf8: bool = False

    def assert_sound(self) -> None:
        """Raise ValueError for paths that cannot be written on one command line."""
        if not self.recipients:
            raise ValueError("a transaction needs a recipient")
        for path in self.recipients:
            if _PATH.fullmatch(path) is None:
                raise ValueError("a recipient cannot stand in a command")
        if self.mail_from and _PATH.fullmatch(self.mail_from) is None:
            raise ValueError("the sender cannot stand in a command")


class TransactionRun:
    """Carries out one transaction on a wire that is idle."""

    def __init__(
        self,
        wire: Wire,
        extensions: Extensions,
        timeouts: Timeouts,
        envelope: Envelope,
        content: SmtpContent | LongContent,
        fence: Fence | None,
        observe: Observe | None = None,
    ) -> None:
        envelope.assert_sound()
        self._wire = wire
        self._extensions = extensions
        self._timeouts = timeouts
        self._envelope = envelope
        self._content = content
        self._size = content.size
        self._fence = fence
        self._observe = observe
        self._pipelined = "PIPELINING" in extensions
        self._decided: dict[int, tuple[SmtpStage, SmtpReply]] = {}
        self._state = Transaction([], SmtpStage.MAIL)
        self.leaves_open = False
        """Whether the server still holds the envelope, so that RSET must go before the next mail."""

    async def run(self, *, reset: bool, reused: bool) -> Transaction:
        """Run the whole transaction; `reset` sends RSET first, `reused` says that the connection idled."""
        self._refuse_ourselves()
        offered = [i for i in range(len(self._envelope.recipients)) if i not in self._decided]
        self._state.offered = True
        if offered:
            self._wire.allow(self._timeouts.budget(self._size))
            await self._offer(offered, reset, reused)
        self._state.answers = [
            RecipientReply(recipient, *self._decided[i])
            for i, recipient in enumerate(self._envelope.recipients)
        ]
        return self._state

    def abort_if_silent(self, seconds: float) -> None:
        """End the connection if the server has been silent for so long and the final dot is not written: it
        has to forget the mail then (RFC 5321, 4.1.1.4)."""
        if self._state.stage is not SmtpStage.DOT and self._wire.silent_for >= seconds:
            self._wire.end("the server was silent while other mail waited for it")

    # Refusals that the server's EHLO has already given.

    def _refuse_ourselves(self) -> None:
        limit = self._extensions.size_limit
        if limit is not None and self._size > limit:
            self._decide_rest(SmtpStage.MAIL, our_reply(*_TOO_LARGE))
        elif "8BITMIME" not in self._extensions and not self._content.is_ascii:
            self._decide_rest(SmtpStage.MAIL, our_reply(*_NEEDS_8BIT))
        elif "SMTPUTF8" not in self._extensions:
            if self._envelope.smtputf8 or not self._envelope.mail_from.isascii():
                self._decide_rest(SmtpStage.MAIL, our_reply(*_MESSAGE_NEEDS_UTF8))
            for i, recipient in enumerate(self._envelope.recipients):
                if not recipient.isascii():
                    self._decided.setdefault(i, (SmtpStage.RCPT, our_reply(*_NEEDS_UTF8)))

    # The commands.

    async def _offer(self, offered: list[int], reset: bool, reused: bool) -> None:
        if not self._wire.is_idle:
            self._give_up(self._wire.failure or our_reply(*_OUT_OF_STEP), stale=True)
            return
        lines = [f"RCPT TO:<{self._envelope.recipients[i]}>\r\n".encode() for i in offered]
        mail = self._mail_line(offered)
        if self._pipelined:
            start = [b"RSET\r\n", mail] if reset else [mail]
            self._wire.write(b"".join((*start, *lines, b"DATA\r\n")), answers=len(start) + len(lines) + 1)
        if reset:
            first = await self._ask(b"RSET\r\n", self._timeouts.mail)
            if not first.is_yes:
                self._give_up(first if first.code == 421 else our_reply(*_OUT_OF_STEP), stale=reused)
                return
        answer = await self._ask(mail, self._timeouts.mail)
        if answer.code == 421 or self._is_nonsense(answer):
            self._give_up(answer, stale=reused and not reset)
            return
        if answer.is_yes:
            self._state.stage = SmtpStage.RCPT
            if self._observe is not None:
                await self._observed(SmtpStage.RCPT)
            accepted = await self._name_recipients(offered, lines)
        else:
            self._decide_rest(SmtpStage.MAIL, answer)
            accepted = await self._name_recipients(offered, lines) if self._pipelined else []
        await self._data(accepted)

    def _mail_line(self, offered: list[int]) -> bytes:
        words = [f"MAIL FROM:<{self._envelope.mail_from}>"]
        if "SIZE" in self._extensions:
            words.append(f"SIZE={self._size}")
        if "8BITMIME" in self._extensions and not self._content.is_ascii:
            words.append("BODY=8BITMIME")
        paths = [self._envelope.mail_from, *(self._envelope.recipients[i] for i in offered)]
        if self._envelope.smtputf8 or not all(path.isascii() for path in paths):
            words.append("SMTPUTF8")
        return f"{' '.join(words)}\r\n".encode()

    async def _name_recipients(self, offered: list[int], lines: list[bytes]) -> list[int] | None:
        """Send RCPT for each recipient and return the accepted ones; None when the session ended."""
        accepted = []
        for i, line in zip(offered, lines, strict=True):
            answer = await self._ask(line, self._timeouts.rcpt)
            if answer.code == 421 or self._is_nonsense(answer):
                self._give_up(answer)
                return None
            if answer.is_yes:
                accepted.append(i)
            else:
                self._decided.setdefault(i, (SmtpStage.RCPT, answer))
        return accepted

    async def _data(self, accepted: list[int] | None) -> None:
        if accepted is None:
            return
        wanted = [i for i in accepted if i not in self._decided]
        if not wanted and not self._pipelined:
            self.leaves_open = True
            return
        if wanted:
            self._state.stage = SmtpStage.DATA
        answer = await self._ask(b"DATA\r\n", self._timeouts.data)
        if answer.code == 354 and wanted:
            await self._content_and_dot()
        elif answer.code == 354:
            await self._send_nothing(accepted)
        elif answer.code == 421 or answer.code < 400:
            self._give_up(answer)
        else:
            self._decide_rest(SmtpStage.DATA, answer)
            self.leaves_open = True

    async def _send_nothing(self, accepted: list[int]) -> None:
        """End a DATA that the server opened though nobody is to get the mail (RFC 2920, 3.1)."""
        if accepted:
            # It accepted recipients after refusing the sender: an empty mail might really go out.
            self._wire.end("the server accepted recipients without a sender")
            return
        self._wire.write(b".\r\n", answers=1)
        if (await self._wire.reply(self._timeouts.data)).code == 421:
            self._wire.close()

    # The content.

    async def _content_and_dot(self) -> None:
        stuffed, answers = self._content.at_once(), 1
        if stuffed is None:
            if not await self._blocks(self._content.stuffed()):
                return
            stuffed, answers = b"", 0
        await self._observed(SmtpStage.DATA)
        if self._wire.failure is not None:
            self._give_up(self._wire.failure)
            return
        if self._fence is not None and not self._fence():
            self._state.abandoned = True
            self._give_up(our_reply(*_ABANDONED))
            return
        self._state.stage = SmtpStage.DOT
        self._wire.write(stuffed + b".\r\n", answers=answers)
        await self._observed(SmtpStage.DOT)
        await self._final_answer()

    async def _observed(self, stage: SmtpStage) -> None:
        if self._observe is not None:
            await self._wire.flush(self._timeouts.block)
            await self._observe(stage)

    async def _blocks(self, stuffed: AsyncIterator[bytes | memoryview]) -> bool:
        """Write all but the dot, never more than a block ahead of the network; false when it ended."""
        # From here on the server may answer at any time: an early refusal is the final answer.
        self._wire.write(b"", answers=1)
        async with aclosing(cast("AsyncGenerator[bytes | memoryview]", stuffed)) as blocks:
            async for block in blocks:
                self._wire.write(block, answers=0)
                await self._wire.drain(self._timeouts.block)
                if self._has_ended_early():
                    break
            else:
                await self._wire.flush(self._timeouts.block)
        if self._has_ended_early():
            await self._refused_early()
            return False
        return True

    def _has_ended_early(self) -> bool:
        return self._wire.has_reply or self._wire.failure is not None

    async def _refused_early(self) -> None:
        early = await self._wire.reply(0)
        nonsense = our_reply(421, "4.5.0", "an answer before the message's end")
        self._give_up(early if early.code >= 400 else nonsense)

    async def _final_answer(self) -> None:
        answer = await self._wire.reply(self._timeouts.final, within_budget=False)
        if answer.ours or self._is_nonsense(answer):
            self._state.uncertain = True
            self._give_up(answer)
            return
        self._state.final = answer
        self._decide_rest(SmtpStage.DOT, answer)
        if answer.code == 421:
            self._wire.close()

    # Endings.

    async def _ask(self, line: bytes, seconds: float) -> SmtpReply:
        if not self._pipelined:
            self._wire.write(line, answers=1)
        return await self._wire.reply(seconds)

    @staticmethod
    def _is_nonsense(answer: SmtpReply) -> bool:
        """Return whether the reply is a 3xx where only yes or no makes sense."""
        return 300 <= answer.code < 400

    def _give_up(self, answer: SmtpReply, *, stale: bool = False) -> None:
        """End the connection; `answer` decides everybody who is not decided yet."""
        if answer.code < 400:
            answer = our_reply(421, "4.5.0", f"an answer out of place: {answer}")
        self._state.stale = stale
        if stale:
            self._state.offered = False
        self._decide_rest(self._state.stage, answer)
        self._wire.end(answer.text)

    def _decide_rest(self, stage: SmtpStage, answer: SmtpReply) -> None:
        for i in range(len(self._envelope.recipients)):
            self._decided.setdefault(i, (stage, answer))
