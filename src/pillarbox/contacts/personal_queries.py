"""SQL of what imports, and acts on many contacts, have of a person."""

from __future__ import annotations

from pillarbox.kernel.postgres.database import TeamDb

ERASE_ERRORS = """
    UPDATE contact_import_errors
       SET email = CASE WHEN email IS NULL THEN NULL ELSE $4 END,
           reason = regexp_replace(reason, $3, $4, 'gi')
     WHERE team_id = $1 AND lower(concat_ws(' ', email, reason)) LIKE '%' || $2 || '%'
       AND lower(concat_ws(' ', email, reason)) ~ $3
"""


ERASE_IMPORTS = """
    UPDATE contact_imports
       SET preview = regexp_replace(preview::text, $3, $4, 'gi')::json,
           file_name = regexp_replace(file_name, $3, $4, 'gi'),
           consent_note = regexp_replace(consent_note, $3, $4, 'gi'),
           reason = regexp_replace(reason, $3, $4, 'gi')
     WHERE team_id = $1
       AND lower(concat_ws(' ', preview, file_name, consent_note, reason)) LIKE '%' || $2 || '%'
       AND lower(concat_ws(' ', preview, file_name, consent_note, reason)) ~ $3
"""

ERASE_BULK_ACTS = """
    UPDATE contact_bulk_acts
       SET search = regexp_replace(search, $3, $4, 'gi'),
           conditions = regexp_replace(conditions::text, $3, $4, 'gi')::json
     WHERE team_id = $1 AND ended_at IS NOT NULL
       AND lower(concat_ws(' ', search, conditions)) LIKE '%' || $2 || '%'
       AND lower(concat_ws(' ', search, conditions)) ~ $3
"""

BULK_ACTS_UNDER_WAY = """
    SELECT count(*) FROM contact_bulk_acts
     WHERE team_id = $1 AND ended_at IS NULL
       AND lower(concat_ws(' ', search, conditions)) LIKE '%' || $2 || '%'
       AND lower(concat_ws(' ', search, conditions)) ~ $3
"""


async def erase_imports(db: TeamDb, found_by: tuple[str, str], stands_for: str) -> int:
    """Replace the address in what imports say of their files; returns in how many."""
    return await db.run(ERASE_IMPORTS, *found_by, stands_for)


async def erase_bulk_acts(db: TeamDb, found_by: tuple[str, str], stands_for: str) -> int:
    """Replace the address in what bulk acts that ended were asked for; returns in how many."""
    return await db.run(ERASE_BULK_ACTS, *found_by, stands_for)


async def bulk_acts_under_way(db: TeamDb, found_by: tuple[str, str]) -> int:
    """Return how many bulk acts go on whose conditions name the address."""
    found: int = await db.value(BULK_ACTS_UNDER_WAY, *found_by)
    return found


async def erase_errors(db: TeamDb, found_by: tuple[str, str], stands_for: str) -> int:
    """Replace the address in the row errors of imports; returns in how many."""
    return await db.run(ERASE_ERRORS, *found_by, stands_for)
