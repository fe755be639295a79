"""The parts that the copies of a broadcast share, read once and cut at their placeholders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from pillarbox.delivery.items import CopyBodies
from pillarbox.emails.broadcast_copies import content_queries
from pillarbox.emails.broadcast_copies.content_queries import CopyContent
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.mail.html import preview
from pillarbox.mail.html.links import Tracker, tracked
from pillarbox.mail.html.plain_text import text_of
from pillarbox.mail.message.address import Mailbox, parse_mailbox
from pillarbox.mail.placeholders.contact_values import ContactValues, contact_value, is_link
from pillarbox.mail.placeholders.parsing import ParsedTemplate, Placeholder, parse
from pillarbox.mail.placeholders.rendering import Lookup, RenderTarget, Value, ValueOrigin, rendered

MOST_KEPT = 16
MOST_OCTETS = 32 * 1024 * 1024
"""Contents that are kept in memory, unless one alone is larger."""


@dataclass(frozen=True, slots=True)
class SharedBodies:
    """The bodies. The HTML is cut where the preview text goes; without a text of its own the text is
    made of the rendered HTML."""

    html: tuple[ParsedTemplate, ParsedTemplate] | None
    preview: ParsedTemplate | None
    text: ParsedTemplate | None
    has_own_text: bool

    @property
    def placeholders(self) -> Iterable[Placeholder]:
        """All of their placeholders."""
        parts = [*(self.html or ()), self.preview, self.text]
        return [found for part in parts if part is not None for found in part.placeholders]

    def made(self, values: ContactValues, url: str | None, tracker: Tracker | None = None) -> CopyBodies:
        """Return the bodies of one copy; `url` is its link to unsubscribe, without which the words for
        it stay."""
        lookup = _lookup(values, url)
        html, text = None, None
        if self.html is not None:
            before, after = (rendered(part, lookup, RenderTarget.HTML) for part in self.html)
            if not self.has_own_text:
                text = text_of(before + after) or None
            block = ""
            if self.preview is not None:
                block = preview.block(rendered(self.preview, lookup, RenderTarget.TEXT))
            html = before + block + after
            if tracker is not None:
                html = tracked(html, tracker)
        if self.text is not None:
            text = rendered(self.text, lookup, RenderTarget.TEXT) or None
        return CopyBodies(html, text, ())


@dataclass(frozen=True, slots=True)
class SharedParts:
    """The content of a broadcast."""

    sender: Mailbox
    reply_to: Sequence[Mailbox]
    subject: ParsedTemplate
    bodies: SharedBodies
    octets: int

    @property
    def placeholders(self) -> Iterable[Placeholder]:
        """All of its placeholders."""
        return [*self.subject.placeholders, *self.bodies.placeholders]

    def subject_for(self, values: ContactValues) -> str:
        """Return the subject as this contact gets it. Links have no place in it, and stay as they
        are written."""
        return rendered(self.subject, _lookup(values, None), RenderTarget.SUBJECT)


class KnownParts:
    """The contents that were used last. A content never changes, so what is known stays true."""

    def __init__(self) -> None:
        self._known: dict[tuple[UUID, UUID], SharedParts] = {}

    async def of(self, conn: Connection, team_id: UUID, content_id: UUID) -> SharedParts:
        """Return the content of this id. Raise LookupError where it is gone."""
        key = (team_id, content_id)
        known = self._known.pop(key, None)
        if known is None:
            content = await content_queries.of_copies(conn, team_id, content_id)
            if content is None:
                raise LookupError("the content of a broadcast is missing")
            octets = len(content.html or "") + len(content.text or "")
            known = await in_thread_if_large(octets, parts_of, content)
        self._known[key] = known
        while len(self._known) > 1 and (
            len(self._known) > MOST_KEPT or sum(one.octets for one in self._known.values()) > MOST_OCTETS
        ):
            del self._known[next(iter(self._known))]
        return known


def parts_of(content: CopyContent) -> SharedParts:
    """Return the parts of a content."""
    html, text, preview_text = content.html, content.text, content.preview_text
    replies = content.reply_to_list
    return SharedParts(
        sender=parse_mailbox(content.sender),
        reply_to=[parse_mailbox(one) for one in msgspec.json.decode(replies)] if replies else [],
        subject=parse(content.subject),
        bodies=bodies_of(html, text, preview_text),
        octets=sum(len(part or "") for part in (html, text, preview_text)),
    )


def bodies_of(html: str | None, text: str | None, preview_text: str | None) -> SharedBodies:
    """Return the bodies as they were given, in pieces."""
    return SharedBodies(
        _cut(html, parse(html)) if html else None,
        parse(preview_text) if preview_text else None,
        parse(text) if text else None,
        text is not None,
    )


def _cut(source: str, parsed: ParsedTemplate) -> tuple[ParsedTemplate, ParsedTemplate]:
    """Return the HTML before and behind the place of the preview text."""
    place = preview.place(source)
    if any(found.start < place < found.end for found in parsed.placeholders):
        place = 0
    before = sum(found.end <= place for found in parsed.placeholders)
    begin = parsed.placeholders[before - 1].end if before else 0
    whole = parsed.texts[before]
    at = place - begin
    return (
        ParsedTemplate((*parsed.texts[:before], whole[:at]), parsed.placeholders[:before]),
        ParsedTemplate((whole[at:], *parsed.texts[before + 1 :]), parsed.placeholders[before:]),
    )


def _lookup(values: ContactValues, url: str | None) -> Lookup:
    link = None if url is None else Value(url, ValueOrigin.OWN_URL)

    def value(placeholder: Placeholder) -> Value | None:
        return link if is_link(placeholder.name) else contact_value(values, placeholder)

    return value
