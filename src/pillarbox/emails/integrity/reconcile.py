"""Reconciling emails, recipients, work, history, metrics, webhooks and kept answers in a snapshot (DUR-14).

What runs meanwhile changes nothing: the snapshot shows every transaction whole or not at all. Nothing is
locked and nothing is written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import msgspec

from pillarbox.emails.integrity import queries
from pillarbox.emails.integrity.invariants import STILL_OPEN
from pillarbox.emails.integrity.queries import EmailAddresses, RecipientCounts
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.mail.message.address import AddressError, parse_mailbox

MOST_ACCOUNTS = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that is not as it must be. `ids` name the rows."""

    name: str
    sentence: str
    ids: Mapping[str, Any]


@dataclass(slots=True)
class ReconcileResult:
    """The result of a reconciliation. `more` names the kinds of gaps that are not all listed."""

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
    """Check the snapshot of `conn`'s transaction, as `reconcile` does."""
    result = ReconcileResult()
    for invariant in invariants:
        await _check(conn, invariant, result, limit)
    await _check_lists(conn, result, limit)
    await _check_accounts(conn, result, limit)
    return result


@asynccontextmanager
async def snapshot(pool: asyncpg.Pool) -> AsyncIterator[Connection]:
    """Yield a connection that sees one instant of the database and cannot write."""
    async with pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        await queries.allow_memory(conn)
        yield conn


async def _check(conn: Connection, invariant: Invariant, result: ReconcileResult, limit: int) -> None:
    for ids in await queries.broken(conn, invariant, limit + 1):
        result.add(Gap(invariant.name, invariant.sentence.format(**ids), ids), limit)


async def _check_lists(conn: Connection, result: ReconcileResult, limit: int) -> None:
    """Check that every address of an email has a recipient, and every recipient an address."""
    async with aclosing(queries.emails_with_other_addresses(conn)) as emails:
        async for email in emails:
            wrong = _difference(email)
            ids = {"team_id": email.team_id, "email_id": email.email_id}
            gap = None if wrong is None else Gap("recipients_differ_from_addresses", wrong, ids)
            if gap is not None and not result.add(gap, limit):
                return


def _difference(email: EmailAddresses) -> str | None:
    """Return a sentence about addresses of an email and recipients that do not fit together, or None."""
    try:
        wanted = {
            parse_mailbox(text).key
            for addresses in (email.to_list, email.cc_list, email.bcc_list)
            for text in msgspec.json.decode(addresses or "[]")
        }
    except AddressError:
        return "The email has an address that cannot be read."
    stored = set(email.addresses)
    if missing := len(wanted - stored):
        return f"{missing} of the email's {len(wanted)} addresses have no recipient row."
    if extra := len(stored - wanted):
        return f"{extra} recipient rows stand for none of the email's addresses."
    return None


async def _check_accounts(conn: Connection, result: ReconcileResult, limit: int) -> None:
    """Check that accepted is the sum of what became of it."""
    async for account in queries.accounts(conn, STILL_OPEN):
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
