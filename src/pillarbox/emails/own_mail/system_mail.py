"""Mail of this installation to people, in the transaction of its sender: stored by `accept` like any other,
as mail of the oldest team, but what it says is sealed. It counts for no quota."""

from __future__ import annotations

from datetime import datetime

from pillarbox.domains.senders import Senders
from pillarbox.emails import queries
from pillarbox.emails.accept import Accept, AuthorizedEmail
from pillarbox.emails.own_mail import sealed_queries
from pillarbox.emails.own_mail.plain_mail import own_sender, plain_mail
from pillarbox.emails.own_mail.redaction import MARK, UNSEALED_TEXT
from pillarbox.emails.own_mail.sealed_queries import SEALED_MAILS
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.teams import bootstrap

log = get("system_mail")


class StoredSystemMail:
    """Implements `people.mails.SystemMail`."""

    def __init__(
        self, accept: Accept, senders: Senders, ring: KeyRing, sender: str | None, hostname: str
    ) -> None:
        self._accept = accept
        self._senders = senders
        self._ring = ring
        self._sender = own_sender(hostname, sender)

    async def send(self, conn: Connection, now: datetime, *, to: str, subject: str, text: str) -> None:
        """Accept this mail in the transaction of `conn`."""
        team_id = await bootstrap.operators_team(conn)
        team = None if team_id is None else await queries.team(TeamDb(conn, team_id))
        if team_id is None or team is None:
            log.warning("system_mail.no_team")
            return
        domain = await self._senders.find(team_id, self._sender.domain)
        mail = plain_mail(self._sender, to, subject, UNSEALED_TEXT, (MARK,))
        checked = AuthorizedEmail(mail, domain if domain and domain.may_send else None)
        caller = Caller(team_id, team.number, None, Permission.FULL)
        email_id = await self._accept.store_in(conn, caller, checked)
        sealed = self._ring.seal(text.encode(), SEALED_MAILS.context(email_id))
        await sealed_queries.insert(TeamDb(conn, team_id), email_id, sealed)
