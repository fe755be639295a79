"""Judging a proven claim and transferring the name (domains.md section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Protocol
from uuid import UUID

import asyncpg

from pillarbox.directory import domains as directory
from pillarbox.directory.domains import Owner
from pillarbox.domains import queries as domain_queries
from pillarbox.domains.claims import queries
from pillarbox.domains.claims.ending import end, end_other_claims
from pillarbox.domains.claims.policy import LONGEST_BLOCK, ClaimBlock, ClaimFailure, ClaimRules, Status
from pillarbox.domains.claims.queries import DomainClaim
from pillarbox.domains.context import DomainContext
from pillarbox.domains.domain_events import UPDATED, publish
from pillarbox.domains.removal import take_out
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TeamDb

log = get("domains")

PROVEN = frozenset({Status.VERIFIED, Status.BLOCKED})


class OwnerActivity(Protocol):
    """Whether the owner of a name sends mail with it; `emails` implements it."""

    async def sent_since(self, db: TeamDb, domain_id: UUID, since: datetime) -> bool:
        """Return whether mail from the domain left after `since`."""
        ...

    async def has_scheduled(self, db: TeamDb, domain_id: UUID) -> bool:
        """Return whether mail from the domain waits for its time."""
        ...


class ClaimVerdict(Enum):
    """The result of judging a proven claim: it waits, or it is over."""

    BLOCKED = "blocked"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Transfers:
    """Judges proven claims; each judgement is one transaction."""

    pool: asyncpg.Pool
    context: DomainContext
    rules: ClaimRules
    activity: OwnerActivity

    async def settle(self, team_id: UUID, claim_id: UUID, now: datetime) -> ClaimVerdict:
        """Transfer the name, or note why not."""
        async with TeamDb(self.pool, team_id).transaction() as db:
            claim = await self._held(db, claim_id)
            if claim is None or claim.domain_id is None or claim.status not in PROVEN:
                return ClaimVerdict.OVER
            owner = await directory.owner(db.connection, claim.name)
            if owner is None or owner.team_id == team_id:
                await end(db, claim.id, claim.domain_id, Status.FAILED, ClaimFailure.OWNER_REMOVED_DOMAIN)
                return ClaimVerdict.OVER
            block = await self._block(TeamDb(db.connection, owner.team_id), owner, now)
            if block is None:
                await self._transfer(db, claim, claim.domain_id, owner, now)
                return ClaimVerdict.OVER
            return await self._wait(db, claim, claim.domain_id, block, now)

    async def give_up(self, team_id: UUID, claim_id: UUID) -> None:
        """Give up the transfer: the database refuses it for good."""
        async with TeamDb(self.pool, team_id).transaction() as db:
            claim = await self._held(db, claim_id)
            if claim is not None and claim.domain_id is not None:
                await end(db, claim.id, claim.domain_id, Status.FAILED, ClaimFailure.TRANSFER_ERROR)

    async def _held(self, db: TeamDb, claim_id: UUID) -> DomainClaim | None:
        """Return the claim as it is once nobody else changes the name."""
        claim = await queries.get(db, claim_id)
        if claim is None:
            return None
        await directory.hold_name(db, claim.name)
        return await queries.get(db, claim_id)

    async def _block(self, owner_db: TeamDb, owner: Owner, now: datetime) -> ClaimBlock | None:
        """Return the first reason to wait, in the order of the contract."""
        rules = self.rules
        if rules.grace and owner.since is not None and owner.since > now - rules.grace:
            return ClaimBlock.GRACE_PERIOD
        if rules.quiet and await self.activity.sent_since(owner_db, owner.domain_id, now - rules.quiet):
            return ClaimBlock.RECENT_OWNER_ACTIVITY
        if rules.scheduled and await self.activity.has_scheduled(owner_db, owner.domain_id):
            return ClaimBlock.PENDING_SCHEDULED_EMAILS
        return None

    async def _wait(
        self, db: TeamDb, claim: DomainClaim, domain_id: UUID, block: ClaimBlock, now: datetime
    ) -> ClaimVerdict:
        if claim.blocked_since is not None and now - claim.blocked_since >= LONGEST_BLOCK:
            await end(db, claim.id, domain_id, Status.FAILED, ClaimFailure.BLOCKED_TOO_LONG)
            return ClaimVerdict.OVER
        await queries.block(db, claim.id, block.value, now)
        return ClaimVerdict.BLOCKED

    async def _transfer(
        self, db: TeamDb, claim: DomainClaim, domain_id: UUID, owner: Owner, now: datetime
    ) -> None:
        """Transfer the name: the owner's domain goes, the placeholder becomes the domain, and every other
        claim is too late.

        The placeholder's key was made with it and never shown: it is the new one.
        """
        owner_db = TeamDb(db.connection, owner.team_id)
        rows = {}
        for side, row_id in sorted(((owner_db, owner.domain_id), (db, domain_id)), key=_by_team):
            rows[row_id] = await domain_queries.lock(side, row_id)
        former = rows[owner.domain_id]
        assert former is not None, "the name is held, so its domains stay"
        await take_out(owner_db, former, self.context)
        await queries.take_over(db, domain_id, claim.id)
        await directory.take_ownership(db, claim.name, now)
        await queries.close(db, claim.id, Status.COMPLETED)
        await end_other_claims(db, claim.name, Status.SUPERSEDED)
        domain = await domain_queries.get(db, domain_id)
        assert domain is not None
        await publish(db, self.context, UPDATED, domain)
        log.info("domains.claimed", claim=claim.id, team=db.team_id, former_team=owner.team_id)


def _by_team(side: tuple[TeamDb, UUID]) -> UUID:
    return side[0].team_id
