"""MTA-STS for outgoing mail: which policy holds for a domain now (RFC 8461; TLS-03).

    policy = await policies.of("quay.example")      # None: it has none

What is known is in this process's memory for an hour, policies beside it in the database until they expire.
So a destination in use costs one look-up of a dictionary; the first mail to a domain waits for one TXT
question, and for the policy where there is one. A later look-up runs while mail is sent under the known
policy. A policy stays in force until it expires, whatever becomes of its record and its server meanwhile:
removing them must not disable it (10.2).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import asyncpg

from pillarbox.delivery import prometheus
from pillarbox.delivery.smtp import mta_sts_queries
from pillarbox.delivery.smtp.mta_sts_queries import StoredPolicy
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.network.dns import Resolver
from pillarbox.kernel.network.fetch_result import FetchError, HttpAnswer, HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import GONE
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.mail.smtp import mta_sts
from pillarbox.mail.smtp.mta_sts import Policy, PolicyError

log = get("mta_sts")

LOOKUP_EVERY: Final = 3600.0
TROUBLE_EVERY: Final = 300.0
"""How long after a failure it is looked again (3.3: not more often than every five minutes)."""
LEAST_PAUSE: Final = 60.0
FETCH_SECONDS: Final = 60.0
"""For all of a policy (3.3: a minute)."""
KNOWN: Final = 50_000
"""Domains that a process keeps in memory."""


class _KnownPolicy(NamedTuple):
    """The result of the last look-up; `again` is the boot time of the next one."""

    stored: StoredPolicy | None
    again: float

    def is_over(self, now: datetime) -> bool:
        """Return whether there was a policy that holds no more."""
        return self.stored is not None and self.stored.expires_at <= now

    def policy_at(self, now: datetime) -> Policy | None:
        return None if self.stored is None or self.is_over(now) else self.stored.policy


class Policies:
    """Finds policies. One per process."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        clock: Clock,
        resolver: Resolver,
        outbound: Outbound,
        port: int = 443,
        fetch_timeout: float = FETCH_SECONDS,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._resolver = resolver
        self._outbound = outbound
        self._port = port
        self._fetch_timeout = fetch_timeout
        self._known: OrderedDict[str, _KnownPolicy] = OrderedDict()
        self._lookups: dict[str, asyncio.Task[_KnownPolicy]] = {}

    async def of(self, domain: str) -> Policy | None:
        """Return the policy that holds for mail to the domain (A-labels, lower case)."""
        known = self._known.get(domain)
        if known is None or self._clock.boottime() >= known.again:
            lookup = self._lookup(domain)
            if known is None or known.is_over(self._clock.now()):
                # Shielded: one mail that is given up must not take the answer from the others.
                known = await asyncio.shield(lookup)
        return known.policy_at(self._clock.now())

    async def idle(self) -> None:
        """Wait until no look-up is running."""
        while self._lookups:
            await asyncio.wait(tuple(self._lookups.values()))

    async def close(self) -> None:
        """Cancel the look-ups that are running."""
        lookup = tuple(self._lookups.values())
        for task in lookup:
            task.cancel()
        await asyncio.gather(*lookup, return_exceptions=True)

    def _lookup(self, domain: str) -> asyncio.Task[_KnownPolicy]:
        """Return the look-up that is running, or a new one."""
        task = self._lookups.get(domain)
        if task is None:
            task = self._lookups[domain] = asyncio.create_task(self._found(domain))
            task.add_done_callback(lambda _: self._lookups.pop(domain, None))
        return task

    async def _found(self, domain: str) -> _KnownPolicy:
        """Look up the policy and keep it in memory; never raises for errors of DNS or the policy server."""
        before = self._known.get(domain)
        try:
            stored, pause = await self._current(domain)
        except GONE as trouble:
            log.warning("mta_sts.database_away", trouble=repr(trouble)[:200])
            stored, pause = before.stored if before else None, TROUBLE_EVERY
        if stored is not None:
            left = (stored.expires_at - self._clock.now()).total_seconds()
            pause = max(LEAST_PAUSE, min(pause, left))
        found = self._known[domain] = _KnownPolicy(stored, self._clock.boottime() + pause)
        self._known.move_to_end(domain)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return found

    async def _current(self, domain: str) -> tuple[StoredPolicy | None, float]:
        """Return the policy in force, and when to look again."""
        stored = await mta_sts_queries.find(self._pool, domain, self._clock.now())
        answer = await self._resolver.txt(f"_mta-sts.{domain}")
        if answer.status == "failed":
            return stored, TROUBLE_EVERY
        named = mta_sts.record(answer.records)
        now = self._clock.now()
        if named is None or (stored is not None and stored.id == named and now < stored.is_due):
            return stored, LOOKUP_EVERY
        try:
            fetched = StoredPolicy.fetched(named, await self._fetch(domain), now)
        except (FetchError, PolicyError) as failure:
            log.warning("mta_sts.not_fetched", domain=domain, reason=str(failure), stored=stored is not None)
            prometheus.MTA_STS.add(1, ("policy", "not fetched"))
            return stored, TROUBLE_EVERY
        await mta_sts_queries.store(self._pool, domain, fetched)
        log.info("mta_sts.fetched", domain=domain, id=named, mode=fetched.policy.mode)
        prometheus.MTA_STS.add(1, ("policy", "fetched"))
        return fetched, LOOKUP_EVERY

    async def _fetch(self, domain: str) -> Policy:
        """Fetch the policy from its only URL (3.3): the certificate is checked, no redirect is followed."""
        port = "" if self._port == 443 else f":{self._port}"
        url = f"https://mta-sts.{domain}{port}{mta_sts.WELL_KNOWN}"
        limits = HttpLimits(max_bytes=mta_sts.LONGEST_POLICY, total=self._fetch_timeout)
        return _policy_in(await self._outbound.fetch("GET", url, limits))


def _policy_in(answer: HttpAnswer) -> Policy:
    if answer.status != 200:
        raise PolicyError(f"the server of the policy answered {answer.status}")
    media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != mta_sts.MEDIA_TYPE:
        raise PolicyError("the policy is not text/plain")
    return mta_sts.policy(answer.body)


def mta_sts_periodic(pool: asyncpg.Pool, clock: Clock) -> list[Periodic]:
    """Return the periodic job that removes expired policies."""

    async def collect() -> str:
        return f"{await mta_sts_queries.remove_expired(pool, clock.now())} policies"

    return [Periodic("delivery.policies", timedelta(days=1), collect)]
