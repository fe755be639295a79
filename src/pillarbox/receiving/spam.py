"""Whether a received mail is spam (INB-05), by rspamd where one is configured, else by the author's DMARC
policy.

A verdict is a reason in words, or None. It is kept and shown; nothing is refused because of it.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Final, NamedTuple

import msgspec

from pillarbox.kernel.network.fetch_result import FetchError, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.observability.log import get
from pillarbox.mail.authentication.dmarc import Dmarc
from pillarbox.receiving.arrival import Arrival

log = get("receiving")

EVERYWHERE: Final = (ip_network("0.0.0.0/0"), ip_network("::/0"))
"""The operator has named the place, so it may be on this machine."""

LIMITS: Final = HttpLimits(max_bytes=1024 * 1024, connect=2.0, total=10.0)
SPAM_ACTIONS: Final = frozenset(("reject", "quarantine", "discard", "add header", "rewrite subject"))
POLICIES: Final = frozenset(("reject", "quarantine"))


class RspamdVerdict(NamedTuple):
    """The score, from which one on it is too high, and why the mail is held for spam if it is."""

    score: float
    required_score: float
    reason: str | None


class _RspamdAnswer(msgspec.Struct):
    """The members of rspamd's answer that are read."""

    action: str = "no action"
    score: float = 0.0
    required_score: float = 0.0


def by_policy(dmarc: Dmarc) -> str | None:
    """Return the reason by which the author's DMARC policy asks for quarantine or rejection; else None."""
    if dmarc.result == "fail" and dmarc.policy in POLICIES:
        return f"dmarc=fail policy={dmarc.policy}"
    return None


class Rspamd:
    """An rspamd worker at `url` (its HTTP protocol, `POST /checkv2`)."""

    def __init__(self, outbound: Outbound, url: str) -> None:
        self._outbound = outbound
        self._url = f"{url.rstrip('/')}/checkv2"

    async def verdict(self, arrival: Arrival, queue_id: str, raw: bytes) -> RspamdVerdict | None:
        """Return rspamd's verdict on the mail; None where it gave no usable answer, which is logged."""
        try:
            facts = _facts(arrival, queue_id)
            answer = await self._outbound.fetch("POST", self._url, LIMITS, headers=facts, body=raw)
            found = msgspec.json.decode(answer.body, type=_RspamdAnswer) if answer.status == 200 else None
        except (FetchError, msgspec.DecodeError) as trouble:
            log.warning("receiving.rspamd_failed", trouble=str(trouble))
            return None
        if found is None:
            log.warning("receiving.rspamd_failed", status=answer.status)
            return None
        reason = f"rspamd {found.action!r}, {found.score:g} of {found.required_score:g}"
        return RspamdVerdict(
            found.score, found.required_score, reason if found.action in SPAM_ACTIONS else None
        )


def _facts(arrival: Arrival, queue_id: str) -> dict[str, str]:
    """Return the session as headers of rspamd's protocol; what cannot stand in a header of HTTP is left
    out."""
    facts = {
        "Queue-Id": queue_id,
        "IP": arrival.client,
        "Helo": arrival.helo,
        "From": arrival.mail_from,
        "Rcpt": arrival.recipients[0].address,
    }
    return {name: text for name, text in facts.items() if text and text.isascii() and text.isprintable()}
