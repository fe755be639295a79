"""The invariants of runs, their steps, their work and their versions."""

from __future__ import annotations

from pillarbox.kernel.postgres.invariant import Invariant

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "run_without_work",
        "The run {id} of an automation is running, and nothing is left for it to do.",
        """
        SELECT r.team_id, r.id
          FROM automation_runs r
         WHERE r.status = 'running'
           AND NOT EXISTS (SELECT FROM automation_work w WHERE w.team_id = r.team_id AND w.run_id = r.id)
         LIMIT $1
        """,
    ),
    Invariant(
        "work_without_run",
        "The step {position} of the run {run_id} is to be carried out, and the run is over or not there.",
        """
        SELECT w.team_id, w.run_id, w.position
          FROM automation_work w
         WHERE NOT EXISTS (SELECT FROM automation_runs r
                            WHERE r.team_id = w.team_id AND r.id = w.run_id AND r.status = 'running')
         LIMIT $1
        """,
    ),
    Invariant(
        "waiting_step_without_work",
        "The step {position} of the run {run_id} waits, and nothing will end it.",
        """
        SELECT s.team_id, s.run_id, s.position
          FROM automation_steps s
          JOIN automation_runs r ON r.team_id = s.team_id AND r.id = s.run_id AND r.status = 'running'
         WHERE s.status = 'waiting'
           AND NOT EXISTS (SELECT FROM automation_work w
                            WHERE w.team_id = s.team_id AND w.run_id = s.run_id
                              AND w.position = s.position AND w.waiting)
         LIMIT $1
        """,
    ),
    Invariant(
        "ended_step_with_work",
        "The step {position} of the run {run_id} is over, and would be carried out again.",
        """
        SELECT w.team_id, w.run_id, w.position
          FROM automation_work w
          JOIN automation_steps s
            ON s.team_id = w.team_id AND s.run_id = w.run_id AND s.position = w.position
         WHERE s.status NOT IN ('running', 'waiting')
         LIMIT $1
        """,
    ),
    Invariant(
        "step_without_run",
        "The step {position} belongs to the run {run_id}, which is not there.",
        """
        SELECT s.team_id, s.run_id, s.position
          FROM automation_steps s
         WHERE NOT EXISTS (SELECT FROM automation_runs r WHERE r.team_id = s.team_id AND r.id = s.run_id)
         LIMIT $1
        """,
    ),
    Invariant(
        "run_without_version",
        "The run {id} walks version {version} of its automation, which is not there.",
        """
        SELECT r.team_id, r.id, r.version
          FROM automation_runs r
         WHERE NOT EXISTS (SELECT FROM automation_versions v
                            WHERE v.team_id = r.team_id AND v.automation_id = r.automation_id
                              AND v.version = r.version)
         LIMIT $1
        """,
    ),
    Invariant(
        "work_out_of_reach",
        "The step {position} of the run {run_id} is due at {due_at}, so nothing carries it out.",
        """
        SELECT team_id, run_id, position, due_at::text
          FROM automation_work
         WHERE owner IS NULL AND due_at >= '9000-01-01' AND restored_due_at IS NULL
         LIMIT $1
        """,
    ),
)
