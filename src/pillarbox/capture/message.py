"""A captured message as it is shown: its headers, its bodies, its other parts.

Any octets can be read, in time linear in their number: mail that was received stands among the captured mail,
and what is attached to captured mail may be anything. An attached message stays closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pillarbox.mail.message import parse
from pillarbox.mail.message.bodies import AttachedPart

PICTURES = frozenset(
    f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "bmp", "avif", "x-icon", "vnd.microsoft.icon")
)
"""Types that a browser only ever draws; SVG is not one of them."""

_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")


class ShownHeader(NamedTuple):
    name: str
    value: str


class CapturedPart(NamedTuple):
    """A part that is not a body of the message. `number` is its place among all leaves."""

    number: int
    filename: str
    content_type: str
    cid: str | None
    inline: bool
    size: int

    @property
    def is_picture(self) -> bool:
        return self.content_type in PICTURES


@dataclass(frozen=True, slots=True)
class CapturedMessage:
    """A message as it is shown."""

    headers: list[ShownHeader]
    html: str | None
    text: str | None
    parts: list[CapturedPart]

    def header(self, name: str) -> str | None:
        """Return the first header of that name."""
        return next((h.value for h in self.headers if h.name.lower() == name.lower()), None)


def read(raw: bytes) -> CapturedMessage:
    """Return the message in `raw`."""
    found = parse.parse(raw)
    return CapturedMessage(
        [ShownHeader(header.name, header.value) for header in found.headers],
        found.html,
        found.text,
        [_part(number, attachment) for number, attachment in _numbered(found)],
    )


def part(raw: bytes, number: int) -> tuple[CapturedPart, bytes] | None:
    """Return one part that is not a body, with its bytes; None where there is no such part."""
    found = parse.parse(raw)
    for place, attachment in _numbered(found):
        if place == number:
            return _part(place, attachment), found.content(attachment)
    return None


def _numbered(parsed_message: parse.ParsedMessage) -> Iterator[tuple[int, AttachedPart]]:
    """Yield the attachments with their places among the leaves; files inside of a text come behind all
    leaves."""
    places = {id(leaf): place for place, leaf in enumerate(parsed_message.root.leaves())}
    for attachment in parsed_message.attachments:
        yield places.setdefault(id(attachment.part), len(places)), attachment


def _part(number: int, attachment: AttachedPart) -> CapturedPart:
    kind = attachment.content_type
    return CapturedPart(
        number=number,
        filename=attachment.filename or f"part-{number}",
        content_type=kind if _TYPE.fullmatch(kind) else "application/octet-stream",
        cid=attachment.content_id,
        inline=attachment.content_disposition == "inline",
        size=attachment.size,
    )
