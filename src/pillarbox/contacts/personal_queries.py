"""SQL of what imports of contacts have of a person."""

from __future__ import annotations

from pillarbox.kernel.postgres.database import TeamDb

ERASE_ERRORS = """
    UPDATE contact_import_errors
       SET email = CASE WHEN email IS NULL THEN NULL ELSE $4 END,
           reason = regexp_replace(reason, $3, $4, 'gi')
     WHERE team_id = $1 AND lower(concat_ws(' ', email, reason)) LIKE '%' || $2 || '%'
       AND lower(concat_ws(' ', email, reason)) ~ $3
"""


async def erase_errors(db: TeamDb, found_by: tuple[str, str], stands_for: str) -> int:
    """Replace the address in the row errors of imports; returns in how many."""
    return await db.run(ERASE_ERRORS, *found_by, stands_for)
