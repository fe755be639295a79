"""SQL of documents and logos that were fetched from the sites of programs. They belong to no team."""

from __future__ import annotations

from typing import Final

FIND: Final = """
    SELECT document, expires_at > $2 AS is_fresh FROM oauth_documents WHERE hash = $1 AND expires_at > $3
"""

KEEP: Final = """
    INSERT INTO oauth_documents (hash, url, document, fetched_at, expires_at)
    VALUES ($1, $2, $3::json, $4, $5)
    ON CONFLICT (hash) DO UPDATE
       SET document = excluded.document, fetched_at = excluded.fetched_at, expires_at = excluded.expires_at
"""

FIND_LOGO: Final = """
    SELECT media, octets FROM oauth_logos WHERE hash = $1 AND expires_at > $2
"""

KEEP_LOGO: Final = """
    INSERT INTO oauth_logos (hash, url, media, octets, fetched_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (hash) DO UPDATE
       SET media = excluded.media, octets = excluded.octets, fetched_at = excluded.fetched_at,
           expires_at = excluded.expires_at
"""

REMOVE: Final = """
    DELETE FROM oauth_documents
     WHERE hash IN (SELECT hash FROM oauth_documents WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
"""

REMOVE_LOGOS: Final = """
    DELETE FROM oauth_logos
     WHERE hash IN (SELECT hash FROM oauth_logos WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
"""
