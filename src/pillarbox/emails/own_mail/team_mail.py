"""Mail from this installation to a team: accepted by `accept` like any other."""

from __future__ import annotations

import hashlib
from uuid import UUID

import asyncpg

from pillarbox.emails import queries
from pillarbox.emails.accept import Accept, Checked
from pillarbox.emails.outgoing import Outgoing
from pillarbox.kernel.http.idempotency import AlreadyAnswered, Idempotency
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.mail.message.address import AddressError, Mailbox, parse_mailbox

log = get("team_mail")

SCOPE = "team mail"
LOCAL = "no-reply"
NAME = "Pillarbox"


class TeamMail:
    """Sends to the address that the team was created with."""

    def __init__(self, pool: asyncpg.Pool, accept: Accept, hostname: str) -> None:
        self._pool = pool
        self._accept = accept
        # An address of a host without a domain is none that could be read again.
        domain = hostname if "." in hostname else f"{hostname}.localdomain"
        self._sender = Mailbox(LOCAL, domain, NAME)

    async def send(self, team_id: UUID, subject: str, text: str, key: str) -> None:
        """Accept this mail, once for each `key`; nothing where there is no such team any more."""
        team = await queries.team(TeamDb(self._pool, team_id))
        if team is None:
            return
        caller = Caller(team_id, team.number, None, Permission.FULL)
        once = Idempotency(SCOPE, key, hashlib.sha256(key.encode()).digest())
        try:
            checked = Checked(self._outgoing(team.email, subject, text), None)
            await self._accept.store(caller, [checked], idempotency=once, answer=lambda _: b"{}")
        except AlreadyAnswered:
            return
        except AddressError as error:
            log.warning("team_mail.no_address", team=team_id, reason=error.reason)

    def _outgoing(self, address: str, subject: str, text: str) -> Outgoing:
        return Outgoing(
            sender_text=f"{NAME} <{self._sender.addr_spec}>",
            sender=self._sender,
            to_texts=[address],
            to=[parse_mailbox(address)],
            cc_texts=(),
            cc=(),
            bcc_texts=(),
            bcc=(),
            reply_to_texts=(),
            reply_to=(),
            subject=subject,
            html=None,
            text=text,
            headers=[("Auto-Submitted", "auto-generated")],
            attachments=(),
            tags=(),
            scheduled_at=None,
        )
