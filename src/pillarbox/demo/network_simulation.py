"""The network of the demo's month: fixed answers to DNS and webhooks. Nothing leaves the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from pillarbox.demo.schedule import SeededRandom
from pillarbox.demo.simulation_clock import ScriptedClock
from pillarbox.kernel.network.dns import ResolverAnswer, Status
from pillarbox.kernel.network.dns_answers import AnswerKind, DnsAnswer, DnsAnswers, DnsQuestion
from pillarbox.webhooks.dispatch.deliveries import AttemptResult, Delivery, Endpoint
from pillarbox.webhooks.dispatch.posting import Poster

T = TypeVar("T")

SERVER = "ns1.hosting.example"
TTL = 3600.0


class ClosedDns:
    """Answers from a table of TXT and MX records, and asks nobody."""

    def __init__(self, texts: Mapping[str, str], exchanges: Mapping[str, str]) -> None:
        self._texts = texts
        self._exchanges = exchanges
        self._records = [*texts, *exchanges]

    async def mx(self, name: str) -> ResolverAnswer[tuple[int, str]]:
        """Return the one exchange of a name, if it has one."""
        exchange = self._exchanges.get(name.rstrip("."))
        return _found((10, exchange)) if exchange else ResolverAnswer(self._absence(name), ttl=TTL)

    async def txt(self, name: str) -> ResolverAnswer[str]:
        """Return the one text of a name, if it has one."""
        text = self._texts.get(name.rstrip("."))
        return _found(text) if text else ResolverAnswer(self._absence(name), ttl=TTL)

    async def addresses(self, name: str, *, ipv6: bool = False) -> ResolverAnswer[str]:
        """Return no address: nothing may be connected to."""
        return ResolverAnswer(self._absence(name), ttl=TTL)

    async def aaaa(self, name: str) -> ResolverAnswer[str]:
        """Return no address."""
        return ResolverAnswer(self._absence(name), ttl=TTL)

    async def ptr(self, name: str) -> ResolverAnswer[str]:
        """Return no name."""
        return ResolverAnswer(self._absence(name), ttl=TTL)

    async def ask(self, question: DnsQuestion) -> DnsAnswers:
        """Return what the check of a domain sees."""
        values: tuple[str, ...] = ()
        if question.kind == "TXT" and (text := self._texts.get(question.name)):
            values = (text,)
        if question.kind == "MX" and (exchange := self._exchanges.get(question.name)):
            values = (f"10 {exchange}",)
        absence = AnswerKind.NO_DATA if self._absence(question.name) == "no_data" else AnswerKind.NO_NAME
        kind = AnswerKind.VALUES if values else absence
        return (DnsAnswer(kind, values, SERVER),)

    def _absence(self, name: str) -> Status:
        """Return whether the domain is there without such a record: another name of it has records."""
        domain = ".".join(name.rstrip(".").split(".")[-2:])
        return "no_data" if any(known.endswith(domain) for known in self._records) else "no_name"


def _found(value: T) -> ResolverAnswer[T]:
    return ResolverAnswer("found", (value,), ttl=TTL)


class DemoPoster(Poster):
    """Answers deliveries itself, by a function of endpoint, event kind and time, and connects to nobody."""

    def __init__(
        self,
        clock: ScriptedClock,
        chance: SeededRandom,
        answer: Callable[[str, str, datetime], tuple[int, str]],
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._answer = answer

    async def attempt(self, delivery: Delivery, endpoint: Endpoint, now: datetime) -> AttemptResult:
        """Return what the receiver of the shop says, some milliseconds later."""
        self._clock.move_to(now + timedelta(milliseconds=self._chance.randint(35, 240)))
        kind = str(msgspec.json.decode(delivery.body)["type"])
        return AttemptResult(*self._answer(endpoint.url, kind, now))

    async def close(self) -> None:
        """Close nothing: there is no connection."""
