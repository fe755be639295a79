"""SQL that stores copies of broadcasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pillarbox.emails.broadcast_copies.loading import SharedBy
from pillarbox.kernel.postgres.combined_statement import Statement, rows_json

STORE = """
    WITH made AS MATERIALIZED (
        SELECT k.*
          FROM json_to_recordset($1::text::json)
               AS k (id uuid, created_at timestamptz, address text, mailbox text, destination text,
                     personal text)
    ), heads AS (
        INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                            topic_id, domain_id, domain_name, broadcast_id, last_event, last_event_at)
        SELECT $2, id, created_at, $3, '', '', '[]', '', $4, $5, $6, $7, 'queued', created_at FROM made
    ), reached AS (
        INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state, personal)
        SELECT $2, id, 0, 'to', address, mailbox, 0, 'queued', personal::json FROM made
    )
    INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, owner, leased_until, attempt,
                            released, first_attempt_at, created_at)
    SELECT $2, id, 0, destination, $8, $9, $10, 1, true, created_at, created_at FROM made
"""


def stored(
    copies: Sequence[Mapping[str, Any]], shared: SharedBy, now: datetime, owner: UUID, leased_until: datetime
) -> Statement:
    """Return the statement that stores these copies with their recipients and their work, which `owner`
    has."""
    of_all = (shared.team_id, shared.content_id, shared.topic_id, shared.domain_id, shared.domain_name)
    return Statement(STORE, (rows_json(copies), *of_all, shared.broadcast_id, now, owner, leased_until))
