"""SQL of drafts. Whoever writes holds the lock of the inbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from pillarbox.inboxes.drafts.fields import DraftContent
from pillarbox.inboxes.sending.originals import texts_of
from pillarbox.kernel.postgres.database import TeamDb

GET = """
    SELECT d.id, d.to_list, d.cc_list, d.bcc_list, d.subject, d.html, d.text, d.thread_id,
           d.reply_to_email_id, d.email_id, d.created_at, d.updated_at, d.version,
           (SELECT json_agg(json_build_object('id', a.id, 'filename', a.filename,
                                              'content_type', a.content_type, 'size', a.size)
                            ORDER BY a.position)
              FROM inbox_draft_attachments a
             WHERE a.team_id = d.team_id AND a.draft_id = d.id) AS attachments
      FROM inbox_drafts d
     WHERE d.team_id = $1 AND d.inbox_id = $2 AND d.id = $3
"""

# Of the bodies as much as an excerpt is made of.
PAGE = """
    SELECT d.id, d.to_list, d.cc_list, d.bcc_list, d.subject, left(d.text, 4000) AS text,
           CASE WHEN d.text IS NULL THEN left(d.html, 32000) END AS html, d.thread_id, d.reply_to_email_id,
           d.updated_at,
           (SELECT json_agg(json_build_object('id', a.id, 'filename', a.filename,
                                              'content_type', a.content_type, 'size', a.size)
                            ORDER BY a.position)
              FROM inbox_draft_attachments a
             WHERE a.team_id = d.team_id AND a.draft_id = d.id) AS attachments
      FROM ((SELECT id, updated_at FROM inbox_drafts
              WHERE team_id = $1 AND inbox_id = $2 AND email_id IS NULL AND (updated_at, id) < ($3, $4)
              ORDER BY updated_at DESC, id DESC
              LIMIT $7)
            UNION ALL
            (SELECT id, updated_at FROM inbox_drafts
              WHERE team_id = $1 AND inbox_id = $2 AND email_id IS NULL AND (updated_at, id) > ($5, $6)
              ORDER BY updated_at, id
              LIMIT $7)) AS page
      JOIN inbox_drafts d ON d.team_id = $1 AND d.id = page.id
     ORDER BY d.updated_at DESC, d.id DESC
"""

PLACE = """
    SELECT updated_at, id
      FROM inbox_drafts
     WHERE team_id = $1 AND inbox_id = $2 AND id = $3 AND email_id IS NULL
"""

STATE = """
    SELECT email_id FROM inbox_drafts WHERE team_id = $1 AND inbox_id = $2 AND id = $3
"""

ANSWERING = """
    SELECT id, thread_id
      FROM inbox_drafts
     WHERE team_id = $1 AND inbox_id = $2 AND reply_to_email_id = $3 AND email_id IS NULL
"""

INSERT = """
    INSERT INTO inbox_drafts (team_id, id, inbox_id, thread_id, reply_to_email_id, to_list, cc_list, bcc_list,
                              subject, html, text, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
"""

COUNT = """
    UPDATE inboxes SET drafts = drafts + $3 WHERE team_id = $1 AND id = $2 RETURNING drafts
"""

COUNT_OF_THREAD = """
    UPDATE inbox_threads SET drafts = drafts + $3 WHERE team_id = $1 AND id = $2
"""

CHANGE = """
    UPDATE inbox_drafts
       SET to_list = $5, cc_list = $6, bcc_list = $7, subject = $8, html = $9, text = $10, updated_at = $11,
           version = version + 1
     WHERE team_id = $1 AND inbox_id = $2 AND id = $3 AND version = $4 AND email_id IS NULL
    RETURNING thread_id
"""

TOUCH = """
    UPDATE inbox_drafts
       SET updated_at = $3, version = version + 1
     WHERE team_id = $1 AND id = $2 AND email_id IS NULL
"""

DELETE = """
    DELETE FROM inbox_drafts
     WHERE team_id = $1 AND inbox_id = $2 AND id = $3 AND email_id IS NULL
    RETURNING thread_id
"""

# In one statement, because somebody waits for the mail.
SENT = """
    WITH sent AS (
        UPDATE inbox_drafts
           SET email_id = $5, updated_at = $6, version = version + 1
         WHERE team_id = $1 AND inbox_id = $2 AND id = $3 AND version = $4 AND email_id IS NULL
        RETURNING thread_id
    ), counted AS (
        UPDATE inbox_threads SET drafts = drafts - 1 WHERE team_id = $1 AND id IN (SELECT thread_id FROM sent)
    )
    UPDATE inboxes SET drafts = drafts - 1 WHERE team_id = $1 AND id = $2 AND EXISTS (SELECT FROM sent)
"""

ATTACH = """
    INSERT INTO inbox_draft_attachments (team_id, draft_id, id, position, filename, content_type, size, data,
                                         blob)
    SELECT $1, $2, k.*
      FROM unnest($3::uuid[], $4::smallint[], $5::text[], $6::text[], $7::bigint[], $8::bytea[], $9::text[])
           AS k (id, position, filename, content_type, size, data, blob)
"""

DETACH = """
    DELETE FROM inbox_draft_attachments WHERE team_id = $1 AND draft_id = $2 RETURNING blob
"""

# The octets of a draft that was sent are those of its email.
EMPTY_FILES = """
    WITH held AS (
        SELECT id, blob FROM inbox_draft_attachments WHERE team_id = $1 AND draft_id = $2 FOR UPDATE
    )
    UPDATE inbox_draft_attachments a
       SET data = NULL, blob = NULL
      FROM held
     WHERE a.team_id = $1 AND a.id = held.id
    RETURNING held.blob
"""

FILES = """
    SELECT id, filename, content_type, size, data, blob
      FROM inbox_draft_attachments
     WHERE team_id = $1 AND draft_id = $2
     ORDER BY position
"""

FILE = """
    SELECT a.id, a.filename, a.content_type, a.size
      FROM inbox_drafts d
      JOIN inbox_draft_attachments a ON a.team_id = d.team_id AND a.draft_id = d.id
     WHERE d.team_id = $1 AND d.inbox_id = $2 AND d.id = $3 AND a.id = $4
"""

OCTETS = """
    SELECT a.filename, a.content_type, a.size, a.data, a.blob, a.position, d.email_id
      FROM inbox_draft_attachments a
      JOIN inbox_drafts d ON d.team_id = a.team_id AND d.id = a.draft_id
     WHERE a.team_id = $1 AND a.id = $2
"""

EMAIL_OF = """
    SELECT email_id FROM inbox_drafts WHERE team_id = $1 AND id = $2
"""

_json = msgspec.json.Encoder().encode


class StoredDraft(NamedTuple):
    """A draft; the `*_list` columns and `attachments` hold the JSON of the wire."""

    id: UUID
    to_list: str | None
    cc_list: str
    bcc_list: str
    subject: str | None
    html: str | None
    text: str | None
    thread_id: UUID | None
    reply_to_email_id: UUID | None
    email_id: UUID | None
    created_at: datetime
    updated_at: datetime
    version: int
    attachments: str | None

    @property
    def content(self) -> DraftContent:
        to = None if self.to_list is None else texts_of(self.to_list)
        cc, bcc = texts_of(self.cc_list), texts_of(self.bcc_list)
        return DraftContent(to=to, cc=cc, bcc=bcc, subject=self.subject, html=self.html, text=self.text)


class ListedDraft(NamedTuple):
    """A draft as lists show it; of the bodies their beginning, html where there is no text."""

    id: UUID
    to_list: str | None
    cc_list: str
    bcc_list: str
    subject: str | None
    text: str | None
    html: str | None
    thread_id: UUID | None
    reply_to_email_id: UUID | None
    updated_at: datetime
    attachments: str | None


class DraftPosition(NamedTuple):
    """Where a draft stands in the list."""

    updated_at: datetime
    id: UUID


class DraftState(NamedTuple):
    """A draft that exists; `email_id` is there once it was sent."""

    email_id: UUID | None


class DraftReply(NamedTuple):
    """The unsent draft that answers an email."""

    id: UUID
    thread_id: UUID


class ChangedDraft(NamedTuple):
    """A draft that was changed or removed; `thread_id` is that of a reply."""

    thread_id: UUID | None


class NewFile(NamedTuple):
    """An attachment to be stored; its octets are here or in a blob."""

    id: UUID
    filename: str
    content_type: str
    size: int
    data: bytes | None
    blob: str | None


class DraftAttachmentFile(NamedTuple):
    """An attachment without its octets."""

    id: UUID
    filename: str
    content_type: str
    size: int


class AttachmentLocation(NamedTuple):
    """Where the octets of an attachment are: here, in a blob, or with the email that the draft has become."""

    filename: str
    content_type: str
    size: int
    data: bytes | None
    blob: str | None
    position: int
    email_id: UUID | None


async def get(db: TeamDb, inbox_id: UUID, draft_id: UUID) -> StoredDraft | None:
    return await db.one(StoredDraft, GET, inbox_id, draft_id)


async def page(
    db: TeamDb, inbox_id: UUID, below: DraftPosition | None, above: DraftPosition | None, limit: int
) -> list[ListedDraft]:
    """Return unsent drafts below one id, or above the other, up to `limit`, newest first."""
    return await db.all(
        ListedDraft, PAGE, inbox_id, *(below or (None, None)), *(above or (None, None)), limit
    )


async def place(db: TeamDb, inbox_id: UUID, draft_id: UUID) -> DraftPosition | None:
    return await db.one(DraftPosition, PLACE, inbox_id, draft_id)


async def state(db: TeamDb, inbox_id: UUID, draft_id: UUID) -> DraftState | None:
    return await db.one(DraftState, STATE, inbox_id, draft_id)


async def answering(db: TeamDb, inbox_id: UUID, email_id: UUID) -> DraftReply | None:
    """Return the unsent draft that answers this email."""
    return await db.one(DraftReply, ANSWERING, inbox_id, email_id)


async def insert(
    db: TeamDb,
    inbox_id: UUID,
    draft_id: UUID,
    thread_id: UUID | None,
    email_id: UUID | None,
    content: DraftContent,
    now: datetime,
) -> None:
    await db.run(INSERT, draft_id, inbox_id, thread_id, email_id, *_columns(content), now)


async def count(db: TeamDb, inbox_id: UUID, thread_id: UUID | None, by: int) -> int:
    """Count so many unsent drafts more, in the inbox and in the thread; returns how many the inbox has."""
    if thread_id is not None:
        await db.run(COUNT_OF_THREAD, thread_id, by)
    found: int = await db.value(COUNT, inbox_id, by)
    return found


async def change(
    db: TeamDb, inbox_id: UUID, draft: StoredDraft, content: DraftContent, now: datetime
) -> ChangedDraft | None:
    """Store what an unsent draft says, if it is still the one that was read."""
    return await db.one(ChangedDraft, CHANGE, inbox_id, draft.id, draft.version, *_columns(content), now)


async def touch(db: TeamDb, draft_id: UUID, now: datetime) -> None:
    """Note that the draft's attachments have changed."""
    await db.run(TOUCH, draft_id, now)


async def delete(db: TeamDb, inbox_id: UUID, draft_id: UUID) -> ChangedDraft | None:
    """Remove an unsent draft."""
    return await db.one(ChangedDraft, DELETE, inbox_id, draft_id)


async def sent(db: TeamDb, inbox_id: UUID, draft: StoredDraft, email_id: UUID, now: datetime) -> bool:
    """Note that the draft has become this email and counts no longer; False where it is not the unsent one
    that was read."""
    return await db.run(SENT, inbox_id, draft.id, draft.version, email_id, now) == 1


async def attach(db: TeamDb, draft_id: UUID, files: Sequence[NewFile]) -> None:
    if files:
        rows = [(f.id, at, f.filename, f.content_type, f.size, f.data, f.blob) for at, f in enumerate(files)]
        await db.run(ATTACH, draft_id, *zip(*rows, strict=True))


async def detach(db: TeamDb, draft_id: UUID) -> Sequence[str | None]:
    """Remove the attachments; returns their blobs."""
    return await db.values(DETACH, draft_id)


async def empty_files(db: TeamDb, draft_id: UUID) -> Sequence[str | None]:
    """Let go of the octets of a draft that was sent; returns the blobs."""
    return await db.values(EMPTY_FILES, draft_id)


async def files(db: TeamDb, draft_id: UUID) -> list[NewFile]:
    """Return the attachments with their octets."""
    return await db.all(NewFile, FILES, draft_id)


async def file(db: TeamDb, inbox_id: UUID, draft_id: UUID, attachment_id: UUID) -> DraftAttachmentFile | None:
    return await db.one(DraftAttachmentFile, FILE, inbox_id, draft_id, attachment_id)


async def octets(db: TeamDb, attachment_id: UUID) -> AttachmentLocation | None:
    return await db.one(AttachmentLocation, OCTETS, attachment_id)


async def email_of(db: TeamDb, draft_id: UUID) -> UUID | None:
    """Return the email that a draft has become."""
    found: UUID | None = await db.value(EMAIL_OF, draft_id)
    return found


def _columns(content: DraftContent) -> tuple[str | None, ...]:
    to = None if content.to is None else _text(content.to)
    return to, _text(content.cc), _text(content.bcc), content.subject, content.html, content.text


def _text(texts: Sequence[str]) -> str:
    return _json(list(texts)).decode()
