"""A message that is about to be put into a thread, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.inboxes.locking import InboxKey
from pillarbox.inboxes.trust.message_facts import MessageSigns


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message of one inbox; the `*_list` fields are JSON text as the wire shows them.

    `message_id` has its brackets. `sender_key` is the address of the sender in lower case. `body_key` is a
    hash of what stands behind the header, of mail that came in. Such mail finds its thread by `earlier_ids`
    (the nearest first, `mail.message.threading`) or by its subject, unless `names_earlier` says that it had
    one of the header fields for ids; its trust is judged by `signs`. Mail that is sent belongs to
    `thread_id`, or begins a thread, which gets the id `new_thread_id` where there is one.
    """

    team_id: UUID
    inbox_id: UUID
    id: UUID
    received_at: datetime
    is_inbound: bool
    sender: str
    sender_key: str
    to_list: str
    cc_list: str | None = None
    bcc_list: str | None = None
    reply_to_list: str | None = None
    subject: str | None
    message_id: str | None
    attachments: int = 0
    is_automatic: bool = False
    searched: str
    thread_id: UUID | None = None
    new_thread_id: UUID | None = None
    earlier_ids: tuple[str, ...] = ()
    names_earlier: bool = False
    body_key: bytes | None = None
    is_spam: bool = False
    signs: MessageSigns | None = None

    @property
    def inbox(self) -> InboxKey:
        return self.team_id, self.inbox_id


class JoinedThread(NamedTuple):
    """The thread that a message joined; `is_stored` is false for a message that the inbox had already. Where
    the inbox has sent it itself, `message_id` is that of the earlier row."""

    thread_id: UUID
    message_id: UUID
    is_stored: bool
