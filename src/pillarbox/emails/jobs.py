"""Periodic jobs of emails: they remove what is old, and blobs without a row."""

from __future__ import annotations

from datetime import timedelta

import asyncpg

from pillarbox.emails.integrity import blob_references
from pillarbox.emails.own_mail import sealed_queries
from pillarbox.emails.retention import EmailRetention
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.periodic import Periodic


class OrphanBlobs:
    """Collects blobs that no row names: a crash between writing one and its commit leaves them."""

    def __init__(
        self, pool: asyncpg.Pool, clock: Clock, blobs: BlobStore, *, days: int, is_ours: bool
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._blobs = blobs
        self._days = days
        self._is_ours = is_ours

    async def collect(self) -> str:
        """Delete those older than so many days; says what was done."""
        if not self._days:
            return "orphan blobs are kept"
        before = self._clock.now() - timedelta(days=self._days)
        found = await blob_references.collect_unnamed(self._pool, self._blobs, before, is_ours=self._is_ours)
        kept = f", kept because {found.withheld}" if found.withheld else ""
        return f"{found.collected} of {found.unnamed} orphan blobs{kept}"


def email_periodic(kept: EmailRetention, orphans: OrphanBlobs, pool: asyncpg.Pool) -> list[Periodic]:
    """Return the periodic jobs of emails."""

    async def retention() -> str:
        return f"{await kept.purge_emails()} emails, {await kept.purge_bodies()} bodies"

    async def sealed() -> str:
        return f"{await sealed_queries.remove_done(pool)} sealed mails"

    return [
        Periodic("emails.sealed", timedelta(minutes=5), sealed, quiet=True),
        Periodic("emails.retention", timedelta(hours=1), retention, depends=kept.settings),
        Periodic("emails.orphan_blobs", timedelta(days=1), orphans.collect),
    ]
