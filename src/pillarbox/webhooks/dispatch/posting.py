"""One attempt: the request as webhooks.md section 3 wants it, and how it ended."""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import pillarbox
from pillarbox.kernel.ids import tagged
from pillarbox.kernel.network.fetch_result import FetchError, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.network.web_address import BadUrl, WebAddress, parse_url
from pillarbox.kernel.process import faults
from pillarbox.webhooks.dispatch.deliveries import EVENT_PREFIX, AttemptResult, Delivery, Endpoint
from pillarbox.webhooks.endpoints import EndpointRules

VERSION = "v1"
FAMILIES = ("svix", "webhook")


def signature(keys: Sequence[bytes], event: str, timestamp: int, body: bytes) -> str:
    """Return one signature for each key, in their order, as the header has them."""
    signed = f"{event}.{timestamp}.".encode("ascii") + body
    made = [b64encode(hmac.digest(key, signed, "sha256")).decode("ascii") for key in keys]
    return " ".join(f"{VERSION},{one}" for one in made)


def headers(keys: Sequence[bytes], event: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that let a receiver verify a delivery and know it again."""
    values = {"id": event, "timestamp": str(timestamp), "signature": signature(keys, event, timestamp, body)}
    return {f"{family}-{name}": value for family in FAMILIES for name, value in values.items()}


LIMITS: Final = HttpLimits(max_bytes=64 * 1024, connect=5.0, total=15.0, cut=True, kept=4.0)
"""webhooks.md 3. Connections are kept for fewer seconds than servers do, which is five with some."""

MOST_KEPT = 16 * 1024
"""Bytes of an answer that the log shows."""

REASONS: Final = {
    "url": "the URL cannot be called",
    "refused": "address not allowed",
    "dns": "host name not resolved",
    "connect": "connection failed",
    "tls": "TLS handshake failed",
    "timeout": "no complete answer in time",
    "protocol": "no complete HTTP answer",
}
"""The log's words for an attempt without an answer; none of them names an address (WH-08)."""

SENT_ALWAYS = {
    "content-type": "application/json",
    "user-agent": f"Pillarbox-Webhooks/{pillarbox.__version__}",
}
URLS_KEPT = 10_000


class Poster:
    """Posts deliveries to their endpoints."""

    def __init__(self, outbound: Outbound, rules: EndpointRules, limits: HttpLimits = LIMITS) -> None:
        self._outbound = outbound
        self._rules = rules
        self._limits = limits
        self._targets: dict[str, WebAddress | AttemptResult] = {}

    async def attempt(self, delivery: Delivery, endpoint: Endpoint, now: datetime) -> AttemptResult:
        """Sign with the time `now`, send, and say how it ended."""
        target = self._target(endpoint.url)
        if isinstance(target, AttemptResult):
            return target
        event = tagged(EVENT_PREFIX, delivery.event_id)
        signed = headers(endpoint.keys, event, int(now.timestamp()), delivery.body)
        await faults.point("webhooks.before_send")
        try:
            answer = await self._outbound.post(target, SENT_ALWAYS | signed, delivery.body, self._limits)
        except FetchError as failure:
            return AttemptResult(0, REASONS.get(failure.kind, REASONS["protocol"]), failure.kind == "timeout")
        return AttemptResult(answer.status, readable(answer.body))

    async def close(self) -> None:
        await self._outbound.close()

    def _target(self, url: str) -> WebAddress | AttemptResult:
        """Return the address that a URL leads to by the operator's rules of today, or the result that it must
        not be called."""
        found = self._targets.get(url)
        if found is None:
            if len(self._targets) >= URLS_KEPT:
                self._targets.clear()
            found = self._targets[url] = self._judged(url)
        return found

    def _judged(self, url: str) -> WebAddress | AttemptResult:
        refusal = self._rules.refusal(url)
        if refusal in ("port", "address", "scheme"):
            return AttemptResult(0, REASONS["refused"])
        try:
            return parse_url(url)
        except BadUrl:
            return AttemptResult(0, REASONS["url"])


def readable(body: bytes) -> str:
    """Return the beginning of an answer as text that a database takes and a log can show."""
    return body[:MOST_KEPT].decode("utf-8", "replace").replace("\0", "\ufffd")
