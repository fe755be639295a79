"""The envelope of a received message, and the outcome of storing it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple
from uuid import UUID


class AcceptedRecipient(NamedTuple):
    """An address that was accepted, and the team that it belongs to. The domain is in lower-case A-labels."""

    team_id: UUID
    address: str


class Arrival(NamedTuple):
    """The envelope and the session. `recipients` are in the order of the session, `mail_from` is "" for the
    null sender; `tls` is version and cipher; `protocol` is a word of RFC 3848."""

    client: str
    helo: str
    protocol: str
    tls: tuple[str, str] | None
    mail_from: str
    recipients: tuple[AcceptedRecipient, ...]


class ArrivalFate(Enum):
    """The outcome of a message that arrived."""

    STORED = "stored"
    REPEATED = "stored before"
    LOOPING = "it has passed too many servers"
    FORGED = "its author's domain asks for its refusal"
    NO_ROOM = "there is no room on the disk"
    BUSY = "too much is under way"
    TROUBLE = "it could not be stored"


class ArrivalOutcome(NamedTuple):
    """The fate, and the ids of what was stored for this message now, one for each team."""

    fate: ArrivalFate
    ids: tuple[UUID, ...] = ()
