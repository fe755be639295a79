"""The filter of a search for emails, and its results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from pillarbox.domains.names import NotADomain, normalised
from pillarbox.emails.retention import first_id
from pillarbox.emails.search import terms
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.timeline.rules import STATES, EventKind

LONGEST_SHOWN = 80
SOURCES = ("api", "smtp", "broadcast", "automation", "inbox")
"""Origins of an email; `api` is all that the others are not."""

_TAG = re.compile(r"([A-Za-z0-9_-]{1,256})(?::([A-Za-z0-9_-]{1,256}))?", re.ASCII)
_MESSAGE_ID = re.compile(r"<?([^<>\s]{1,250}@[^<>\s@]{1,255})>?")
_ID_DIGITS = re.compile(r"<([0-9a-f]{12}7[0-9a-f]{19})@")
"""The beginning of a Message-ID that may hold the id of a copy of a broadcast."""
OLDEST, NEWEST = UUID(int=0), UUID(int=2**128 - 1)


class NotAFilter(ValueError):  # noqa: N818 (a wish that cannot be understood; the message is a sentence)
    """Nothing can be looked for by this value; the message is a sentence."""


class TagFilter(NamedTuple):
    """A tag that an email must have; with `value` None whatever its value is."""

    name: str
    value: str | None

    def json(self) -> str:
        """Return the JSON that the tags of an email must contain."""
        named = {"name": self.name} if self.value is None else self._asdict()
        return msgspec.json.encode([named]).decode()


@dataclass(frozen=True, slots=True)
class EmailFilter:
    """The conditions on an email, of which all that are not None must hold.

    `to` is an address, or `@` and a domain; `state` is that of a recipient, with `to` of that same recipient.
    `words` must all be in the subject. `domain` is the one that the email was sent from. `since` is the first
    instant of acceptance, `until` the first that is too late. `key_id` is the API key that it was sent by.
    Made by `parsed`.
    """

    to: str | None = None
    sender: str | None = None
    words: frozenset[str] = frozenset()
    state: EventKind | None = None
    domain: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tag: TagFilter | None = None
    key_id: UUID | None = None
    broadcast_id: UUID | None = None
    source: str | None = None
    message_id: str | None = None

    @classmethod
    def parsed(
        cls,
        *,
        to: str | None = None,
        sender: str | None = None,
        subject: str | None = None,
        state: str | None = None,
        domain: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        tag: str | None = None,
        key_id: str | None = None,
        broadcast_id: str | None = None,
        source: str | None = None,
        message_id: str | None = None,
    ) -> EmailFilter:
        """Return the filter that these texts mean; raise NotAFilter where one of them means nothing."""
        words = frozenset(terms.words(subject or ""))
        if subject is not None and not words:
            raise NotAFilter(f"{_shown(subject)} has no word that could be looked for.")
        state = None if state is None else state.lower()
        if state is not None and state not in STATES:
            raise NotAFilter(f"{_shown(state)} is no state; use one of {', '.join(STATES)}.")
        if source is not None and source not in SOURCES:
            raise NotAFilter(f"{_shown(source)} is no source; use one of {', '.join(SOURCES)}.")
        if since is not None and until is not None and since >= until:
            raise NotAFilter("No email is in that time: it ends before it begins.")
        return cls(
            to=None if to is None else _recipient(to),
            sender=None if sender is None else _address(sender),
            words=words,
            state=None if state is None else EventKind(state),
            domain=None if domain is None else _domain(domain),
            since=since,
            until=until,
            tag=None if tag is None else _tag(tag),
            key_id=None if key_id is None else _id(key_id),
            broadcast_id=None if broadcast_id is None else _id(broadcast_id),
            source=source,
            message_id=None if message_id is None else as_message_id(message_id),
        )

    @property
    def numbers(self) -> list[int]:
        """Where the bits are that the Bloom filter of an email that fits must have."""
        found = [terms.word_term(word) for word in self.words]
        if self.to is not None:
            found.append(terms.recipient_term(self.to))
        if self.sender is not None:
            found.append(terms.sender_term(self.sender))
        if self.domain is not None:
            found.append(terms.domain_term(self.domain))
        found += self._origin_terms()
        return [number for term in found for number in terms.hashes(term)]

    def _origin_terms(self) -> list[str]:
        """Return the terms of where an email that fits comes from."""
        found = []
        if self.tag is not None:
            found.append(terms.tag_term(*self.tag))
        if self.key_id is not None:
            found.append(terms.key_term(self.key_id))
        if self.broadcast_id is not None:
            found.append(terms.broadcast_term(self.broadcast_id))
        if self.source is not None:
            found.append(terms.source_term(self.source))
        if self.message_id is not None:
            found.append(terms.message_term(self.message_id))
        return found

    @property
    def possible_id(self) -> UUID | None:
        """The id that the email has if it is a copy of a broadcast; None where the Message-ID has none."""
        digits = None if self.message_id is None else _ID_DIGITS.match(self.message_id)
        return None if digits is None else UUID(digits[1])

    @property
    def origin(self) -> OriginColumns:
        """The values that statements compare with the columns of an email."""
        return OriginColumns(
            key_id=self.key_id,
            broadcast_id=self.broadcast_id,
            source=self.source,
            tags=None if self.tag is None else self.tag.json(),
            message_id=self.message_id,
        )

    @property
    def lower(self) -> UUID:
        """The greatest id that is too old."""
        return OLDEST if self.since is None else UUID(int=max(0, first_id(self.since).int - 1))

    @property
    def upper(self) -> UUID:
        """The greatest id that is old enough."""
        return NEWEST if self.until is None else UUID(int=max(0, first_id(self.until).int - 1))

    def fits(self, sender: str, domain: str, subject: str) -> bool:
        """Return whether an email with this sender, domain and subject fits, as far as these decide."""
        if self.domain is not None and domain != self.domain:
            return False
        if self.sender is not None and terms.sender_key(sender, domain) != self.sender:
            return False
        return not self.words or self.words <= set(terms.words(subject))


class OriginColumns(NamedTuple):
    """Values that an email must have in these columns; None where any value fits. `tags` is JSON text."""

    key_id: UUID | None
    broadcast_id: UUID | None
    source: str | None
    tags: str | None
    message_id: str | None


class FoundEmail(NamedTuple):
    """A row of a list; the `*_list` columns are JSON text."""

    team_id: UUID
    id: UUID
    message_id: str
    created_at: datetime
    sender: str
    to_list: str
    subject: str
    bcc_list: str | None
    cc_list: str | None
    reply_to_list: str | None
    last_event: str
    scheduled_at: datetime | None


@dataclass(frozen=True, slots=True)
class EmailPage:
    """Emails that fit, newest first. `following` is the cursor of the next page, None at the end. A page may
    have fewer emails than asked for, or none, and still have a next one: so much was read without finding
    more."""

    emails: list[FoundEmail]
    following: UUID | None


def _shown(text: str) -> str:
    """Return a value as the sentence shows it: quoted, and not all of a long one."""
    return repr(text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…")


def _tag(text: str) -> TagFilter:
    parts = _TAG.fullmatch(text)
    if parts is None:
        raise NotAFilter(f"{_shown(text)} is no tag; use its name, or its name, a colon and its value.")
    return TagFilter(parts[1], parts[2])


def _id(text: str) -> UUID:
    if not well_formed(text):
        raise NotAFilter(f"{_shown(text)} is not an id.")
    return UUID(text)


def as_message_id(text: str) -> str:
    """Return a Message-ID in lower case and in angle brackets; NotAFilter where the text is none."""
    parts = _MESSAGE_ID.fullmatch(text.strip())
    if parts is None:
        raise NotAFilter(f"{_shown(text)} is no Message-ID.")
    return f"<{parts[1].lower()}>"


def _recipient(text: str) -> str:
    if text.startswith("@"):
        return f"@{_domain(text[1:])}"
    try:
        return _address(text)
    except NotAFilter:
        raise NotAFilter(
            f"{_shown(text)} is neither a whole address nor a domain, such as @quay.example."
        ) from None


def _address(text: str) -> str:
    try:
        return parse_mailbox(text).key
    except AddressError:
        raise NotAFilter(f"{_shown(text)} is not an address.") from None


def _domain(text: str) -> str:
    try:
        return normalised(text)
    except NotADomain as wrong:
        raise NotAFilter(f"{_shown(text)} is not a domain: {wrong}") from None
