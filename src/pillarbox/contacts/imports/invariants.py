"""The invariants of the rows of imports (`pillarbox.kernel.postgres.invariant`)."""

from __future__ import annotations

from pillarbox.contacts.imports.queries import JOB
from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "import_without_job",
        "The import {id} is {status}, and its team has no job that would do it.",
        """
        SELECT i.team_id, i.id, i.status
          FROM contact_imports i
         WHERE i.status IN ('queued', 'in_progress')
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = i.team_id AND j.kind = $2 AND j.subject_id = i.team_id)
         LIMIT $1
        """,
        (JOB,),
    ),
    Invariant(
        "import_without_file",
        "The import {id} is {status}, and names no file.",
        """
        SELECT team_id, id, status
          FROM contact_imports
         WHERE status IN ('queued', 'in_progress') AND (blob IS NULL OR checkpoint IS NULL)
         LIMIT $1
        """,
    ),
    Invariant(
        "import_counts_differ",
        "The import {id} counts {counted} rows, and its place in the file is behind {read}.",
        """
        SELECT team_id, id, created + updated + skipped + failed AS counted, (checkpoint->>'row')::bigint AS
        read
          FROM contact_imports
         WHERE checkpoint IS NOT NULL
           AND created + updated + skipped + failed <> (checkpoint->>'row')::bigint
         LIMIT $1
        """,
    ),
    Invariant(
        "imports_at_once",
        "The import {id} is in progress beside an older one of its team.",
        """
        SELECT i.team_id, i.id
          FROM contact_imports i
         WHERE i.status = 'in_progress'
           AND EXISTS (SELECT FROM contact_imports o
                        WHERE o.team_id = i.team_id AND o.id < i.id AND o.status IN ('queued', 'in_progress'))
         LIMIT $1
        """,
    ),
    Invariant(
        "import_error_without_import",
        "The row error {id} is one of {import_id}, which is no import.",
        """
        SELECT e.team_id, e.import_id, e.id
          FROM contact_import_errors e
         WHERE NOT EXISTS (SELECT FROM contact_imports i WHERE i.team_id = e.team_id AND i.id = e.import_id)
         LIMIT $1
        """,
    ),
)
