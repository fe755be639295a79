"""Checks what all machines of an installation share besides the database: the key ring and the blob store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import asyncpg

from pillarbox.doctor.checks import Check, Level
from pillarbox.kernel.security import ring_check, sealed_values
from pillarbox.kernel.security.ring_check import OtherKeyRing
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.settings import Settings, key_ring_text
from pillarbox.kernel.storage import store_check
from pillarbox.kernel.storage.blobs import BlobFailed, BlobStore
from pillarbox.kernel.storage.store_check import BlobStoreRefused

MOST_SHOWN: Final = 10
RING: Final = "The key ring is the one of this database"
OPENED: Final = "A secret can be decrypted"

REACH: Final = (
    "Check the URL of `--blob-url`, that the bucket exists, and AWS_ENDPOINT_URL, AWS_ALLOW_HTTP=true (for "
    "an http endpoint), AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the environment of the "
    "server and of this command (docs/guide/production.md)."
)


async def key_ring(pool: asyncpg.Pool, settings: Settings, columns: Sequence[SealedColumn]) -> list[Check]:
    """Check whether the ring is the one of the database, and opens all that is sealed there."""
    text = await asyncio.to_thread(key_ring_text, settings)
    ring = None if text is None else KeyRing.parse(text)
    try:
        ring_check.refuse_other_ring(settings, text, await ring_check.known_keys(pool))
    except OtherKeyRing as refused:
        return [
            Check(
                name="key_ring",
                level=Level.PROBLEM,
                title=RING,
                found="a key is missing",
                expected=None,
                step=str(refused),
            )
        ]
    found = await sealed_values.counted(pool, columns, ring)
    total = sum(found.by_key.values())
    checks = [
        Check("key_ring", Level.OK, RING, f"{total - len(found.unopened)} of {total} secrets decrypted")
    ]
    for one in found.unopened[:MOST_SHOWN]:
        checks.append(
            Check(
                name="key_ring.secret",
                level=Level.PROBLEM,
                title=OPENED,
                found="it cannot be",
                expected=None,
                step=one.sentence,
            )
        )
    return checks


async def blob_store(pool: asyncpg.Pool, settings: Settings) -> Check:
    """Check whether the blob store answers and is the one of the database; nothing is written."""
    name, title = "blob_store", "The blob store is the one of this database"
    blobs = BlobStore.open(settings.blobs)
    try:
        found, wanted = await store_check.id_in(blobs), await store_check.known_id(pool)
    except BlobFailed as trouble:
        return Check(
            name=name,
            level=Level.PROBLEM,
            title=title,
            found=f"it cannot be reached: {trouble.reason}",
            expected=None,
            step=REACH,
        )
    finally:
        await blobs.close()
    if wanted is None:
        return Check(name, Level.SKIPPED, title, "no server has begun with one yet")
    if found != wanted:
        return Check(
            name=name,
            level=Level.PROBLEM,
            title=title,
            found="it has no id" if found is None else f"it has the id {found}",
            expected=f"the id {wanted}",
            step=str(BlobStoreRefused(settings, found, wanted)),
        )
    return Check(name, Level.OK, title, f"it has the id {wanted}")
