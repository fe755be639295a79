"""The objects that the engine holds in memory: loaded emails, ready to compose, and items, their work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.kernel.postgres.database import Connection
from pillarbox.mail.html.links import Tracker
from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.message.long_content import LongContent
from pillarbox.mail.placeholders.parsing import LinkPlaces
from pillarbox.mail.smtp.content import SmtpContent
from pillarbox.timeline.record import MetricDimensions

UNTIL_FETCHED = datetime(9999, 1, 1, tzinfo=UTC)
"""`due_at` of work that waits for a file to be fetched; nothing claims it."""

QUARANTINED = datetime(9998, 1, 1, tzinfo=UTC)
"""`due_at` of work that took its processes with it; nothing claims it until the operator retries it."""

COPIES = "copies:"
"""How `destination` begins in the rows of copies of broadcasts: they wait in queues of their own, so that
other
mail for the same domain is found without reading them."""


def queue_of_copies(domain: str) -> str:
    """Return the `destination` of copies for this domain."""
    return f"{COPIES}{domain}"


EVERY_TEAM = UUID(int=0)
"""`paused.team_id` of what is paused for all teams; no team has this id."""

Key = tuple[UUID, UUID, int]
"""A work item: team, email, group."""


Wire = SmtpContent | LongContent
"""A message as it is sent: in memory, or with files that are read as it goes."""


@dataclass(slots=True)
class PersonalCopy:
    """The parts of a message that are one recipient's own; all else is in the `LoadedEmail`, which the copies
    share. `html` and `text` are the values of placeholders by their names, as each part needs them. `tracker`
    has the links and the picture of a mail that is tracked."""

    headers: Sequence[tuple[str, str]] = ()
    html: Mapping[str, str] = field(default_factory=dict)
    text: Mapping[str, str] = field(default_factory=dict)
    tracker: Tracker | None = None
    wire: asyncio.Future[Wire] | None = None


class OpenRecipient(NamedTuple):
    """One open recipient of an item. `origin` is set where the address is suppressed, `refusal` is a reason
    of `failed` where this recipient may not get the mail. A recipient with a `copy` is the only one of the
    item."""

    position: int
    mailbox: str
    address: str
    origin: str | None = None
    refusal: str | None = None
    copy: PersonalCopy | None = None


class AttachmentRef(NamedTuple):
    """An attachment: its bytes, or the blob that has them."""

    id: UUID
    filename: str
    content_type: str
    cid: str | None
    data: bytes | None
    blob: str | None
    size: int


class SigningDomain(NamedTuple):
    """The key that signs for a domain; `sealed` is opened by the key ring, bound to `context`."""

    domain: str
    selector: str
    sealed: bytes
    context: bytes


class SealedText(NamedTuple):
    """The sealed content of an email, bound to `context`; the key ring opens it only when it is composed."""

    sealed: bytes
    context: bytes


class CopyBodies(NamedTuple):
    """The bodies of a copy, made when it is composed, and its additional headers."""

    html: str | None
    text: str | None
    headers: Sequence[tuple[str, str]]


@dataclass(slots=True)
class LoadedEmail:
    """One email with all that composing it takes; shared by its items.

    `refusal` is a reason of `failed` (webhooks.md 7.1) when the email may not leave: its key, its
    domain or its topic said so at hand-over. `dimensions`: what its metrics are counted under. A copy of a
    broadcast is for the contact `contact_id`; `make` makes its bodies, in the thread that composes it, out of
    what all copies share, which is about `shared` octets. `sealed` is the text where it is kept sealed.
    """

    team_id: UUID
    team_number: int
    email_id: UUID
    message_id: str
    sender: Mailbox
    to: Sequence[Mailbox]
    cc: Sequence[Mailbox]
    reply_to: Sequence[Mailbox]
    subject: str
    date: datetime
    html: str | None
    text: str | None
    headers: Sequence[tuple[str, str]]
    attachments: Sequence[AttachmentRef]
    return_path: str
    tls_required: bool
    signing: SigningDomain | None
    dimensions: MetricDimensions | None = None
    refusal: str | None = None
    link_places: LinkPlaces | None = None
    wire: asyncio.Future[Wire] | None = None
    contact_id: UUID | None = None
    make: Callable[[], CopyBodies] | None = None
    shared: int = 0
    sealed: SealedText | None = None
    weight: int = field(init=False)
    """Bytes that this email holds in memory, roughly."""

    def __post_init__(self) -> None:
        bodies = len(self.html or "") + len(self.text or "")
        self.weight = 2048 + 2 * bodies + sum(len(e.data) if e.data else 0 for e in self.attachments)


@dataclass(slots=True)
class Item:
    """A leased work item in this process's memory.

    `deadline` is boot time: past it the lease must be taken for lost. `has_lost_holder` says that an
    earlier claim ended without an outcome, and `uncertain` that it may have sent the mail, so this
    attempt may be a repetition; `begun` how many attempts after the first of those were begun and ended
    without one too. `alone` says that no other item of the email is open, as far as is known.
    """

    team_id: UUID
    email_id: UUID
    grp: int
    destination: str
    attempt: int
    tries: int
    reached: bool
    uncertain: bool
    first_attempt_at: datetime
    targets: list[OpenRecipient]
    email: LoadedEmail
    deadline: float = 0.0
    begun: int = 0
    alone: bool = False
    has_lost_holder: bool = False
    running: bool = field(default=False)
    site: str = ""
    abort_if_silent: Callable[[], None] | None = None
    """Set while it waits for a server: gives up on one that has been silent for long, unless the final dot is
    on its way."""

    held: RelayFault | None = None
    """Why its attempt did not count."""

    may_start: Callable[[], Awaitable[bool]] | None = None
    """Asked right before its SMTP transaction begins: False forbids it."""

    @property
    def is_copy(self) -> bool:
        """Whether it is a copy of a broadcast, which other mail goes before."""
        return self.email.contact_id is not None

    @property
    def queue(self) -> str:
        """The destination as its row has it."""
        return queue_of_copies(self.destination) if self.is_copy else self.destination

    @property
    def is_first(self) -> bool:
        """Whether nothing has become of the email yet, as far as is known."""
        is_fresh = not (self.tries or self.reached or self.uncertain or self.has_lost_holder)
        return self.alone and is_fresh and len(self.targets) == 1

    @property
    def copy(self) -> PersonalCopy | None:
        """The parts of this recipient's own copy; None where all get the same message."""
        return self.targets[0].copy if self.targets else None

    @property
    def key(self) -> Key:
        return (self.team_id, self.email_id, self.grp)


class ClaimedItem(NamedTuple):
    """A row that a claim returned, before its email is loaded."""

    team_id: UUID
    email_id: UUID
    grp: int
    destination: str
    attempt: int
    tries: int
    reached: bool
    uncertain: int
    released: bool
    first_attempt_at: datetime
    begun: int
    lost: int


LoadEmails = Callable[
    [Connection, UUID, Sequence[UUID], int],
    Awaitable[dict[UUID, tuple[LoadedEmail, dict[int, list[OpenRecipient]]] | None]],
]
"""Loads the emails of one team: each as a `LoadedEmail` with the open recipients of each group, checked
once more (suppression, key, domain, topic); None for those that would come after more octets than the last
argument says. The slice `emails` provides it; the engine does not read its tables."""

ReadBlob = Callable[[str], AsyncIterator[bytes]]
"""The bytes of a blob, in chunks."""
