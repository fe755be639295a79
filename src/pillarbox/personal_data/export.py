"""All that a team holds about an address, as one JSON file that is written as it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from pillarbox.kernel.personal_data import DataSubject, PersonalData, ReadPerson
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import IN_PLACE, in_thread_if_large
from pillarbox.kernel.wire import large_json
from pillarbox.kernel.wire.instants import iso_style

PIECE: Final = 64 * 1024
MEDIA: Final = "application/json; charset=utf-8"

_encode: Final = msgspec.json.Encoder().encode


def _characters(value: Any) -> int:
    """Return how long the texts of a record are together."""
    texts = value.values() if isinstance(value, dict) else ()
    return sum([len(text) for text in texts if isinstance(text, str)])


def _encoded(value: Any) -> bytes:
    """Return a record as JSON; long texts in pieces, so that other work goes on beside it."""
    return _encode(value) if _characters(value) <= IN_PLACE else b"".join(large_json.encoded(value))


def readers_of(sources: Iterable[PersonalData]) -> list[tuple[str, ReadPerson]]:
    """Return what is read for the file, by the names of its sections and in their order."""
    ordered = sorted(sources, key=lambda source: source.order)
    return [(source.name, source.read) for source in ordered if source.read is not None]


async def person_file(
    db: TeamDb, person: DataSubject, readers: Sequence[tuple[str, ReadPerson]], now: datetime
) -> AsyncIterator[bytes]:
    """Yield the file in pieces. Each section is a list, empty where the team holds nothing of the kind."""
    head = {"object": "personal_data", "email": person.given or person.address, "created_at": iso_style(now)}
    piece = bytearray(_encode(head)[:-1])
    for name, read in readers:
        piece += b"," + _encode(name) + b":["
        is_first = True
        async for value in read(db, person):
            piece += (b"" if is_first else b",") + await in_thread_if_large(
                _characters(value), _encoded, value
            )
            is_first = False
            if len(piece) >= PIECE:
                yield bytes(piece)
                piece.clear()
        piece += b"]"
    yield bytes(piece + b"}\n")
