"""Pictures of teams: uploaded into the blob store, and served to whoever reads their mail.

The name of a blob is random and is the address of the picture. So whoever has the address may see it, nobody
can find others by it, and serving one asks the blob store alone.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.documents import image_queries as queries
from pillarbox.documents.image_queries import TeamImage
from pillarbox.documents.pictures import MEDIA, PictureRefused, safe_picture
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread
from pillarbox.kernel.storage import blob_removal
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.kernel.work.team_turns import TeamTurns
from pillarbox.teams.allowances import TooMany, hold_count

FOLDER: Final = "images"
MOST: Final = 500
"""Pictures of a team."""
MOST_OCTETS: Final = 200 * 1024 * 1024
SHOWN: Final = 200
"""The newest so many are listed."""
LONGEST_NAME: Final = 200
LONGEST_ALT: Final = 500
NAME: Final = re.compile(r"[0-9a-f]{32}\.(png|jpg|gif)")
REFUSAL: Final = "Too many pictures are being read. Please try again in a moment."


@dataclass(frozen=True, slots=True)
class Images:
    """Adds, lists and removes pictures. `turns` lets one at a time be decoded, team by team."""

    pool: asyncpg.Pool
    blobs: BlobStore
    ids: Ids
    public_url: str
    turns: TeamTurns

    def address(self, image: TeamImage) -> str:
        """Return the address of a picture."""
        return f"{self.public_url}/i/{image.blob.rpartition('/')[2]}"

    async def add(self, db: TeamDb, name: str, alt: str, data: bytes) -> TeamImage:
        """Store a picture; raises PictureRefused and TooMany. `db` is outside of a transaction."""
        if not alt.strip():
            raise PictureRefused("Say in a few words what the picture shows.")
        async with self.turns.of(db.team_id, 1):
            picture = await in_thread(safe_picture, data)
        await _check_room(db, len(picture.data))
        blob = f"{FOLDER}/{secrets.token_hex(16)}.{picture.kind}"
        await self.blobs.put(blob, picture.data)
        stamp = self.ids.stamp()
        image = TeamImage(
            id=stamp.id,
            name=" ".join(name.split())[:LONGEST_NAME] or f"picture.{picture.kind}",
            alt=alt.strip()[:LONGEST_ALT],
            media=MEDIA[picture.kind],
            width=picture.width,
            height=picture.height,
            size=len(picture.data),
            blob=blob,
            created_at=stamp.at,
        )
        async with db.transaction() as inner:
            await hold_count(inner, "pictures")
            await _check_room(inner, image.size)
            await queries.insert(inner, image)
        return image

    async def newest(self, db: TeamDb) -> list[TeamImage]:
        """Return the newest pictures."""
        return await queries.newest(db, SHOWN)

    async def remove(self, db: TeamDb, image_id: UUID) -> None:
        """Remove a picture: mail that shows it shows its text from now on. 404 where there is none."""
        blob = await queries.remove(db, image_id)
        if blob is None:
            raise NotFound("Picture")
        # A blob that a backup may still name is collected later.
        if await blob_removal.is_allowed(self.pool):
            await self.blobs.delete(blob)


async def _check_room(db: TeamDb, octets: int) -> None:
    usage = await queries.usage(db)
    if usage.amount >= MOST or usage.octets + octets > MOST_OCTETS:
        raise TooMany(MOST, "pictures, and 200 MB of them")


def key_of(name: str) -> tuple[str, str] | None:
    """Return the blob and the media type of a picture's address; None where it is none."""
    found = NAME.fullmatch(name)
    return None if found is None else (f"{FOLDER}/{name}", MEDIA[found[1]])
