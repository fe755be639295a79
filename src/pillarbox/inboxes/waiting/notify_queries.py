"""SQL that tells other processes which inboxes have changed."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.kernel.postgres.database import Source


async def notify(source: Source, channel: str, payloads: Sequence[str]) -> None:
    """Send a notification with each of these texts."""
    await source.execute(
        "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload", channel, payloads
    )
