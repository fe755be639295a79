"""Verifying an installation: whether emails, recipients, work, history, secrets and blobs fit together.

`pillarbox verify` and the dashboard call it. Nothing is written, but for blobs that no row names and that may
be collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import asyncpg

from pillarbox.emails.integrity import blob_references
from pillarbox.emails.integrity.blob_references import BlobReferences
from pillarbox.emails.integrity.reconcile import Gap, ReconcileResult, reconcile
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.invariant import Invariant
from pillarbox.kernel.security import sealed_values
from pillarbox.kernel.security.ring_check import known_keys
from pillarbox.kernel.security.sealed_values import SealedColumn
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.storage import store_check
from pillarbox.kernel.storage.blobs import BlobStore


@dataclass(frozen=True, slots=True)
class VerifiedInstallation:
    """The installation to verify. `ring` decrypts secrets; `ring_trouble` says why it is not its own."""

    settings: Settings
    pool: asyncpg.Pool
    invariants: Sequence[Invariant]
    sealed: Sequence[SealedColumn]
    ring: KeyRing | None
    ring_trouble: str | None = None


class Verification(NamedTuple):
    """The result: what was counted, and every gap."""

    result: ReconcileResult
    blobs: BlobReferences
    gaps: Sequence[Gap]


async def verified(
    installation: VerifiedInstallation, limit: int, *, collect: bool | None, adopts: bool = False
) -> Verification:
    """Return what fits together and every gap, at most `limit` of each kind.

    Raises BlobFailed where the blob store cannot be read. With `adopts` the store becomes the database's.
    """
    pool = installation.pool
    blobs = BlobStore.open(installation.settings.blobs)
    try:
        async with pool.acquire() as conn:
            if adopts:
                await store_check.adopt(conn, blobs)
            await store_check.compare(conn, blobs, installation.settings)
        result = await reconcile(pool, limit, installation.invariants)
        blob_result = await blob_references.take(pool, blobs, SystemClock().now(), limit, collect=collect)
    finally:
        await blobs.close()
    for gap in await secret_gaps(installation):
        result.add(gap, limit)
    return Verification(result, blob_result, [*result.gaps, *blob_result.gaps])


async def secret_gaps(installation: VerifiedInstallation) -> list[Gap]:
    """Return keys that the key ring lacks, and every secret that it cannot decrypt."""
    gaps = []
    if installation.ring_trouble is not None:
        gaps.append(Gap("key_ring_lacks_key", installation.ring_trouble, {}))
    found = await sealed_values.counted(installation.pool, installation.sealed, installation.ring)
    known = {key.id for key in await known_keys(installation.pool)}
    for key_id in sorted(set(found.by_key) - known):
        sentence = (
            f"The list of keys lacks {key_id}, which values need, so starts do not ask for it; "
            "`pillarbox keyring reseal` mends that."
        )
        gaps.append(Gap("key_not_listed", sentence, {"key_id": key_id}))
    for one in found.unopened:
        ids = {"team_id": one.team_id, "id": one.id, "key_id": one.key_id}
        gaps.append(Gap("secret_unreadable", one.sentence, ids))
    return gaps


def more(verification: Verification) -> set[str]:
    """Return the kinds of gaps of which not all are listed."""
    return verification.result.more | ({"blobs"} if verification.blobs.more else set())


def document(verification: Verification) -> dict[str, object]:
    """Return the result as `pillarbox verify --json` prints it."""
    result, blobs, gaps = verification
    return {
        "object": "verification",
        "ok": not gaps,
        "gaps": [{"name": gap.name, "sentence": gap.sentence, "ids": dict(gap.ids)} for gap in gaps],
        "more": sorted(more(verification)),
        "teams": result.teams,
        "emails": result.emails,
        "recipients": result.recipients,
        "accounts": [account._asdict() for account in result.accounts],
        "blobs": {
            "named": blobs.named,
            "unnamed": blobs.unnamed,
            "collected": blobs.collected,
            "withheld": blobs.withheld,
        },
    }
