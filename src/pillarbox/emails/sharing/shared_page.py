"""The public page of a shared email: `GET /shared?token=` (emails.md 5.3, endpoint 10).

Everybody who has the link may read it until it expires; bcc is never on it, and reading it is not an open.
The page needs no further request: pictures of the mail stand in it as data.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.emails import queries
from pillarbox.emails.sharing.share import ShareLinks
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.tokens import TokenExpired, TokenInvalid
from pillarbox.kernel.storage.blobs import BlobMissing, BlobStore
from pillarbox.kernel.wire.problems import InvalidParameter, ServerOverloaded

PICTURES = frozenset(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "bmp", "avif"))
MOST_PICTURE_BYTES = 4 * 1024 * 1024
"""Inline pictures beyond this are left out of the page."""


@dataclass(frozen=True, slots=True)
class SharedEmail:
    """An email as the page shows it. `pictures` are `data:` addresses by content id."""

    sender: str
    to: Sequence[str]
    cc: Sequence[str]
    date: datetime
    subject: str
    html: str | None
    text: str | None
    attachments: Sequence[str]
    pictures: Mapping[str, str]


class SharedScreens(Protocol):
    """Draws the pages; the dashboard gives it."""

    def speak(self, accepted: str | None) -> None:
        """Set the language of the request's pages by its header Accept-Language."""
        ...

    async def email(self, team_id: UUID, shared: SharedEmail, is_gone: Callable[[], bool]) -> Reply[Html]:
        """Show the email. Raise ServerOverloaded; stop where `is_gone` says that nobody waits for it."""
        ...

    def busy(self, problem: ServerOverloaded) -> Reply[Html]: ...

    def expired(self) -> Reply[Html]: ...

    def unknown(self) -> Reply[Html]: ...


class SharedMailSource(Protocol):
    """Mail that can be shared and is not this slice's: a higher one gives it."""

    async def exists(self, db: TeamDb, email_id: UUID) -> bool: ...

    async def shared(self, db: TeamDb, email_id: UUID, is_gone: Callable[[], bool]) -> SharedEmail | None:
        """Return the email as the page shows it, None where it is gone. Raises ServerOverloaded; stops where
        `is_gone` says that nobody waits."""
        ...


@route(
    "GET",
    "/shared",
    needs=Access.PUBLIC,
    query={"token": str},
    pages=(404, 410),
    summary="Show a shared email to whoever has its link",
)
async def show(request: Request) -> Reply[Html]:
    """Show the page behind a share link."""
    screens = request.use(SharedScreens)  # type: ignore[type-abstract]
    screens.speak(request.header("accept-language"))
    try:
        team_id, email_id = request.use(ShareLinks).read(request.query.last("token") or "")
    except TokenExpired:
        return screens.expired()
    except (TokenInvalid, InvalidParameter):
        return screens.unknown()
    db = TeamDb(request.use(asyncpg.Pool), team_id)
    shared = await _sent(db, request.use(BlobStore), email_id)
    others = request.use(SharedMailSource)  # type: ignore[type-abstract]
    try:
        shared = shared or await others.shared(db, email_id, request.is_client_gone)
        if shared is None:
            return screens.unknown()
        return await screens.email(team_id, shared, request.is_client_gone)
    except ServerOverloaded as problem:
        return screens.busy(problem)


async def _sent(db: TeamDb, blobs: BlobStore, email_id: UUID) -> SharedEmail | None:
    found = await queries.get(db, email_id)
    if found is None:
        return None
    attached = await queries.attachments(db, email_id)
    return _shared(found, attached, await _pictures(db, blobs, attached))


def _shared(
    email: queries.EmailRow, attached: Sequence[queries.StoredAttachment], pictures: Mapping[str, str]
) -> SharedEmail:
    return SharedEmail(
        sender=email.sender,
        to=_texts(email.to_list),
        cc=_texts(email.cc_list),
        date=email.scheduled_at or email.created_at,
        subject=email.subject,
        html=email.html,
        text=email.text,
        attachments=[row.filename for row in attached if row.cid is None or row.cid not in pictures],
        pictures=pictures,
    )


async def _pictures(
    db: TeamDb, blobs: BlobStore, attached: Sequence[queries.StoredAttachment]
) -> dict[str, str]:
    """Return the pictures that the HTML may show, as `data:` addresses, up to the size limit."""
    found: dict[str, str] = {}
    room = MOST_PICTURE_BYTES
    for row in attached:
        kind = row.content_type.partition(";")[0].strip().lower()
        if row.cid is None or kind not in PICTURES or row.size > room:
            continue
        stored = await queries.attachment_bytes(db, row.id)
        if stored is None:
            continue
        room -= row.size
        found[row.cid] = f"data:{kind};base64,{b64encode(await _bytes(stored, blobs)).decode('ascii')}"
    return found


async def _bytes(stored: queries.AttachmentBytes, blobs: BlobStore) -> bytes:
    if stored.blob is None:
        return stored.data or b""
    try:
        return await blobs.get(stored.blob)
    except BlobMissing:
        return b""


def _texts(column: str | None) -> list[str]:
    return [] if column is None else msgspec.json.decode(column, type=list[str])
