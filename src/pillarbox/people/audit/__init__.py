"""Records who did what: one log of acts, written in the transaction of each act.

An entry is never changed, and not removed before it is 30 days old: the database refuses it. It names
whoever acted (a person, an API key, a program by its grant, or none of them: the operator at the machine),
what that one was called then, and from where it came. Secrets have no place in it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http.request import Request
from pillarbox.kernel.ids import EPOCH, MICROSECOND, first_id, uuid7
from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.wire.paging import Page
from pillarbox.people.audit import queries as audit_queries
from pillarbox.people.audit.queries import AuditEntry, AuditFilter, EntryOfTeam, EntryPlace
from pillarbox.people.prometheus import ACTS

if TYPE_CHECKING:
    # Visitors know sessions, whose ends are recorded here.
    from pillarbox.people.visitors import Visitor

NO_TEAM: Final = UUID(int=0)
"""The team of entries that concern no team."""

SCANNED: Final = 20_000
"""Entries that a page with filters looks through; the next page goes on behind them."""

LONGEST_TEXT: Final = 300
"""Texts that came with a request are cut to this length."""


class Act(Enum):
    """All acts that are recorded. The first word says what was acted on."""

    LOGIN_SUCCEEDED = "login.succeeded"
    LOGIN_FAILED = "login.failed"
    LOGGED_OUT = "login.ended"
    LOGGED_OUT_EVERYWHERE = "login.ended_everywhere"
    SESSION_REVOKED = "session.revoked"
    PASSWORD_CHANGED = "password.changed"  # noqa: S105 - not a secret
    PASSWORD_LINK_ASKED = "password.link_asked"  # noqa: S105 - not a secret
    PASSWORD_RESET = "password.reset"  # noqa: S105 - not a secret
    FACTOR_ADDED = "factor.added"
    FACTOR_REMOVED = "factor.removed"
    RECOVERY_CODES_MADE = "recovery_codes.made"
    RECOVERY_CODE_USED = "recovery_codes.used"
    PASSKEY_ADDED = "passkey.added"
    PASSKEY_REMOVED = "passkey.removed"
    OPENID_JOINED = "openid.joined"
    OPENID_REMOVED = "openid.removed"
    PASSWORD_LOGIN_ALLOWED = "password.login_allowed"  # noqa: S105 - not a secret
    PASSWORD_LOGIN_ENDED = "password.login_ended"  # noqa: S105 - not a secret
    ADDRESS_CHANGE_ASKED = "address.change_asked"
    ADDRESS_CHANGE_WITHDRAWN = "address.change_withdrawn"
    ADDRESS_CHANGED = "address.changed"
    PERSON_CREATED = "person.created"
    PERSON_SET_UP = "person.set_up"
    PERSON_RENAMED = "person.renamed"
    PERSON_DISABLED = "person.disabled"
    PERSON_ENABLED = "person.enabled"
    OPERATOR_ADDED = "operator.added"
    OPERATOR_REMOVED = "operator.removed"
    TEAM_CREATED = "team.created"
    TEAM_RENAMED = "team.renamed"
    TEAM_BLOCKED = "team.blocked"
    TEAM_UNBLOCKED = "team.unblocked"
    TEAM_LIMITS_SET = "team.limits_set"
    QUEUE_PAUSED = "queue.paused"
    QUEUE_RESUMED = "queue.resumed"
    QUEUE_RETRIED = "queue.retried"
    QUEUE_DROPPED = "queue.dropped"
    MEMBER_ADDED = "member.added"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_REMOVED = "member.removed"
    MEMBER_LEFT = "member.left"
    INVITATION_MADE = "invitation.made"
    INVITATION_REVOKED = "invitation.revoked"
    INVITATION_ACCEPTED = "invitation.accepted"
    KEY_CREATED = "key.created"
    KEY_RENAMED = "key.renamed"
    KEY_KEPT = "key.kept"
    KEY_SUSPENDED = "key.suspended"
    KEY_RESUMED = "key.resumed"
    KEY_DELETED = "key.deleted"
    DOMAIN_CREATED = "domain.created"
    DOMAIN_CHANGED = "domain.changed"
    DOMAIN_CLAIMED = "domain.claimed"
    DOMAIN_KEY_ROTATED = "domain.key_rotated"
    DOMAIN_TRUSTED = "domain.trusted"
    DOMAIN_DELETED = "domain.deleted"
    DOMAIN_CHECK_ASKED = "domain.check_asked"
    DOMAIN_CLAIM_CHECK_ASKED = "domain.claim_check_asked"
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_SECRET_ROTATED = "webhook.secret_rotated"  # noqa: S105 - not a secret
    WEBHOOK_DELETED = "webhook.deleted"
    WEBHOOK_SAMPLE_SENT = "webhook.sample_sent"
    WEBHOOK_EVENTS_REPLAYED = "webhook.events_replayed"
    UNSUBSCRIBE_PAGE_CHANGED = "unsubscribe_page.changed"
    MAIL_THEME_CHANGED = "mail_theme.changed"
    TEMPLATE_CREATED = "template.created"
    TEMPLATE_CHANGED = "template.changed"
    TEMPLATE_PUBLISHED = "template.published"
    TEMPLATE_DELETED = "template.deleted"
    IMAGE_ADDED = "image.added"
    IMAGE_REMOVED = "image.removed"
    BROADCAST_CREATED = "broadcast.created"
    BROADCAST_CHANGED = "broadcast.changed"
    BROADCAST_SENT = "broadcast.sent"
    BROADCAST_PAUSED = "broadcast.paused"
    BROADCAST_RESUMED = "broadcast.resumed"
    BROADCAST_CANCELED = "broadcast.canceled"
    BROADCAST_WINNER_CHOSEN = "broadcast.winner_chosen"
    BROADCAST_DELETED = "broadcast.deleted"
    EMAILS_SENT = "emails.sent"
    EMAILS_RESENT = "emails.resent"
    EMAILS_CANCELED = "emails.canceled"
    EMAILS_RESCHEDULED = "emails.rescheduled"
    FORM_CREATED = "form.created"
    FORM_CHANGED = "form.changed"
    FORM_DELETED = "form.deleted"
    IMPORT_STARTED = "import.started"
    IMPORT_UNDONE = "import.undone"
    REQUEST_SENT = "request.sent"
    INSTALLATION_EXAMINED = "installation.examined"
    INSTALLATION_VERIFIED = "installation.verified"
    SUPPRESSIONS_ADDED = "suppressions.added"
    SUPPRESSIONS_REMOVED = "suppressions.removed"
    SUPPRESSIONS_EXPORTED = "suppressions.exported"
    CONTACTS_EXPORTED = "contacts.exported"
    CONTACTS_CHANGED = "contacts.changed"
    CONTACTS_ACT_STOPPED = "contacts.act_stopped"
    CONTACT_CREATED = "contact.created"
    CONTACT_CHANGED = "contact.changed"
    PERSON_EXPORTED = "personal_data.exported"
    PERSON_ERASED = "personal_data.erased"
    ERASURE_REMOVED = "personal_data.erasure_removed"
    CONTACT_DELETED = "contact.deleted"
    SEGMENT_CREATED = "segment.created"
    SEGMENT_CHANGED = "segment.changed"
    SEGMENT_DELETED = "segment.deleted"
    TOPIC_CREATED = "topic.created"
    TOPIC_CHANGED = "topic.changed"
    TOPIC_DELETED = "topic.deleted"
    PROPERTY_CREATED = "property.created"
    PROPERTY_CHANGED = "property.changed"
    PROPERTY_DELETED = "property.deleted"
    AUTOMATION_CREATED = "automation.created"
    AUTOMATION_CHANGED = "automation.changed"
    AUTOMATION_STOPPED = "automation.stopped"
    AUTOMATION_DELETED = "automation.deleted"
    EVENT_DEFINED = "event.defined"
    EVENT_CHANGED = "event.changed"
    EVENT_DELETED = "event.deleted"
    EVENT_SENT = "event.sent"
    INBOX_CREATED = "inbox.created"
    INBOX_CHANGED = "inbox.changed"
    INBOX_DELETED = "inbox.deleted"
    INBOX_LABELS_CHANGED = "inbox.labels_changed"
    INBOX_THREADS_CHANGED = "inbox.threads_changed"
    INBOX_DRAFT_SAVED = "inbox.draft_saved"
    INBOX_DRAFT_DISCARDED = "inbox.draft_discarded"
    INBOX_MAIL_SENT = "inbox.mail_sent"
    CLIENT_REGISTERED = "client.registered"
    CLIENT_VERIFIED = "client.verified"
    CLIENT_DISABLED = "client.disabled"
    CLIENT_ENABLED = "client.enabled"
    GRANT_GIVEN = "grant.given"
    GRANT_DENIED = "grant.denied"
    GRANT_REVOKED = "grant.revoked"


@dataclass(frozen=True, slots=True)
class Actor:
    """The one who acts. Without any id it is the operator, or nobody that is known. Of a key or a grant of
    the team the name is looked up where it is not given.

    The `name` of a person is their address: what people call themselves may be anything, "operator" too.
    """

    person_id: UUID | None = None
    key_id: UUID | None = None
    grant_id: UUID | None = None
    name: str | None = None
    address: str | None = None
    user_agent: str | None = None

    def __post_init__(self) -> None:
        is_person = self.person_id is not None and self.key_id is None and self.grant_id is None
        if is_person and self.name is not None and "@" not in self.name:
            raise ValueError("a person is named by their address")


class FoundEntries(NamedTuple):
    """A page of the log of all teams. `following` is the place behind which the next one begins."""

    entries: list[EntryOfTeam]
    following: EntryPlace | None


OPERATOR: Final = Actor(name="operator")
"""The person at the command line."""


_acts: ContextVar[list[Act] | None] = ContextVar("acts", default=None)


@contextmanager
def recorded_acts() -> Iterator[list[Act]]:
    """Return a list to which each act is added that is recorded within, by its tasks too."""
    acts: list[Act] = []
    token = _acts.set(acts)
    try:
        yield acts
    finally:
        _acts.reset(token)


async def record(
    conn: Source,
    now: datetime,
    what: Act,
    *,
    team_id: UUID | None,
    actor: Actor,
    target: str | None = None,
    details: Mapping[str, object] | None = None,
) -> None:
    """Add an entry, in the transaction of the act. `target` is what was acted on, as a reader knows it, and
    `details` what else is of interest."""
    ACTS.add(1, (what.value,))
    await audit_queries.insert(
        TeamDb(conn, team_id or NO_TEAM),
        uuid7((now - EPOCH) // MICROSECOND, secrets.token_bytes(8)),
        now,
        what.value,
        actor.person_id,
        actor.key_id,
        actor.grant_id,
        plain(actor.name),
        plain(target),
        plain(actor.address),
        plain(actor.user_agent),
        None if details is None else json.dumps(dict(details), default=str),
    )
    acts = _acts.get()
    if acts is not None:
        acts.append(what)


async def record_call(
    request: Request,
    db: TeamDb,
    what: Act,
    target: str | None = None,
    details: Mapping[str, object] | None = None,
) -> None:
    """Record an act of a caller of the API, in the transaction that `db` stands for."""
    await record(
        db.connection,
        request.at,
        what,
        team_id=db.team_id,
        actor=caller_of(request),
        target=target,
        details=details,
    )


async def record_command(
    db: TeamDb, what: Act, target: str | None = None, details: Mapping[str, object] | None = None
) -> None:
    """Record an act of the operator at the command line."""
    await record(
        db.source,
        SystemClock().now(),
        what,
        team_id=db.team_id,
        actor=OPERATOR,
        target=target,
        details=details,
    )


def caller_of(request: Request) -> Actor:
    """Return who calls a route of the API, and from where."""
    caller = request.known
    return Actor(
        person_id=caller.person_id,
        key_id=caller.key_id,
        grant_id=caller.grant_id,
        address=request.client,
        user_agent=request.header("user-agent"),
    )


def program_of(request: Request) -> Actor:
    """Return the actor for a program without an access token: only where it asks from is known, and the grant
    says the rest."""
    return Actor(address=request.client, user_agent=request.header("user-agent"))


def visitor_actor(request: Request, visitor: Visitor) -> Actor:
    """Return who asks for a page, and from where."""
    return Actor(
        person_id=visitor.person_id,
        name=visitor.email,
        address=request.client,
        user_agent=request.header("user-agent"),
    )


def plain(text: str | None) -> str | None:
    """Return the text as the database stores and a terminal shows it: without control characters, and cut."""
    if text is None:
        return None
    return "".join(char if char.isprintable() else " " for char in text[:LONGEST_TEXT])


async def page(db: TeamDb, page: Page) -> list[AuditEntry]:
    """Return a page of the team's log of acts."""
    return await audit_queries.page(db, page)


async def the_only_one(db: TeamDb, what: Act, after: datetime, until: datetime) -> AuditEntry | None:
    """Return the entry of an act within these instants; None where there is none, or more than one."""
    entries = await audit_queries.between(db, first_id(after), first_id(until), what.value, 2)
    return entries[0] if len(entries) == 1 else None


async def page_of_all(
    source: Source, entry_filter: AuditFilter, limit: int, *, after: EntryPlace | None = None
) -> list[EntryOfTeam]:
    """Return the newest entries of all teams, and of what concerns none; `after` is the last one seen."""
    return await audit_queries.page_of_all(source, entry_filter, limit, after)


async def find_of_all(
    source: Source, entry_filter: AuditFilter, limit: int, *, after: EntryPlace | None = None
) -> FoundEntries:
    """Return a page of the newest entries of all teams that fit, of the `SCANNED` ones behind `after`."""
    last = None
    if entry_filter.narrows:
        last = await audit_queries.place_behind(source, entry_filter, SCANNED, after)
    entries = await audit_queries.page_of_all(source, entry_filter, limit + 1, after, last)
    if len(entries) > limit:
        return FoundEntries(entries[:limit], (entries[limit - 1].at, entries[limit - 1].id))
    return FoundEntries(entries, last)
