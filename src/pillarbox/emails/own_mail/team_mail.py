"""Mail from this installation to a team: accepted by `accept` like any other."""

from __future__ import annotations

import hashlib
from uuid import UUID

import asyncpg

from pillarbox.emails import queries
from pillarbox.emails.accept import Accept, AuthorizedEmail
from pillarbox.emails.own_mail.plain_mail import own_sender, plain_mail
from pillarbox.kernel.http.idempotency import AlreadyAnswered, Idempotency
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.mail.message.address import AddressError

log = get("team_mail")

SCOPE = "team mail"


class TeamMail:
    """Sends to the address that the team was created with."""

    def __init__(self, pool: asyncpg.Pool, accept: Accept, hostname: str) -> None:
        self._pool = pool
        self._accept = accept
        self._sender = own_sender(hostname)

    async def send(self, team_id: UUID, subject: str, text: str, key: str) -> None:
        """Accept this mail, once for each `key`; nothing where there is no such team any more."""
        team = await queries.team(TeamDb(self._pool, team_id))
        if team is None:
            return
        caller = Caller(team_id, team.number, None, Permission.FULL)
        once = Idempotency(SCOPE, key, hashlib.sha256(key.encode()).digest())
        try:
            checked = AuthorizedEmail(plain_mail(self._sender, team.email, subject, text), None)
            await self._accept.store(caller, [checked], idempotency=once, answer=lambda _: b"{}")
        except AlreadyAnswered:
            return
        except AddressError as error:
            log.warning("team_mail.no_address", team=team_id, reason=error.reason)
