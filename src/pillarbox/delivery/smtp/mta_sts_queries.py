"""SQL of kept MTA-STS policies. They belong to the recipients' domains, so no team has them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pillarbox.kernel.postgres.database import Source
from pillarbox.mail.smtp.mta_sts import Policy

POLICY: Final = """
    SELECT id, mode, hosts, max_age, fetched_at, expires_at
      FROM mta_sts_policies
     WHERE domain = $1 AND expires_at > $2
"""

# Two processes may fetch at once: the later result counts.
STORE_POLICY: Final = """
    INSERT INTO mta_sts_policies (domain, id, mode, hosts, max_age, fetched_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (domain) DO UPDATE
       SET id = excluded.id, mode = excluded.mode, hosts = excluded.hosts, max_age = excluded.max_age,
           fetched_at = excluded.fetched_at, expires_at = excluded.expires_at
     WHERE mta_sts_policies.fetched_at <= excluded.fetched_at
"""

EXPIRED_POLICIES: Final = """
    DELETE FROM mta_sts_policies WHERE expires_at <= $1
"""


class StoredPolicy(NamedTuple):
    """A policy as it was fetched, under the id that its TXT record had then."""

    id: str
    policy: Policy
    fetched_at: datetime
    expires_at: datetime

    @classmethod
    def fetched(cls, id: str, policy: Policy, instant: datetime) -> StoredPolicy:
        return cls(id, policy, instant, instant + timedelta(seconds=policy.max_age))

    @property
    def is_due(self) -> datetime:
        """From when on it is fetched anew, although its id is the same: half of its time is over."""
        return self.fetched_at + (self.expires_at - self.fetched_at) / 2


async def find(source: Source, domain: str, now: datetime) -> StoredPolicy | None:
    """Return the policy of a domain that still holds."""
    row = await source.fetchrow(POLICY, domain, now)
    if row is None:
        return None
    policy = Policy(row["mode"], tuple(row["hosts"]), row["max_age"])
    return StoredPolicy(row["id"], policy, row["fetched_at"], row["expires_at"])


async def store(source: Source, domain: str, stored: StoredPolicy) -> None:
    """Store a policy instead of an older one of the domain."""
    policy = stored.policy
    await source.execute(
        STORE_POLICY,
        domain,
        stored.id,
        policy.mode,
        list(policy.hosts),
        policy.max_age,
        stored.fetched_at,
        stored.expires_at,
    )


async def remove_expired(source: Source, now: datetime) -> int:
    """Remove policies that hold no more; returns how many."""
    return int((await source.execute(EXPIRED_POLICIES, now)).rsplit(" ", 1)[-1])
