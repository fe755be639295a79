"""The invariants of threads, their labels and their emails (`pillarbox verify`)."""

from __future__ import annotations

from pillarbox.inboxes.inbox.queries import JOB_REMOVE
from pillarbox.inboxes.labels.queries import JOB_REMOVE as JOB_REMOVE_LABEL
from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "label_without_thread",
        "The label {label_id} is on {thread_id}, and one of the two does not exist.",
        """
        SELECT k.team_id, k.label_id, k.thread_id
          FROM inbox_thread_labels k
         WHERE NOT EXISTS (SELECT FROM inbox_labels l
                            WHERE l.team_id = k.team_id AND l.id = k.label_id
                              AND EXISTS (SELECT FROM inbox_threads t
                                           WHERE t.team_id = k.team_id AND t.id = k.thread_id
                                             AND t.inbox_id = l.inbox_id))
           AND NOT EXISTS (SELECT FROM jobs j
                            WHERE j.team_id = k.team_id AND j.kind = $2 AND j.subject_id = k.label_id)
           AND NOT EXISTS (SELECT FROM inbox_threads t
                             JOIN jobs j
                               ON j.team_id = t.team_id AND j.kind = $3 AND j.subject_id = t.inbox_id
                            WHERE t.team_id = k.team_id AND t.id = k.thread_id)
         LIMIT $1
        """,
        (JOB_REMOVE_LABEL, JOB_REMOVE),
    ),
    Invariant(
        "label_elsewhere",
        "The label {label_id} does not stand in lists where its thread {thread_id} stands.",
        """
        SELECT k.team_id, k.label_id, k.thread_id
          FROM inbox_thread_labels k
          JOIN inbox_threads t ON t.team_id = k.team_id AND t.id = k.thread_id
         WHERE k.list_class <> t.list_class OR k.received_at <> t.received_at
         LIMIT $1
        """,
    ),
    Invariant(
        "message_of_free_email",
        "The inbox {inbox_id} has the message {id}, and its email does not name the inbox.",
        """
        SELECT m.team_id, m.inbox_id, m.id
          FROM inbox_messages m
         WHERE (EXISTS (SELECT FROM received_emails r WHERE r.team_id = m.team_id AND r.id = m.id)
                OR EXISTS (SELECT FROM emails e WHERE e.team_id = m.team_id AND e.id = m.id))
           AND NOT EXISTS (SELECT FROM received_emails r
                            WHERE r.team_id = m.team_id AND r.id = m.id AND m.inbox_id = ANY (r.inboxes))
           AND NOT EXISTS (SELECT FROM emails e
                            WHERE e.team_id = m.team_id AND e.id = m.id AND e.inbox_id = m.inbox_id)
         LIMIT $1
        """,
    ),
)
