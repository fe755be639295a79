"""Which thread a message joins, and what that makes of the thread (inboxes.md sections 8 and 9). Pure.

The messages are decided one after the other, so one may answer another of the same commit. Who asks holds the
locks of the inboxes, so what is `KnownThreads` is so until the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.inboxes import events, folders
from pillarbox.inboxes.events import ThreadRef
from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.inboxes.locking import InboxKey
from pillarbox.inboxes.threading.new_messages import JoinedThread, NewMessage
from pillarbox.mail.message.threading import bare_id, compared_subject, id_key, subject_key
from pillarbox.webhooks.publish import Reference

ACTIVE: Final = timedelta(days=30)
"""A thread that was active so lately may be joined by the subject alone (inboxes.md 9.5)."""


MOST_NAMED: Final = 10
"""Of the ids that a message names, so many of the nearest and of the first are waited for."""


class KnownMessage(NamedTuple):
    """A message that an inbox has; `message_id` is without brackets."""

    inbox: InboxKey
    id: UUID
    thread_id: UUID
    is_inbound: bool
    sender_key: str
    message_id: str
    body_key: bytes | None


@dataclass(slots=True)
class ThreadState:
    """A thread as it is, or as it will be. `subject` is that of its first message; `people` are the addresses
    of those who take part, as far as somebody asked for them."""

    inbox: InboxKey
    id: UUID
    subject: str | None
    folder: ThreadFolder
    messages: int
    inbound: int
    unread: int
    has_attachment: bool
    last_message_id: UUID
    received_at: datetime
    created_at: datetime
    marks: int = 0
    people: set[str] = field(default_factory=set)
    is_new: bool = False
    is_changed: bool = False

    @property
    def is_counted(self) -> bool:
        """Whether it is one of the unread threads of its inbox."""
        return self.folder is ThreadFolder.INBOX and self.unread > 0


class KnownThreads:
    """The threads and messages of the inboxes, as far as the messages of a commit may need them."""

    def __init__(
        self,
        threads: Iterable[ThreadState],
        messages: Iterable[KnownMessage],
        awaited: Mapping[tuple[InboxKey, int], UUID] | None = None,
    ) -> None:
        self._awaited = dict(awaited or {})
        self.threads = {(thread.inbox, thread.id): thread for thread in threads}
        self._messages: dict[tuple[InboxKey, str], list[KnownMessage]] = {}
        for message in messages:
            self.add(message)

    def add(self, message: KnownMessage) -> None:
        self._messages.setdefault((message.inbox, message.message_id), []).append(message)

    def with_id(self, inbox: InboxKey, message_id: str) -> Sequence[KnownMessage]:
        """Return the messages of the inbox with this Message-ID, in the order in which they came."""
        return self._messages.get((inbox, message_id), ())

    def awaiting(self, inbox: InboxKey, message_id: str) -> UUID | None:
        """Return the thread whose messages name this id, which no message of the inbox has."""
        return self._awaited.get((inbox, id_key(message_id)))

    def await_message(self, inbox: InboxKey, message_id: str, thread_id: UUID) -> None:
        self._awaited[inbox, id_key(message_id)] = thread_id

    def replace(self, old: KnownMessage, new: KnownMessage) -> None:
        found = self._messages[old.inbox, old.message_id]
        found[found.index(old)] = new


class PlacedMessage(NamedTuple):
    """A message that is to be written, with its thread."""

    message: NewMessage
    thread_id: UUID


class ReturnedMessage(NamedTuple):
    """A message that the inbox has sent and that came back to it: its row becomes that of a received one."""

    inbox: InboxKey
    id: UUID
    body_key: bytes | None


@dataclass(slots=True)
class ThreadPlan:
    """The rows to write, and the thread of each message. `are_new`: nobody has looked up the ids of the
    messages, so the statements that write them check."""

    joined: list[JoinedThread] = field(default_factory=list)
    placed: list[PlacedMessage] = field(default_factory=list)
    returned: list[ReturnedMessage] = field(default_factory=list)
    threads: list[ThreadState] = field(default_factory=list)
    unread: dict[InboxKey, int] = field(default_factory=dict)
    told: list[Reference] = field(default_factory=list)
    awaited: dict[tuple[InboxKey, int], UUID] = field(default_factory=dict)
    are_new: bool = False


def plan(
    messages: Sequence[NewMessage], known: KnownThreads, new_id: Callable[[], UUID], instant: datetime
) -> ThreadPlan:
    """Decide about these messages, in their order."""
    return _ThreadPlanner(known, new_id, instant).of(messages)


class _ThreadPlanner:
    def __init__(self, known: KnownThreads, new_id: Callable[[], UUID], instant: datetime) -> None:
        self._known = known
        self._new_id = new_id
        self._at = instant
        self._plan = ThreadPlan()
        self._by_subject: dict[tuple[InboxKey, str], list[ThreadState]] = {}
        for thread in known.threads.values():
            self._note_subject(thread)

    def of(self, messages: Sequence[NewMessage]) -> ThreadPlan:
        before = {key: thread.is_counted for key, thread in self._known.threads.items()}
        for message in messages:
            self._plan.joined.append(self._decide(message))
        for key, thread in self._known.threads.items():
            if thread.is_new or thread.is_changed:
                self._plan.threads.append(thread)
            change = thread.is_counted - before.get(key, False)
            if change:
                self._plan.unread[thread.inbox] = self._plan.unread.get(thread.inbox, 0) + change
        return self._plan

    def _decide(self, message: NewMessage) -> JoinedThread:
        if message.is_inbound and message.message_id is not None:
            same = self._known.with_id(message.inbox, bare_id(message.message_id))
            for one in same if not message.is_spam else ():
                if not one.is_inbound and one.sender_key == message.sender_key:
                    return self._return(one, message)
            for one in same:
                is_equal = one.is_inbound and one.body_key is not None and one.body_key == message.body_key
                # A copy that came another way and is no spam is not hidden behind one that is.
                if is_equal and (message.is_spam or not self._is_spam(one)):
                    return JoinedThread(one.thread_id, one.id, is_stored=False)
        thread = self._thread_of(message)
        if thread is None:
            thread = self._begin(message)
            self._tell(events.thread_created, thread, message.id)
        else:
            self._join(thread, message)
        self._plan.placed.append(PlacedMessage(message, thread.id))
        self._tell(events.email_received if message.is_inbound else events.email_sent, thread, message.id)
        self._remember(thread, message)
        if message.is_inbound and not message.is_spam:
            self._await_earlier(thread, message)
        return JoinedThread(thread.id, message.id, is_stored=True)

    # Which thread -----------------------------------------------------------------------------------

    def _thread_of(self, message: NewMessage) -> ThreadState | None:
        if not message.is_inbound:
            return None if message.thread_id is None else self._of(message.inbox, message.thread_id)
        thread = self._by_ids(message) or self._by_awaited(message)
        if thread is None and not message.names_earlier:
            thread = self._of_subject(message)
        if thread is not None and message.is_spam and thread.folder is not ThreadFolder.SPAM:
            return None
        return thread

    def _by_ids(self, message: NewMessage) -> ThreadState | None:
        """Return the thread of the first id that the inbox knows. Of several messages with that id, the one
        that was sent from here counts, since nobody else has made its id; then the first that is not spam;
        then the first. So nobody can draw answers to themselves by using an id again."""
        for earlier in message.earlier_ids:
            found = [
                (one, thread)
                for one in self._known.with_id(message.inbox, earlier)
                if (thread := self._of(message.inbox, one.thread_id)) is not None
            ]
            if found:
                ranked = [
                    (not one.is_inbound, thread.folder is not ThreadFolder.SPAM) for one, thread in found
                ]
                return found[max(range(len(found)), key=lambda place: (*ranked[place], -place))][1]
        return None

    def _by_awaited(self, message: NewMessage) -> ThreadState | None:
        """Return the thread that waits for this message, or for one that this message names as well. Spam
        waits for nothing, so nobody is drawn into it."""
        own = [] if message.message_id is None else [bare_id(message.message_id)]
        if own and self._known.with_id(message.inbox, own[0]):
            own = []
        for message_id in (*own, *message.earlier_ids):
            thread_id = self._known.awaiting(message.inbox, message_id)
            thread = None if thread_id is None else self._of(message.inbox, thread_id)
            if thread is not None and thread.folder is not ThreadFolder.SPAM:
                return thread
        return None

    def _await_earlier(self, thread: ThreadState, message: NewMessage) -> None:
        """Let the thread wait for what the message names and the inbox has not: the nearest and the first."""
        ids = message.earlier_ids
        named = ids if len(ids) <= 2 * MOST_NAMED else (*ids[:MOST_NAMED], *ids[-MOST_NAMED:])
        for message_id in named:
            waiting = self._known.awaiting(message.inbox, message_id)
            is_waited_for = waiting is not None and self._of(message.inbox, waiting) is not None
            if not is_waited_for and not self._known.with_id(message.inbox, message_id):
                self._known.await_message(message.inbox, message_id, thread.id)
                self._plan.awaited[message.inbox, id_key(message_id)] = thread.id

    def _of_subject(self, message: NewMessage) -> ThreadState | None:
        subject = compared_subject(message.subject)
        if not subject.is_answer or not subject.text:
            return None
        threads = [
            thread
            for thread in self._by_subject.get((message.inbox, subject.text), ())
            if thread.folder not in (ThreadFolder.SPAM, ThreadFolder.TRASH)
            and thread.received_at > message.received_at - ACTIVE
            and message.sender_key in thread.people
        ]
        return max(threads, key=lambda thread: (thread.received_at, thread.id), default=None)

    def _is_spam(self, message: KnownMessage) -> bool:
        thread = self._of(message.inbox, message.thread_id)
        return thread is not None and thread.folder is ThreadFolder.SPAM

    def _of(self, inbox: InboxKey, thread_id: UUID) -> ThreadState | None:
        return self._known.threads.get((inbox, thread_id))

    # What it makes of the thread --------------------------------------------------------------------

    def _begin(self, message: NewMessage) -> ThreadState:
        inbound = int(message.is_inbound)
        thread = ThreadState(
            message.inbox,
            message.new_thread_id or self._new_id(),
            message.subject or None,
            folders.of_first_message(is_inbound=message.is_inbound, is_spam=message.is_spam),
            messages=1,
            inbound=inbound,
            unread=inbound,
            has_attachment=message.attachments > 0,
            last_message_id=message.id,
            received_at=message.received_at,
            created_at=message.received_at,
            is_new=True,
        )
        self._known.threads[thread.inbox, thread.id] = thread
        self._note_subject(thread)
        return thread

    def _join(self, thread: ThreadState, message: NewMessage) -> None:
        thread.is_changed = True
        thread.messages += 1
        thread.inbound += message.is_inbound
        thread.unread += message.is_inbound
        thread.has_attachment = thread.has_attachment or message.attachments > 0
        if message.received_at >= thread.received_at:
            thread.received_at, thread.last_message_id = message.received_at, message.id
        if message.is_inbound:
            self._move(thread, folders.after_inbound(thread.folder))
        else:
            self._move(thread, folders.after_outbound(thread.folder, has_inbound=thread.inbound > 0))

    def _return(self, sent: KnownMessage, message: NewMessage) -> JoinedThread:
        """Plan that the inbox's own message, which came back to it, becomes a received one (9.3)."""
        thread = self._of(sent.inbox, sent.thread_id)
        if thread is None:
            raise LookupError("a message without its thread")
        thread.is_changed = True
        thread.inbound += 1
        thread.unread += 1
        self._move(thread, folders.after_inbound(thread.folder))
        self._known.replace(sent, sent._replace(is_inbound=True, body_key=message.body_key))
        self._plan.returned.append(ReturnedMessage(sent.inbox, sent.id, message.body_key))
        self._tell(events.email_received, thread, sent.id)
        return JoinedThread(thread.id, sent.id, is_stored=False)

    def _move(self, thread: ThreadState, folder: ThreadFolder) -> None:
        if folder is thread.folder:
            return
        team_id, inbox_id = thread.inbox
        ref = ThreadRef(team_id, inbox_id, thread.id, events.SYSTEM)
        self._plan.told.append(events.folder_updated(ref, self._at, thread.folder, folder))
        thread.folder = folder

    # What the next messages of the commit find ------------------------------------------------------

    def _remember(self, thread: ThreadState, message: NewMessage) -> None:
        thread.people.add(message.sender_key)
        if message.message_id is not None:
            self._known.add(
                KnownMessage(
                    inbox=message.inbox,
                    id=message.id,
                    thread_id=thread.id,
                    is_inbound=message.is_inbound,
                    sender_key=message.sender_key,
                    message_id=bare_id(message.message_id),
                    body_key=message.body_key,
                )
            )

    def _note_subject(self, thread: ThreadState) -> None:
        text = compared_subject(thread.subject).text
        if text:
            self._by_subject.setdefault((thread.inbox, text), []).append(thread)

    def _tell(self, event: events.MessageEvent, thread: ThreadState, email_id: UUID) -> None:
        team_id, inbox_id = thread.inbox
        self._plan.told.append(event(team_id, self._at, inbox_id, thread.id, email_id))


def key_of_subject(subject: str | None) -> int | None:
    """Return the key by which threads are looked up by their subject."""
    return subject_key(compared_subject(subject).text)
