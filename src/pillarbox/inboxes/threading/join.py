"""Putting messages into threads, in the caller's transaction.

    inboxes = await lock(conn, [message.inbox for message in messages])
    joined = await join(conn, publisher, ids, at, messages)

That is the way of mail that is sent. For received mail `planned` decides, `all_writes` gives the statements
that are run together with the rows of the mail, and `follow` does the rest
(`receiving/arrivals/inbox_commits.py`).

The caller holds the locks of the inboxes, and leaves out messages of inboxes that do not exist. Messages are
handled in their order: one may answer another. Their events are queued with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from pillarbox.inboxes.locking import InboxKey
from pillarbox.inboxes.threading import queries, thread_plan
from pillarbox.inboxes.threading.new_messages import JoinedThread, NewMessage
from pillarbox.inboxes.threading.queries import SubjectQuery
from pillarbox.inboxes.threading.thread_plan import KnownThreads, ThreadPlan
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import Connection, after_commit
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.mail.message.threading import bare_id, compared_subject, subject_key
from pillarbox.webhooks.publish import Publisher


async def join(
    conn: Connection, publisher: Publisher, ids: Ids, now: datetime, messages: Sequence[NewMessage]
) -> list[JoinedThread]:
    """Put each message into its thread or a new one; returns what became of each, in the same order.

    Raises NotFound where mail that is sent names a thread that its inbox has not.
    """
    plan = await planned(conn, ids, now, messages)
    await carry_out(conn, publisher, now, plan)
    return plan.joined


async def carry_out(conn: Connection, publisher: Publisher, now: datetime, plan: ThreadPlan) -> None:
    """Write what was decided, with its events."""
    if await queries.carry_out(conn, plan, now, publisher.referring(plan.told)):
        after_commit(conn, publisher.wake)


async def planned(
    conn: Connection, ids: Ids, now: datetime, messages: Sequence[NewMessage], *, if_new: bool = False
) -> ThreadPlan:
    """Decide about these messages, without writing: for a caller that has to know it before it writes.

    With `if_new` messages that name no earlier ones are not looked up: the plan holds if the inboxes do not
    know their ids, and writing it fails if they do.
    """
    are_new = if_new and not any(message.earlier_ids for message in messages)
    keys = [] if are_new else [key for message in messages for key in _ids_of(message)]
    found = await queries.by_ids(conn, keys)
    answered = await queries.threads(
        conn, [(message.inbox, message.thread_id) for message in messages if message.thread_id is not None]
    )
    by_subject = await queries.by_subject(conn, [one for m in messages if (one := _subject_of(m))])
    known = KnownThreads([*found.threads, *answered], found.messages, found.awaited)
    for thread in by_subject:
        known.threads.setdefault((thread.inbox, thread.id), thread).people.update(thread.people)
    for message in messages:
        if message.thread_id is not None and (message.inbox, message.thread_id) not in known.threads:
            raise NotFound("Thread")
    plan = thread_plan.plan(messages, known, ids.new, now)
    plan.are_new = are_new
    return plan


def _ids_of(message: NewMessage) -> list[tuple[tuple[UUID, UUID], str]]:
    """Return the ids by which its thread, and the message itself, may be known."""
    if not message.is_inbound:
        return []
    own = () if message.message_id is None else (bare_id(message.message_id),)
    return [(message.inbox, one) for one in (*own, *message.earlier_ids)]


def _subject_of(message: NewMessage) -> SubjectQuery | None:
    """Return the subject by which the thread of a message is looked up that names no earlier one; None where
    it has none."""
    if not message.is_inbound or message.names_earlier:
        return None
    subject = compared_subject(message.subject)
    key = subject_key(subject.text) if subject.is_answer else None
    if key is None:
        return None
    return SubjectQuery(message.inbox, key, message.sender_key, message.received_at - thread_plan.ACTIVE)


def all_writes(
    plan: ThreadPlan, instant: datetime, telling: Statement | None, described: Mapping[InboxKey, UUID]
) -> list[Statement]:
    """Return the statements that carry out the plan and queue its events; call `follow` after them. They
    raise StatementFailed where a message was planned as new and its id is known."""
    return queries.all_writes(plan, instant, telling, described)


async def follow(conn: Connection, plan: ThreadPlan) -> None:
    """Let the labels of changed threads stand where these stand now."""
    await queries.follow(conn, plan)
