"""Safe texts of messages (inboxes.md 6.7): what a program may read of what a stranger wrote.

The fence around a text follows from the message by a key of the installation, so it is the same at each
reading, and no sender can know it. Texts are made when they are read and kept in memory for a minute. Making
one takes a turn of the team, as reading a message does, and a thread.
"""

from __future__ import annotations

from base64 import b32encode
from collections import OrderedDict
from typing import Final
from uuid import UUID

from pillarbox.inboxes.messages import wire
from pillarbox.inboxes.messages.queries import StoredMessage
from pillarbox.inboxes.messages.reading import IsGone, MessageReading
from pillarbox.inboxes.received_mail import MessageBody
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.mail.deception.hidden_text import hidden_text
from pillarbox.mail.deception.instructions import instructions
from pillarbox.mail.deception.safe_text import fenced, safe_line, safe_mailbox, safe_text

PURPOSE: Final = b"pillarbox fence"
FENCE_OCTETS: Final = 10
"""Those of a fence, which nobody can guess."""
KEPT_SECONDS: Final = 60.0
MOST_KEPT: Final = 64
COSTLIER: Final = 8
"""An octet of a message takes so much more time here than where messages are only read."""

_Key = tuple[UUID, UUID, int, str, str | None]
"""Team and message with all that its text is made of: one that is erased is not found any more."""


class SafeTexts:
    """Makes the safe texts of messages, and keeps those that were made last."""

    def __init__(self, reading: MessageReading, keys: LinkKeys, clock: Clock) -> None:
        self._reading = reading
        self._keys = keys
        self._clock = clock
        self._kept: OrderedDict[_Key, tuple[float, wire.SafeText]] = OrderedDict()

    async def of(self, db: TeamDb, row: StoredMessage, is_gone: IsGone) -> wire.SafeText:
        """Return the safe text of this message, the same at each call while its content is the same."""
        octets = await self._reading.octets(db, row)
        key = db.team_id, row.id, octets, row.sender, row.subject
        kept = self._kept.get(key)
        if kept is not None and kept[0] <= self._clock.boottime() < kept[0] + KEPT_SECONDS:
            return kept[1]
        fence = await self._fence(db.team_id, row)
        async with self._reading.body(db, row, is_gone) as body:
            length = len(body.text or "") + len(body.html or "")
            made = await in_thread_if_large(length * COSTLIER, _safe_text, row, body, fence)
        self._kept[key] = self._clock.boottime(), made
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return made

    async def _fence(self, team_id: UUID, row: StoredMessage) -> str:
        """Return the mark of the message: part of what AES-SIV makes of its id, which is random to others."""
        key = await self._keys.maker(row.received_at)
        made = key.cipher.encrypt(team_id.bytes + row.id.bytes, [PURPOSE])[:FENCE_OCTETS]
        return b32encode(made).decode("ascii").lower()


def _safe_text(row: StoredMessage, body: MessageBody, fence: str) -> wire.SafeText:
    words = safe_text(body.text, body.html, row.subject)
    head = f"From: {safe_mailbox(row.sender)}\nSubject: {safe_line(row.subject)}\n"
    hidden = hidden_text(body.html, body.text, row.subject)
    seen_hints = {one.code for one in instructions(f"{row.sender}\n{row.subject or ''}\n{words.text}")}
    hidden_hints = {one.code for one in instructions(hidden.all_text)}
    return wire.SafeText(
        id=row.id,
        fence=fence,
        text=fenced(f"{head}\n{words.text}".rstrip(), fence),
        truncated=words.is_cut,
        hidden=[
            wire.SafeTextHidden(kind=kind, characters=found.characters)
            for kind, found in hidden.kinds.items()
        ],
        instructions=[
            *(wire.SafeTextInstruction(code=code, hidden=False) for code in sorted(seen_hints)),
            *(wire.SafeTextInstruction(code=code, hidden=True) for code in sorted(hidden_hints)),
        ],
    )
