"""SPF, DKIM, DMARC and the spam verdict of a received mail. None of them keeps it from being stored: what
cannot be found out is a temperror (INB-10).

For a mail without a signature the results follow from the envelope and From: they are cached for a second and
used for the next mails of the same sender.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pillarbox.kernel.clock import Clock
from pillarbox.mail.authentication import dkim_verify, dmarc, mail_verdicts
from pillarbox.mail.authentication.evaluate import AuthenticationResults, SmtpSessionFacts, authenticate
from pillarbox.mail.authentication.mail_verdicts import MailVerdicts, SpamVerdict
from pillarbox.mail.authentication.spf import Spf, SpfLookup
from pillarbox.mail.message.parse import ParsedMessage
from pillarbox.receiving import spam
from pillarbox.receiving.arrival import Arrival
from pillarbox.receiving.spam import Rspamd

SECONDS: Final = 20.0
CACHE_SECONDS: Final = 1.0
MOST_CACHED: Final = 1000
LONGEST_CACHED: Final = 1000
"""Octets of a From; a mail with a longer one is judged by itself."""

_Key = tuple[str, str, str, bytes]
"""Client, its name, MAIL FROM, and the one From."""


class MailJudgement(NamedTuple):
    """The results for a mail; `field` is its Authentication-Results field."""

    authentication: AuthenticationResults
    spam_reason: str | None
    field: bytes
    score: float | None = None
    required_score: float | None = None

    def verdicts(self, *, automatic: bool) -> MailVerdicts:
        """Return the verdicts in full, as they are stored with the mail."""
        spam = SpamVerdict(self.spam_reason is not None, self.spam_reason, self.score, self.required_score)
        return mail_verdicts.verdicts(self.authentication, spam, automatic=automatic)

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
        """Whether the author's domain wants such mail refused."""
        return self.dmarc == "fail" and self.authentication.dmarc.policy == "reject"


class Judge:
    """Judges mail. `rspamd` is asked where there is one."""

    def __init__(self, lookup: SpfLookup, clock: Clock, hostname: str, rspamd: Rspamd | None = None) -> None:
        self._lookup = lookup
        self._clock = clock
        self._hostname = hostname
        self._rspamd = rspamd
        self._cached: dict[_Key, tuple[float, MailJudgement]] = {}

    async def judge(self, arrival: Arrival, message: ParsedMessage, queue_id: str) -> MailJudgement:
        """Return the results, at the latest after `SECONDS` and rspamd's own time."""
        key = _key(arrival, message)
        found = None if key is None else self._from_cache(key)
        if found is None:
            found = self._judgement(await self._authenticated(arrival, message))
            if key is not None:
                self._cache(key, found)
        if self._rspamd is not None:
            answer = await self._rspamd.verdict(arrival, queue_id, message.raw)
            if answer is not None:
                return found._replace(
                    spam_reason=answer.reason, score=answer.score, required_score=answer.required_score
                )
        return found

    def _judgement(self, authentication: AuthenticationResults) -> MailJudgement:
        reason = spam.by_policy(authentication.dmarc)
        return MailJudgement(authentication, reason, authentication.field(self._hostname))

    def _from_cache(self, key: _Key) -> MailJudgement | None:
        cached = self._cached.get(key)
        return cached[1] if cached is not None and self._clock.boottime() < cached[0] else None

    def _cache(self, key: _Key, mail_judgement: MailJudgement) -> None:
        if "temperror" in (mail_judgement.spf, mail_judgement.dmarc):
            return
        if len(self._cached) >= MOST_CACHED:
            self._cached.clear()
        self._cached[key] = self._clock.boottime() + CACHE_SECONDS, mail_judgement

    async def _authenticated(self, arrival: Arrival, message: ParsedMessage) -> AuthenticationResults:
        seconds = int(self._clock.now().timestamp())
        if not arrival.client:
            return await self._authenticated_locally(arrival, message, seconds)
        return await authenticate(
            message.raw,
            message.authors,
            SmtpSessionFacts(arrival.client, arrival.helo, arrival.mail_from),
            self._lookup,
            seconds=seconds,
            receiver=self._hostname,
            limit=SECONDS,
            is_signed="dkim-signature" in message.named,
        )

    async def _authenticated_locally(
        self, arrival: Arrival, message: ParsedMessage, seconds: int
    ) -> AuthenticationResults:
        """Authenticate a mail by LMTP: no client is known, so SPF is not evaluated."""
        signatures = await dkim_verify.verify(message.raw, self._lookup, seconds=seconds)
        domain = arrival.mail_from.rpartition("@")[2] or arrival.helo or self._hostname
        unasked = Spf("none", "mailfrom", domain, problem="the client is not known")
        verdict = await dmarc.evaluate(message.authors, None, signatures, self._lookup)
        return AuthenticationResults(unasked, signatures, verdict)


def _key(arrival: Arrival, message: ParsedMessage) -> _Key | None:
    """Return the cache key; None where the results depend on more than that. Mail that was handed in may have
    a signature behind what ends the header for us."""
    authors = message.named.get("from", ())
    if not arrival.client or "dkim-signature" in message.named:
        return None
    if len(authors) != 1 or len(authors[0].raw) > LONGEST_CACHED:
        return None
    return arrival.client, arrival.helo, arrival.mail_from, authors[0].raw
