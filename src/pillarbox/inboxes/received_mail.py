"""Received mail as inboxes need it: bodies, attachments, and that it is kept while an inbox has it.

The slice `receiving` is above this one and gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from msgspec import Struct

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.mail.authentication.mail_verdicts import DkimVerdict, DmarcVerdict, SpamVerdict, SpfVerdict


@dataclass(frozen=True, slots=True)
class MessageBody:
    """The bodies of a message; the html has its images inside."""

    html: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class MessageFile:
    """An attachment of a message. `kind` is that of its signed file."""

    id: UUID
    filename: str | None
    size: int
    content_type: str
    disposition: str
    content_id: str | None
    kind: str


class EmailVerdicts(Struct):
    """What was found out about a received email, as the API shows it."""

    object: Literal["email_verdicts"]
    id: UUID
    spf: SpfVerdict
    dkim: list[DkimVerdict]
    dmarc: DmarcVerdict
    spam: SpamVerdict
    automatic: bool | None


class ReceivedMailSource(Protocol):
    """Received mail as messages of inboxes."""

    async def sizes(self, db: TeamDb, ids: Sequence[UUID]) -> Mapping[UUID, int]:
        """Return how many octets each message has, of those that exist."""
        ...

    def turn(
        self, team_id: UUID, size: int, is_gone: Callable[[], bool]
    ) -> AbstractAsyncContextManager[None]:
        """Hold the memory for reading a message of that size. Raises ServerOverloaded, and ClientGone where
        the client has left."""
        ...

    async def body(self, db: TeamDb, email_id: UUID) -> MessageBody:
        """Return the bodies of the email, empty where it is gone. The caller holds a `turn`."""
        ...

    async def verdicts(self, db: TeamDb, email_id: UUID) -> EmailVerdicts | None:
        """Return the verdicts on the email; None where it was not received, or is gone."""
        ...

    async def files(self, db: TeamDb, ids: Sequence[UUID]) -> Mapping[UUID, Sequence[MessageFile]]:
        """Return the attachments of each message that has some."""
        ...

    async def refuse_above(self, db: TeamDb, ids: Sequence[UUID]) -> None:
        """Raise a 403 where the content of one of them is kept from the team."""
        ...

    async def release(self, db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> None:
        """Note that the inbox does not have these emails any more; one that no other inbox has is kept as
        long as any other received email."""
        ...
