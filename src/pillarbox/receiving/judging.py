"""Who a mail is from and whether it is wanted, as it came in. Never a reason not to store it: what cannot be
found out is a temperror (INB-10)."""

from __future__ import annotations

from typing import Final, NamedTuple

from pillarbox.kernel.clock import Clock
from pillarbox.mail import dkim_verify, dmarc
from pillarbox.mail.authentication import Authentication, Envelope, authenticate
from pillarbox.mail.message import Message
from pillarbox.mail.spf import Lookup, Spf
from pillarbox.receiving import spam
from pillarbox.receiving.arrival import Arrival
from pillarbox.receiving.spam import Rspamd

SECONDS: Final = 20.0


class Judgement(NamedTuple):
    """What was found out about a mail."""

    authentication: Authentication
    spam_reason: str | None

    @property
    def spf(self) -> str:
        return self.authentication.spf.result

    @property
    def dkim(self) -> str:
        """`pass` where one signature is good, else what became of the first."""
        results = [found.result for found in self.authentication.dkim]
        return "pass" if "pass" in results else results[0] if results else "none"

    @property
    def dmarc(self) -> str:
        return self.authentication.dmarc.result

    @property
    def is_forged(self) -> bool:
        """True where the author's domain wants such mail refused."""
        return self.dmarc == "fail" and self.authentication.dmarc.policy == "reject"


class Judge:
    """Judges mail. `rspamd` is asked where there is one."""

    def __init__(self, lookup: Lookup, clock: Clock, hostname: str, rspamd: Rspamd | None = None) -> None:
        self._lookup = lookup
        self._clock = clock
        self._hostname = hostname
        self._rspamd = rspamd

    async def judge(self, arrival: Arrival, message: Message, queue_id: str) -> Judgement:
        """The results, at the latest after `SECONDS` and rspamd's own time."""
        authentication = await self._authenticated(arrival, message)
        if self._rspamd is not None:
            answered, reason = await self._rspamd.verdict(arrival, queue_id, message.raw)
            if answered:
                return Judgement(authentication, reason)
        return Judgement(authentication, spam.by_policy(authentication.dmarc))

    async def _authenticated(self, arrival: Arrival, message: Message) -> Authentication:
        seconds = int(self._clock.now().timestamp())
        if not arrival.client:
            return await self._handed_in(arrival, message, seconds)
        return await authenticate(
            message.raw,
            message.authors,
            Envelope(arrival.client, arrival.helo, arrival.mail_from),
            self._lookup,
            seconds=seconds,
            receiver=self._hostname,
            limit=SECONDS,
            is_signed="dkim-signature" in message.named,
        )

    async def _handed_in(self, arrival: Arrival, message: Message, seconds: int) -> Authentication:
        """The same for a mail that came over no network, so that no client can be asked about."""
        signatures = await dkim_verify.verify(message.raw, self._lookup, seconds=seconds)
        domain = arrival.mail_from.rpartition("@")[2] or arrival.helo or self._hostname
        unasked = Spf("none", "mailfrom", domain, problem="the client is not known")
        verdict = await dmarc.evaluate(message.authors, None, signatures, self._lookup)
        return Authentication(unasked, signatures, verdict)
