"""Reconciling emails, recipients, work, history, metrics, webhooks and kept answers in a snapshot (DUR-14).

What runs meanwhile changes nothing: the snapshot shows every transaction whole or not at all. Nothing is
locked and nothing is written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.emails.integrity.invariants import ACCOUNTS, LISTS, STILL_OPEN
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.mail.message.address import AddressError, parse_mailbox

TIMEOUT = 24 * 3600.0
WORK_MEM = "64MB"
PREFETCH = 500
MOST_ACCOUNTS = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that is not as it must be. `ids` name the rows."""

    name: str
    sentence: str
    ids: Mapping[str, Any]


class RecipientCounts(NamedTuple):
    """A team's recipients: how many were accepted and what became of them."""

    team_id: UUID
    team: str
    emails: int
    accepted: int
    delivered: int
    bounced: int
    failed: int
    suppressed: int
    canceled: int
    pending: int

    @property
    def known(self) -> int:
        """Recipients whose state is one that there is."""
        return self.delivered + self.bounced + self.failed + self.suppressed + self.canceled + self.pending


@dataclass(slots=True)
class ReconcileResult:
    """What a reconciliation found. `more` names what was found more often than is listed here."""

    gaps: list[Gap] = field(default_factory=list)
    more: set[str] = field(default_factory=set)
    accounts: list[RecipientCounts] = field(default_factory=list)
    teams: int = 0
    emails: int = 0
    recipients: int = 0

    def add(self, gap: Gap, limit: int) -> bool:
        """Keep a gap; False when there are enough of its kind."""
        if sum(kept.name == gap.name for kept in self.gaps) >= limit:
            self.more.add(gap.name)
            return False
        self.gaps.append(gap)
        return True


async def reconcile(pool: asyncpg.Pool, limit: int, invariants: Sequence[Invariant]) -> ReconcileResult:
    """Check what must hold between emails and their recipients, and these invariants; at most `limit` gaps of
    each kind are listed."""
    async with snapshot(pool) as conn:
        return await examine(conn, limit, invariants)


async def examine(conn: Connection, limit: int, invariants: Sequence[Invariant]) -> ReconcileResult:
    """What the transaction of `conn` sees, checked as `reconcile` does."""
    result = ReconcileResult()
    for invariant in invariants:
        await _check(conn, invariant, result, limit)
    await _check_lists(conn, result, limit)
    await _check_accounts(conn, result, limit)
    return result


@asynccontextmanager
async def snapshot(pool: asyncpg.Pool) -> AsyncIterator[Connection]:
    """A connection that sees one instant of the database and cannot write."""
    async with pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        await conn.execute("SELECT set_config('work_mem', $1, true)", WORK_MEM)
        yield conn


async def _check(conn: Connection, invariant: Invariant, result: ReconcileResult, limit: int) -> None:
    rows = await conn.fetch(invariant.sql, limit + 1, *invariant.args, timeout=TIMEOUT)
    for row in rows:
        ids = dict(row)
        result.add(Gap(invariant.name, invariant.sentence.format(**ids), ids), limit)


async def _check_lists(conn: Connection, result: ReconcileResult, limit: int) -> None:
    """Every address of an email has a recipient, and every recipient an address."""
    async for row in conn.cursor(LISTS, prefetch=PREFETCH, timeout=TIMEOUT):
        wrong = _difference(row)
        ids = {"team_id": row["team_id"], "email_id": row["email_id"]}
        if wrong is not None and not result.add(Gap("recipients_differ_from_addresses", wrong, ids), limit):
            return


def _difference(row: Any) -> str | None:
    """What is wrong between the addresses of an email and its recipients, or None."""
    try:
        wanted = {
            parse_mailbox(text).key
            for name in ("to_list", "cc_list", "bcc_list")
            for text in msgspec.json.decode(row[name] or "[]")
        }
    except AddressError:
        return "The email has an address that cannot be read."
    stored = set(row["addresses"])
    if missing := len(wanted - stored):
        return f"{missing} of the email's {len(wanted)} addresses have no recipient row."
    if extra := len(stored - wanted):
        return f"{extra} recipient rows stand for none of the email's addresses."
    return None


async def _check_accounts(conn: Connection, result: ReconcileResult, limit: int) -> None:
    """Accepted is the sum of what became of it."""
    async for row in conn.cursor(ACCOUNTS, STILL_OPEN, prefetch=PREFETCH, timeout=TIMEOUT):
        account = RecipientCounts(**row)
        result.teams += 1
        result.emails += account.emails
        result.recipients += account.known
        if len(result.accounts) < MOST_ACCOUNTS:
            result.accounts.append(account)
        if account.accepted != account.known:
            result.add(_unbalanced(account), limit)


def _unbalanced(account: RecipientCounts) -> Gap:
    sentence = (
        f"The team {account.team!r} had {account.accepted} recipients accepted, but {account.known} are "
        f"delivered, bounced, failed, suppressed, canceled or pending."
    )
    return Gap("account_unbalanced", sentence, account._asdict())
