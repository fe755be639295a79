"""The subject of the provider that one is joined to: what the account page shows, and that it is removed."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import transaction
from pillarbox.people.account_queries import AccountState
from pillarbox.people.audit import Act
from pillarbox.people.openid import openid_queries
from pillarbox.people.openid.openid_queries import OpenIdLink
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.own_account import AccountChange, RenewedSession, renew_session


@dataclass(frozen=True, slots=True)
class OwnOpenId:
    """Shows and removes what joins a visitor to the provider."""

    pool: asyncpg.Pool
    policy: OpenIdPolicy

    async def find(self, person_id: UUID) -> OpenIdLink | None:
        """Return what joins the person to the provider; None where nothing does."""
        if self.policy.issuer is None:
            return None
        return await openid_queries.link_of(self.pool, person_id, self.policy.issuer)

    def may_part(self, state: AccountState) -> bool:
        """Return whether a person of this state has another way in; the statement that removes it settles
        it."""
        return state.has_password and (state.may_use_password or not self.policy.is_only)

    async def remove(self, acting: AccountChange) -> RenewedSession | None:
        """Remove what joins the person to the provider; None where it is the only way in, or nothing joins
        them. Raises SessionEnded."""
        person_id = acting.visitor.person_id
        async with transaction(self.pool) as conn:
            email = await openid_queries.unlink(
                conn, self.policy.issuer or "", person_id, is_only=self.policy.is_only
            )
            if email is None:
                return None
            await acting.record(conn, Act.OPENID_REMOVED, {"address": email})
            return await renew_session(conn, acting)
