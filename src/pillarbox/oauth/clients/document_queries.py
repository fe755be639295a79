"""SQL of documents and logos that were fetched from the sites of programs. They belong to no team."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.work.collectors import changed


class StoredDocument(NamedTuple):
    """A document as JSON text, and whether it may be used without fetching it again."""

    document: str
    is_fresh: bool


class ClientLogo(NamedTuple):
    """A logo that may be shown."""

    media: str
    octets: bytes


async def find(source: Source, hash_: bytes, now: datetime, expired_after: datetime) -> StoredDocument | None:
    """Return the document of a URL, if it expires after an instant."""
    row = await source.fetchrow(
        """
        SELECT document, expires_at > $2 AS is_fresh FROM oauth_documents WHERE hash = $1 AND expires_at > $3
        """,
        hash_,
        now,
        expired_after,
    )
    return None if row is None else StoredDocument(*row)


async def store(
    source: Source, hash_: bytes, url: str, document: str, now: datetime, expires_at: datetime
) -> None:
    """Store the document of a URL, in place of an earlier one."""
    await source.execute(
        """
    INSERT INTO oauth_documents (hash, url, document, fetched_at, expires_at)
    VALUES ($1, $2, $3::json, $4, $5)
    ON CONFLICT (hash) DO UPDATE
       SET document = excluded.document, fetched_at = excluded.fetched_at, expires_at = excluded.expires_at
        """,
        hash_,
        url,
        document,
        now,
        expires_at,
    )


async def find_logo(source: Source, hash_: bytes, now: datetime) -> ClientLogo | None:
    """Return the logo of a URL, if it has not expired."""
    row = await source.fetchrow(
        """
        SELECT media, octets FROM oauth_logos WHERE hash = $1 AND expires_at > $2
        """,
        hash_,
        now,
    )
    return None if row is None else ClientLogo(*row)


async def store_logo(
    source: Source, hash_: bytes, url: str, logo: ClientLogo, now: datetime, expires_at: datetime
) -> None:
    """Store the logo of a URL, in place of an earlier one."""
    await source.execute(
        """
        INSERT INTO oauth_logos (hash, url, media, octets, fetched_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (hash) DO UPDATE
           SET media = excluded.media, octets = excluded.octets, fetched_at = excluded.fetched_at,
               expires_at = excluded.expires_at
        """,
        hash_,
        url,
        *logo,
        now,
        expires_at,
    )


async def remove(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` documents that expired before an instant; return how many."""
    return changed(
        await source.execute(
            """
        DELETE FROM oauth_documents
         WHERE hash IN (SELECT hash FROM oauth_documents WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
            """,
            before,
            limit,
        )
    )


async def remove_logos(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` logos that expired before an instant; return how many."""
    return changed(
        await source.execute(
            """
            DELETE FROM oauth_logos
             WHERE hash IN (SELECT hash FROM oauth_logos WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
            """,
            before,
            limit,
        )
    )
