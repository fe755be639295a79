"""The invariants of messages and the blocks that index them (`pillarbox verify`)."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "message_not_described",
        "The message {id} of the inbox {inbox_id} is in no block, and searches do not find it.",
        """
        SELECT m.team_id, m.inbox_id, m.id
          FROM inbox_messages m
          JOIN inboxes i ON i.team_id = m.team_id AND i.id = m.inbox_id AND m.id <= i.described_to
          LEFT JOIN inbox_search_late l ON l.team_id = m.team_id AND l.inbox_id = m.inbox_id AND l.id = m.id
          LEFT JOIN (SELECT b.team_id, b.inbox_id,
                            encode(substring(b.messages FROM k.number * 32 + 1 FOR 16), 'hex')::uuid AS id
                       FROM inbox_search_blocks b
                      CROSS JOIN generate_series(0, b.columns - 1) AS k (number)) AS d
            ON d.team_id = m.team_id AND d.inbox_id = m.inbox_id AND d.id = m.id
         WHERE l.id IS NULL AND d.id IS NULL
         LIMIT $1
        """,
    ),
    Invariant(
        "block_without_parts",
        "The block {id} of the inbox {inbox_id} has not all parts of its matrix.",
        """
        SELECT b.team_id, b.inbox_id, b.id
          FROM inbox_search_blocks b
         WHERE (SELECT count(*) FROM inbox_search_rows r
                 WHERE r.team_id = b.team_id AND r.inbox_id = b.inbox_id AND r.block_id = b.id
                   AND octet_length(r.bits) = b.columns * 8) <> 128
         LIMIT $1
        """,
    ),
)
