"""How a message that is sent becomes one of its inbox: in a thread that is given, or in a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec

from pillarbox.emails.rows import PreparedEmail
from pillarbox.inboxes.search.searched_text import SearchedMessage, searched_text
from pillarbox.inboxes.threading.join import join
from pillarbox.inboxes.threading.new_messages import NewMessage
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.webhooks.publish import Publisher

_encode = msgspec.json.Encoder().encode


class SentMessagePlace(NamedTuple):
    """Where a message that is sent belongs; with `is_new` the thread gets this id and begins with it."""

    inbox_id: UUID
    thread_id: UUID
    is_new: bool = False


class OutboundJoining:
    """Adds sent messages to threads. Who calls holds the lock of the inbox."""

    def __init__(self, ids: Ids, publisher: Publisher) -> None:
        self._ids = ids
        self._publisher = publisher

    async def join(self, db: TeamDb, place: SentMessagePlace, draft: PreparedEmail) -> None:
        """Add the message of this email, and queue what follows from it."""
        message = message_of(place, draft)
        await join(db.connection, self._publisher, self._ids, draft.at, [message])


def message_of(place: SentMessagePlace, draft: PreparedEmail) -> NewMessage:
    """Return the message that this email is in its inbox."""
    out = draft.outgoing
    return NewMessage(
        team_id=draft.team_id,
        inbox_id=place.inbox_id,
        id=draft.id,
        received_at=draft.at,
        is_inbound=False,
        sender=out.sender_text,
        sender_key=out.sender.key,
        to_list=_text(out.to_texts) or "[]",
        cc_list=_text(out.cc_texts),
        bcc_list=_text(out.bcc_texts),
        subject=out.subject,
        message_id=draft.message_id,
        attachments=len(draft.attachments),
        searched=_searched(draft),
        thread_id=None if place.is_new else place.thread_id,
        new_thread_id=place.thread_id if place.is_new else None,
    )


def _searched(draft: PreparedEmail) -> str:
    """Return the searched text of the mail, as of received mail. There is a text wherever the html says
    something."""
    out = draft.outgoing
    recipients = (*out.to_texts, *out.cc_texts, *out.bcc_texts)
    files = [row.filename for row in draft.attachments]
    return searched_text(
        SearchedMessage(
            subject=out.subject, sender=out.sender_text, recipients=recipients, filenames=files, text=out.text
        )
    )


def _text(texts: Sequence[str]) -> str | None:
    return _encode(list(texts)).decode() if texts else None
