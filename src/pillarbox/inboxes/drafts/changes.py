"""Drafts are created, changed and deleted here (inboxes.md 7.2 and 7.3).

Each change is one transaction that holds the lock of the inbox, counts, and queues its event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple
from uuid import UUID

from msgspec import UNSET

from pillarbox.inboxes import events
from pillarbox.inboxes.drafts import queries
from pillarbox.inboxes.drafts.attachments import DraftFiles
from pillarbox.inboxes.drafts.fields import EMPTY, DraftContent
from pillarbox.inboxes.drafts.queries import NewFile, StoredDraft
from pillarbox.inboxes.drafts.wire import DraftMembers, ReplyTo
from pillarbox.inboxes.events import DraftOfEvent
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.sending import queries as sending_queries
from pillarbox.inboxes.sending import recipients
from pillarbox.inboxes.sending.originals import Originals
from pillarbox.inboxes.sending.recipients import InboxAddresses
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http.request_recording import own_transaction
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Conflict, Invalid, NotFound
from pillarbox.kernel.work.team_turns import IsGone, never
from pillarbox.webhooks.publish import Publisher

MOST_UNSENT: Final = 10_000
"""Unsent drafts of one inbox."""

Finish = Callable[[TeamDb], Awaitable[None]]
"""The rest of a change's transaction; called last in it."""


class TooManyDrafts(Invalid):
    def __init__(self) -> None:
        super().__init__(f"An inbox may have at most {MOST_UNSENT} unsent drafts.")


class AlreadySent(Conflict):
    def __init__(self) -> None:
        super().__init__("This draft was already sent")


class DraftChanged(Conflict):
    def __init__(self) -> None:
        super().__init__("This draft was changed by another request. Try again.")


class CreatedDraft(NamedTuple):
    """A draft that was asked for; it may be the one that answers the same message already."""

    id: UUID
    is_new: bool


async def found(db: TeamDb, inbox_id: UUID, draft_id: UUID) -> StoredDraft:
    """Return the draft of the inbox, or raise a 404."""
    draft = await queries.get(db, inbox_id, draft_id)
    if draft is None:
        raise NotFound("Draft")
    return draft


async def hold(db: TeamDb, inbox_id: UUID) -> None:
    """Lock the inbox until the transaction ends; 404 where it is gone."""
    if not await lock(db.connection, [(db.team_id, inbox_id)]):
        raise NotFound("Inbox")


async def refuse_change(db: TeamDb, inbox_id: UUID, draft_id: UUID) -> None:
    """Raise why a draft could not be changed."""
    state = await queries.state(db, inbox_id, draft_id)
    if state is None:
        raise NotFound("Draft")
    raise DraftChanged if state.email_id is None else AlreadySent


class Drafts:
    """Changes drafts. Methods with `finish` make their own transaction and call it last in it."""

    def __init__(
        self, ids: Ids, clock: Clock, publisher: Publisher, originals: Originals, files: DraftFiles
    ) -> None:
        self._ids = ids
        self._clock = clock
        self._publisher = publisher
        self._originals = originals
        self._files = files

    async def create(
        self,
        db: TeamDb,
        inbox_id: UUID,
        fields: DraftMembers,
        reply_to: ReplyTo | None,
        *,
        finish: Callable[[TeamDb, CreatedDraft], Awaitable[None]],
        is_gone: IsGone = never,
        source: events.Source = events.API,
    ) -> CreatedDraft:
        """Create a draft; where there is one that answers the same message, that one stays and gets at most
        other attachments."""
        content = fields.over(EMPTY)
        accepted = () if fields.attachments is UNSET else fields.attachments
        content.check(len(accepted), may_be_empty=reply_to is not None)
        if reply_to is not None and content.to is None:
            content = content._replace(to=await self._answered(db, inbox_id, reply_to))
            content.check(len(accepted), may_be_empty=True)
        dropped: list[str | None] = []
        stored = self._files.stored(db.team_id, accepted, is_gone)
        async with stored as files, own_transaction(db) as held:
            await hold(held, inbox_id)
            existing = None
            if reply_to is not None:
                if not await sending_queries.has_message(held, inbox_id, *reply_to):
                    raise NotFound("Email")
                existing = await queries.answering(held, inbox_id, reply_to.email_id)
            if existing is None:
                made = await self._insert(held, inbox_id, content, reply_to, files, source)
            else:
                made = CreatedDraft(existing.id, is_new=False)
                if fields.attachments is not UNSET:
                    dropped += await self._reattach(held, inbox_id, existing, files, source)
            await finish(held, made)
        await self._files.forget(db.source, dropped)
        return made

    async def change(
        self,
        db: TeamDb,
        inbox_id: UUID,
        draft_id: UUID,
        fields: DraftMembers,
        *,
        finish: Finish,
        is_gone: IsGone = never,
        source: events.Source = events.API,
    ) -> None:
        """Change what an unsent draft says."""
        draft = await found(db, inbox_id, draft_id)
        if draft.email_id is not None:
            raise AlreadySent
        accepted = () if fields.attachments is UNSET else fields.attachments
        dropped: list[str | None] = []
        stored = self._files.stored(db.team_id, accepted, is_gone)
        async with stored as files, own_transaction(db) as held:
            await hold(held, inbox_id)
            now = self._clock.now()
            attached = len(files)
            if fields.attachments is UNSET:
                # Nothing took time since it was read, so it is read once more and nobody is refused.
                draft = await found(held, inbox_id, draft_id)
                attached = 0 if draft.attachments is None else 1
            content = fields.over(draft.content)
            content.check(attached)
            if await queries.change(held, inbox_id, draft, content, now) is None:
                await refuse_change(held, inbox_id, draft_id)
            if fields.attachments is not UNSET:
                dropped += await queries.detach(held, draft_id)
                await queries.attach(held, draft_id, files)
            ref = DraftOfEvent(
                team_id=db.team_id,
                inbox_id=inbox_id,
                draft_id=draft_id,
                thread_id=draft.thread_id,
                source=source,
            )
            await self._publisher.refer(held.connection, [events.draft_updated(ref, now)])
            await finish(held)
        await self._files.forget(db.source, dropped)

    async def delete(
        self,
        db: TeamDb,
        inbox_id: UUID,
        draft_id: UUID,
        *,
        finish: Finish,
        source: events.Source = events.API,
    ) -> None:
        """Remove an unsent draft."""
        async with own_transaction(db) as held:
            await hold(held, inbox_id)
            removed = await queries.delete(held, inbox_id, draft_id)
            if removed is None:
                await refuse_change(held, inbox_id, draft_id)
                return
            blobs = await queries.detach(held, draft_id)
            await queries.count(held, inbox_id, removed.thread_id, -1)
            ref = DraftOfEvent(
                team_id=db.team_id,
                inbox_id=inbox_id,
                draft_id=draft_id,
                thread_id=removed.thread_id,
                source=source,
            )
            await self._publisher.refer(held.connection, [events.draft_deleted(ref, self._clock.now())])
            await finish(held)
        await self._files.forget(db.source, blobs)

    async def _insert(
        self,
        db: TeamDb,
        inbox_id: UUID,
        content: DraftContent,
        reply_to: ReplyTo | None,
        files: list[NewFile],
        source: events.Source,
    ) -> CreatedDraft:
        stamp = self._ids.stamp()
        thread_id, email_id = reply_to or (None, None)
        await queries.insert(db, inbox_id, stamp.id, thread_id, email_id, content, stamp.at)
        await queries.attach(db, stamp.id, files)
        if await queries.count(db, inbox_id, thread_id, 1) > MOST_UNSENT:
            raise TooManyDrafts
        ref = DraftOfEvent(
            team_id=db.team_id, inbox_id=inbox_id, draft_id=stamp.id, thread_id=thread_id, source=source
        )
        await self._publisher.refer(db.connection, [events.draft_created(ref, stamp.at)])
        return CreatedDraft(stamp.id, is_new=True)

    async def _reattach(
        self,
        db: TeamDb,
        inbox_id: UUID,
        draft: queries.DraftReply,
        files: list[NewFile],
        source: events.Source,
    ) -> list[str | None]:
        """Replace the attachments of a draft; returns the blobs of the old ones."""
        now = self._clock.now()
        dropped = list(await queries.detach(db, draft.id))
        if not dropped and not files:
            return []
        await queries.attach(db, draft.id, files)
        await queries.touch(db, draft.id, now)
        ref = DraftOfEvent(
            team_id=db.team_id, inbox_id=inbox_id, draft_id=draft.id, thread_id=draft.thread_id, source=source
        )
        await self._publisher.refer(db.connection, [events.draft_updated(ref, now)])
        return dropped

    async def _answered(self, db: TeamDb, inbox_id: UUID, reply_to: ReplyTo) -> list[str]:
        """Return the recipients of an answer to this message."""
        inbox = await sending_queries.inbox(db, inbox_id)
        if inbox is None:
            raise NotFound("Inbox")
        target = await sending_queries.target(db, inbox_id, *reply_to)
        if target is None:
            raise NotFound("Email")
        original = await self._originals.original(db, target)
        own = InboxAddresses([inbox.email_address, inbox.receiving_address])
        return [one.text for one in recipients.reply(original.addressed, own, to_all=False).to]
