"""Reads and changes a recipient's choices (topics.md 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

import asyncpg

from pillarbox.contacts.change import NOTHING, ContactChange, ContactMemberships, Subscription
from pillarbox.contacts.store import Contacts
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb, transaction
from pillarbox.kernel.security.link_tokens import LinkToken
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import EventKind, TimelineEntry
from pillarbox.unsubscribe import queries
from pillarbox.unsubscribe.forms import Submission, UnsubscribeAction
from pillarbox.unsubscribe.page_settings import DEFAULT, UnsubscribePageSettings, read
from pillarbox.unsubscribe.queries import ShownTopic

MOST_SHOWN = 1000
"""Topics on a page."""

TRIES = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Preferences:
    """The choices that the page shows. `topic` is the one that the mail was about, while it exists."""

    address: str
    sender: str | None
    is_unsubscribed: bool
    topic: ShownTopic | None
    topics: Sequence[ShownTopic]
    settings: UnsubscribePageSettings = DEFAULT


@dataclass(frozen=True, slots=True)
class UnsubscribeOutcome:
    """The changes that a submission made, and the choices after it."""

    action: UnsubscribeAction
    now: Preferences
    left: Sequence[ShownTopic] = ()
    joined: Sequence[ShownTopic] = ()
    left_all: bool = False
    came_back: bool = False


@dataclass(frozen=True, slots=True)
class _Effect:
    """The changes to write: the new choice of each topic, and whether everything is left."""

    topics: Mapping[ShownTopic, Subscription] = field(default_factory=dict)
    unsubscribed: bool | None = None
    is_opt_out: bool = False
    """Whether it counts as unsubscribing by this mail."""


class SubscriptionChoices:
    """Reads and changes what recipients get."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, contacts: Contacts, timeline: Timeline) -> None:
        self._pool = pool
        self._clock = clock
        self._contacts = contacts
        self._timeline = timeline

    async def preferences(self, link: LinkToken) -> Preferences:
        """Return the subscriptions as they stand; nothing is changed."""
        _, found = await self._read(
            TeamDb(self._pool, link.team_id), link, Submission(UnsubscribeAction.CONFIRM)
        )
        return found

    async def click(self, link: LinkToken) -> None:
        """Unsubscribe by one click: from the mail's topic, or from everything where it has none."""
        await self._again(lambda: self._click(link))

    async def submit(self, link: LinkToken, submitted: Submission) -> UnsubscribeOutcome:
        """Change what is wanted, in one transaction."""
        return await self._again(lambda: self._submit(link, submitted))

    async def _again(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do it anew where a topic or the contact is deleted meanwhile."""
        for _ in range(TRIES - 1):
            try:
                return await work()
            except NotFound:
                continue
        return await work()

    async def _click(self, link: LinkToken) -> None:
        async with transaction(self._pool) as conn:
            db = TeamDb(conn, link.team_id)
            contact_id, topic_id = await queries.click(db, link.address, link.topic_id)
            topics: dict[UUID, Subscription] = {} if topic_id is None else {topic_id: "opt_out"}
            if contact_id is None:
                change = NOTHING if topics else ContactChange(unsubscribed=True)
                await self._upsert(db, link, change, topics)
            elif topics:
                await self._contacts.choose_topics(db, contact_id, topics)
            else:
                await self._contacts.set_unsubscribed(db, contact_id, unsubscribed=True)
            await self._count(db, link)

    async def _submit(self, link: LinkToken, submitted: Submission) -> UnsubscribeOutcome:
        async with transaction(self._pool) as conn:
            db = TeamDb(conn, link.team_id)
            known, before = await self._read(db, link, submitted)
            effect = _effect(before, known, submitted)
            await self._write(db, link, before, effect)
            left = [
                topic for topic, word in effect.topics.items() if word == "opt_out" and topic.is_subscribed
            ]
            joined = [
                topic for topic, word in effect.topics.items() if word == "opt_in" and not topic.is_subscribed
            ]
            _, now = await self._read(db, link, Submission(submitted.action))
        return UnsubscribeOutcome(
            submitted.action,
            now,
            left,
            joined,
            left_all=now.is_unsubscribed and not before.is_unsubscribed,
            came_back=before.is_unsubscribed and not now.is_unsubscribed,
        )

    async def _read(
        self, db: TeamDb, link: LinkToken, submitted: Submission
    ) -> tuple[Mapping[object, ShownTopic], Preferences]:
        """Return all topics that are asked for by id, and what the page shows."""
        who = await queries.recipient(db, link.address, link.email_id)
        own = [link.topic_id] if link.topic_id is not None else []
        asked = submitted.topics[:MOST_SHOWN] if submitted.action is UnsubscribeAction.RESUBSCRIBE else ()
        rows = await queries.topics(db, who.contact_id, MOST_SHOWN, [*own, *asked])
        topic = next((row for row in rows if row.id == link.topic_id), None)
        shown = [row for row in rows if row.is_public or row.is_subscribed]
        shown.sort(key=lambda row: (row.name.lower(), row.id))
        preferences = Preferences(
            address=link.address,
            sender=who.sender,
            is_unsubscribed=who.is_unsubscribed,
            topic=topic,
            topics=shown,
            settings=read(who.page_settings),
        )
        return {row.id: row for row in rows}, preferences

    async def _write(self, db: TeamDb, link: LinkToken, before: Preferences, effect: _Effect) -> None:
        topics = {topic.id: word for topic, word in effect.topics.items()}
        gone = effect.unsubscribed
        if topics or gone or (gone is False and before.is_unsubscribed):
            change = NOTHING if gone is None else ContactChange(unsubscribed=gone)
            await self._upsert(db, link, change, topics)
        if effect.is_opt_out:
            await self._count(db, link)

    async def _upsert(
        self, db: TeamDb, link: LinkToken, change: ContactChange, topics: Mapping[UUID, Subscription]
    ) -> None:
        await self._contacts.upsert(
            db, EmailAddress(link.address, None), change, ContactMemberships(topics=topics)
        )

    async def _count(self, db: TeamDb, link: LinkToken) -> None:
        """Count that somebody unsubscribed, once for a recipient of an email."""
        entry = TimelineEntry(
            team_id=link.team_id,
            email_id=link.email_id,
            position=link.position,
            kind=EventKind.UNSUBSCRIBED,
            at=self._clock.now(),
        )
        await self._timeline.record(db.connection, [entry])


def _effect(before: Preferences, known: Mapping[object, ShownTopic], submitted: Submission) -> _Effect:
    match submitted.action:
        case UnsubscribeAction.CONFIRM if before.topic is not None:
            return _Effect({before.topic: "opt_out"}, is_opt_out=True)
        case UnsubscribeAction.CONFIRM | UnsubscribeAction.ALL:
            return _Effect(unsubscribed=True, is_opt_out=True)
        case UnsubscribeAction.RESUBSCRIBE:
            wanted = {known[one]: "opt_in" for one in submitted.topics if one in known}
            return _Effect(dict.fromkeys(wanted, "opt_in"), unsubscribed=False)
        case UnsubscribeAction.PREFERENCES:
            return _chosen(before, submitted)
    raise AssertionError(submitted.action)


def _chosen(before: Preferences, submitted: Submission) -> _Effect:
    """Return the effect of the choices; topics that are not on the page are nobody's to choose."""
    checked = set(submitted.topics)
    asked = checked | set(submitted.shown)
    topics: dict[ShownTopic, Subscription] = {
        topic: "opt_in" if topic.id in checked else "opt_out" for topic in before.topics if topic.id in asked
    }
    leaves = any(word == "opt_out" and topic.is_subscribed for topic, word in topics.items())
    return _Effect(topics, is_opt_out=leaves)
