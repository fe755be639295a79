"""The filter of a search for emails, and its results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.domains.names import NotADomain, normalised
from pillarbox.emails.retention import first_id
from pillarbox.emails.search import terms
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.timeline.rules import STATES, EventKind

LONGEST_SHOWN = 80
OLDEST, NEWEST = UUID(int=0), UUID(int=2**128 - 1)


class NotAFilter(ValueError):  # noqa: N818 (a wish that cannot be understood; the message is a sentence)
    """Nothing can be looked for by this value; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class EmailFilter:
    """The conditions on an email, of which all that are not None must hold.

    `to` is an address, or `@` and a domain; `state` is that of a recipient, with `to` of that same recipient.
    `words` must all be in the subject. `domain` is the one that the email was sent from. `since` is the first
    instant of acceptance, `until` the first that is too late. Made by `parsed`.
    """

    to: str | None = None
    sender: str | None = None
    words: frozenset[str] = frozenset()
    state: EventKind | None = None
    domain: str | None = None
    since: datetime | None = None
    until: datetime | None = None

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
    ) -> EmailFilter:
        """The filter that these texts mean; NotAFilter where one of them means nothing."""
        words = frozenset(terms.words(subject or ""))
        if subject is not None and not words:
            raise NotAFilter(f"{_shown(subject)} has no word that could be looked for.")
        state = None if state is None else state.lower()
        if state is not None and state not in STATES:
            raise NotAFilter(f"{_shown(state)} is no state; use one of {', '.join(STATES)}.")
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
        return [number for term in found for number in terms.hashes(term)]

    @property
    def lower(self) -> UUID:
        """The greatest id that is too old."""
        return OLDEST if self.since is None else UUID(int=max(0, first_id(self.since).int - 1))

    @property
    def upper(self) -> UUID:
        """The greatest id that is old enough."""
        return NEWEST if self.until is None else UUID(int=max(0, first_id(self.until).int - 1))

    def fits(self, sender: str, domain: str, subject: str) -> bool:
        """Whether an email with this sender, domain and subject fits, as far as these decide."""
        if self.domain is not None and domain != self.domain:
            return False
        if self.sender is not None and terms.sender_key(sender, domain) != self.sender:
            return False
        return not self.words or self.words <= set(terms.words(subject))


class FoundEmail(NamedTuple):
    """A row of a list; `to_list` is JSON text."""

    team_id: UUID
    id: UUID
    created_at: datetime
    sender: str
    to_list: str
    subject: str
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
    """A value as the sentence shows it: quoted, and not all of a long one."""
    return repr(text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…")


def _recipient(text: str) -> str:
    return f"@{_domain(text[1:])}" if text.startswith("@") else _address(text)


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
